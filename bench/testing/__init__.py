"""The conformance kit: the checks that every plug-in has to pass, for pytest and 'uqbench verify'.

In the test file of a plug-in:

    @pytest.mark.parametrize("check", method_checks(), ids=str)
    def test_conformance(check):
        run_check(check, MyMethod())

A second device shows what a GPU would not forgive, without one: `miniature()`, with `crossings()` and `queue()`.

The tests of a report have `example_results()`: results to write a section about, without a run.
"""

from bench.testing.check import Check, CheckFailure, NotApplicable, Verdict
from bench.testing.dataset_checks import dataset_checks
from bench.testing.estimator_checks import estimator_checks
from bench.testing.method_checks import method_checks
from bench.testing.metric_checks import metric_checks
from bench.testing.miniature import Crossing, crossings, miniature
from bench.testing.miniature_queue import DeviceQueue, queue
from bench.testing.network_checks import network_checks
from bench.testing.report_checks import report_checks
from bench.testing.report_results import ExampleResults, example_results
from bench.testing.verify import run_check, verify
from bench.testing.wrapper_checks import wrapper_checks

__all__ = ["Check", "CheckFailure", "Crossing", "DeviceQueue", "ExampleResults", "NotApplicable", "Verdict"]
__all__ += ["crossings", "dataset_checks", "estimator_checks", "example_results", "method_checks", "metric_checks"]
__all__ += ["miniature", "network_checks", "queue", "report_checks", "run_check", "verify", "wrapper_checks"]
