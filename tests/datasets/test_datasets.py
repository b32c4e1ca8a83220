import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits

from bench.api import Dataset, Split
from bench.errors import UserError
from bench.plan.cells import checked
from bench.plugins.registry import Registry
from bench.testing import verify
from bench.testing.isolation import global_generators_untouched


def make(name: str, **options: object) -> Dataset:
    dataset: Dataset = Registry().make("dataset", name, options)
    return dataset


def rows(split: Split) -> list[tuple[float, ...]]:
    """All rows of a split, training and test, each with its target."""
    x = np.concatenate([split.train_x, split.test_x]).reshape(len(split.train_x) + len(split.test_x), -1)
    y = np.concatenate([split.train_y, split.test_y])
    return sorted(map(tuple, np.column_stack([x, y]).tolist()))


REGISTRY = Registry()
DOWNLOADED = [name for name in REGISTRY.plugins("dataset") if REGISTRY.make("dataset", name, {}).files]


@pytest.mark.parametrize("name", DOWNLOADED)
def test_a_downloaded_dataset_keeps_its_contract(name: str) -> None:
    """As the conformance kit asks of every dataset: in the tests the kit does without downloaded data."""
    dataset = make(name)
    if reason := dataset.skip():
        assert len(reason) > 10
        pytest.skip(reason)
    with global_generators_untouched("see the conformance kit"):
        first, again, second = dataset.load(0), make(name).load(0), dataset.load(1)
    checked(first)
    assert first.task == dataset.task
    for field in ("train_x", "train_y", "test_x", "test_y"):
        np.testing.assert_array_equal(getattr(first, field), getattr(again, field))  # the same number, the same rows
    if first.train_x is second.train_x:  # a published split, and no other
        return
    assert not np.array_equal(first.train_x, second.train_x)
    assert not np.array_equal(first.test_x, second.test_x)


@pytest.mark.parametrize("name", REGISTRY.plugins("dataset"))
def test_splits_are_related_as_the_dataset_declares(name: str) -> None:
    (verdict,) = verify(make(name), ["repeats"])
    assert verdict.state == "ok" or make(name).skip(), verdict.message


def test_diabetes_is_scikit_learns_in_its_own_units() -> None:
    x, y = load_diabetes(return_X_y=True, scaled=False)
    whole = sorted(map(tuple, np.column_stack([x, y]).tolist()))
    for number in range(3):
        split = make("diabetes").load(number)
        assert (len(split.train_y), len(split.test_y)) == (398, 44)
        assert rows(split) == whole  # complete and disjoint: every row once
        assert split.problem.inputs == (10,)
        assert split.problem.outputs == 1


def test_digits_are_scikit_learns() -> None:
    x, y = load_digits(return_X_y=True)
    split = make("digits").load(0)
    assert split.train_x.shape == (1617, 1, 8, 8)
    assert split.test_x.shape == (180, 1, 8, 8)
    assert rows(split) == sorted(map(tuple, np.column_stack([x / 16, y]).tolist()))
    assert (split.train_x.min(), split.train_x.max()) == (0, 1)
    assert (split.classes, split.problem.outputs) == (10, 10)
    both = np.concatenate([split.train_y, split.test_y])
    np.testing.assert_array_equal(np.bincount(both), np.bincount(y))


@pytest.mark.slow
def test_test_sets_of_many_splits_cover_the_data() -> None:
    """A random tenth each time: after 60 splits hardly a row (0.9^60 = 0.2 %) was never tested."""
    seen = {tuple(row) for number in range(60) for row in make("diabetes").load(number).test_x.tolist()}
    assert len(seen) > 0.98 * 442


def test_toy_is_the_function_of_the_paper() -> None:
    count = 400_000
    split = make("toy", rows=count).load(0)
    x, y = split.train_x[:, 0], split.train_y
    assert (x.min() > -2, x.max() < 2) == (True, True)
    assert x.mean() == pytest.approx(0, abs=5 * np.sqrt(16 / 12 / count))
    assert x.var() == pytest.approx(16 / 12, rel=0.01)
    noise = (y - 0.3 * np.sin(np.pi * x)) / (0.2 * np.abs(x))  # standard normal, whatever x
    for inside in (np.abs(x) < 0.5, (x > 0.5) & (x < 1.5), x < -1.5):
        sample = noise[inside]
        assert sample.mean() == pytest.approx(0, abs=5 / np.sqrt(len(sample)))
        assert sample.var() == pytest.approx(1, abs=5 * np.sqrt(2 / len(sample)))
        assert (sample**4).mean() == pytest.approx(3, abs=5 * np.sqrt(96 / len(sample)))
    assert split.test_truth is not None
    np.testing.assert_allclose(split.test_truth, 0.3 * np.sin(np.pi * split.test_x[:, 0]))


def test_an_even_toy_with_a_sample_is_the_one_of_numpys_legacy_seed() -> None:
    """The first numbers of seed 123 are widely known: -1.0856306, 0.99734545, 0.2829785."""
    dataset = make("toy", x="even", sample=123)
    split = dataset.load(0)
    x = -2 + 4 * np.arange(200) / 199
    np.testing.assert_allclose(split.train_x[:, 0], x, atol=1e-12)
    noise = (split.train_y - 0.3 * np.sin(np.pi * x)) / (0.2 * np.abs(x))
    np.testing.assert_allclose(noise[:3], [-1.0856306, 0.99734545, 0.2829785], atol=1e-6)
    assert split.test_truth is not None
    np.testing.assert_allclose(split.test_truth, 0.3 * np.sin(np.pi * x), atol=1e-12)
    np.testing.assert_array_equal(dataset.load(5).train_y, split.train_y)
    assert dataset.repeats == "seeds"


@pytest.mark.parametrize(("options", "repeats"), [({"x": "even"}, "independent"), ({"sample": 3}, "seeds")])
def test_the_options_of_toy_declare_how_its_repeats_are_related(options: dict[str, object], repeats: str) -> None:
    dataset = make("toy", **options)
    assert dataset.repeats == repeats
    assert [verdict.state for verdict in verify(dataset, ["repeats", "same-rows"])] == ["ok", "ok"]
    first, second = dataset.load(0), dataset.load(1)
    assert np.array_equal(first.train_x, second.train_x) is True
    assert np.array_equal(first.train_y, second.train_y) is (repeats == "seeds")
    assert make("toy").repeats == "independent"
    with pytest.raises(UserError, match=r"sample must be from 0 to 2\^32 - 1, .* got -1"):
        make("toy", sample=-1)


def test_toy_tests_on_its_training_points_or_on_fresh_ones() -> None:
    same, fresh = make("toy").load(0), make("toy", test="fresh").load(0)
    assert len(same.train_y) == 200
    np.testing.assert_array_equal(same.test_x, same.train_x)
    np.testing.assert_array_equal(same.test_y, same.train_y)
    np.testing.assert_array_equal(fresh.train_x, same.train_x)
    assert set(fresh.test_x[:, 0]).isdisjoint(fresh.train_x[:, 0])
    assert len(fresh.test_y) == 200
