import dataclasses

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from bench.api import Array, Normal, Points, Probabilities, Split
from bench.errors import UserError
from bench.spec.protocol import Protocol
from bench.training.folds import folds
from bench.training.rows import held_out, prepare, search_folds

N, D = 50, 3


@pytest.fixture
def split() -> Split:
    rng = np.random.default_rng(3)
    x = rng.normal(5.0, [0.1, 10.0, 3.0], (N, D))
    return Split("regression", x, rng.normal(100.0, 20.0, N), rng.normal(size=(7, D)), rng.normal(size=7))


def test_the_rows_that_train_have_mean_0_and_variance_1(split: Split) -> None:
    rows = prepare(split, Protocol(), 0, "cpu").rows
    for values in (rows.x[rows.train].numpy(), rows.y[rows.train].numpy()):
        np.testing.assert_allclose(values.mean(0), 0, atol=1e-5)
        np.testing.assert_allclose(values.std(0), 1, atol=1e-5)


def test_each_part_can_be_scaled_by_its_own_rows(split: Split) -> None:
    protocol = Protocol(scale_by="each-part", search="grid", refit=True, folds=2)
    fold = search_folds(N, protocol, 0)[0]
    data = prepare(split, protocol, 0, "cpu", fold)
    for part in fold:
        for values in (data.rows.x[part].numpy(), data.rows.y[part].numpy()):
            np.testing.assert_allclose(values.mean(0), 0, atol=1e-5)
            np.testing.assert_allclose(values.std(0), 1, atol=1e-5)
    np.testing.assert_allclose(data.test_x.numpy().mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(data.test_x.numpy().std(0), 1, atol=1e-5)
    # A prediction is in the units of the test rows: the targets in these units are the targets.
    units = ((split.test_y - split.test_y.mean()) / split.test_y.std())[None]
    found = data.original(Points(units))
    assert isinstance(found, Points)
    np.testing.assert_allclose(found.values[0], split.test_y, rtol=1e-6)
    np.testing.assert_allclose(data.original_inputs(data.test_x), split.test_x, rtol=1e-4, atol=1e-4)
    assert data.scale == prepare(split, Protocol(), 0, "cpu").scale  # metrics in units of the training targets


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"scale_by": "each-part"}, "no noise can be fitted"),
        ({"scale_by": "each-part", "validation": 0.0, "search_by": "crps"}, "no noise can be fitted"),
        ({"scale_by": "each-part", "scale_inputs": False, "scale_targets": False}, "turn off"),
        ({"stop_together": True}, "stop_together is about the networks of a search"),
        ({"search_network": {"hidden": [3]}}, "search_network is about the networks of a search"),
        ({"stop_together": True, "search": "grid"}, "stop_together is about early stopping"),
        ({"refit_less": 1, "search": "grid"}, "refit_less shortens a refit"),
    ],
)
def test_protocols_that_contradict_themselves_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Protocol(**wrong)  # type: ignore[arg-type]


def test_a_wrapper_has_no_units_to_calibrate_in_where_each_part_has_its_own(split: Split) -> None:
    protocol = Protocol(scale_by="each-part", validation=0.0)
    parts = [torch.arange(0, 30), torch.arange(30, 40), torch.arange(40, 50)]
    with pytest.raises(UserError, match="in which no wrapper can calibrate"):
        prepare(split, protocol, 0, "cpu", parts)


def test_train_and_validation_share_out_the_rows(split: Split) -> None:
    rows = prepare(split, Protocol(validation=0.3), 0, "cpu").rows
    assert len(rows.validation) == 15
    assert sorted([*rows.train.tolist(), *rows.validation.tolist()]) == list(range(N))
    other = prepare(split, Protocol(validation=0.3), 1, "cpu").rows
    assert other.validation.tolist() != rows.validation.tolist()  # each seed holds out its own rows
    again = prepare(split, Protocol(validation=0.3), 0, "cpu").rows
    assert again.validation.tolist() == rows.validation.tolist()


def test_nothing_of_the_test_rows_reaches_training(split: Split) -> None:
    wild = dataclasses.replace(split, test_x=split.test_x * 1e6, test_y=split.test_y - 1e6)
    a, b = prepare(split, Protocol(), 0, "cpu"), prepare(wild, Protocol(), 0, "cpu")
    assert torch.equal(a.rows.x, b.rows.x)
    assert torch.equal(a.rows.y, b.rows.y)
    assert (a.target_mean, a.target_std, a.scale) == (b.target_mean, b.target_std, b.scale)


def test_nothing_of_the_validation_rows_reaches_the_scaling(split: Split) -> None:
    first = prepare(split, Protocol(validation=0.2), 0, "cpu")
    held = first.rows.validation.numpy()
    x, y = split.train_x.copy(), split.train_y.copy()
    x[held] += 1000
    y[held] -= 1000
    second = prepare(dataclasses.replace(split, train_x=x, train_y=y), Protocol(validation=0.2), 0, "cpu")
    train = first.rows.train
    assert torch.equal(first.rows.x[train], second.rows.x[train])
    assert torch.equal(first.rows.y[train], second.rows.y[train])
    assert torch.equal(first.test_x, second.test_x)
    assert not torch.equal(first.rows.x[held], second.rows.x[held])


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 + 0.3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_constant_feature_stays_harmless(value: float, dtype: type, split: Split) -> None:
    """Also where rounding gives the constant a standard deviation above 0, and a test row has another value."""
    x: Array = split.train_x.astype(dtype)
    test_x: Array = split.test_x.astype(dtype)
    x[:, 0] = value
    test_x[:, 0] = dtype(value) + 1
    ready = prepare(dataclasses.replace(split, train_x=x, test_x=test_x), Protocol(), 0, "cpu")
    assert ready.rows.x[:, 0].abs().max() < 1e-6
    assert ready.test_x[:, 0].abs().max() < 1.1
    constant = prepare(dataclasses.replace(split, train_y=np.full(N, 0.1)), Protocol(), 0, "cpu")
    assert constant.target_std == 1
    assert constant.rows.y.abs().max() < 1e-6


def test_back_to_original_units(split: Split) -> None:
    ready = prepare(split, Protocol(), 0, "cpu")
    draws = ready.rows.y.numpy()[None]
    points = ready.original(Points(draws))
    assert isinstance(points, Points)
    np.testing.assert_allclose(points.values[0], split.train_y, rtol=1e-5)
    stated = ready.original(Normal(draws, noise_variance=np.full_like(draws, 0.25)))
    assert isinstance(stated, Normal)
    np.testing.assert_allclose(stated.variance, 0.25 * split.train_y[ready.rows.train.numpy()].var())
    classes = Probabilities(np.full((1, 4, 2), 0.5))
    assert ready.original(classes) is classes


def test_without_scaling_the_rows_are_as_they_came(split: Split) -> None:
    ready = prepare(split, Protocol(scale_inputs=False, scale_targets=False), 0, "cpu")
    np.testing.assert_array_equal(ready.rows.x.numpy(), split.train_x.astype(np.float32))
    np.testing.assert_array_equal(ready.rows.y.numpy(), split.train_y.astype(np.float32))
    np.testing.assert_array_equal(ready.test_x.numpy(), split.test_x.astype(np.float32))
    assert (ready.target_mean, ready.target_std) == (0, 1)


def test_the_reported_scale_is_that_of_the_training_targets(split: Split) -> None:
    scale = prepare(split, Protocol(), 0, "cpu").scale
    assert scale is not None
    y = split.train_y
    assert (scale.mean, scale.std, scale.minimum, scale.maximum) == pytest.approx((y.mean(), y.std(), y.min(), y.max()))


def test_classes_are_not_scaled(split: Split) -> None:
    labels = np.arange(N) % 3
    images = Split("classification", np.zeros((N, 1, 4, 4)), labels, np.zeros((3, 1, 4, 4)), np.zeros(3), classes=3)
    ready = prepare(images, Protocol(), 0, "cpu")
    assert ready.rows.y.dtype == torch.int64
    assert ready.rows.y.tolist() == labels.tolist()
    assert ready.scale is None
    assert ready.test_x.shape == (3, 1, 4, 4)


def test_one_row_is_left_to_train_on(split: Split) -> None:
    single = dataclasses.replace(split, train_x=split.train_x[:1], train_y=split.train_y[:1])
    rows = prepare(single, Protocol(validation=0.9), 0, "cpu").rows
    assert (len(rows.train), len(rows.validation)) == (1, 0)
    assert torch.isfinite(rows.x).all()


def test_the_split_itself_is_not_changed(split: Split) -> None:
    before = split.train_x.copy(), split.train_y.copy()
    ready = prepare(split, Protocol(scale_inputs=False, scale_targets=False), 0, "cpu")
    ready.rows.x.zero_()
    ready.rows.y.zero_()
    np.testing.assert_array_equal(split.train_x, before[0])
    np.testing.assert_array_equal(split.train_y, before[1])


def test_calibration_rows_are_apart_and_leave_the_validation_rows_as_they_were(split: Split) -> None:
    plain = prepare(split, Protocol(validation=0.2), 0, "cpu").rows
    rows = prepare(split, Protocol(validation=0.2, calibration=0.3), 0, "cpu").rows
    assert (len(rows.train), len(rows.validation), len(rows.calibration)) == (25, 10, 15)
    assert sorted(torch.cat([rows.train, rows.validation, rows.calibration]).tolist()) == list(range(N))
    assert rows.validation.tolist() == plain.validation.tolist()
    assert rows.calibrating.tolist() == rows.calibration.tolist()
    assert plain.calibrating.tolist() == plain.validation.tolist()
    np.testing.assert_allclose(rows.x[rows.train].numpy().mean(0), 0, atol=1e-5)  # scaled by the rows that train
    alone = prepare(split, Protocol(validation=0.0, calibration=0.3), 0, "cpu").rows
    assert (len(alone.train), len(alone.validation), len(alone.calibration)) == (35, 0, 15)
    np.testing.assert_allclose(alone.y[alone.train].numpy().mean(0), 0, atol=1e-5)
    with pytest.raises(ValidationError, match="their shares leave no rows to train on"):
        Protocol(validation=0.4, calibration=0.6)


def test_calibration_rows_are_in_no_fold_of_a_search() -> None:
    protocol = Protocol(validation=0.1, calibration=0.2, folds=4)
    train, validation, calibration = held_out(N, protocol, 3)
    usable = {*train.tolist(), *validation.tolist()}
    found = search_folds(N, protocol, 3)
    for one, other in found:
        assert {*one.tolist(), *other.tolist()} == usable
        assert not usable & set(calibration.tolist())
    assert len({row for _, other in found for row in other.tolist()}) == 40
    for (a, b), (c, d) in zip(search_folds(N, Protocol(folds=4), 3), folds(N, 4, 3), strict=True):
        assert torch.equal(a, c)
        assert torch.equal(b, d)


@pytest.mark.parametrize("calibration", [0.0, 0.2])
def test_one_fold_holds_out_the_validation_rows(calibration: float) -> None:
    protocol = Protocol(validation=0.3, calibration=calibration, search="grid", folds=1)
    train, validation, _ = held_out(N, protocol, 3)
    ((one, other),) = search_folds(N, protocol, 3)
    assert torch.equal(one, train)
    assert torch.equal(other, validation)
    assert len(other) == 15
    with pytest.raises(ValidationError, match="folds = 1 judges a search on the validation rows"):
        Protocol(validation=0.0, search="grid", folds=1)
