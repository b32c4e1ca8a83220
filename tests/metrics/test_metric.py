import math
from typing import Any

import numpy as np
import pytest

from bench.errors import UserError
from bench.metrics import Forecast, Metric, condition, declaration, find_declaration
from bench.metrics.metric import Template


def _metric(**changes: Any) -> Metric:
    declared: dict[str, Any] = {
        "name": "bias",
        "task": "regression",
        "family": "predictive",
        "direction": "lower",
        "target": None,
        "unit": "1",
        "needs": frozenset(),
        "formula": "f",
        "source": "s",
        "compute": lambda forecast: 0.0,
    }
    return Metric(**{**declared, **changes})


def test_loss_makes_lower_better_in_every_direction() -> None:
    assert _metric().loss(2.0) == 2.0
    assert _metric(direction="higher").loss(2.0) == -2.0
    coverage = _metric(direction="target", target=0.95)
    assert coverage.loss(0.90) == pytest.approx(0.05)
    assert coverage.better(0.96, 0.90)
    assert not coverage.better(0.99, 0.95)
    assert _metric(direction="higher").better(0.9, 0.8)
    assert _metric().better(1.0, math.inf)
    assert not _metric().better(math.nan, 1.0)
    assert not _metric().better(1.0, math.nan)


def test_a_description_has_no_better() -> None:
    described = _metric(direction="none", family="descriptive")
    assert not described.has_better
    assert _metric(direction="target", target=0.5).has_better
    with pytest.raises(UserError, match="'bias' describes predictions: no value of it is better"):
        described.loss(1.0)
    with pytest.raises(UserError, match="no value of it is better"):
        described.better(1.0, 2.0)


def test_relative_value_is_the_difference_to_the_baseline() -> None:
    msll = _metric(compute=None, relative_to="nll_mc", needs=frozenset({"baseline"}))
    assert msll.relative(1.5, 2.0) == -0.5
    assert msll.relative(2.0, 2.0) == 0.0
    assert msll.relative(math.inf, 2.0) == math.inf
    assert math.isnan(msll.relative(math.inf, math.inf))
    with pytest.raises(UserError, match="not relative"):
        _metric().relative(1.0, 2.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Not Snake"}, "snake_case"),
        ({"task": "ranking"}, "task 'ranking' is none of"),
        ({"family": "taste"}, "family"),
        ({"direction": "sideways"}, "direction"),
        ({"direction": "target"}, "target value"),
        ({"target": 0.5}, "target value"),
        ({"direction": "target", "target": math.nan}, "finite"),
        ({"needs": frozenset({"luck"})}, "unknown needs"),
        ({"name": "rmse@"}, "condition comes after an @"),
        ({"direction": "none"}, "'none' and family 'descriptive' go together"),
        ({"family": "descriptive"}, "'none' and family 'descriptive' go together"),
        ({"compute": None}, "either compute, or relative_to"),
        ({"relative_to": "rmse"}, "either compute, or relative_to"),
        ({"needs": frozenset({"probe"})}, "either compute, or relative_to"),
        ({"needs": frozenset({"baseline"})}, "go together"),
    ],
)
def test_a_contradictory_declaration_is_an_error(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        _metric(**changes)


def test_it_applies_where_task_and_needs_fit() -> None:
    one = Forecast("regression", np.zeros(2), np.zeros((1, 2)))
    two = Forecast("regression", np.zeros(2), np.zeros((2, 2)), noise_variance=0.0)
    assert _metric(needs=frozenset({"draws"})).applies_to(two)
    assert not _metric(needs=frozenset({"draws"})).applies_to(one)
    stated = Forecast("regression", np.zeros(2), np.zeros((1, 2)), np.ones((1, 2)))
    for forecast, variance, distribution in ((one, False, False), (two, True, True), (stated, True, True)):
        assert _metric(needs=frozenset({"variance"})).applies_to(forecast) == variance
        assert _metric(needs=frozenset({"distribution"})).applies_to(forecast) == distribution
    assert not _metric(needs=frozenset({"draws"})).applies_to(stated)
    assert _metric(needs=frozenset({"noise"})).applies_to(two)
    assert not _metric(needs=frozenset({"noise"})).applies_to(one)
    assert not _metric(needs=frozenset({"scale"})).applies_to(two)
    assert not _metric(needs=frozenset({"probabilities"})).applies_to(two)
    assert not _metric(task="classification").applies_to(two)
    assert _metric(task="any").applies_to(two)


def test_a_stored_name_may_state_a_condition() -> None:
    plain, shifted = declaration("accuracy"), declaration("accuracy@fog:3")
    assert (condition(plain.name), condition(shifted.name)) == ("", "fog:3")
    assert shifted.name == "accuracy@fog:3"
    assert (shifted.direction, shifted.family, shifted.unit) == (plain.direction, plain.family, plain.unit)
    with pytest.raises(UserError, match="accuracy"):
        declaration("acuracy@fog:3")


def test_a_template_gives_a_metric_its_shared_fields_and_the_source_of_its_value() -> None:
    shared = Template("regression", "calibration", "nat", needs="draws", signed=True)
    plain = shared("a", "formula", "source").by(lambda forecast: 1.0)
    assert plain.compute is not None
    assert (plain.name, plain.unit, plain.direction, plain.signed) == ("a", "nat", "lower", True)
    assert (plain.formula, plain.source, *plain.needs) == ("formula", "source", "draws")
    own = shared("b", "f", "s", unit="1", needs="noise scale").by(lambda forecast: 1.0)
    assert (own.unit, *sorted(own.needs)) == ("1", "noise", "scale")
    relative = shared("c", "f", "s").relative_to("a")
    assert (relative.relative_to, *sorted(relative.needs)) == ("a", "baseline", "draws")
    assert Template("any", "cost", "ms")("d", "f", "s").by_probe().needs == {"probe"}


def test_an_undeclared_metric_is_none_to_those_who_can_go_on() -> None:
    assert find_declaration("no_such_metric@fog:3") is None
    assert find_declaration("accuracy@fog:3") == declaration("accuracy@fog:3")


def test_the_range_of_values_follows_from_unit_and_sign() -> None:
    ranges = {
        name: declaration(name).value_range for name in ("accuracy", "ece", "rmse", "latency_total", "nll", "msll")
    }
    assert ranges["accuracy"] == ranges["ece"] == (0.0, 1.0)
    assert ranges["rmse"] == ranges["latency_total"] == (0.0, math.inf)
    assert ranges["nll"] == ranges["msll"] == (-math.inf, math.inf)
    assert declaration("r2").value_range == (-math.inf, 1.0)
    assert declaration("brier").value_range == (0.0, 2.0)
