"""Spectral-normalised neural Gaussian process: hidden layers that keep distances, and a Gaussian process on top.

    phi(x) = sqrt(2 / D) cos(W h(x) + b),   f(x) = B phi(x),   B ~ N(0, prior^2),   ||W_l||_2 <= bound

Liu, Lin, Padhy, Tran, Bedrax-Weiss and Lakshminarayanan 2020, "Simple and Principled Uncertainty Estimation with
Deterministic Deep Learning via Distance Awareness", arXiv:2006.10108. h is the last hidden activation; W ~ N(0, 1 /
length_scale^2) and b ~ U(0, 2 pi) are never trained: phi(x) phi(x') is exp(-|h - h'|^2 / (2 length_scale^2)) in
expectation (random Fourier features, Rahimi and Recht 2007, "Random Features for Large-Scale Kernel Machines",
https://papers.nips.cc/paper/3182-random-features-for-large-scale-kernel-machines). The rest is trained by maximum a
posteriori; after every step a hidden weight whose spectral norm, estimated by power iteration, exceeds the bound is
scaled down to it. The posterior of B is Laplace's, over all training rows (exact in regression, given h):

    B_k ~ N(trained B_k, (sum_n c_nk phi_n phi_n^T + I / prior^2)^-1),   c = p_k (1 - p_k), or 1 / noise^2 in regression

A draw is the function of one B. What differs from the paper: its hidden layers have shortcuts, which keep distances
from shrinking, too; those of the suite's network do if it has any (`residual-mlp`, `resnet8`). The norm of a
convolution is that of its kernel as a matrix (Miyato, Kataoka, Koyama and Yoshida 2018, "Spectral Normalization for
Generative Adversarial Networks", arXiv:1802.05957), not that of the map of images. Regression has a noise, which is
learned, starting at `noise`, and is not part of a draw.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.api import Batch, Hidden, Look, Method, Net, NewNetwork, Optimizer, Problem, Step, Tape, Tensors, unchanged
from bench.methods._bayes import LOG_NOISE, negative_log_likelihood, require_positive
from bench.methods._curvature import treated

ROWS = 500  # of one pass: activations of images are large
OUTPUT = "output:"  # B, [D, outputs]; the colon keeps the suite's weight decay away, since B has a prior
ROOT = "root"  # of the posterior's covariance, [outputs, D, D]


class RandomFeatures(nn.Module):
    """Random Fourier features of a network's last hidden activation; its last layer becomes W and b, not trained."""

    def __init__(self, network: nn.Module, features: int, length_scale: float, outputs: int) -> None:
        super().__init__()
        layers = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
        if not layers or layers[-1].out_features != features or layers[-1].bias is None:
            raise ValueError("sngp needs a network whose last layer is an nn.Linear with bias")
        nn.init.normal_(layers[-1].weight, std=1 / length_scale)
        nn.init.uniform_(layers[-1].bias, 0, 2 * math.pi)
        layers[-1].requires_grad_(False)
        self.network, self.features, self.outputs = network, features, outputs

    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        """Return phi `[rows, D]`."""
        # A borrowed module without places for noise refuses the argument.
        angles: Tensor = self.network(x) if hidden is unchanged else self.network(x, hidden=hidden)
        return math.sqrt(2 / self.features) * angles.cos()


@dataclass(frozen=True)
class SNGP(Method):
    """`features` random features of the last hidden activation, and a posterior over their weights."""

    features: int = 512  # D
    length_scale: float = 1.0  # of the kernel, in units of the hidden activation
    bound: float = 0.95  # of the spectral norm of hidden weights
    prior: float = 1.0  # standard deviation of a function value
    noise: float = 0.5  # first standard deviation of the likelihood in regression, in training units

    title = "SNGP"
    look = Look("sky", ":", "D")
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {
        "length_scale": (1.0, 2.0, 4.0, 8.0),
        "prior": (1.0, 3.0, 10.0),
    }
    expected_failures: ClassVar[Mapping[str, str]] = {
        "cost": "the posterior has the square of `features` numbers, however small the network is"
    }

    def __post_init__(self) -> None:
        require_positive(features=self.features, length_scale=self.length_scale, bound=self.bound)
        require_positive(prior=self.prior, noise=self.noise)

    def build(self, problem: Problem, new_network: NewNetwork) -> nn.Module:
        """Return the features; what the suite's network puts out are the angles."""
        return RandomFeatures(new_network(self.features), self.features, self.length_scale, problem.outputs)

    def init(self, net: Net, tape: Tape) -> dict[str, Tensor]:
        """Return B, the noise, and the vectors of power iteration: a step may change trained tensors only."""
        module = net.module
        assert isinstance(module, RandomFeatures)
        output = 0.1 * self.prior * tape.normal((module.features, module.outputs))
        power = {f"power:{name}": unit(tape.normal(net.params[name].shape[:1])) for name in hidden_weights(net)}
        return power | {OUTPUT: output, LOG_NOISE: output.new_tensor(math.log(self.noise))}

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return -log p(y, B | x) / N."""
        likelihood = negative_log_likelihood(net, batch, net(batch.x) @ net.params[OUTPUT], self.noise)
        return likelihood + (net.params[OUTPUT] / self.prior).square().sum() / (2 * batch.rows)

    def update(
        self, net: Net, gradient: Tensors, optimizer: Optimizer, state: Tensors, step: Step, tape: Tape
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return a step of the suite's optimiser, after which no hidden weight exceeds the bound."""
        params, state = optimizer.update(net.params, gradient, state, step)
        for name in hidden_weights(net):
            weight = params[name].flatten(1)
            right = unit(net.params[f"power:{name}"] @ weight)
            left = unit(weight @ right)
            norm = left @ weight @ right
            params[name] = params[name] * (self.bound / norm.clamp(min=1e-12)).clamp(max=1)
            params[f"power:{name}"] = left
        return params, state

    def validate(self, net: Net, batch: Batch) -> Tensor:
        """Return the data loss of the trained B."""
        return batch.loss(net(batch.x) @ net.params[OUTPUT])

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> dict[str, Tensor]:
        """Return the root of the covariance of B, for each output."""
        mean = net.params[OUTPUT].double()
        features, outputs = mean.shape
        precision = torch.eye(features, dtype=torch.double, device=mean.device).repeat(outputs, 1, 1) / self.prior**2
        with torch.no_grad():
            for x in train.x.split(ROWS):
                phi = net(x).double()
                if train.task == "classification":
                    p = (phi @ mean).softmax(-1)
                    certainty = p * (1 - p)
                else:
                    certainty = torch.ones(len(x), 1, device=x.device).double() / (2 * net.params[LOG_NOISE]).exp()
                precision += torch.einsum("nk,ni,nj->kij", certainty, phi, phi)
            # With precision = L L^T, the covariance is L^-T L^-1.
            identity = torch.eye(features, dtype=torch.double, device=mean.device)
            lower = torch.linalg.cholesky(precision)
            root = torch.linalg.solve_triangular(lower.mT, identity, upper=True)
        return {ROOT: root.float()}

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the function of one B."""
        roots = net.memory[ROOT]
        # One product per output: a batched one copies the roots for every draw under vmap.
        pairs = zip(roots.unbind(0), tape.normal(roots.shape[:2]).unbind(0), strict=True)
        change = torch.stack([F.linear(numbers, root) for root, numbers in pairs], -1)
        return net(x) @ (net.params[OUTPUT] + change)


def hidden_weights(net: Net) -> list[str]:
    """Return the names of the trained weights of linear and convolutional layers."""
    return [name for prefix in treated(net.module) if (name := f"{prefix}weight") in net.params]


def unit(vector: Tensor) -> Tensor:
    """Return the vector of length 1 in the same direction."""
    return vector / vector.square().sum().sqrt().clamp(min=1e-12)
