"""Metrics by group are those of the rows of the group alone."""

import numpy as np
import pytest

from bench.errors import UserError
from bench.metrics import Forecast, TargetScale, catalogue, score, score_by_group

GROUPS = np.array(["north", "south", "east"])


def _classes(rng: np.random.Generator) -> tuple[Forecast, np.ndarray]:
    draws = rng.dirichlet(np.full(3, 0.5), size=(4, 90))
    return Forecast("classification", rng.integers(0, 3, 90), draws), rng.choice(GROUPS, 90)


def test_a_group_is_scored_as_its_rows_alone(rng: np.random.Generator) -> None:
    forecast, groups = _classes(rng)
    values = score_by_group(forecast, groups)
    for name in GROUPS:
        own = groups == name
        alone = score(Forecast("classification", forecast.observed[own], forecast.draws[:, own]))
        assert {m.partition("@")[0]: v for m, v in values.items() if m.endswith(f"@group={name}")} == alone
        assert values[f"accuracy@group={name}"] == float(
            (forecast.mean[own].argmax(1) == forecast.observed[own]).mean()
        )


def test_regression_keeps_stated_variances_noise_and_scale(rng: np.random.Generator) -> None:
    groups = rng.integers(0, 2, 40)  # numbers are names, too
    observed, draws, stated = rng.normal(size=40), rng.normal(size=(5, 40)), rng.gamma(1.0, size=(5, 40))
    scale, own = TargetScale(0.0, 1.0, -2.0, 2.0), groups == 1
    values = score_by_group(Forecast("regression", observed, draws, stated, 0.3, scale), groups)
    alone = score(Forecast("regression", observed[own], draws[:, own], stated[:, own], 0.3, scale))
    assert {m.partition("@")[0]: v for m, v in values.items() if m.endswith("@group=1")} == alone


def test_the_worst_group_is_the_worst_by_each_metric(rng: np.random.Generator) -> None:
    forecast, groups = _classes(rng)
    values = score_by_group(forecast, groups)
    for metric, choose in (("accuracy", min), ("brier", max), ("ece", max)):
        assert values[f"{metric}@worst-group"] == choose(values[f"{metric}@group={name}"] for name in GROUPS)
    worst = {name.partition("@")[0] for name in values if name.endswith("@worst-group")}
    assert all(catalogue()[name].has_better for name in worst)
    assert "mutual_information@group=north" in values
    # One group has no worst; a metric that some group does not have has none either.
    assert not any("worst" in name for name in score_by_group(forecast, np.full(90, "all")))
    right = np.where(groups == "east", forecast.predicted, forecast.observed)
    sure = score_by_group(Forecast("classification", right, forecast.draws), groups)
    assert "error_auroc@group=east" not in sure
    assert "error_auroc@worst-group" not in sure


def test_names_that_cannot_be_conditions_are_refused(rng: np.random.Generator) -> None:
    forecast, groups = _classes(rng)
    with pytest.raises(UserError, match="one name for each of the 90 rows"):
        score_by_group(forecast, groups[:10])
    with pytest.raises(UserError, match="'a@b' cannot name a group"):
        score_by_group(forecast, np.full(90, "a@b"))
    many = Forecast("classification", np.zeros(120, int), np.full((1, 120, 2), 0.5))
    with pytest.raises(UserError, match="120 different names"):
        score_by_group(many, np.arange(120))
