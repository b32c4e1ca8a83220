"""The findings of docs/results/truth.md are those of the exported values."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bench.stats.corrections import holm
from tools.findings import Exports
from tools.results_page import EXPORTS
from tools.truth_parts import ONE_LEVEL, Means, SignTests, findings, values

PARTS = ("mean_cost", "noise_cost")


@cache
def kept() -> pd.DataFrame:
    with Exports(EXPORTS) as exports:
        return values(exports)


def test_other_values_give_other_findings() -> None:
    table = kept()
    changed = findings(table * 1.5).split("\n\n")
    assert all(one != other for one, other in zip(findings(table).split("\n\n"), changed, strict=True))


def test_a_metric_that_a_method_does_not_have_is_no_value_of_it() -> None:
    """Conformal wrappers state no density: NaN among the values made the order of all others arbitrary."""
    regret = Means(kept()).learned("bimodal", "law_regret")
    assert "split-conformal" not in regret
    assert list(regret.values()) == sorted(regret.values())
    assert next(iter(regret)) == kept()["law_regret"].loc["bimodal"].drop(["oracle"]).groupby("method").mean().idxmin()


def test_sign_tests_are_exact_and_corrected_over_the_page() -> None:
    index = pd.MultiIndex.from_product([["d"], ["a", "b"], range(10)], names=["dataset", "method", "seed"])
    low = [0.0] * 9 + [2.0]
    table = pd.DataFrame({"m": [*low, *[1.0] * 8, np.inf, 1.0]}, index)
    raw = SignTests(table)
    assert raw.below(("d", "a", "m"), ("d", "b", "m")).startswith("on 9 of 10 seeds, p = 0.02")
    raw.below(("d", "a", "m"), 3.0)
    assert raw.p == pytest.approx([stats.binomtest(9, 10).pvalue, 2 * 0.5**10])
    both = SignTests(table, holm(raw.p).tolist())
    assert both.below(("d", "a", "m"), ("d", "b", "m")) == "on 9 of 10 seeds, p = 0.02"
    assert both.below(("d", "a", "m"), 3.0) == "on 10 of 10 seeds, p < 0.01"


def test_the_oracle_loses_nothing_and_everything_else_something() -> None:
    table = kept()
    for metric in ("law_regret", "class_regret"):
        regret = table[metric].dropna()
        oracle = regret.index.get_level_values("method") == "oracle"
        assert regret[oracle].abs().max() < 1e-9
        assert regret[~oracle].min() > 1e-4


def test_headlines_of_the_findings_hold() -> None:
    means = Means(kept())
    regret = means.learned("growing-500", "law_regret")
    at_each_x = [regret.pop(name) for name in ("mean-variance", "mean-variance-ensemble", "evidential-regression")]
    regret.pop("quantile-regression")
    assert max(at_each_x) < ONE_LEVEL < min(regret.values())
    costs = {part: [means.value(f"growing-{n}", "deep-ensemble", part) for n in (50, 500, 10000)] for part in PARTS}
    assert costs["mean_cost"][0] > 10 * costs["mean_cost"][2]
    assert costs["noise_cost"][2] >= costs["noise_cost"][0]
    normal = means.value("constant", "deep-ensemble", "law_regret")
    assert all(means.value(world, "deep-ensemble", "law_regret") > 3 * normal for world in ("skewed", "bimodal"))
