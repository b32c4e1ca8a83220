"""Which method to use, as far as the tests of the first table carry an answer."""

from collections.abc import Mapping, Sequence

from bench.reports._answers import NOTABLE
from bench.reports._costs import MethodCost, numbers_text, times_text
from bench.reports._page_tests import PageTests
from bench.reports._standings import Board

QUESTION = "Which to use"


def choice(
    own: Sequence[Board],
    baseline: str | None,
    costs: Mapping[str, MethodCost],
    tests: PageTests,
    *,
    unequal: bool = False,
) -> str:
    """Return who was shown to be better than the baseline and worse by nothing, and the cheapest that nothing beats.

    Empty where there is no baseline, or too few repeats for a test by every metric of the table. `unequal` says that
    methods were run with different repeats.
    """
    if baseline is None or not all(any(one.tested for one in board.standings.values()) for board in own):
        return ""
    better = {m: by for m in _methods(own) if (by := _metrics(own, m, "better"))}
    worse = {m for m in _methods(own) if _metrics(own, m, "worse")}
    clear = [f"{m} (by {', '.join(by)})" for m, by in better.items() if m not in worse]
    if clear:
        first = f"Better than {baseline} by some of these metrics and not shown to be worse by any: {', '.join(clear)}."
    elif better:
        first = f"Every method that is better than {baseline} by one of these metrics is worse by another."
    else:
        first = f"Nothing was shown to be better than {baseline} by any of these metrics."
    if not all(one.whole for board in own for one in board.standings.values()):
        if unequal:
            return f"{first} Some methods lack repeats: run the same seeds of all before you choose by cost."
        return f"{first} No cheapest is named: some methods have no value in every repeat, (n of m) in the table."
    kept = unbeaten_methods(own, baseline, tests)
    if not kept:
        return f"{first} Every method was shown to be worse than another by one of them: it depends on what counts."
    cheapest = _cheapest({method: costs[method] for method in kept if method in costs}, len(kept))
    return f"{first} {cheapest}".rstrip()


def _methods(own: Sequence[Board]) -> list[str]:
    """Return the methods that have every metric of the table."""
    return [m for m in own[0].standings if all(m in board.standings for board in own)]


def _metrics(own: Sequence[Board], method: str, verdict: str) -> list[str]:
    return [board.metric.name for board in own if board.standings[method].has_verdict(verdict)]


def unbeaten_methods(own: Sequence[Board], baseline: str, tests: PageTests) -> list[str]:
    """Return the methods that no test of the page shows to be worse than another by a metric of the table."""
    methods = _methods(own)
    beaten = {method for method in methods if _metrics(own, method, "worse")}
    if any(one.has_verdict("better") for board in own for one in board.standings.values()):
        beaten.add(baseline)
    for board in own:
        for one in tests.of_metric(board.metric):
            losing = (one.verdicts == -1).any(axis=1)
            beaten |= {method for method, lost in zip(one.tests.methods, losing.tolist(), strict=True) if lost}
    return [method for method in methods if method not in beaten]


def _cheapest(costs: Mapping[str, MethodCost], kept: int) -> str:
    """Return the cheapest of the methods that nothing beats; '' where the cost of one is not known."""
    if len(costs) < kept or any(not cost.training > 0 or not cost.passes for cost in costs.values()):
        return ""
    among = "Of the methods with all these metrics that no test shows to be worse than another"
    if kept == 1:
        (method,) = costs
        return f"{method} is the only method that no test shows to be worse than another ({_price(costs[method])})."
    training, passes = (min(getattr(c, name) for c in costs.values()) for name in ("training", "most_passes"))
    train = [method for method, cost in costs.items() if cost.training <= NOTABLE * training]
    predict = [method for method, cost in costs.items() if cost.most_passes == passes]
    both = [method for method in train if method in predict]
    if len(both) == kept:
        return f"{kept} methods that no test shows to be worse than another cost the same."
    if both:
        verb = "is the cheapest" if len(both) == 1 else "are the cheapest"
        return f"{among}, {', '.join(both)} {verb} ({_price(costs[both[0]])}); not shown is not the same as equal."
    return (
        f"{among}, the cheapest to train: {', '.join(train)}; to predict: {', '.join(predict)}. Not shown is not "
        "the same as equal."
    )


def _price(cost: MethodCost) -> str:
    return f"{times_text(cost.training)} the training, T = {numbers_text(cost.passes)}"
