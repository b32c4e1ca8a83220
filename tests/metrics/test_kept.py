"""Predictions that are kept in few bytes give the metrics that they gave before."""

import dataclasses
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from bench.metrics import (
    Dirichlet,
    Forecast,
    Logits,
    Normal,
    NormalInverseGamma,
    Points,
    Prediction,
    Probabilities,
    Quantiles,
    Sets,
    TargetScale,
)
from bench.metrics.compact_arrays import STEPS, decode, encode
from bench.metrics.kept import TOLERANCE, Kept, about, pack, unpack

MEAN, STD = 450.0, 17.0  # of targets whose spread is small beside their size


def single(values: Any) -> Any:
    """What a network says: single precision, in training units."""
    return np.asarray(values, dtype=np.float32)


def regression(rng: np.random.Generator, kind: str, draws: int, rows: int) -> Prediction:
    mean = rng.normal(size=rows) + 0.3 * rng.normal(size=(draws, rows))
    positive = rng.gamma(2.0, 0.2, size=(3, draws, rows)) + 0.01
    if kind == "points":
        made: Any = Points(single(mean))
    elif kind == "normal":
        made = Normal(single(mean), noise_variance=single(positive[0]))
    elif kind == "evidential":
        made = NormalInverseGamma(single(mean), single(positive[0]), single(positive[1] + 1), single(positive[2]))
    else:
        around = np.sort(mean[..., None] + rng.normal(size=(draws, rows, 5)), axis=-1)
        made = Quantiles(np.array([0.05, 0.25, 0.5, 0.75, 0.95]), single(around), tails="exponential")
    return made.affine(STD, MEAN)  # type: ignore[no-any-return]


def classes(rng: np.random.Generator, kind: str, draws: int, rows: int) -> Prediction:
    logits = single(3 * rng.normal(size=(rows, 4)) + rng.normal(size=(draws, rows, 4)))
    if kind == "logits":
        return Logits(logits)
    if kind == "dirichlet":
        return Dirichlet(np.exp(logits))
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    if kind == "sets":
        return Sets(shares.mean(0) > 0.1, Probabilities(shares))
    return Probabilities(shares)


REGRESSION = ("points", "normal", "evidential", "quantiles")
CLASSES = ("probabilities", "logits", "dirichlet", "sets")


def kept(rng: np.random.Generator, kind: str, draws: int = 12, rows: int = 24) -> Kept:
    groups: Any = rng.choice(np.array(["north", "south"]), rows)
    fewer = {6: 80.0} if draws > 6 else {}
    if kind not in ("points", "probabilities"):  # the others take their time
        groups, fewer = None, {}
    if kind in CLASSES:
        test, held = (Forecast.of(classes(rng, kind, draws, n), rng.integers(0, 4, n)) for n in (rows, rows // 2))
        return Kept(test, held, groups=groups, fewer=dict.fromkeys(fewer))
    scale = TargetScale(MEAN, STD, 400.0, 500.0)
    test, held = (
        Forecast.of(regression(rng, kind, draws, n), rng.normal(MEAN, STD, n), 80.0, scale) for n in (rows, rows // 2)
    )
    test = dataclasses.replace(test, truth=test.observed + 1.0)
    return Kept(test, held, (MEAN, STD), groups, fewer)


def read(content: bytes) -> Kept:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return unpack({name: arrays[name] for name in arrays.files})


def largest_change(one: Mapping[str, float], two: Mapping[str, float]) -> float:
    assert one.keys() == two.keys()
    return max(abs(one[name] - two[name]) / abs(one[name]) if one[name] != two[name] else 0.0 for name in one)


@pytest.mark.parametrize("kind", [*REGRESSION, *CLASSES])
def test_no_metric_changes_by_more_than_the_tolerance(rng: np.random.Generator, kind: str) -> None:
    """Also by group, and of the first draws alone; moments change far less."""
    whole = kept(rng, kind)
    values = whole.scores()
    content = pack(whole, "compact", values)
    assert content is not None
    again = read(content)
    assert largest_change(values, again.scores()) <= TOLERANCE
    if kind in ("points", "probabilities"):
        assert {name.partition("@")[2] for name in values} == {"", "T=6", "group=north", "group=south", "worst-group"}
    np.testing.assert_allclose(again.test.mean, whole.test.mean, rtol=1e-4)
    np.testing.assert_allclose(again.test.spread, whole.test.spread, rtol=2e-3, atol=1e-9)
    assert again.validation is not None
    assert whole.validation is not None
    np.testing.assert_array_equal(again.validation.observed, whole.validation.observed)
    np.testing.assert_allclose(again.validation.mean, whole.validation.mean, rtol=1e-4)


@pytest.mark.parametrize("kind", [*REGRESSION, *CLASSES])
@pytest.mark.parametrize(("draws", "exactness"), [(1, "compact"), (3, "compact"), (12, "float32")])
def test_single_precision_is_exact_for_what_networks_say(
    rng: np.random.Generator, kind: str, draws: int, exactness: Any
) -> None:
    """Few draws are kept whole in any case: two numbers per row would take as much room."""
    whole = kept(rng, kind, draws)
    values = whole.scores()
    content = pack(whole, exactness, values)
    assert content is not None
    assert about(content)["precision"] == "exact" or kind == "dirichlet"  # a softmax of float64 is none of float32
    if kind != "dirichlet":
        assert read(content).scores() == values


def test_sixteen_bits_take_a_quarter_of_double_precision(rng: np.random.Generator) -> None:
    held, test = (Forecast.of(regression(rng, "points", 100, n), rng.normal(MEAN, STD, n), 80.0) for n in (100, 200))
    whole = Kept(test, held, (MEAN, STD))
    content = pack(whole, "compact", whole.scores())
    assert content is not None
    assert about(content)["precision"] == "16 bits"
    assert len(content) < 1.15 * 2 * 100 * (200 + 100)


def test_what_16_bits_would_change_is_kept_in_single_precision(rng: np.random.Generator) -> None:
    """A value far outside makes the steps of its row coarse: the check finds it, and nothing is lost."""
    draws = single(rng.normal(size=(20, 40)))
    draws[0] *= 1e7
    whole = Kept(Forecast.of(Points(draws), rng.normal(size=40), 1.0))
    values = whole.scores()
    content = pack(whole, "compact", values)
    assert content is not None
    assert about(content)["precision"] == "exact"
    assert read(content).scores() == values


def test_a_value_is_off_by_half_a_step_at_most(rng: np.random.Generator) -> None:
    values = rng.normal(size=(50, 30)) * np.logspace(-6, 6, 30)
    arrays, coding = encode("x", values, "16 bits", positive=False)
    assert coding == "linear"
    step = np.ptp(values, axis=0) / STEPS
    assert (np.abs(decode("x", arrays, coding) - values) <= 0.51 * step + 1e-7 * np.abs(values).max(0)).all()
    arrays, coding = encode("x", np.exp(values[:, :15]), "16 bits", positive=True)
    assert coding == "log"
    np.testing.assert_allclose(decode("x", arrays, coding), np.exp(values[:, :15]), rtol=1e-4)
    constant, coding = encode("x", np.full((9, 2), 0.1), "16 bits", positive=False)
    assert np.ptp(decode("x", constant, coding)) == 0


def test_predictions_of_a_class_of_their_own_are_not_kept(rng: np.random.Generator) -> None:
    class Mine(Points):
        pass

    whole = Kept(Forecast.of(Mine(rng.normal(size=(6, 9))), rng.normal(size=9)))
    assert pack(whole, "compact", whole.scores()) is None


def test_other_content_is_refused(rng: np.random.Generator) -> None:
    forecast = Forecast.of(Points(rng.normal(size=(20, 40))), rng.normal(size=40), 1.0)
    whole = Kept(forecast, forecast)
    content = pack(whole, "compact", whole.scores())
    assert content is not None
    with np.load(io.BytesIO(content)) as file:
        arrays = {name: file[name] for name in file.files}
    for name in ("about", "test/observed", "test/values:steps"):
        with pytest.raises(ValueError, match="no predictions of a cell"):
            unpack({key: array for key, array in arrays.items() if key != name})
    with pytest.raises(ValueError, match="no predictions of a cell"):
        unpack(arrays | {"test/values:steps": arrays["test/values:steps"][:, :5]})
    without = {name: array for name, array in arrays.items() if not name.startswith("validation/")}
    assert unpack(without).validation is None
