from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.leaderboard import collect
from bench.leaderboard.boards import Board, lettered, tie_groups
from bench.leaderboard.overall import whole_block
from bench.spec.cell import Outcome
from bench.stats import Settings, compare, holm, t_interval
from bench.stats.pairing import Measure
from bench.store.results import StoredResults
from bench.store.store import Store, SuiteRecord
from tests.fixtures.results import ENVIRONMENT, cell, fill, spec, steps

METHODS = ("a", "b", "c", "d")


def one_board(store: Store, dataset: str | None = "one") -> Board:
    (board,) = (
        board for board in collect(store, settings=Settings(resamples=2_000)).boards if board.dataset == dataset
    )
    return board


def test_methods_far_apart_have_places_of_their_own(store: Store) -> None:
    fill(store, steps(METHODS, gap=1.0, noise=0.05), methods=METHODS)
    board = one_board(store)
    assert [(entry.method, entry.place, entry.groups) for entry in board.entries] == [
        ("a", 1, ""),
        ("b", 2, ""),
        ("c", 3, ""),
        ("d", 4, ""),
    ]
    assert board.test == "paired t-test (seeds on one split), Holm over 6 pairs of methods"


def test_methods_that_do_not_differ_are_all_first_and_in_one_group(store: Store) -> None:
    fill(store, steps(METHODS, gap=0.0, noise=1.0), methods=METHODS)
    assert {(entry.place, entry.groups) for entry in one_board(store).entries} == {(1, "a")}


def test_who_differs_is_what_compare_and_holm_say(store: Store) -> None:
    """The same p-values as `uqbench compare` has them for each pair, corrected together."""
    quick = Settings(resamples=200)
    pairs = list(combinations(METHODS, 2))
    for seed in range(4):
        value = steps(METHODS, gap=0.1, noise=0.1, seed=seed)
        fill(store, value, suite=f"made-{seed}", methods=METHODS, seeds=8, one_split=False)
    alone = together = 0
    for board in collect(store, settings=quick).boards:
        results = StoredResults(store, board.suite)
        rows = [
            compare(results.frame, *pair, [Measure("rmse")], cells=results.cells, settings=quick).rows[0]
            for pair in pairs
        ]
        corrected = holm([row.p for row in rows])
        different = {pair for pair, p in zip(pairs, corrected, strict=True) if p < 0.05}
        groups = {entry.method: set(entry.groups) for entry in board.entries}
        assert different == {(a, b) for a, b in pairs if not groups[a] & groups[b]}
        assert board.test.startswith("corrected resampled t-test")
        alone += sum(row.p < 0.05 for row in rows)
        together += len(different)
    assert 0 < together < alone  # the correction matters here


def test_seeds_that_share_splits_are_compared_by_the_means_of_splits(store: Store) -> None:
    """What splits do to the difference of two methods is seen at 4 seeds on each of 6 splits, not 24 times."""
    generator = np.random.default_rng(3)
    d = 1.2 + generator.normal(size=6)[np.arange(24) % 6] + 0.1 * generator.normal(size=24)
    assert scipy.stats.ttest_1samp(d, 0.0).pvalue < 0.01 < scipy.stats.ttest_1samp(d.reshape(4, 6).mean(0), 0.0).pvalue
    results = []
    for method, values in (("a", 10.0 + 0 * d), ("b", 10.0 + d)):
        for seed, value in enumerate(values):
            made = replace(cell(spec("one", method, seed)), split=seed % 6)
            repeats = {"repeats": {"kind": "independent", "test_share": 0.1}}
            timing = {"seconds": 1.0, "cpu_seconds": 0.5, "finished": 1.7e9}
            metrics = {"rmse": float(value)}
            outcome = Outcome("ok", metrics=metrics, training=repeats, timing=timing, environment=ENVIRONMENT)
            results.append((made, outcome))
    store.want(SuiteRecord("made", "A made suite", None, [], "{}"), [made for made, _ in results])
    store.save(results, "made")
    board = one_board(store)
    assert [(entry.method, entry.place, entry.repeats) for entry in board.entries] == [("a", 1, 24), ("b", 1, 24)]
    assert "several seeds share each of 6 splits: tests and intervals are of their means" in board.notes
    means = d.reshape(4, 6).mean(axis=0)
    low, high = t_interval(means)
    behind = board.entries[1].behind
    assert behind is not None
    assert behind[0] == pytest.approx(d.mean())
    assert (behind[1] <= low + 1e-9, behind[2] >= high - 1e-9) == (True, True)


def test_fewer_than_five_splits_give_no_place_however_many_seeds_they_have(store: Store) -> None:
    results = []
    for method, level in (("a", 1.0), ("b", 2.0)):
        for seed in range(12):
            made = replace(cell(spec("one", method, seed)), split=seed % 3)
            repeats = {"repeats": {"kind": "independent", "test_share": 0.1}}
            metrics = {"rmse": level + 0.01 * seed}
            results.append((made, Outcome("ok", metrics=metrics, training=repeats, environment=ENVIRONMENT)))
    store.want(SuiteRecord("made", "A made suite", None, [], "{}"), [made for made, _ in results])
    store.save(results, "made")
    board = one_board(store)
    assert [(entry.method, entry.place) for entry in board.entries] == [("a", None), ("b", None)]
    assert "no place: a, b; fewer than 5 splits cannot be tested" in board.notes


def test_the_interval_holds_students(store: Store) -> None:
    """The hull of two intervals is never shorter than one of them, and with few repeats it is Student's."""
    value = steps(METHODS, noise=0.5)
    for seeds in (4, 9):
        fill(store, value, suite=f"of-{seeds}", methods=METHODS, seeds=seeds)
    for board in collect(store).boards:
        seeds = int(board.suite.removeprefix("of-"))
        for entry in board.entries:
            x = [value("one", entry.method, seed, "rmse") for seed in range(seeds)]
            low, high = t_interval(x)
            assert entry.value == pytest.approx(np.mean(x))
            theirs = scipy.stats.ttest_1samp(x, 0).confidence_interval(0.95)
            assert (low, high) == pytest.approx((theirs.low, theirs.high))
            if seeds == 4:
                assert (entry.low, entry.high) == pytest.approx((low, high))
            assert entry.low <= low + 1e-9
            assert entry.high >= high - 1e-9


def test_behind_the_best_forgets_what_is_hard_for_all(store: Store) -> None:
    fill(store, steps(METHODS, gap=1.0, noise=0.01), methods=METHODS)
    first, *rest = one_board(store).entries
    assert first.behind is None
    assert first.high - first.low > 0.5  # the repeats differ much, all methods alike
    for n, entry in enumerate(rest, 1):
        assert entry.behind is not None
        assert entry.behind[0] == pytest.approx(n, abs=0.05)
        assert entry.behind[2] - entry.behind[1] < 0.1


def test_intervals_of_means_stay_within_the_range_of_the_metric_and_differences_do_not(store: Store) -> None:
    accuracy = {"a": [1.0] * 5 + [0.7], "b": [0.0] * 5 + [0.3]}
    fill(store, lambda d, m, seed, metric: accuracy[m][seed], methods=["a", "b"], metrics=["accuracy"])
    a, b = one_board(store).entries
    assert t_interval(accuracy["a"])[1] > 1.0
    assert t_interval(accuracy["b"])[0] < 0.0
    assert (a.high, b.low) == (1.0, 0.0)
    assert b.behind is not None
    assert b.behind[2] > 1.0  # the interval of a difference is not cut


@pytest.mark.parametrize(("metric", "best"), [("rmse", "a"), ("r2", "d"), ("picp", "b")])
def test_the_direction_of_a_metric(store: Store, metric: str, best: str) -> None:
    values = {"a": 0.95, "b": 0.99, "c": 1.0 + 0.05, "d": 1.2}  # of PICP, whose target is 0.9973
    fill(store, lambda d, m, seed, metric: values[m] + 1e-4 * seed, methods=METHODS, metrics=[metric])
    entries = one_board(store).entries
    assert entries[0].method == best
    assert all(entry.behind is not None and entry.behind[0] > 0 for entry in entries[1:])


def test_what_diverged_is_told_and_what_diverged_everywhere_is_last(store: Store) -> None:
    def value(dataset: str, method: str, seed: int, metric: str) -> float:
        if method == "a" or (method == "b" and seed == 0):
            return float("nan")
        return steps(METHODS)(dataset, method, seed, metric)

    fill(store, value, methods=METHODS)
    by_name = {entry.method: entry for entry in one_board(store).entries}
    assert by_name["a"].place is None
    assert list(by_name)[-1] == "a"
    assert by_name["a"].lost == "6 diverged"
    assert (by_name["b"].repeats, by_name["b"].planned, by_name["b"].lost) == (5, 6, "1 diverged")
    assert list(by_name) == ["c", "d", "b", "a"]
    assert [entry.place for entry in by_name.values()][2:] == [None, None]


def test_a_method_that_diverges_mostly_is_not_first_and_erases_nobody(store: Store) -> None:
    """Its one good repeat is the best of all, and A against B is as it is without it."""

    def value(dataset: str, method: str, seed: int, metric: str) -> float:
        if method == "c":
            return 0.1 if seed == 0 else float("nan")
        return steps(["a", "b"], gap=1.0, noise=0.1)(dataset, method, seed, metric)

    fill(store, value, methods=["a", "b", "c"], seeds=10)
    board = one_board(store)
    assert [(entry.method, entry.place) for entry in board.entries] == [("a", 1), ("b", 2), ("c", None)]
    assert board.entries[2].groups == ""
    assert "no place without a value in every repeat: c (1 of 10)" in board.notes


def test_a_method_without_all_its_repeats_moves_no_place(store: Store) -> None:
    """It would be better than all others at the nine repeats that it has."""

    def value(dataset: str, method: str, seed: int, metric: str) -> float:
        diverged = method == "a" and seed == 0
        return float("nan") if diverged else steps(["a", "b", "c"], noise=0.05)(dataset, method, seed, metric)

    fill(store, value, methods=["a", "b", "c"], seeds=10)
    board = one_board(store)
    assert [(entry.method, entry.place) for entry in board.entries] == [("b", 1), ("c", 2), ("a", None)]
    assert board.test.endswith("Holm over 1 pair of methods")


def test_a_method_that_is_alone_has_no_place(store: Store) -> None:
    fill(store, lambda d, m, seed, metric: float("nan") if (m, seed) == ("b", 0) else 1.0 + seed, methods=["a", "b"])
    board = one_board(store)
    assert [(entry.method, entry.place) for entry in board.entries] == [("a", None), ("b", None)]
    assert "no place: there is no other method to test against" in board.notes


@pytest.mark.parametrize("seeds", [3, 8])
def test_where_nobody_has_a_place_a_method_that_diverged_is_still_last(store: Store, seeds: int) -> None:
    """With three seeds no test is possible; with eight b is alone. The mean of the runs that c has left is the best."""

    def value(dataset: str, method: str, seed: int, metric: str) -> float:
        return float("nan") if method == "c" and seed == 0 else {"b": 2.0, "c": 1.0}[method] + 0.01 * seed

    fill(store, value, methods=("b", "c"), seeds=seeds)
    entries = one_board(store).entries
    assert [(entry.method, entry.place) for entry in entries] == [("b", None), ("c", None)]
    assert entries[1].behind is not None
    assert entries[1].behind[0] < 0.0


def test_infinite_values_are_counted_not_averaged(store: Store) -> None:
    fill(store, lambda d, m, seed, metric: np.inf if (m, seed) == ("b", 2) else 1.0 + seed, metrics=["nll_mc"])
    entry = next(entry for entry in one_board(store).entries if entry.method == "b")
    assert entry.value == pytest.approx((1 + 2 + 4 + 5 + 6) / 5)
    assert entry.lost == "1 not finite"


def test_too_few_repeats_are_not_tested(store: Store) -> None:
    fill(store, steps(METHODS, noise=0.01), methods=METHODS, seeds=4)
    board = one_board(store)
    assert {(entry.place, entry.groups) for entry in board.entries} == {(None, "")}
    assert "no place: a, b, c, d; fewer than 5 repeats cannot be tested" in board.notes


def test_a_board_tells_how_many_configurations_were_tried(store: Store) -> None:
    tried = {"a": 12, "b": 12, "c": 1}
    outcomes = [
        Outcome(
            "ok",
            metrics={"rmse": 1.0 + seed},
            training={"search": {"configurations": tried[method]}} if method != "c" else {},
            environment=ENVIRONMENT,
        )
        for method in tried
        for seed in range(5)
    ]
    cells = [cell(spec("one", method, seed)) for method in tried for seed in range(5)]
    store.want(SuiteRecord("made", "Made", None, [], "{}"), cells)
    store.save(zip(cells, outcomes, strict=True), "made")
    assert "configurations that a search tried for each result: 12 by a, b; none by c" in one_board(store).notes
    fill(store, lambda *_: 1.0, suite="plain", datasets=["two"])
    assert not [note for note in one_board(store, "two").notes if "search" in note]


def test_another_protocol_is_told(store: Store, tmp_path: Path) -> None:
    fill(store, steps(METHODS), methods=METHODS)
    from bench.spec.cell import Outcome
    from bench.store.store import SuiteRecord

    cells = [cell(spec("one", "d", seed, one_split=True, draws=7)) for seed in range(6)]
    store.want(SuiteRecord("made", "t", None, [], "{}"), cells)
    store.save((cell, Outcome("ok", metrics={"rmse": 1.0 + cell.seed}, environment=ENVIRONMENT)) for cell in cells)
    assert any("different protocols: d " in note for note in one_board(store).notes)


def test_the_overall_board_ranks_the_same_on_every_dataset(store: Store) -> None:
    datasets = [f"d{n}" for n in range(8)]
    fill(store, steps(METHODS, gap=1.0, noise=0.1), methods=METHODS, datasets=datasets)
    board = one_board(store, None)
    assert [(entry.method, entry.value) for entry in board.entries] == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
    assert board.datasets == tuple(datasets)
    # Nemenyi's critical difference of 4 methods on 8 datasets is 1.66 (Demsar's q 2.569).
    assert "1.66 or more apart" in board.test
    assert [entry.place for entry in board.entries] == [1, 1, 2, 3]
    assert all(entry.low <= entry.score <= entry.high for entry in board.entries)


def test_fewer_than_five_datasets_give_neither_places_nor_groups(store: Store) -> None:
    fill(store, steps(METHODS), methods=METHODS, datasets=["d1", "d2", "d3", "d4"])
    assert {(entry.place, entry.groups) for entry in one_board(store, None).entries} == {(None, "")}


@pytest.mark.parametrize("diverged", [1, 6])
def test_a_method_that_diverges_on_a_dataset_is_last_there_over_all_datasets(store: Store, diverged: int) -> None:
    """It is the best on five datasets and the last of four on the sixth: the average of its ranks is 9 / 6."""

    def value(dataset: str, method: str, seed: int, metric: str) -> float:
        lost = (dataset, method) == ("d0", "a") and seed < diverged
        return float("nan") if lost else steps(METHODS, noise=0.01)(dataset, method, seed, metric)

    fill(store, value, methods=METHODS, datasets=[f"d{n}" for n in range(6)])
    ranks = {entry.method: entry.value for entry in one_board(store, None).entries}
    assert ranks == pytest.approx({"a": 9 / 6, "b": 11 / 6, "c": 17 / 6, "d": 23 / 6})


def test_whole_block() -> None:
    everything = {(d, m) for d in "123456" for m in "abc"}
    assert whole_block(everything) == (list("123456"), list("abc"), [])
    datasets, methods, notes = whole_block(everything | {("7", "a"), ("1", "x")})
    assert (datasets, methods) == (list("123456"), list("abc"))
    assert sorted(notes) == [
        "7 does not count: 2 methods have no result on it",
        "x is not ranked: no result on 6 datasets",
    ]
    assert whole_block(set()) == ([], [], [])


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 7).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))))
    )
)
def test_groups_share_a_method_pair_exactly_where_it_does_not_differ(drawn: tuple[int, set[tuple[int, int]]]) -> None:
    count, pairs = drawn
    different = np.zeros((count, count), dtype=bool)
    for i, j in ((i % count, j % count) for i, j in pairs):
        different[i, j] = different[j, i] = i != j
    groups = tie_groups(different, np.ones(count, dtype=bool))
    for i, j in combinations(range(count), 2):
        assert different[i, j] != any(i in group and j in group for group in groups)
    assert not any(set(a) < set(b) for a in groups for b in groups)
    letters = lettered(groups, range(count))
    assert all(bool(set(letters[i]) & set(letters[j])) != different[i, j] for i, j in combinations(range(count), 2))
