"""`uqbench compare` and `uqbench rank` on a store with known numbers."""

import json
from collections.abc import Callable
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from bench.spec.cell import Outcome
from bench.stats import friedman
from bench.store.store import Store
from tests.fixtures.commands import Command
from tests.fixtures.results import save_outcomes, spec

Call = Callable[..., tuple[int, str, str]]
METHODS = ("alpha", "beta", "gamma")
DATASETS = tuple(f"data{n}" for n in range(7))


def value(dataset: str, method: str, seed: int) -> float:
    """Beta is alpha and a little noise; gamma is far worse."""
    place = DATASETS.index(dataset)
    base = np.random.default_rng([place, seed]).normal()
    own = np.random.default_rng([place, seed, METHODS.index(method)]).normal()
    return 5.0 + float(base + 0.3 * own) + (3.0 if method == "gamma" else 0.0)


def fill(store: Store, suite: str, *, diverged: int = 0) -> None:
    outcomes = {}
    for place in product(DATASETS, METHODS, range(6)):
        number = value(*place)
        outcome = Outcome("ok", metrics={"rmse": number, "picp": 1 / (1 + np.exp(-number))})
        lost = place[:2] == ("data0", "beta") and place[2] < diverged
        outcomes[place] = Outcome("diverged", "not finite") if lost else outcome
    specs = {place: spec(*place, one_split=True) for place in outcomes}
    save_outcomes(store, suite, outcomes, ["rmse", "picp", "accuracy"], specs=specs)


@pytest.fixture
def path(tmp_path: Path) -> str:
    name = str(tmp_path / "runs" / "store.db")
    with closing(Store(name)) as store:
        fill(store, "tiny")
    return name


def test_a_narrower_interval_is_lower_not_better(call: "Call", tmp_path: Path) -> None:
    """As in reports and on boards, a width is neither better nor worse by itself."""
    name = str(tmp_path / "widths.db")
    outcomes = {
        place: Outcome("ok", metrics={"picp": value(*place) / 20, "mpiw": value(*place)})
        for place in product(DATASETS, METHODS, range(6))
    }
    with closing(Store(name)) as store:
        save_outcomes(store, "widths", outcomes, ["picp", "mpiw"])
    _, out, _ = call("compare", "alpha", "gamma", "--store", name)
    answer = " ".join(out.split("\n\n")[0].split())
    assert answer.endswith("is worse by picp; lower by mpiw (read with picp)")
    assert "mpiw (lower is good only with picp)" in out
    assert "better" not in out.partition("mpiw (lower")[2].partition("over 7 datasets")[0]
    _, out, _ = call("rank", "--store", name, "--metric", "mpiw")
    assert "leads by mpiw (read with picp)" in out


@pytest.fixture
def call(command: Command) -> Call:
    """Run the command in this process and return its exit code and what it printed."""

    def run(*arguments: str) -> tuple[int, str, str]:
        done = command(*arguments)
        return done.code, done.out, done.err

    return run


def test_compare_is_a_table_of_verdicts(path: str, call: Call) -> None:
    code, out, err = call("compare", "alpha", "gamma", "--store", path, "--metric", "rmse")
    assert (code, err) == (0, "")
    rows = [line for line in out.splitlines() if line.startswith("  data")]
    assert len(rows) == 1 + len(DATASETS)  # the heading begins like a dataset
    assert all(row.split()[-1] == "better" for row in rows[1:])
    assert "over 7 datasets: better" in out
    assert "Holm over 7 tests (7 datasets, 1 metric)" in out
    assert max(map(len, out.splitlines())) <= 100
    words = " ".join(out.split())
    assert "Bayesian signed-rank: better" in words
    assert "neither promises an error rate" in words
    assert "Testing again after adding pairs has 9 % false positives" in words


def test_no_verdict_of_no_difference_without_what_could_have_been_seen(path: str, call: Call) -> None:
    _, out, _ = call("compare", "alpha", "beta", "--store", path)
    lines = out.splitlines()
    unsure = [n for n, line in enumerate(lines) if line.endswith("  inconclusive")]
    assert unsure
    assert all("80 % power: 6 pairs can detect" in lines[n + 1] for n in unsure)
    assert max(map(len, lines)) <= 100
    assert "picp (the distance to 0.9973 counts, lower is better)" in out


def test_compare_json_holds_the_same_numbers(path: str, call: Call) -> None:
    _, out, _ = call("compare", "alpha", "beta", "--store", path, "--metric", "rmse", "--json")
    found: dict[str, Any] = json.loads(out)
    assert (found["suite"], found["family_size"], len(found["rows"])) == ("tiny", 7, 7)
    row = found["rows"][2]
    a, b = ([value("data2", method, seed) for seed in range(6)] for method in ("alpha", "beta"))
    assert row["p"] == pytest.approx(scipy.stats.ttest_rel(a, b).pvalue)
    assert row["mean_a"] == pytest.approx(np.mean(a))
    assert row["decided_by"] == "paired t"  # one split: repeats differ in their seed
    assert found["across"][0]["datasets"] == 7


def test_options_change_the_comparison(path: str, call: Call) -> None:
    common = ("compare", "alpha", "beta", "--store", path, "--metric", "rmse", "--json")
    _, out, _ = call(*common, "--dataset", "data1", "--margin", "50", "--correction", "bh")
    found = json.loads(out)
    assert found["family"].startswith("Benjamini-Hochberg over 1 test (")
    assert [(row["dataset"], row["margin"], row["verdict"]) for row in found["rows"]] == [("data1", 50.0, "equivalent")]


def test_diverged_cells_are_in_the_table(tmp_path: Path, call: Call) -> None:
    path = str(tmp_path / "other.db")
    with closing(Store(path)) as store:
        fill(store, "tiny", diverged=1)
    _, out, _ = call("compare", "alpha", "beta", "--store", path, "--metric", "rmse")
    assert "- beta: 1 diverged" in out
    assert "which favours beta" in out


def test_the_answer_comes_first(path: str, call: Call) -> None:
    one = call("compare", "alpha", "gamma", "--store", path, "--metric", "rmse", "--dataset", "data1")[1]
    assert one.splitlines()[0] == "suite tiny, data1: alpha against gamma is better by rmse"
    all_of_them = call("compare", "alpha", "gamma", "--store", path, "--metric", "rmse")[1]
    assert all_of_them.splitlines()[0] == "suite tiny, 7 datasets: alpha against gamma is better by rmse"
    ranked = call("rank", "alpha", "gamma", "--store", path, "--metric", "rmse")[1]
    assert ranked.splitlines()[0] == "suite tiny: alpha leads by rmse (all others shown behind)"
    assert call("rank", "tiny", "alpha", "gamma", "--store", path, "--metric", "rmse")[1] == ranked


def test_a_mistake_that_concerns_every_metric_is_told_once(path: str, call: Call) -> None:
    code, _, err = call("rank", "tiny", "nobody", "--store", path)
    assert code == 2
    assert err.count("unknown method 'nobody'") == 1


def test_metrics_that_are_not_ranked_for_one_reason_are_told_together(tmp_path: Path, call: Call) -> None:
    names = ("alpha", "beta", "gamma", "delta")
    metrics = {"data0": ("rmse", "accuracy", "ece"), "data1": ("rmse",)}
    outcomes = {
        (dataset, method, seed): Outcome("ok", metrics=dict.fromkeys(own, 0.1 * seed + names.index(method)))
        for dataset, own in metrics.items()
        for method, seed in product(names, range(2))
    }
    both, one = str(tmp_path / "both.db"), str(tmp_path / "one.db")
    alone = {place: outcome for place, outcome in outcomes.items() if place[0] == "data0"}
    for name, chosen in ((both, outcomes), (one, alone)):
        with closing(Store(name)) as store:
            specs = {place: spec(*place) for place in chosen}
            save_outcomes(store, "tiny", chosen, ["rmse", "accuracy", "ece"], specs=specs)
    code, _, err = call("rank", "--store", both)
    reason = "accuracy, ece: 1 dataset with results of 4 methods; a ranking needs at least 2"
    assert (code, err) == (0, f"not ranked: {reason}\n")
    code, _, err = call("rank", "--store", one)
    assert code == 2
    assert err == (
        "uqbench: suite tiny: nothing to rank: it has results on one dataset, data0, and a ranking needs at least 2; "
        "'uqbench compare A B' compares two methods there\n"
    )


def test_rank(path: str, call: Call) -> None:
    code, out, err = call("rank", "--store", path, "--metric", "rmse")
    assert (code, err) == (0, "")
    table = np.array([[np.mean([value(d, m, s) for s in range(6)]) for m in METHODS] for d in DATASETS])
    statistic = float(friedman(table)[0])
    assert f"chi2 {statistic:.4g}" in out
    assert "Wilcoxon signed-rank, Holm over 3 pairs of methods" in out
    assert "its 95 % interval covers 90 % with 5 seeds and 94 % with 20" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 100
    last = [line for line in out.splitlines() if line.startswith("  gamma")]
    assert last[0].split()[1] == "3.00"


def test_rank_json_and_chosen_methods(path: str, call: Call) -> None:
    _, out, _ = call("rank", "alpha", "gamma", "--store", path, "--json")
    found = json.loads(out)
    assert [ranking["metric"] for ranking in found["rankings"]] == ["rmse", "picp"]
    assert [one["method"] for one in found["rankings"][0]["methods"]] == ["alpha", "gamma"]
    assert found["rankings"][0]["pairs"][0]["verdict"] == "better"


def test_several_suites_need_a_name(path: str, call: Call) -> None:
    with closing(Store(path)) as store:
        fill(store, "large")
    code, _, err = call("compare", "alpha", "beta", "--store", path)
    assert code == 2
    assert err.endswith("holds several suites; name one with --suite: large, tiny\n")
    code, out, _ = call("compare", "alpha", "beta", "--store", path, "--suite", "tiny", "--metric", "rmse")
    assert code == 0
    assert out.startswith("suite tiny, 7 datasets: ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("compare", "alpha", "betta"), "unknown method 'betta'; did you mean beta?"),
        (("compare", "alpha", "alpha"), "alpha is compared with itself; give two different methods"),
        (("compare", "alpha", "beta", "--metric", "rsme"), "unknown metric 'rsme'; did you mean rmse"),
        (("compare", "alpha", "beta", "--metric", "ece"), "suite tiny has no values: unknown metric 'ece'"),
        (("compare", "alpha", "beta", "--suite", "tny"), "unknown suite 'tny'; did you mean tiny?"),
        (("compare", "alpha", "beta", "--dataset", "dat1"), "unknown dataset 'dat1'; did you mean"),
        (("compare", "alpha", "beta", "--margin", "5%"), "margin '5%': expected a number in the metric's unit"),
        (("compare", "alpha", "beta", "--test-share", "1"), "test share 1: expected 0"),
        (("compare", "alpha", "beta", "--correction", "none"), "unknown correction 'none'"),
        (("rank", "--alpha", "5"), "alpha 5: expected a number between 0 and 1"),
        (("rank", "alpha", "delta"), "unknown method 'delta'"),
    ],
)
def test_mistakes_are_one_line(arguments: tuple[str, ...], told: str, path: str, call: Call) -> None:
    code, out, err = call(*arguments, "--store", path)
    assert (code, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1


def test_a_store_that_is_not_there(tmp_path: Path, call: Call) -> None:
    code, _, err = call("rank", "--store", str(tmp_path / "none.db"))
    assert code == 2
    assert "no such store" in err
    assert not (tmp_path / "none.db").exists()
