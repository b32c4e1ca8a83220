"""Laplace approximation: a Gaussian around the trained weights, from the curvature of the loss there.

    q(w) = N(w*, (H / noise^2 + delta I)^-1),   H = generalised Gauss-Newton matrix over the training rows

Daxberger, Kristiadi, Immer, Eschenhagen, Bauer and Hennig 2021, "Laplace Redux", arXiv:2106.14806. The training is the
ordinary one. `structure` selects how much of H is kept: the whole block of the last layer, Kronecker factors of every
layer, or the diagonal. In regression `noise` is the root mean square of the training residuals where it is not given.

The prior precision delta, where it is not given, is the best of `precisions`, by the likelihood of the validation rows
or (`tuning = "marginal-likelihood"`, and where a suite holds no rows out) by the marginal likelihood

    log p(D | delta) = const - delta/2 ||w*||^2 - 1/2 log det(1 + H / (noise^2 delta))

A draw is a function of the network linearised around w*, f(x; w*) + J(x) (w - w*), whose Gauss-Newton posterior this is
(Immer, Korzepa and Bauer 2021, "Improving predictions of Bayesian neural nets via local linearization",
arXiv:2008.08400), or with `predictive = "sampled"` f(x; w) itself; for the last layer they are the same.

The `laplace-torch` package computes the same posteriors and is what the tests compare with. It is not used here because
it trains and holds ordinary modules, where the harness has pure functions of tensors that it draws from in stacks.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.func import jvp

from bench.api import Batch, Look, Method, Net, Tape
from bench.methods import _curvature
from bench.methods._bayes import require_positive
from bench.methods._tuning import choose

ROWS = 500  # of one pass: activations of images are large


@dataclass(frozen=True)
class Eigen:
    """One block of the curvature in its own basis: values, and the bases that lead back to the parameters."""

    names: tuple[str, ...]  # the parameters it is about: one, or weight and bias of the last layer
    values: Tensor
    bases: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class Laplace(Method):
    """A Gaussian posterior of the given structure, after an ordinary training."""

    structure: Literal["last-layer", "kronecker", "diagonal"] = "last-layer"  # how much of the curvature is kept
    predictive: Literal["linearised", "sampled"] = "linearised"  # draws of the linearised network, or of itself
    prior_precision: float | None = None  # delta; None: the best of `precisions`
    noise: float | None = None  # standard deviation in regression; None: of the training residuals
    tuning: Literal["validation", "marginal-likelihood"] = "validation"  # by what the prior precision is chosen
    precisions: Sequence[float] = tuple(10.0**k for k in range(-3, 5))  # among which the prior precision is chosen

    look = Look("sky", "-", "<")

    def __post_init__(self) -> None:
        given = {"prior_precision": self.prior_precision, "noise": self.noise}
        require_positive(**{name: value for name, value in given.items() if value is not None})
        require_positive(precisions=min(self.precisions, default=0))

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> dict[str, Tensor]:
        """Return the square root of the posterior's covariance."""
        noise2 = 1.0 if train.task == "classification" else self.noise_variance(net, train)
        blocks = [Eigen(b.names, b.values.clamp(min=0) / noise2, b.bases) for b in self.blocks(net, train)]
        precision = self.prior_precision
        if precision is None and validation is not None and self.tuning == "validation":
            roots = {delta: root(blocks, delta) for delta in self.precisions}
            at = lambda delta, x, noise: self.at(net, roots[delta], x, noise)  # noqa: E731
            precision = choose(self.precisions, at, validation, tape)
        elif precision is None:
            size = sum(float(net.params[name].double().square().sum()) for block in blocks for name in block.names)
            precision = max(self.precisions, key=lambda delta: evidence(blocks, size, delta))
        return root(blocks, precision)

    def noise_variance(self, net: Net, train: Batch) -> float:
        """Return the variance of the likelihood: what was given, or the mean square of the residuals."""
        if self.noise is not None:
            return self.noise**2
        with torch.no_grad():
            outputs = torch.cat([net(x) for x in train.x.split(ROWS)])
        return max(float(train.loss(outputs)), 1e-12)

    def blocks(self, net: Net, train: Batch) -> list[Eigen]:
        """Return the eigenvalues and bases of the curvature, block by block."""
        if self.structure == "diagonal":
            return [Eigen((name,), values) for name, values in _curvature.diagonal(net, train).items()]
        if self.structure == "kronecker":
            blocks = []
            for name, factors in _curvature.kronecker(net, train).items():
                pairs = [torch.linalg.eigh(factor) for factor in factors]
                values = pairs[0][0] if len(pairs) == 1 else torch.outer(pairs[0][0], pairs[1][0])
                blocks.append(Eigen((name,), values, tuple(vectors for _, vectors in pairs)))
            return blocks
        prefix, whole = _curvature.last_layer(net, train)
        names = tuple(name for name in (f"{prefix}weight", f"{prefix}bias") if name in net.params)
        values, vectors = torch.linalg.eigh(whole)
        return [Eigen(names, values, (vectors,))]

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return one function of the posterior."""
        return self.at(net, net.memory, x, tape)

    def at(self, net: Net, memory: Mapping[str, Tensor], x: Tensor, tape: Tape) -> Tensor:
        """Return the function of weights drawn from the posterior of this memory."""
        change = self.change(net, memory, tape)
        centre = {name: net.params[name] for name in change}
        if self.predictive == "linearised" and self.structure != "last-layer":
            with warnings.catch_warnings():
                # torch loads its own rules for derivatives through an interface that it deprecates itself.
                warnings.simplefilter("ignore", DeprecationWarning)
                outputs, slope, *_ = jvp(lambda params: net.with_params(params)(x), (centre,), (change,))
            moved: Tensor = outputs + slope
            return moved
        return net.with_params({name: centre[name] + change[name] for name in change})(x)

    def change(self, net: Net, memory: Mapping[str, Tensor], tape: Tape) -> dict[str, Tensor]:
        """Return w - w* of one draw, by parameter."""
        drawn: dict[str, Tensor] = {}
        for key in (key for key in memory if key.startswith("scale:")):
            names = key.removeprefix("scale:").split("+")
            numbers = memory[key] * tape.normal(memory[key].shape)
            if f"left:{names[0]}" in memory:
                numbers = memory[f"left:{names[0]}"] @ numbers
            if f"right:{names[0]}" in memory:
                numbers = numbers @ memory[f"right:{names[0]}"].T
            if len(names) == 2:  # a last layer with bias: [units, inputs + 1]
                rows = numbers.reshape(len(net.params[names[1]]), -1)
                drawn |= {names[0]: rows[:, :-1], names[1]: rows[:, -1]}
            else:
                drawn[names[0]] = numbers.reshape(net.params[names[0]].shape)
        return drawn


def evidence(blocks: Sequence[Eigen], size: float, precision: float) -> float:
    """Return the part of the log marginal likelihood that depends on the prior precision."""
    determinants = sum(float((block.values / precision).log1p().sum()) for block in blocks)
    value = -(precision * size + determinants) / 2
    return value if math.isfinite(value) else -math.inf


def root(blocks: Sequence[Eigen], precision: float) -> dict[str, Tensor]:
    """Return the square root of the covariance as scales and bases, in single precision."""
    memory = {}
    for block in blocks:
        memory["scale:" + "+".join(block.names)] = (block.values + precision).rsqrt().float()
        for side, basis in zip(("left", "right"), block.bases, strict=False):
            memory[f"{side}:{block.names[0]}"] = basis.float()
    return memory
