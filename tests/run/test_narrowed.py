from pathlib import Path
from typing import Any

from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.run.driver import run
from bench.run.narrowed import no_longer_shown
from bench.spec.cell import Cell
from bench.store.store import Store


def cells(methods: str, seeds: int, settings: str = "", dataset: str = "toy") -> list[Cell]:
    return [Cell(f"{settings}{dataset}{m}{s}", dataset, s, m, s, "") for m in methods for s in range(seeds)]


def rows(found: list[Cell]) -> list[dict[str, Any]]:
    return [{name: getattr(cell, name) for name in ("dataset", "method", "seed", "key")} for cell in found]


def lines(before: list[Cell], now: list[Cell], *, whole: bool = True) -> list[str]:
    return no_longer_shown("bikes", rows(before), now, whole=whole)


def test_fewer_seeds_say_how_to_have_all_again() -> None:
    again = "the same command with --seeds 20 shows all again, nothing is computed anew"
    assert lines(cells("ab", 20), cells("ab", 5)) == [f"suite bikes had 20 seeds, its report now shows 5; {again}"]
    part = lines(cells("ab", 20), cells("a", 5), whole=False)
    assert part == [f"suite bikes had 20 seeds of a, its report now shows 5; {again}"]


def test_what_a_run_of_the_whole_suite_leaves_out_is_named() -> None:
    before = [*cells("ab", 2), *cells("ab", 2, dataset="wine"), *cells("b", 2, dataset="yacht")]
    (line,) = lines(before, [*cells("a", 2), *cells("b", 2, dataset="yacht")])
    assert "no longer shows method b on toy, dataset wine (6 finished results); name them again" in line
    (line,) = lines(before[:4], cells("a", 2))
    assert "no longer shows method b (2 finished results)" in line


def test_other_settings_are_not_brought_back_by_more_seeds() -> None:
    (line,) = lines(cells("ab", 4), cells("ab", 2, settings="new"))
    assert "shows other settings from now on" in line
    assert "8 finished results" in line
    assert "--seeds" not in line


def test_a_run_that_adds_leaves_nothing_out() -> None:
    assert lines([], cells("a", 2)) == []
    assert lines(cells("a", 2), cells("ab", 3)) == []
    assert lines(cells("ab", 2), cells("c", 2), whole=False) == []


def test_a_shorter_run_says_so_once(tiny_file: Path, store: Store) -> None:
    said = [run(load_suite(str(tiny_file), [f"seeds={n}"]), Registry(), store).no_longer_shown for n in (2, 1, 1, 2)]
    assert said[0] == said[2] == said[3] == []
    assert said[1] == no_longer_shown("tiny", rows(cells("a", 2)), cells("a", 1), whole=True)
