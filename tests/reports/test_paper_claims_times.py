"""Claims on times: the same at every number of draws, their quotient, and times that decide nothing."""

import json

import numpy as np
import pytest

from tests.fixtures.made_results import MadeResults


def timed(factor: float, spread: float, rounds: int = 10, *, together: bool = True, without: str = "") -> MadeResults:
    """Two methods of which the first takes `factor` times as long; times grow by a tenth per draw."""
    results, random = MadeResults(), np.random.default_rng(0)
    drift = 1 + random.random(rounds)  # of the machine, in common
    for method, own in (("a", factor), ("b", 1.0)):
        arrays = {
            f"latency/latency_total@T={draws}": own
            * (1 + draws / 10)
            * drift
            * np.exp(spread * random.normal(size=rounds))
            for draws in (1, 10)
        }
        plain = drift if together else random.random(rounds)
        results.add(method, arrays=[{**arrays, "latency/plain": plain}])
    series = {f"T={draws}": {"mode": "engine", "batch": 500} for draws in (1, 10)}
    facts = dict.fromkeys(("device", "device_name", "driver", "libraries", "dtype", "batch", "floor", "gpu"), "known")
    facts.pop(without, None)
    for cell in results.made:
        cell["training"] = json.dumps({**json.loads(cell["training"]), "latency": {"facts": facts, "series": series}})
    return results


@pytest.mark.parametrize(
    ("factor", "spread", "verdict"),
    [(1.02, 0.01, "reproduced"), (1.3, 0.01, "not reproduced"), (1.05, 0.5, "cannot be decided")],
)
def test_times_are_the_same_at_every_number_of_draws(factor: float, spread: float, verdict: str) -> None:
    claim = {"kind": "same", "by": "rounds", "draws": [1, 10], "margin": 1.1, "method": ["a"], "over": ["b"]}
    found = timed(factor, spread).judged(claim)
    assert found.verdict == verdict
    assert found.numbers.count("10 rounds") == 2  # a quotient with its interval at each
    assert timed(factor, spread).judged({**claim, "draws": [1, 10, 50]}).verdict == "not run"
    apart = timed(factor, spread, together=False).judged(claim)
    assert (apart.verdict, "in one run" in apart.needs) == ("cannot be decided", True)


@pytest.mark.parametrize("fact", ["driver", "libraries", "dtype", "floor"])
def test_times_that_do_not_say_how_they_were_measured_decide_nothing(fact: str) -> None:
    same = {"kind": "same", "by": "rounds", "draws": [1, 10], "margin": 1.1, "method": ["a"], "over": ["b"]}
    ratio = {"kind": "ratio", "by": "rounds", "draws": [10, 1], "most": 2.0, "method": ["a"]}
    for claim in (same, ratio):
        assert timed(1.0, 0.01).judged(claim).verdict == "reproduced"
        found = timed(1.0, 0.01, without=fact).judged(claim)
        assert found.verdict == "cannot be decided"
        assert f"those of a lack {fact}" in found.needs


@pytest.mark.parametrize(
    ("most", "spread", "verdict"),
    [(2.0, 0.01, "reproduced"), (1.25, 0.01, "not reproduced"), (1.82, 0.2, "cannot be decided")],
)
def test_the_quotient_of_times_has_an_interval(most: float, spread: float, verdict: str) -> None:
    claim = {"kind": "ratio", "by": "rounds", "draws": [10, 1], "most": most, "method": ["a"]}
    assert timed(1.0, spread).judged(claim).verdict == verdict  # 2 / 1.1


def test_times_that_the_run_warned_of_decide_nothing() -> None:
    same = {"kind": "same", "by": "rounds", "draws": [1, 10], "margin": 1.1, "method": ["a"], "over": ["b"]}
    ratio = {"kind": "ratio", "by": "rounds", "draws": [10, 1], "most": 2.0, "method": ["a"]}
    results = timed(1.0, 0.01)
    assert {results.judged(claim).verdict for claim in (same, ratio)} == {"reproduced"}
    doubt = "the middle half of the repeats spreads over more than 10% of the median in 2 of 2 series"
    results.made[1]["message"] = doubt  # of the second method
    results.__dict__.pop("cells")
    found = results.judged(same)
    assert (found.verdict, found.needs) == ("cannot be decided", f"steady times: {doubt}")
    assert found.numbers.count("10 rounds, unsteady") == 2
    assert results.judged(ratio).verdict == "reproduced"  # it is about the first method alone
