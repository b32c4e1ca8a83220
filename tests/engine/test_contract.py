"""The contract holds more than the built-in methods: small forms of others, each written with the hooks alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.api import Batch, Method, Net, NewNetwork, Problem
from bench.draw import Drawing, draw
from bench.member import Fitted, Member
from bench.optim import Optimizer, Step
from bench.stack import Limits
from bench.tape import Tape

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class BayesByBackprop(Method):
    prior: float = 1.0

    def init(self, net: Net, tape: Tape) -> Tensors:
        return {f"rho:{name}": torch.full_like(w, -4.0) for name, w in net.params.items()}

    def sample(self, net: Net, tape: Tape) -> Net:
        own = {name: w for name, w in net.params.items() if ":" not in name}
        return net.with_params(
            {name: w + F.softplus(net.params[f"rho:{name}"]) * tape.normal(w.shape) for name, w in own.items()}
        )

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        divergence = torch.zeros(())
        for name, mean in net.params.items():
            if ":" not in name:
                std = F.softplus(net.params[f"rho:{name}"])
                divergence = divergence + ((std**2 + mean**2) / self.prior**2 / 2 - std.log()).sum()
        return batch.loss(self.sample(net, tape)(batch.x)) + divergence / batch.rows

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return self.sample(net, tape)(x)


@dataclass(frozen=True)
class Langevin(Method):
    temperature: float = 1e-4
    kept: int = 4

    def memory(self, net: Net, tape: Tape) -> Tensors:
        return {name: w.expand(self.kept, *w.shape).clone() for name, w in net.params.items()}

    def update(
        self, net: Net, gradient: Mapping[str, Tensor], optimizer: Optimizer, state: Mapping[str, Tensor], step: Step,
        tape: Tape,
    ) -> tuple[Tensors, Tensors]:  # fmt: skip
        noise = (2 * step.learning_rate * self.temperature).sqrt()
        moved = {n: w - step.learning_rate * gradient[n] + noise * tape.normal(w.shape) for n, w in net.params.items()}
        return moved, dict(state)

    def remember(self, net: Net, progress: Tensor, tape: Tape) -> Tensors:
        place = (torch.arange(self.kept) + 1) / self.kept >= progress - 1e-6  # later samples replace all later places
        return {name: torch.where(place.view(-1, *[1] * w.ndim), w, net.memory[name]) for name, w in net.params.items()}

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        chosen = tape.integer(self.kept)
        return net.with_params({name: net.memory[name][chosen] for name in net.params})(x)


@dataclass(frozen=True)
class WeightAveraging(Method):
    """SWAG with a diagonal covariance."""

    early_stopping = False

    def memory(self, net: Net, tape: Tape) -> Tensors:
        zeros = {f"{m}:{name}": torch.zeros_like(w) for m in ("first", "second") for name, w in net.params.items()}
        return {"count": torch.zeros(()), **zeros}

    def remember(self, net: Net, progress: Tensor, tape: Tape) -> Tensors:
        taken = (progress > 0.5).float()  # the second half of the training
        old = net.memory["count"]
        kept = {"count": old + taken}
        for name, w in net.params.items():
            for power, moment in ((1, "first"), (2, "second")):
                average = net.memory[f"{moment}:{name}"]
                kept[f"{moment}:{name}"] = average + taken * (w**power - average) / (old + 1)
        return kept

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        drawn = {}
        for name, w in net.params.items():
            mean = net.memory[f"first:{name}"]
            variance = (net.memory[f"second:{name}"] - mean**2).clamp(min=0)
            drawn[name] = mean + variance.sqrt() * tape.normal(w.shape)
        return net.with_params(drawn)(x)


@dataclass(frozen=True)
class DiagonalLaplace(Method):
    prior_precision: float = 1.0

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> Tensors:
        def one_row(params: Tensors, x: Tensor, y: Tensor) -> Tensor:
            return F.mse_loss(net.with_params(params)(x[None])[0, 0], y)

        rows = torch.func.vmap(torch.func.grad(one_row), in_dims=(None, 0, 0))(dict(net.params), train.x, train.y)
        return {name: 1 / ((g**2).sum(0) + self.prior_precision).sqrt() for name, g in rows.items()}

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return net.with_params(
            {name: w + net.memory[name] * tape.normal(w.shape) for name, w in net.params.items()}
        )(x)  # fmt: skip


@dataclass(frozen=True)
class AnchoredEnsemble(Method):
    networks: int = 3
    strength: float = 1.0

    def memory(self, net: Net, tape: Tape) -> Tensors:
        return {name: 0.5 * tape.normal(w.shape) for name, w in net.params.items()}

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        pulled = torch.stack([(w - net.memory[name]).square().sum() for name, w in net.params.items()]).sum()
        return batch.loss(net(batch.x)) + self.strength * pulled / batch.rows


@dataclass(frozen=True)
class BatchNormSampling(Method):
    """Monte Carlo batch norm: a draw normalises with the statistics of one training batch."""

    batches: int = 5
    size: int = 16

    def build(self, problem: Problem, new_network: NewNetwork) -> nn.Module:
        return nn.Sequential(
            nn.Linear(problem.inputs[0], 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, problem.outputs)
        )  # fmt: skip

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> Tensors:
        before = nn.functional.linear
        means, variances = [], []
        for _ in range(self.batches):
            rows = torch.stack([tape.integer(len(train.x)) for _ in range(self.size)])
            hidden = before(train.x[rows], net.params["0.weight"], net.params["0.bias"])
            means.append(hidden.mean(0))
            variances.append(hidden.var(0))
        return {"mean": torch.stack(means), "variance": torch.stack(variances)}

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        chosen = tape.integer(self.batches)
        seen = {"1.running_mean": net.memory["mean"][chosen], "1.running_var": net.memory["variance"][chosen]}
        return Net(net.module, net.params, {**net.buffers, **seen})(x)


@dataclass(frozen=True)
class PerturbedParameters(Method):
    """PEP: noise at test time only, its level tuned on validation data."""

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> Tensors:
        assert validation is not None
        levels = torch.tensor([0.001, 0.01, 0.1])
        losses = [validation.loss(self.noisy(net, level, tape)(validation.x)) for level in levels]
        return {"level": levels[torch.stack(losses).argmin()]}

    def noisy(self, net: Net, level: Tensor, tape: Tape) -> Net:
        return net.with_params({name: w + level * tape.normal(w.shape) for name, w in net.params.items()})

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return self.noisy(net, net.memory["level"], tape)(x)


METHODS = [
    BayesByBackprop(), Langevin(), WeightAveraging(), DiagonalLaplace(), AnchoredEnsemble(), BatchNormSampling(),
    PerturbedParameters(),
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_a_method_of_the_literature_needs_no_special_case(
    method: Method, member: Callable[..., Member], fit_in_order: Callable[..., list[Fitted]]
) -> None:
    one = member(method, 2, epochs=8)

    def drawn(fitted: list[Fitted], limits: Limits) -> np.ndarray[Any, Any]:
        return draw(Drawing(method, fitted, "regression", one.rows.x, 0, 12), limits)

    others = [member(method, seed, epochs=8) for seed in range(4)]
    stacked = drawn([fit_in_order(others)[2]] * method.networks, Limits())
    alone = drawn(fit_in_order([one]) * method.networks, Limits())
    plain = drawn(fit_in_order([one], Limits(path="plain")) * method.networks, Limits(path="plain"))
    # To the last bit but for batch norm, whose kernel folds the members into its channels.
    np.testing.assert_allclose(stacked, alone, atol=1e-5 if isinstance(method, BatchNormSampling) else 0)
    np.testing.assert_allclose(plain, alone, atol=2e-5)
    assert np.isfinite(alone).all()
    assert len(alone) == (3 if isinstance(method, AnchoredEnsemble) else 12)
    if len(alone) == 12:
        assert (alone.std(0) > 0).all()
    trained = fit_in_order([one])[0]
    first = fit_in_order([member(method, 2, epochs=1)])[0]
    assert trained.train_loss < first.train_loss
