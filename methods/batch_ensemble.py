"""BatchEnsemble: members that share their weights, each with an own factor of rank 1 for every layer.

    W_k = W o (r_k s_k^T),   q(w) = 1/K sum_k delta(w - W_k)

Wen, Tran and Ba 2020, "BatchEnsemble: An Alternative Approach to Efficient Ensemble and Lifelong Learning",
arXiv:2002.06715. The product is taken entry by entry: s_k scales the inputs of a layer and r_k its outputs, for
convolutions by channel. Every member has its own biases, too; what else a network trains (normalisation) is shared. In
a step all members see the same rows. The factors start as random signs and have no weight decay.

A draw is a member chosen at random, so that T draws are not T / K of each exactly.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from bench.api import Batch, Look, Method, Net, Tape, choose
from bench.methods._bayes import require_positive
from bench.methods._curvature import treated


@dataclass(frozen=True)
class BatchEnsemble(Method):
    """`members` functions in one network."""

    members: int = 4  # K

    title = "BatchEnsemble"
    look = Look("brown", ":", "h")

    def __post_init__(self) -> None:
        require_positive(members=self.members)

    def init(self, net: Net, tape: Tape) -> dict[str, Tensor]:
        """Return the factors of all members, and their biases."""
        first = {}
        for prefix in treated(net.module):
            if (weight := f"{prefix}weight") in net.params:
                outputs, inputs = net.params[weight].shape[:2]
                first[f"r:{weight}"] = signs((self.members, outputs), tape)
                first[f"s:{weight}"] = signs((self.members, inputs), tape)
            if (bias := f"{prefix}bias") in net.params:
                first[f"own:{bias}"] = net.params[bias].repeat(self.members, 1)
        return first

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the mean loss of the members."""
        return self.validate(net, batch)

    def validate(self, net: Net, batch: Batch) -> Tensor:
        """Return the same: `net(x)` has no factors, and is no member."""
        return torch.stack([batch.loss(member(net, k)(batch.x)) for k in range(self.members)]).mean()

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the function of one member."""
        return member(net, tape.integer(self.members))(x)


def member(net: Net, number: int | Tensor) -> Net:
    """Return the network of one member."""

    def of_member(values: Tensor) -> Tensor:
        return choose(values, number) if isinstance(number, Tensor) else values[number]

    changed = {}
    for name in net.params:
        kind, _, changes = name.partition(":")
        if kind == "own":
            changed[changes] = of_member(net.params[name])
        elif kind == "r":
            weight = net.params[changes]
            factor = torch.outer(of_member(net.params[name]), of_member(net.params[f"s:{changes}"]))
            changed[changes] = weight * factor.view(*factor.shape, *[1] * (weight.ndim - 2))
    return net.with_params(changed)


def signs(shape: tuple[int, ...], tape: Tape) -> Tensor:
    """Return random signs."""
    return 1 - 2 * (tape.uniform(shape) < 0.5).float()
