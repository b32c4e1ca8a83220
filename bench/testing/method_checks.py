"""All checks of a method."""

from collections.abc import Iterator

from bench.testing import declarations, method_draws, method_training
from bench.testing.check import Check
from bench.testing.problems import PROBLEMS
from bench.testing.subject import MethodSubject


def method_checks() -> Iterator[Check[MethodSubject]]:
    """Yield every check that a method has to pass, the fast ones first."""
    yield declarations.OPTIONS
    yield declarations.VERSION
    documented = "its documentation has a first line, an equation and a reference"
    yield Check("docstring", documented, declarations.check_method_docstring)
    yield Check("search-space", "every value worth searching can be built", declarations.check_search_space)
    yield declarations.expected_failures_check(method_checks)
    yield declarations.LOOK
    yield Check("skip", "skip returns None or a reason, and not a reason for every task", _skip)
    yield Check("shapes", "draws have the right shape and are float32", method_draws.check_shapes)
    yield Check("finite", "draws are finite near the data and far from it", method_draws.check_finite)
    stated = "what it states about a row depends on that row and draw alone"
    yield Check("prediction", stated, method_draws.check_prediction)
    yield Check("probabilities", "the probabilities of the classes sum to 1", method_draws.check_probabilities)
    yield Check("seeded", "the same seed gives the same draws to the last bit", method_draws.check_seeded)
    yield Check("draws-differ", "draws that read random numbers differ, networks too", method_draws.check_draws_differ)
    yield Check("many-draws", "T = 1 and T = 1000 work and share their first draw", method_draws.check_many_draws)
    yield Check("exchangeable", "the order of the draws carries no information", method_draws.check_exchangeable)
    yield Check("global-randomness", "global random generators are untouched", method_draws.check_global_randomness)
    yield Check("no-state", "drawing changes nothing", method_draws.check_no_state)
    yield Check("round-trip", "a network written to a file and read back draws the same", method_draws.check_round_trip)
    yield Check("learns", "it predicts a simple function better than a constant", method_training.check_learns)
    yield Check("watched", "early stopping and search have a finite loss to watch", method_training.check_watched)
    yield Check("stack-invariance", "alone as among others, up to rounding", method_training.check_stack_invariance)
    yield Check("last-bit", "alone as among others, to the last bit", method_training.check_last_bit)
    yield Check("plain-path", "the same without vmap, up to rounding", method_training.check_plain_path)
    yield Check("ensemble-of-one", "an ensemble of one is its first network", method_training.check_ensemble_of_one)
    yield Check("tiny-data", "it survives one, two and three rows", method_training.check_tiny_data)
    yield Check("constant-targets", "it survives targets that are all the same", method_training.check_constant_targets)
    yield Check("missing-class", "it survives a class without training rows", method_training.check_missing_class)
    elsewhere = "on a second device its hooks leave their tensors there and compute the same"
    yield Check("second-device", elsewhere, method_training.check_second_device)
    yield Check("draws-stay", "a draw on an accelerator copies and waits for nothing", method_draws.check_draws_stay)
    exact = "with more rows its variance falls as the exact posterior's"
    yield Check("variance-shrinks", exact, method_training.check_variance_shrinks)
    yield Check("cost", "a step, a draw and its tensors cost at most 100 plain networks", method_training.check_cost)


def _skip(subject: MethodSubject) -> None:
    declarations.check_reasons([subject.plugin.skip(problem) for problem in PROBLEMS.values()])
