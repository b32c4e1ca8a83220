"""Runs the checks on a plug-in."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from bench.api import Dataset, Estimator, Method, Metric, Network, Report, Wrapper
from bench.testing.check import Check, Verdict, chosen_checks, judge, settle
from bench.testing.dataset_checks import DatasetSubject, dataset_checks
from bench.testing.estimator_checks import estimator_checks
from bench.testing.estimator_subject import EstimatorSubject
from bench.testing.method_checks import method_checks
from bench.testing.metric_checks import MetricSubject, metric_checks
from bench.testing.network_checks import NetworkSubject, network_checks
from bench.testing.report_checks import ReportSubject, report_checks
from bench.testing.subject import MethodSubject
from bench.testing.wrapper_checks import wrapper_checks
from bench.testing.wrapper_subject import WrapperSubject

Plugin = Method | Estimator | Wrapper | Dataset | Network | Report | Metric
Subject = (
    MethodSubject | EstimatorSubject | WrapperSubject | DatasetSubject | NetworkSubject | ReportSubject | MetricSubject
)
KINDS: dict[type[Any], tuple[Callable[[], Iterator[Check[Any]]], Callable[[Any], Subject]]] = {
    Method: (method_checks, MethodSubject),
    Estimator: (estimator_checks, EstimatorSubject),
    Wrapper: (wrapper_checks, WrapperSubject),
    Dataset: (dataset_checks, DatasetSubject),
    Network: (network_checks, NetworkSubject),
    Report: (report_checks, ReportSubject),
    Metric: (metric_checks, MetricSubject),
}


def checks_of(plugin: Plugin) -> list[Check[Any]]:
    """Return the checks of a plug-in of this kind."""
    return list(_kind(plugin)[0]())


def subject_of(plugin: Plugin) -> Subject:
    """Return the plug-in as its checks take it, with room for what several of them need."""
    return _kind(plugin)[1](plugin)


@lru_cache(maxsize=1)
def _same_subject(plugin: Plugin) -> Subject:
    """Return the subject of the previous call if its plug-in was equal: a test file trains once."""
    return subject_of(plugin)


def run_check(check: Check[Any], plugin: Plugin) -> Verdict:
    """Run one check inside a test; the test fails if the check does, and is skipped if that is expected."""
    try:
        subject = _same_subject(plugin)
    except TypeError:  # an option is not hashable
        subject = subject_of(plugin)
    return settle(judge(check, subject, _expected_failures(plugin)))


def verify(plugin: Plugin, only: Collection[str] = ()) -> Iterator[Verdict]:
    """Run all checks of a plug-in, or those named in `only`; yield each verdict as soon as it is known."""
    checks, subject = chosen_checks(checks_of(plugin), only), subject_of(plugin)
    for check in checks:
        yield judge(check, subject, _expected_failures(plugin))


def _expected_failures(plugin: Plugin) -> Mapping[str, str]:
    """Return the checks that a plug-in is right to fail; there is none that a metric could be."""
    return {} if isinstance(plugin, Metric) else plugin.expected_failures


def _kind(plugin: Plugin) -> tuple[Callable[[], Iterator[Check[Any]]], Callable[[Any], Subject]]:
    for contract, kind in KINDS.items():
        if isinstance(plugin, contract):
            return kind
    raise TypeError(
        f"{type(plugin).__name__} is not a Method, Estimator, Wrapper, Dataset, Network, Report or Metric; "
        "give run_check an instance, not a class"
    )
