"""Parametric noise injection: Gaussian noise whose level is trained, one number per layer.

    v~ = v + alpha_l * eta,   eta ~ N(0, sigma_l^2),   sigma_l = std of v over the layer

He, Rakin and Fan 2019, "Parametric Noise Injection: Trainable Randomness to Improve Deep Neural Network Robustness
against Adversarial Attack", arXiv:1811.09310. `where` selects v: the weights of a layer, the network's inputs, or
the hidden activations. The paper trains on adversarial examples, which keep alpha from vanishing; here the training is
the suite's. sigma_l carries no gradient; for inputs and activations it is the batch's in training and that of all
training rows in a draw, since a draw may not depend on which rows are predicted together. On weights the noise of a
draw is one function; on inputs and activations every row has its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from bench.api import Batch, Look, Method, Net, NewNetwork, Problem, Tape
from bench.methods._activations import count_hidden, hidden_spreads, noisy_hidden
from bench.methods._weight_noise import with_noise

LEVELS = "alpha:"  # one for each place that noise is put


@dataclass(frozen=True)
class PNI(Method):
    """Noise levels that start at `alpha` and are trained with the weights."""

    alpha: float = 0.25  # first level of the noise, in standard deviations of what it is put on
    where: Literal["weights", "inputs", "activations"] = "weights"  # the noise is put

    title = "PNI"
    look = Look("green", "--", "v")
    watched = "network"  # the network without noise
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {
        "alpha": (0.05, 0.1, 0.25),
        "where": ("weights", "inputs", "activations"),
    }
    spread = "level"  # alpha is trained towards 0, where the loss is least

    def build(self, problem: Problem, new_network: NewNetwork) -> nn.Module:
        """Return the suite's network with its noise levels: only here is it known how many it takes."""
        module = new_network(problem.outputs)
        count = 1
        if self.where == "weights":
            count = sum(p.ndim >= 2 for p in module.parameters())
        elif self.where == "activations":
            count = count_hidden(module, problem.inputs)
        module.register_parameter(LEVELS, nn.Parameter(torch.full((count,), self.alpha)))
        return module

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        """Return the data loss under noise."""
        levels = net.params[LEVELS]
        if self.where == "weights":
            return batch.loss(self.noisy_weights(net, tape)(batch.x))
        if self.where == "inputs":
            noise = batch.x.std(correction=0) * tape.normal(batch.x.shape)
            return batch.loss(net(batch.x + levels[0] * noise))
        places = iter(range(len(levels)))

        def noisy(h: Tensor) -> Tensor:
            return h + levels[next(places)] * (h.detach().std(correction=0) * tape.normal(h.shape))

        return batch.loss(net(batch.x, hidden=noisy))

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> dict[str, Tensor]:
        """Return the spreads over all training rows that draws need."""
        if self.where == "inputs":
            return {"spread": train.x.std(correction=0)[None]}
        return {"spread": hidden_spreads(net, train.x)} if self.where == "activations" else {}

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the function, or the rows, of one noise."""
        if self.where == "weights":
            return self.noisy_weights(net, tape)(x)
        scales = net.params[LEVELS] * net.memory["spread"]
        if self.where == "inputs":
            return net(x + scales[0] * tape.normal(x.shape))
        return net(x, hidden=noisy_hidden(scales, tape))

    def noisy_weights(self, net: Net, tape: Tape) -> Net:
        """Return the network with noise on its weights."""
        levels = dict(zip(net.weights, net.params[LEVELS].unbind(), strict=True))
        return with_noise(net, tape, levels.__getitem__)
