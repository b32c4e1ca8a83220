"""Claims on levels of noise that are swept: consistently better, a trend, variants that are the same."""

from collections.abc import Mapping

from bench.api import Table
from bench.plugins.registry import Registry
from bench.reports._paper_experiments import Found, find_sweep, reference
from tests.fixtures.made_results import MadeResults, around


def sweep(means: Mapping[float, tuple[float, float]], spread: float = 0.001) -> MadeResults:
    """Variants of two plug-ins: rivals at (1, 0.5), (2, 0.6), (3, 0.7), ours with (mpiw, picp) by level."""
    results = MadeResults()
    rivals = {0.1: (1.0, 0.5), 0.2: (2.0, 0.6), 0.3: (3.0, 0.7)}
    for plugin, option, levels, first in (("ours", "alpha", means, 0), ("rival", "rate", rivals, 100)):
        for number, (level, (mpiw, picp)) in enumerate(levels.items()):
            values = {
                "mpiw": around(mpiw, spread, seed=first + number),
                "picp": around(picp, spread, seed=first + 10 + number),
            }
            results.add(f"{plugin}-{level:g}", values, plugin=plugin, options={option: level})
    return results


SWEEP = {"metrics": ["mpiw", "picp"], "higher": ["picp"], "levels": {"ours": "alpha", "rival": "rate"}}
CONSISTENTLY = {**SWEEP, "kind": "consistently", "method": ["ours"], "over": ["rival"]}


def test_consistently_is_for_every_level_of_the_rival() -> None:
    good = sweep({0.01: (0.9, 0.55), 0.02: (1.9, 0.65), 0.03: (2.9, 0.75)}).judged(CONSISTENTLY)
    assert good.verdict == "reproduced"
    assert "rival-0.3: beaten by ours-0.03" in good.numbers
    # The widest rival is beaten by none: what is narrower covers less.
    assert sweep({0.01: (0.9, 0.55), 0.02: (1.9, 0.65), 0.03: (2.9, 0.6)}).judged(CONSISTENTLY).verdict == (
        "not reproduced"
    )
    noisy = sweep({0.01: (0.9, 0.55), 0.02: (1.9, 0.65), 0.03: (2.9, 0.75)}, spread=1.0)
    assert noisy.judged(CONSISTENTLY).verdict == "cannot be decided"
    assert sweep({0.01: (0.9, 0.55)}).judged(CONSISTENTLY).verdict == "not run"


def test_a_trend_rises_over_the_sweep_and_no_step_falls() -> None:
    claim = {**SWEEP, "kind": "trend"}
    assert sweep({0.01: (1, 0.4), 0.02: (2, 0.5), 0.03: (3, 0.6)}).judged(claim).verdict == "reproduced"
    fallen = sweep({0.01: (1, 0.4), 0.02: (2, 0.6), 0.03: (3, 0.5)}).judged(claim)
    assert fallen.verdict == "not reproduced"
    assert "1 of 2 steps falling" in fallen.numbers
    assert "shown to fall from 0.02 to 0.03" in fallen.numbers
    assert sweep({0.01: (1, 0.4), 0.02: (2, 0.5), 0.03: (3, 0.6)}, 5.0).judged(claim).verdict == "cannot be decided"


def test_variants_are_the_same_as_the_reference() -> None:
    claim = {"kind": "same", "metric": "picp", "margin": "0.05", "levels": {"ours": "alpha"}}
    results = sweep({0.01: (1, 0.5), 0.02: (1, 0.51), 0.03: (1, 0.7)})
    assert results.judged({**claim, "values": [0.01, 0.02]}).verdict == "reproduced"
    assert results.judged({**claim, "values": [0.01, 0.02, 0.03]}).verdict == "not reproduced"
    assert results.judged({**claim, "values": [0.01, 0.04]}).verdict == "not run"
    noisy = sweep({0.01: (1, 0.5), 0.02: (1, 0.5)}, spread=0.2)
    assert noisy.judged({**claim, "values": [0.01, 0.02]}).verdict == "cannot be decided"


def test_a_sweep_departs_in_everything_but_its_levels() -> None:
    claim = next(claim for claim in reference()["claims"] if claim["kind"] == "consistently")
    results = MadeResults()
    for plugin, option in claim["levels"].items():
        for level in (0.1, 0.3, 0.5):
            values = {"mpiw": around(level), "picp": around(level, seed=1)}
            results.add(f"{plugin}-{level:g}", values, plugin=plugin, options={option: level})
    found = find_sweep(claim, [results])
    assert isinstance(found, Found)
    assert any(text.startswith("training.epochs is ") for text in found.departures)
    assert not any(name in text for text in found.departures for name in (".rate is", ".alpha is", "missing"))
    assert find_sweep(claim, [sweep({0.01: (1, 0.5)})]) == []  # of other plug-ins
    section = Registry().make("report", "paper", {}).overall([results])  # of a page with the sweep alone
    tables = {block.name: block.data for block in section.blocks if isinstance(block, Table)}
    assert claim["text"] in set(tables["claims"]["claim"])
    assert set(tables["claims-not-run"]["verdict"]) == {"not run", "no experiment"}
