"""All checks of a method, one at a time."""

from collections.abc import Iterator

from bench.testing import declarations, method_draws, method_training
from bench.testing.check import Check, require
from bench.testing.problems import PROBLEMS
from bench.testing.subject import MethodSubject


def method_checks() -> Iterator[Check[MethodSubject]]:
    """Yield every check that a method is asked to pass, the quick ones first."""
    yield Check("options", "it is a frozen dataclass and every option has a default", _options)
    yield Check("version", "its version is a text that can be part of a key", _version)
    yield Check("docstring", "its documentation has a first line, an equation and a reference", _docstring)
    yield Check("search-space", "every value worth searching can be built", _search_space)
    yield Check("expected-failures", "its excuses are about checks that exist, each with a reason", _expected_failures)
    yield Check("skip", "skip returns None or a reason, and not a reason for every task", _skip)
    yield Check("shapes", "draws have the right shape and are float32", method_draws.check_shapes)
    yield Check("finite", "draws are finite near the data and far from it", method_draws.check_finite)
    yield Check("probabilities", "classes have probabilities that sum to 1", method_draws.check_probabilities)
    yield Check("seeded", "the same seed gives the same draws to the last bit", method_draws.check_seeded)
    yield Check("draws-differ", "draws that read random numbers differ, networks too", method_draws.check_draws_differ)
    yield Check("many-draws", "T = 1 and T = 1000 work and begin alike", method_draws.check_many_draws)
    yield Check("exchangeable", "the order of the draws carries no information", method_draws.check_exchangeable)
    yield Check("global-randomness", "global random generators are untouched", method_draws.check_global_randomness)
    yield Check("no-state", "drawing changes nothing", method_draws.check_no_state)
    yield Check("round-trip", "a network written to a file and read back draws the same", method_draws.check_round_trip)
    yield Check("learns", "it predicts a simple function better than a constant", method_training.check_learns)
    yield Check("stack-invariance", "alone as among others, up to rounding", method_training.check_stack_invariance)
    yield Check("last-bit", "alone as among others, to the last bit", method_training.check_last_bit)
    yield Check("plain-path", "the same without vmap, up to rounding", method_training.check_plain_path)
    yield Check("tiny-data", "it survives one, two and three rows", method_training.check_tiny_data)
    yield Check("constant-targets", "it survives targets that are all the same", method_training.check_constant_targets)
    yield Check("missing-class", "it survives a class without training rows", method_training.check_missing_class)
    yield Check(
        "variance-shrinks",
        "with more rows its variance falls as the exact posterior's",
        method_training.check_variance_shrinks,
    )
    yield Check("cost", "a step, a draw and what is kept are at most 100 plain networks", method_training.check_cost)


def _options(subject: MethodSubject) -> None:
    declarations.check_options(subject.method)


def _version(subject: MethodSubject) -> None:
    declarations.check_version(subject.method)


def _docstring(subject: MethodSubject) -> None:
    declarations.check_method_docstring(subject.method)


def _search_space(subject: MethodSubject) -> None:
    declarations.check_search_space(subject.method)


def _expected_failures(subject: MethodSubject) -> None:
    declarations.check_expected_failures(subject.method, [check.name for check in method_checks()])


def _skip(subject: MethodSubject) -> None:
    reasons = [subject.method.skip(problem) for problem in PROBLEMS.values()]
    for reason in reasons:
        declarations.check_reason(reason, "skip")
    require(None in reasons, "skip refuses both regression and classification on rows of numbers")
