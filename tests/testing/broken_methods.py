"""A healthy method, and for every check one that is broken in that respect alone.

    q(w) = N(w, 1 / (p + sum_n |d f(x_n) / d w|^2 / s^2))

The healthy one is a diagonal Laplace approximation (MacKay 1992) with a known noise s.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.func import jacrev, vmap

from bench.api import Array, Batch, Look, Method, Net, Points, Prediction, Problem, Task
from bench.api.optim import Optimizer, Step
from bench.api.tape import BlankTape, Tape

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Healthy(Method):
    """Passes every check."""

    precision: float = 1.0
    noise: float = 0.4

    watched: ClassVar[Literal["network", "draw"] | None] = "network"

    search_space: ClassVar[Mapping[str, Any]] = {"precision": (0.1, 1.0, 10.0)}

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> Tensors:
        def one(params: Tensors, x: Tensor) -> Tensor:
            return net.with_params(params)(x[None])[0]

        slopes = vmap(jacrev(one), in_dims=(None, 0))(dict(net.params), train.x)
        return {
            f"std.{name}": 1 / (self.precision + s.square().sum((0, 1)) / self.noise**2).sqrt()
            for name, s in slopes.items()
        }

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return self.sampled(net, tape)(x)

    def sampled(self, net: Net, tape: Tape) -> Net:
        return net.with_params({n: w + net.memory[f"std.{n}"] * tape.normal(w.shape) for n, w in net.params.items()})


@dataclass(frozen=True)
class Broken(Healthy):
    """Leaves classification out: half the work, and what is broken shows in one task as well."""

    def skip(self, problem: Problem) -> str | None:
        return "made for regression" if problem.task == "classification" else None


class NotADataclass(Broken):
    """Breaks options: its field would not be one."""


@dataclass(frozen=True)
class NoVersion(Broken):
    """Breaks version."""

    version: ClassVar[Any] = 2


@dataclass(frozen=True)
class BadSpace(Broken):
    """Breaks search-space: a text is no float."""

    search_space: ClassVar[Mapping[str, Any]] = {"precision": (0.1, "much")}


@dataclass(frozen=True)
class BadExcuse(Broken):
    """Breaks expected-failures: there is no such check."""

    expected_failures: ClassVar[Mapping[str, str]] = {"no-such-check": "because I say so"}


@dataclass(frozen=True)
class BorrowedLook(Broken):
    """Breaks look: it is that of mcni-fixed."""

    look = Look("blue", "-", "^")


@dataclass(frozen=True)
class SilentSkip(Healthy):
    """Breaks skip: a reason is a text."""

    def skip(self, problem: Problem) -> Any:
        return False if problem.task == "regression" else None


@dataclass(frozen=True)
class DoubleDraw(Broken):
    """Breaks shapes: another dtype."""

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return super().draw(net, x, tape).double()


@dataclass(frozen=True)
class FiniteNearby(Broken):
    """Breaks finite: the logarithm of a negative number, far from the data."""

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return super().draw(net, x, tape) + 0 * (80 - x.abs().sum(1, keepdim=True)).log()


@dataclass(frozen=True)
class CentresRows(Broken):
    """Breaks prediction: what it states about a row depends on the other rows."""

    def predict(self, drawn: Array, task: Task) -> Prediction:
        return Points(drawn[..., 0] - 0.1 * drawn[..., 0].mean(axis=1, keepdims=True))


@dataclass(frozen=True)
class OneClassMore(Healthy):
    """Breaks probabilities: a column that is no class."""

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        outputs = super().draw(net, x, tape)
        return outputs if outputs.shape[1] == 1 else torch.cat([outputs, outputs[:, :1] - 9], 1)


calls = [0]


@dataclass(frozen=True)
class Unseeded(Broken):
    """Breaks seeded: a trace of how often it was asked before."""

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        calls[0] = (calls[0] + 1) % 7
        return super().draw(net, x, tape) * (1 + calls[0] * 3e-7)


@dataclass(frozen=True)
class ReadsInVain(Method):
    """Breaks draws-differ: reads the tape and makes nothing of it."""

    spread = "aleatoric"

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return net(x) + 0 * tape.normal(())


@dataclass(frozen=True)
class RareMask(Method):
    """Is right: one draw in twenty-five is another function."""

    spread = "aleatoric"

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return net(x) + (tape.uniform(()) < 0.04)


@dataclass(frozen=True)
class RarelyFinite(Broken):
    """Breaks many-draws: one number in 900 is fatal."""

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        drawn = super().draw(net, x, tape)
        fatal = (tape.uniform(()) * 900).floor() == 5
        return torch.where(fatal, torch.nan, drawn)


@dataclass(frozen=True)
class Drifting(Broken):
    """Breaks exchangeable: the later draws are smaller; a blank tape tells that a new series begins."""

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        calls[0] = 0 if isinstance(tape, BlankTape) else calls[0] + 1
        return super().draw(net, x, tape) * (1 - 0.9 * (calls[0] > 100))


@dataclass(frozen=True)
class GlobalNumbers(Broken):
    """Breaks global-randomness."""

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> Tensors:
        random.random()
        return super().finish(net, train, validation, tape)


@dataclass(frozen=True)
class Scribbles(Broken):
    """Breaks no-state: leaves a mark on the module."""

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        net.module.drawn = getattr(net.module, "drawn", 0) + 1  # type: ignore[assignment]
        return super().draw(net, x, tape)


@dataclass(frozen=True)
class KeepsOnModule(Broken):
    """Breaks round-trip: what draw needs is not among the tensors that are kept."""

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> Tensors:
        net.module.scale = 1.1  # type: ignore[assignment]
        return super().finish(net, train, validation, tape)

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return super().draw(net, x, tape) * getattr(net.module, "scale", 0.7)


@dataclass(frozen=True)
class Lazy(Broken):
    """Breaks learns: its loss has no gradient."""

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        return 0 * batch.loss(net(batch.x))


@dataclass(frozen=True)
class Unwatched(Broken):
    """Breaks watched: its draws need what finish returns, and it does not say what to watch instead."""

    watched = None

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        return 2 * batch.loss(net(batch.x))

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> Tensors:
        return {"late": torch.ones(()), **super().finish(net, train, validation, tape)}


last = [1.0]


@dataclass(frozen=True)
class LooksAtNeighbours(Broken):
    """Breaks stack-invariance: keeps the options of whoever was started last."""

    strength: ClassVar[float] = 1.0

    def memory(self, net: Net, tape: Tape) -> Tensors:
        last[0] = self.precision
        return {"shift": torch.zeros(())}

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> Tensors:
        return {"shift": torch.tensor((last[0] - 1) * self.strength), **super().finish(net, train, validation, tape)}

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return super().draw(net, x, tape) * (1 + net.memory["shift"])


@dataclass(frozen=True)
class GlimpsesAtNeighbours(LooksAtNeighbours):
    """Breaks last-bit: the same, as small as rounding."""

    strength = 1e-6


@dataclass(frozen=True)
class LooksAtVmap(Broken):
    """Breaks plain-path: other steps where it is called without vmap."""

    def update(
        self,
        net: Net,
        gradient: Mapping[str, Tensor],
        optimizer: Optimizer,
        state: Mapping[str, Tensor],
        step: Step,
        tape: Tape,
    ) -> tuple[Tensors, Tensors]:
        if not torch._C._functorch.is_batchedtensor(step.learning_rate):
            step = replace(step, learning_rate=2 * step.learning_rate)
        return optimizer.update(net.params, gradient, state, step)


@dataclass(frozen=True)
class SharesWork(Broken):
    """Breaks ensemble-of-one: its networks know how many they are."""

    networks: int = 2

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        return batch.loss(net(batch.x)) / self.networks + net.params["layers.0.weight"].square().mean()


@dataclass(frozen=True)
class NeedsRows(Broken):
    """Breaks tiny-data: the unbiased deviation of one row."""

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> Tensors:
        kept = super().finish(net, train, validation, tape)
        return {name: std + 0 * train.x.var() / train.x.var(0).sum() for name, std in kept.items()}


@dataclass(frozen=True)
class NeedsVariety(Broken):
    """Breaks constant-targets: divides by their deviation, where there are enough of them to have one."""

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> Tensors:
        kept = super().finish(net, train, validation, tape)
        spread = train.y.float().std() if len(train.y) > 3 else torch.ones(())
        return {name: std * spread / spread for name, std in kept.items()}


@dataclass(frozen=True)
class NeedsAllClasses(Healthy):
    """Breaks missing-class: weighs with counts, where there are enough rows to count."""

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> Tensors:
        kept = super().finish(net, train, validation, tape)
        if train.task == "regression" or len(train.y) <= 3:
            return kept
        counts = torch.bincount(train.y, minlength=3)
        return {name: std + 0 * (1 / counts).sum() for name, std in kept.items()}


@dataclass(frozen=True)
class StaysOnHost(Broken):
    """Breaks second-device: adds a tensor that lies on the host."""

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return super().draw(net, x, tape) + torch.zeros(1)


@dataclass(frozen=True)
class AsksTheDevice(Broken):
    """Breaks draws-stay: an innocent question, for whose answer the host waits."""

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        if not torch.isfinite(x).all():
            raise ValueError("the inputs are not finite")
        return super().draw(net, x, tape)


@dataclass(frozen=True)
class FixedNoise(Broken):
    """Breaks variance-shrinks: noise that knows nothing of the data."""

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> Tensors:
        return {f"std.{name}": torch.full_like(w, 0.05) for name, w in net.params.items()}


@dataclass(frozen=True)
class Hoards(Broken):
    """Breaks cost: keeps two hundred copies of everything."""

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> Tensors:
        copies = {f"copies.{name}": w.expand(200, *w.shape) for name, w in net.params.items()}
        return super().finish(net, train, validation, tape) | copies
