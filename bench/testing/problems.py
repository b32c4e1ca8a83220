"""Small problems that a network learns in a second, and the networks of a method trained on them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from bench.api import Array, Law, Method, Network, Normal, Prediction, Probabilities, Problem, Split, Task
from bench.api.tape import BlankTape, stream
from bench.plugins.registry import Registry
from bench.spec.plugin import PluginSpec
from bench.spec.protocol import DEFAULT_NETWORK, Protocol, Training
from bench.testing.check import CheckFailure, require
from bench.training.divergence import first_not_finite
from bench.training.drawing import Drawing, draw
from bench.training.fit import fit
from bench.training.limits import Limits
from bench.training.member import Fitted, Member, finish
from bench.training.network_factory import network_factory
from bench.training.predictors import Networks
from bench.training.rows import Prepared, prepare

PLAIN = Limits(path="plain")  # no tracing: fastest for a few steps
STACK = Limits(path="stack", compiling=False)
SEED = 20

NETWORK = PluginSpec(DEFAULT_NETWORK, options={"hidden": [16]})
LEARNING = Protocol(Training(learning_rate=0.01, epochs=80, batch=32), NETWORK, validation=0.2)
SHORT = Protocol(Training(learning_rate=0.01, epochs=3, batch=32), NETWORK, validation=0.2)
# Not Adam: it moves weights whose gradient is nothing but rounding, so that two devices would differ.
ONE_STEP = Protocol(Training(learning_rate=0.01, epochs=1, batch=32, optimizer="sgd"), NETWORK, validation=0.2)
CENTRES = np.array([[0.0, 2.0], [-1.8, -1.0], [1.8, -1.0]])
NOISE, WIDTH = 0.05, 0.5  # standard deviations of targets, and of inputs around their centre


@dataclass(frozen=True)
class ProblemLaw(Law):
    """The law of the problems below, for methods that read it."""

    task: Task

    def at(self, x: Array) -> Prediction:
        """Return a normal around the surface, or the probabilities of the clusters by Bayes' rule."""
        if self.task == "regression":
            mean = _surface(np.asarray(x, dtype=np.float64))[None]
            return Normal(mean, noise_variance=np.full_like(mean, NOISE**2))
        distance = np.square(np.asarray(x, dtype=np.float64)[:, None] - CENTRES).sum(axis=2) / (2 * WIDTH**2)
        shares = np.exp(distance.min(axis=1, keepdims=True) - distance)
        return Probabilities((shares / shares.sum(axis=1, keepdims=True))[None])


PROBLEMS = {
    "regression": Problem("regression", (2,), 1, law=ProblemLaw("regression")),
    "classification": Problem("classification", (2,), 3, law=ProblemLaw("classification")),
}


@dataclass(frozen=True)
class Plain(Method):
    """A network without noise, the reference for costs."""


def split_of(task: Task, rows: int = 120) -> Split:
    """Return a problem that any network learns: a smooth function of two inputs, or three clusters of points."""
    random = np.random.default_rng([31, rows])
    if task == "regression":
        x, test_x = random.normal(size=(rows, 2)), random.normal(size=(60, 2))
        y, test_y = (_surface(part) + NOISE * random.normal(size=len(part)) for part in (x, test_x))
        return Split("regression", x, y, test_x, test_y, law=ProblemLaw(task))
    label, test_label = np.arange(rows) % 3, np.arange(60) % 3
    x, test_x = (CENTRES[part] + WIDTH * random.normal(size=(len(part), 2)) for part in (label, test_label))
    return Split("classification", x, label, test_x, test_label, classes=3, law=ProblemLaw(task))


def tiny_splits(task: Task) -> Iterator[tuple[str, Split]]:
    """Yield splits of one, two and three training rows, each with its description."""
    whole = split_of(task)
    for rows in (1, 2, 3):
        few = replace(whole, train_x=whole.train_x[:rows], train_y=whole.train_y[:rows])
        yield f"{task} with {rows} rows of data", few


def constant_split() -> Split:
    """Return a regression whose training targets are all the same."""
    whole = split_of("regression")
    return replace(whole, train_y=np.full_like(whole.train_y, 5.0))


def missing_class_split() -> Split:
    """Return a classification with a class that has no training rows."""
    whole = split_of("classification")
    seen = whole.train_y < 2
    return replace(whole, train_x=whole.train_x[seen], train_y=whole.train_y[seen])


def require_learned(split: Split, mean: Array, advice: str) -> None:
    """Fail the check unless mean predictions of the test rows (in original units) are much better than a constant."""
    y = split.test_y
    if split.task == "regression":
        share = float(np.sqrt(np.mean((mean - y) ** 2)) / y.std())
        found = f"RMSE on a smooth function {share:.2f} times the targets' standard deviation (required: 0.6)"
        require(share < 0.6, f"{found}{advice}")
    else:
        accuracy = float((mean.argmax(-1) == y).mean())
        found = f"accuracy on three separate clusters {accuracy:.0%} (required: 70%, guessing has 33%)"
        require(accuracy > 0.7, f"{found}{advice}")


def _surface(x: Array) -> Array:
    surface: Array = x[:, 0] - 0.5 * x[:, 1] + 0.3 * np.sin(3 * x[:, 0])
    return surface


@dataclass(frozen=True, eq=False)
class Cell:
    """The trained networks of one method on one split."""

    method: Method
    split: Split
    data: Prepared
    members: Sequence[Member]
    networks: Sequence[Fitted]

    def draws(self, count: int, *, x: Any = None, seed: int = 1, limits: Limits = STACK) -> Array:
        """Return drawn values `[T, rows, outputs]` in training units, at the test rows unless others are given."""
        x = self.data.test_x if x is None else x
        return draw(Drawing(self.method, self.networks, self.split.task, x, seed, count), limits)

    def predict(self, count: int, *, x: Any = None, seed: int = 1) -> Prediction:
        """Return what this many draws state, in training units, at the test rows unless others are given."""
        x = self.data.test_x if x is None else x
        return Networks(self.method, self.networks, self.split.task, STACK).predict(x, count, seed)

    @property
    def random(self) -> bool:
        """Does a draw read random numbers?"""
        tape = BlankTape()
        self.method.draw(self.networks[0], self.data.test_x[:2], tape)
        return tape.length.total > 0


def members_of(
    method: Method,
    split: Split,
    protocol: Protocol,
    seed: int = SEED,
    network: Network | None = None,
    fold: Sequence[Tensor] | None = None,
    device: str = "cpu",
) -> tuple[Prepared, list[Member]]:
    """Return the data of one cell and its networks, as a run creates them; `network` replaces the protocol's.

    `fold` has the rows of a part, see `prepare`.
    """
    data, problem = prepare(split, protocol, seed, device, fold), split.problem
    if network is None:
        network = Registry().make("network", protocol.network.name, protocol.network.options)
    new_network = network_factory(network, problem)
    seeds = [seed if k == 0 else stream(seed, "network", k) for k in range(method.networks)]
    common = (method, problem, new_network, repr(network), protocol.training, data.rows)
    return data, [Member(*common, each) for each in seeds]


def train(method: Method, split: Split, protocol: Protocol, limits: Limits) -> Cell:
    """Train the networks of one cell."""
    return train_all(method, [split], protocol, limits)[0]


def train_all(method: Method, splits: Sequence[Split], protocol: Protocol, limits: Limits) -> list[Cell]:
    """Train the networks of several cells together."""
    prepared = [members_of(method, split, protocol) for split in splits]
    members = [member for _, own in prepared for member in own]
    done = dict(fit(members, limits))
    networks = [finish(member, done[number]) for number, member in enumerate(members)]
    for member, network in zip(members, networks, strict=True):
        if network.status != "ok":
            where = first_not_finite(member, network) or "the loss"
            raise CheckFailure(f"training diverged in epoch {network.epochs}; first not finite: {where}")
    count = method.networks
    return [
        Cell(method, split, data, own, networks[place * count : (place + 1) * count])
        for place, (split, (data, own)) in enumerate(zip(splits, prepared, strict=True))
    ]
