"""Every number of docs/results/truth.md is the one that the kept values give."""

from pathlib import Path

import pandas as pd

from tools.truth_page import ONE_LEVEL, VALUES, Means, findings, page

PARTS = ("mean_cost", "noise_cost")
PAGE = Path("docs/results/truth.md")


def kept() -> pd.DataFrame:
    return pd.read_csv(VALUES, index_col=["dataset", "method", "seed"])


def test_the_page_is_the_one_that_the_kept_values_give() -> None:
    text = PAGE.read_text("utf-8")
    assert page(text) == text


def test_other_values_give_other_findings() -> None:
    table = kept()
    changed = findings(Means(table * 1.5)).split("\n\n")
    assert all(one != other for one, other in zip(findings(Means(table)).split("\n\n"), changed, strict=True))


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
