"""Anchored ensemble: K networks, each regularised towards its own sample of the prior.

    loss = 1/N [ sum_n -log p(y_n | x_n, w) + ||w - w_0||^2 / (2 prior^2) ],   w_0 ~ N(0, prior^2)

Pearce, Leibfried, Brintrup, Zaki and Neely 2020, "Uncertainty in Neural Networks: Approximately Bayesian Ensembling",
arXiv:1810.05546. With anchors from the prior, as there, the posterior is approached from below: on a linear network
the covariance is S (prior^-2) S where the exact one is S, so directions that the data decide get too small a variance
and those they leave open the exact one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from bench.api import Batch, Look, Net, Tape
from bench.methods._bayes import Bayesian, negative_log_likelihood, own, prior_energy, prior_scale, require_positive


@dataclass(frozen=True)
class AnchoredEnsemble(Bayesian):
    """`networks` regularised around their anchors; `noise` is the likelihood's in regression, in training units."""

    networks: int = 5  # K, trained for one result
    prior: float = 3.0  # standard deviation of the prior of a weight, times 1 / sqrt(inputs of its unit)
    noise: float = 0.5  # standard deviation of the likelihood in regression, in training units

    look = Look("pink", "--", "P")
    watched = "network"  # the data loss, without the anchor's part
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {"prior": (1.0, 3.0, 10.0), "noise": (0.1, 0.3, 0.5, 0.8)}

    def __post_init__(self) -> None:
        require_positive(networks=self.networks, prior=self.prior, noise=self.noise)

    def memory(self, net: Net, tape: Tape) -> dict[str, Tensor]:
        """Return the anchor."""
        return {name: prior_scale(w, self.prior) * tape.normal(w.shape) for name, w in own(net).items()}

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the data's and the anchor's part."""
        pulled = prior_energy(net, self.prior, net.memory) / batch.rows
        return negative_log_likelihood(net, batch, net(batch.x), self.noise) + pulled
