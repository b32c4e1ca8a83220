"""Which test the repeats of a dataset get: as declared, else by their rows; a wrong share of test rows costs level."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import bench
from bench.errors import UserError
from bench.spec.replication import check_replication
from bench.stats import (
    CellCounts,
    Comparison,
    Measure,
    Repetition,
    Settings,
    compare,
    compare_all_pairs,
    datasets_by_test,
    repetition,
    t_test,
)
from bench.stats.text import comparison_lines
from tools.simulated_studies import overlapping_splits

Results = Callable[..., tuple[pd.DataFrame, pd.DataFrame]]
Compared = Callable[..., Comparison]
RMSE = Measure("rmse")
RNG = np.random.default_rng(3)
A, B = RNG.normal(size=12), RNG.normal(0.4, size=12)


@pytest.fixture
def compared(results: Results) -> Compared:
    """Compare two methods on repeats of different rows that are declared so."""

    def call(repeats: tuple[str, float] | None, settings: Settings = Settings()) -> Comparison:
        values = {("d", "a"): list(A), ("d", "b"): list(B)}
        frame, cells = results(values, same_rows=False, repeats=repeats)
        (pairwise,) = compare_all_pairs(frame, [RMSE], cells=cells, settings=settings)
        found = compare(frame, "a", "b", [RMSE], cells=cells, settings=settings)
        assert pairwise.p[0, 1] == pytest.approx(found.rows[0].p)
        assert pairwise.repetition == found.rows[0].repetition
        return found

    return call


@pytest.mark.parametrize("kind", ["independent", "seeds"])
def test_independent_repeats_and_seeds_get_the_plain_test(compared: Compared, kind: str) -> None:
    """Although their rows differ, and whatever share of them is tested: for seeds, a shift of the test rows may."""
    (row,) = compared((kind, 0.5)).rows
    assert row.p == pytest.approx(scipy.stats.ttest_rel(A, B).pvalue)
    assert row.wilcoxon_p == pytest.approx(scipy.stats.wilcoxon(A, B).pvalue)
    assert (row.test_share, row.decided_by, row.messages) == (0.0, "paired t", ())


def test_overlapping_splits_are_corrected_by_their_own_share(compared: Compared) -> None:
    (row,) = compared(("splits", 0.3)).rows
    d = A - B
    t = d.mean() / (d.std(ddof=1) * np.sqrt(1 / 12 + 0.3 / 0.7))  # Nadeau and Bengio 2003
    assert row.p == pytest.approx(2 * scipy.stats.t.sf(abs(t), 11))
    assert (row.test_share, row.decided_by, row.messages) == (0.3, "corrected resampled t", ())


def test_without_a_declaration_a_share_is_assumed_and_said(compared: Compared) -> None:
    (row,) = compared(None).rows
    assert row.p == pytest.approx(float(t_test(A - B, 0.1)))
    assert row.messages[0].startswith("the cells do not say how repeats are related")
    assert "10 % test rows are assumed" in row.messages[0]


@pytest.mark.parametrize("declared", [None, ("splits", 0.1), ("independent", 0.1)])
def test_a_stated_share_overrides_the_declaration(compared: Compared, declared: tuple[str, float] | None) -> None:
    (row,) = compared(declared, Settings(test_share=0.25)).rows
    assert row.p == pytest.approx(float(t_test(A - B, 0.25)))
    assert row.messages == ()
    (row,) = compared(declared, Settings(test_share=0.0)).rows
    assert row.p == pytest.approx(scipy.stats.ttest_rel(A, B).pvalue)


def test_seeds_on_the_same_rows_stay_so_whatever_share_is_stated(compared: Compared) -> None:
    assert compared(("seeds", 0.2), Settings(test_share=0.25)).rows[0].test_share == 0.0


def test_cells_that_declare_different_things_get_the_test_that_is_right_for_all(results: Results) -> None:
    _, cells = results({("d", "a"): [1.0, 2.0], ("d", "b"): [1.0, 2.0]}, repeats=("splits", 0.2))
    _, others = results({("d", "c"): [1.0, 2.0]}, repeats=("splits", 0.33))
    _, fresh = results({("d", "e"): [1.0, 2.0]}, repeats=("independent", 0.5))
    counts = CellCounts.of(pd.concat([cells, others, fresh], ignore_index=True))
    assert repetition("d", [0, 1], counts) == Repetition("splits", 0.33)
    assert repetition("d", [0, 1], counts.only(["a", "e"])) == Repetition("splits", 0.2)
    assert repetition("d", [0, 1], counts.only(["e"])) == Repetition("independent")
    assert repetition("another", [0, 1], counts) == Repetition("splits", 0.1, declared=False)
    assert repetition("another", [0, 0], counts) == Repetition("seeds", declared=False)


def test_every_dataset_is_told_its_test(compared: Compared) -> None:
    found = [("x", Repetition("splits", 0.0995)), ("y", Repetition("seeds")), ("z", Repetition("splits", 0.1))]
    assert datasets_by_test([*found, *found]) == (
        "corrected resampled t-test (overlapping splits, 10 % test rows): x, z; paired t-test (seeds on one split): y"
    )
    lines = " ".join(comparison_lines(compared(("independent", 0.5))))
    assert "Tests: paired t-test (independent repeats): d." in lines


def test_a_declaration_is_one_of_three() -> None:
    with pytest.raises(UserError, match=r"repeats = 'fresh': expected one of 'independent', 'splits', 'seeds'"):
        check_replication("fresh")


def test_the_declared_share_keeps_the_level_and_a_tenth_does_not() -> None:
    d = overlapping_splits("gaussian", 1_000, 10, np.random.default_rng(5), test_share=0.3)
    assert float((t_test(d, 0.3) < 0.05).mean()) < 0.07
    assert float((t_test(d, 0.1) < 0.05).mean()) > 0.14


def test_a_run_records_what_its_datasets_declare(tmp_path: Path) -> None:
    numbers = [f"{i},{(7 * i) % 11},{i * i}" for i in range(30)]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["a,b,y", *numbers]), "utf-8")
    suite = {
        "name": "small",
        "title": "Small",
        "seeds": 2,
        "draws": 2,
        "metrics": ["rmse"],
        "training": {"epochs": 1, "batch": 100},
        "network": {"hidden": [2]},
        "datasets": {"toy": {"rows": 40}, "diabetes": {}, f"csv:{table}?splits=gap": {}},
        "methods": {"deterministic": {}},
    }
    quiet = bench.RunOptions(executor="inline", progress=False)
    run = bench.run_suite(suite, store=tmp_path / "store.db", options=quiet)
    counts = CellCounts.of(bench.load_results(run.store).cells)
    assert repetition("toy", [0, 1], counts) == Repetition("independent")
    assert repetition("diabetes", [0, 1], counts) == Repetition("splits", 44 / 442)
    splits = {dataset: counts.split_count(str(dataset)) for dataset in bench.load_results(run.store).cells["dataset"]}
    assert list(splits.values()) == [2, None, None]  # one gap per feature; of the others there is always another split
