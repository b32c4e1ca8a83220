"""The demonstration: one image under growing noise."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.api import Split
from bench.errors import UserError
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.probes.softmax_noise import SoftmaxNoise, rival
from bench.run.driver import run
from bench.spec.cell import Outcome
from bench.spec.protocol import Protocol
from bench.store.results import StoredResults
from bench.store.store import Store

Load = Callable[..., Split]
USUAL = Protocol().probe  # the ordinary one
PROBE = SoftmaxNoise(label=4, image=1, levels=[0.0, 0.5, 1.0, 2.0, 4.0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "options", "draws"), [("deep-ensemble", {"networks": 2}, 2), ("mcni-fixed", {"alpha": 0.3}, 4)]
)
def test_every_level_is_what_a_noisy_dataset_gives(
    method: str, options: dict[str, Any], draws: int, ask: Callable[..., list[Outcome]], load: Load
) -> None:
    noisy = [load("digits-shifted", shift="none", noise=level) for level in PROBE.levels]
    found, *usual = ask(method, options, [(PROBE.spec, load()), *((USUAL, split) for split in noisy)])
    row = np.flatnonzero(load().test_y == 4)[1]
    assert found.arrays["softmax"].shape == (5, draws, 2)
    assert found.arrays["classes"][0] == 4
    np.testing.assert_array_equal(found.arrays["levels"], PROBE.levels)
    np.testing.assert_array_equal(found.arrays["image"], load().test_x[row])
    expected = np.stack([outcome.arrays["mean"][row] for outcome in usual])
    np.testing.assert_allclose(found.arrays["softmax"].mean(1), expected[:, found.arrays["classes"]], atol=1e-6)
    turned = expected.argmax(1)
    first = int(np.argmax(turned != 4))
    assert first > 0  # or the levels are too few to test anything
    assert found.arrays["classes"][1] == turned[first]
    assert PROBE.levels[first - 1] <= found.metrics["flip_level"] <= PROBE.levels[first]


@pytest.mark.slow
def test_methods_of_a_seed_see_the_same_image(ask: Callable[..., list[Outcome]], load: Load) -> None:
    weak = replace(PROBE, levels=[0.0, 0.01])
    plain, small = ask("deterministic", {}, [(PROBE.spec, load()), (weak.spec, load())])
    [noiseless] = ask("mcni-fixed", {"alpha": 0.0}, [(PROBE.spec, load())])  # the same network, drawn four times
    for draw in range(4):
        np.testing.assert_allclose(noiseless.arrays["softmax"][:, draw, 0], plain.arrays["softmax"][:, 0, 0], atol=1e-6)
    assert small.metrics == {}  # without a flip there is no level
    assert small.arrays["softmax"].shape == (2, 1, 2)


def test_the_rival() -> None:
    turning = np.array([[0.1, 0.6, 0.3], [0.4, 0.35, 0.25], [0.1, 0.3, 0.6]])
    assert rival(turning, 1) == 0  # what it turns to first, not last
    assert rival(turning[:1], 1) == 2  # never turns: the next best at the last level
    assert rival(turning[:1], 0) == 1  # mistaken from the beginning


def numbered(load: Load) -> tuple[Split, int]:
    """Return digits as images of three channels in steps of 1 / 255, and the row of an image."""
    split = load()
    x = np.round(255 * np.concatenate([split.test_x, split.test_x[:, :, ::-1], 1 - split.test_x], 1)) / 255
    return replace(split, test_x=x.astype(np.float32)), int(np.flatnonzero(split.test_y == 4)[1])


def test_noise_of_a_seed_is_numpys_and_fresh_at_every_level(load: Load) -> None:
    """The first numbers of seed 42 are widely known: 0.49671415, -0.1382643, 0.64768854."""
    split, row = numbered(load)
    probe = replace(PROBE, noise_seed=42)
    images = probe.images(split, row, seed=3)
    noise = np.moveaxis((images - split.test_x[row])[1:], 1, -1) / np.array(PROBE.levels[1:])[:, None, None, None]
    random = np.random.RandomState(42)
    expected = [random.randn(8, 8, 3) for _ in PROBE.levels]
    np.testing.assert_allclose(expected[0][0, 0], [0.49671415, -0.1382643, 0.64768854], atol=1e-7)
    np.testing.assert_allclose(noise, expected[1:], atol=1e-5)
    np.testing.assert_array_equal(images, probe.images(split, row, seed=4))  # one noise for all seeds
    np.testing.assert_array_equal(images[0], split.test_x[row])


@pytest.mark.parametrize("seed", [None, 42])
def test_pixels_of_8_bits_are_those_of_a_cast_to_bytes(seed: int | None, load: Load) -> None:
    split, row = numbered(load)
    probe = replace(PROBE, noise_seed=seed)
    free = probe.images(split, row, seed=3).astype(np.float64)
    cut = replace(probe, pixels="8-bit").images(split, row, seed=3)
    whole = np.round(255 * split.test_x[row].astype(np.float64))
    sums = whole + 255 * (free - split.test_x[row])
    steps = np.round(255 * cut)
    np.testing.assert_allclose(255 * cut, steps, atol=1e-4)
    np.testing.assert_array_equal(steps[0], whole)  # without noise nothing is lost
    # A sum within rounding of a whole number may fall to either side; there are few.
    assert np.mean(steps != sums.clip(0, 255).astype(np.uint8)) < 0.01
    assert (cut.min(), cut.max()) == (0, 1)
    assert free.min() < 0


def test_images_that_are_not_there(load: Load) -> None:
    split = load()
    PROBE.check(split)
    with pytest.raises(UserError, match=r"probe\.label: there is no class 10; the classes are 0 to 9"):
        replace(PROBE, label=10).check(split)
    count = int((split.test_y == 4).sum())
    replace(PROBE, image=count - 1).check(split)
    with pytest.raises(UserError, match=f"a test set has {count} images of class 4"):
        replace(PROBE, image=count).check(split)
    with pytest.raises(UserError, match="images with classes, not for regression"):
        PROBE.check(load("diabetes"))


def test_rows_drawn() -> None:
    assert PROBE.rows_drawn(1000) == 5


@pytest.mark.slow
def test_the_suite_small(tmp_path: Path) -> None:
    suite = load_suite("softmax-digits", ["seeds=1", "training.epochs=25", "draws=6"]).only([], ["mc-dropout"])
    store = Store(str(tmp_path / "store.db"))
    assert run(suite, Registry(), store).well
    results = StoredResults(store, suite.name)
    assert set(results.frame["metric"]) <= {"flip_level"}
    shapes = {row.method: results.arrays(str(row.key))["softmax"].shape for row in results.cells.itertuples()}
    assert shapes == {"mc-dropout": (11, 6, 2)}
