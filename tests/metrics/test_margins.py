import pytest

from bench.errors import UserError
from bench.metrics import catalogue
from bench.metrics.margins import DEFAULTS, Margin, margin_of, read_margin, read_margins


def test_a_share_is_of_the_baseline_and_a_number_is_in_the_metrics_unit() -> None:
    assert read_margin("5%", "here").of(-200.0) == pytest.approx(10.0)
    assert read_margin(0.02, "here").of(-200.0) == 0.02
    assert str(read_margin("2.5 %", "here")) == "2.5 %"


def test_every_family_has_defaults_and_signed_metrics_get_absolute_ones() -> None:
    for metric in catalogue().values():
        margin = margin_of(metric, {})
        assert (metric.family in DEFAULTS) == metric.has_better
        assert margin.relative == (not metric.signed and metric.direction != "target"), metric.name
    signed = {name for name, metric in catalogue().items() if metric.signed}
    assert {"nll", "nll_mc", "msll", "msll_rw", "r2"} <= signed
    assert not signed & {"rmse", "ece", "nll_categorical", "crps", "accuracy"}


def test_the_metric_wins_over_its_family_and_a_familys_share_is_not_for_signed_metrics() -> None:
    known = catalogue()
    given = read_margins({"calibration": "10%", "ece": 0.004}, known, "suite: gate.margins")
    assert margin_of(known["ece"], given) == Margin(0.004, False)
    assert margin_of(known["crps"], given) == Margin(0.1, True)
    assert margin_of(known["nll"], given) == margin_of(known["nll"], {})
    assert margin_of(known["rmse"], given) == margin_of(known["rmse"], {})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"ecee": 0.1}, "unknown metric or family 'ecee'; did you mean ece"),
        ({"ece": 0.0}, "is not a margin"),
        ({"ece": "lots"}, "is not a margin"),
        ({"nll": "5%"}, "nll may be negative: give a margin in its unit"),
        ({"picp": "5%"}, "picp has a target: give a margin in its unit"),
    ],
)
def test_a_wrong_margin_is_told(given: dict[str, float | str], told: str) -> None:
    with pytest.raises(UserError, match=told):
        read_margins(given, catalogue(), "suite: gate.margins")
