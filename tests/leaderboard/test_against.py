"""Boards against a declared baseline, and frozen versions of them."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from bench.errors import UserError
from bench.leaderboard import collect
from bench.leaderboard.boards import Board
from bench.leaderboard.frozen import read_frozen
from bench.leaderboard.site import write_site
from bench.plugins.registry import Registry
from bench.stats import Measure, compare_each, holm, joint_sign_test
from bench.store.results import StoredResults
from bench.store.store import Store
from bench.workflow import write_leaderboard
from tests.fixtures.results import Value, fill, steps

METHODS = ("a", "b", "c", "d")
DATASETS = tuple(f"d{n}" for n in range(8))


def board_of(store: Store, dataset: str | None = "one", **options: object) -> Board:
    (board,) = (board for board in collect(store, **options).boards if board.dataset == dataset)  # type: ignore[arg-type]
    return board


@pytest.mark.parametrize("one_split", [True, False])
def test_verdicts_and_intervals_are_those_of_a_comparison_with_the_baseline(store: Store, one_split: bool) -> None:
    fill(store, steps(METHODS, gap=0.13, noise=0.1), methods=METHODS, seeds=9, baseline="b", one_split=one_split)
    board, results = board_of(store), StoredResults(store, "made")
    found = compare_each(results.frame, ["a", "c", "d"], "b", [Measure("rmse")], cells=results.cells)
    words = {"better": "better", "worse": "worse"}
    assert board.baseline == "b"
    assert {one.method: one.against for one in board.entries}["b"] is None
    for comparison in found:
        (row,) = comparison.rows
        against = next(entry.against for entry in board.entries if entry.method == comparison.a)
        assert against is not None
        assert row.interval is not None
        assert against.p == pytest.approx(row.p_adjusted)
        assert against.verdict == words.get(row.verdict, "not shown to differ")
        assert (against.difference, against.low, against.high) == pytest.approx(
            (row.difference, row.interval.low, row.interval.high)
        )
    assert {one.against.verdict for one in board.entries if one.against} & {"better", "worse"}


def test_the_family_is_that_of_the_methods_and_not_of_their_pairs(store: Store) -> None:
    fill(store, steps(METHODS, gap=0.1, noise=0.1), methods=METHODS, seeds=8, baseline="b")
    board, frame = board_of(store), StoredResults(store, "made").frame
    values = frame.pivot(index="seed", columns="method", values="value")
    p = holm([scipy.stats.ttest_rel(values[m], values["b"]).pvalue for m in "acd"])
    against = {entry.method: entry.against for entry in board.entries}
    assert [one.p for m in "acd" if (one := against[m])] == pytest.approx(p.tolist())
    assert board.decision == "paired t-test (seeds on one split), Holm over 3 methods"
    assert "repeats are seeds on one test set: places, ties and verdicts are about its rows" in board.notes


def test_a_method_without_all_its_repeats_is_not_tested_against_the_baseline(store: Store) -> None:
    def value(dataset: str, method: str, seed: int, metric: str) -> float:
        return float("nan") if (method, seed) == ("a", 0) else steps(METHODS)(dataset, method, seed, metric)

    fill(store, value, methods=METHODS, seeds=8, baseline="b")
    against = {entry.method: entry.against for entry in board_of(store).entries}
    assert (against["a"], against["b"]) == (None, None)
    assert against["c"] is not None


@pytest.mark.parametrize("baseline", [None, "elsewhere"])
def test_without_a_baseline_nothing_is_tested_against_it(store: Store, baseline: str | None) -> None:
    fill(store, steps(METHODS), methods=METHODS, datasets=["d1", "d2"], baseline=baseline)
    boards = collect(store).boards
    assert {(board.baseline, board.decision) for board in boards} == {(None, "")}
    assert {entry.against for board in boards for entry in board.entries} == {None}


def test_verdicts_on_skewed_differences_are_named(store: Store) -> None:
    """Of eight seeds c is worse in all, in one of them by far more; a is better by about the same everywhere."""

    def value(dataset: str, method: str, seed: int, metric: str) -> float:
        own = {"a": -1.0 + 0.01 * (seed % 3), "b": 0.0, "c": 1.0 + 0.01 * seed + 0.8 * (seed == 5)}[method]
        return 10.0 + seed + own

    fill(store, value, methods=("a", "b", "c"), seeds=8, baseline="b")
    board = board_of(store)
    assert {e.method: e.against.verdict for e in board.entries if e.against} == {"a": "better", "c": "worse"}
    (note,) = (note for note in board.notes if "may not hold its level" in note)
    assert note.startswith("differences to b that are skewed or have outliers")
    assert note.endswith("level: c; uqbench compare tests their median")


def test_a_board_says_what_would_be_needed_to_decide(store: Store) -> None:
    fill(store, steps(METHODS, gap=0.0, noise=1.0), methods=METHODS, seeds=8, baseline="b")
    (note,) = [note for note in board_of(store).notes if "needs" in note]
    assert note.startswith(
        "not shown to differ from b: 3 methods; to show half a standard deviation over seeds with 80 %"
    )
    assert int(note.split(" needs ")[1].split()[0]) > 60


def many(count: int, better: str) -> Value:
    """Return methods that do not differ, but for one that is better on every dataset by about as much."""

    def value(dataset: str, method: str, repeat: int, metric: str) -> float:
        own = np.random.default_rng([repeat, *f"{dataset} {method}".encode()]).normal()
        return float(10.0 + own - (3.0 if method == better else 0.0))

    return value


def test_twenty_methods_on_eight_datasets_can_be_decided(store: Store) -> None:
    names = [f"m{n:02}" for n in range(20)]
    fill(store, many(20, "m07"), methods=names, datasets=DATASETS, seeds=6, baseline="m00")
    board = board_of(store, None)
    verdicts = {entry.method: entry.against.verdict for entry in board.entries if entry.against}
    assert verdicts["m07"] == "better"
    assert set(verdicts.values()) == {"better", "not shown to differ"}
    assert len(verdicts) == 19
    best, second = board.entries[:2]
    assert best.method == "m07"
    assert second.place == 1  # Nemenyi's test over all pairs does not tell them apart
    assert best.against is not None
    assert best.against.posterior is not None
    assert best.against.posterior.below > 0.95
    assert any(note.startswith("next dataset: ") and "promises no error rate" in note for note in board.notes)
    (note,) = [note for note in board.notes if "such datasets" in note]
    assert "not shown to differ from m00: 18 methods" in note


def test_over_datasets_the_test_is_that_of_standardised_means(store: Store) -> None:
    scale = {d: 10.0**n for n, d in enumerate(DATASETS)}

    def value(dataset: str, method: str, repeat: int, metric: str) -> float:
        return scale[dataset] * steps(METHODS, gap=0.3, noise=0.5)(dataset, method, repeat, metric)

    fill(store, value, methods=METHODS, datasets=DATASETS, baseline="b")
    board, frame = board_of(store, None), StoredResults(store, "made").frame
    table = frame.pivot(index=["dataset", "seed"], columns="method", values="value")
    d = table[["a", "c", "d"]].sub(table["b"], axis=0).groupby("dataset")
    unit = d.std().median(axis=1) / math.sqrt(2)
    means = d.mean().div(unit, axis=0)
    p = joint_sign_test(means.to_numpy(), np.random.default_rng(0))
    against = {entry.method: entry.against for entry in board.entries}
    assert [one.p for m in "acd" if (one := against[m])] == pytest.approx(p.tolist())
    assert [one.difference for m in "acd" if (one := against[m])] == pytest.approx(means.mean().tolist())


def test_few_datasets_are_told_how_many_are_needed(store: Store) -> None:
    fill(store, steps(METHODS, gap=1.0), methods=METHODS, datasets=DATASETS[:4], baseline="b")
    board = board_of(store, None)
    assert {one.against.verdict for one in board.entries if one.against} == {"not shown to differ"}
    assert any("4 datasets cannot show a difference, at least 6 are needed" in note for note in board.notes)


def published(store: Store, folder: Path, **options: str) -> Path:
    write_leaderboard(store, folder, **options)
    return folder / "leaderboard.json"


def places(boards: object) -> dict[tuple[str | None, str], int | None]:
    return {(board.dataset, entry.method): entry.place for board in boards for entry in board.entries}  # type: ignore[attr-defined]


def test_methods_that_enter_later_do_not_move_those_of_a_frozen_version(store: Store, tmp_path: Path) -> None:
    """They would: with 12 more methods the family of pairs grows from 6 to 120."""
    later = [*METHODS, *(f"new{n}" for n in range(12))]
    value = steps(later, gap=0.22, noise=0.1)
    fill(store, value, methods=METHODS, datasets=DATASETS, baseline="b")
    before = collect(store, version="first")
    file = published(store, tmp_path, version="first")
    fill(store, value, methods=later, datasets=DATASETS, baseline="b")
    moved, kept = collect(store), collect(store, frozen=read_frozen(file))
    old = places(before.boards)
    assert {place: places(moved.boards)[place] for place in old} != old
    assert {place: places(kept.boards)[place] for place in old} == old
    assert kept.version == "first"
    for then, now in zip(before.boards, kept.boards, strict=True):
        verdicts = {entry.method: entry.against for entry in then.entries}
        assert {entry.method: entry.against for entry in now.entries if entry.method in verdicts} == verdicts
        assert any(note.startswith("entered after version first, so without a place: new0") for note in now.notes)
        assert not any("results changed" in note for note in now.notes)
    newcomers = [entry for entry in kept.boards[1].entries if entry.method.startswith("new")]
    assert {entry.place for entry in newcomers} == {None}
    assert {entry.against.verdict for entry in newcomers if entry.against} == {"worse"}


def test_results_that_changed_since_a_frozen_version_are_told(store: Store, tmp_path: Path) -> None:
    fill(store, steps(METHODS, gap=1.0, noise=0.05), methods=METHODS, baseline="b")
    file = published(store, tmp_path / "one", version="first")
    content = json.loads(file.read_text("utf-8"))
    content["boards"][0]["entries"][0]["place"] = 3
    file.write_text(json.dumps(content), "utf-8")
    board = collect(store, frozen=read_frozen(file)).boards[0]
    assert board.notes[-1] == "places differ from version first, because results changed since: a (3, now 1)"


def test_a_version_is_the_published_file(store: Store, tmp_path: Path) -> None:
    fill(store, steps(METHODS), methods=METHODS, baseline="b")
    file = published(store, tmp_path)
    assert json.loads(file.read_text("utf-8"))["version"] is None
    frozen = read_frozen(file)
    assert frozen.version.startswith("2023-11-14")  # without a name, the time of its last result
    write_site(collect(store, frozen=frozen), Registry(), tmp_path / "later")
    assert json.loads((tmp_path / "later" / "leaderboard.json").read_text("utf-8"))["version"] == frozen.version
    assert "continued: methods that entered since have no place" in (tmp_path / "later" / "index.html").read_text(
        "utf-8"
    )


def test_mistakes_with_versions_are_told_in_one_line(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--frozen .*gone\.json: No such file"):
        read_frozen(tmp_path / "gone.json")
    (tmp_path / "other.json").write_text("[1]", "utf-8")
    with pytest.raises(UserError, match=r"no published leaderboard; give the leaderboard\.json that"):
        read_frozen(tmp_path / "other.json")
    with pytest.raises(UserError, match="a site that continues a version has its name"):
        write_leaderboard(store, tmp_path, version="x", frozen=tmp_path / "other.json")
