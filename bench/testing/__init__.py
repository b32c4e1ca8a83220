"""The conformance kit: what every method, dataset and report is asked to pass, for pytest and 'uqbench verify'.

A test file of a plug-in's author:

    @pytest.mark.parametrize("check", method_checks(), ids=str)
    def test_conformance(check):
        run_check(check, MyMethod())
"""

from bench.testing.check import Check, CheckFailure, NotApplicable, Verdict
from bench.testing.dataset_checks import dataset_checks
from bench.testing.method_checks import method_checks
from bench.testing.report_checks import report_checks
from bench.testing.verify import run_check, verify

__all__ = [
    "Check",
    "CheckFailure",
    "NotApplicable",
    "Verdict",
    "dataset_checks",
    "method_checks",
    "report_checks",
    "run_check",
    "verify",
]
