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
    suite = load_suite("softmax-demo", ["seeds=1", "training.epochs=25", "draws=6"])
    ship = suite.protocol_for("cifar10")
    assert ship.probe["kind"] == "softmax-noise"
    assert (ship.probe["label"], ship.network.name, ship.training.patience) == (8, "resnet8", 0)
    training = ship.training
    assert (training.learning_rate, training.momentum, training.weight_decay, training.batch) == (0.1, 0.9, 3e-4, 128)
    paper = {"mc-dropout": {"rate": 0.3}, "mcni-fixed": {"alpha": 0.02}}
    assert {name: suite.methods[name].options for name in paper} == paper
    suite = suite.only([], ["mc-dropout"])
    assert list(suite.datasets) == ["digits"]  # the other one takes hours
    store = Store(str(tmp_path / "store.db"))
    assert run(suite, Registry(), store).well
    results = StoredResults(store, suite.name)
    assert set(results.frame["metric"]) <= {"flip_level"}
    shapes = {row.method: results.arrays(str(row.key))["softmax"].shape for row in results.cells.itertuples()}
    assert shapes == {"mc-dropout": (11, 6, 2)}
