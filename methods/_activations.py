"""Noise on the hidden activations of a network, in proportion to their spread."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from bench.api import Net, Tape

ROWS = 500  # of one pass over all data: activations of images are large


def count_hidden(module: nn.Module, inputs: Sequence[int]) -> int:
    """Return how many hidden activations a freshly built network has."""
    found: list[Tensor] = []

    def count(h: Tensor) -> Tensor:
        found.append(h)
        return h

    before = module.training
    module.eval()
    with torch.no_grad():
        module(torch.zeros(1, *inputs), hidden=count)
    module.train(before)
    return len(found)


def hidden_spreads(net: Net, x: Tensor) -> Tensor:
    """Return the standard deviation of every hidden activation, each as one tensor, over many rows."""
    sums: list[Tensor] = []  # of one chunk's activations: how many numbers, their sum, the sum of their squares
    chunks = []

    def add(h: Tensor) -> Tensor:
        wide = h.double()
        sums.append(torch.stack([wide.new_tensor(wide.numel()), wide.sum(), wide.square().sum()]))
        return h

    with torch.no_grad():
        for part in x.split(ROWS):
            sums.clear()
            net(part, hidden=add)
            if not sums:
                raise ValueError("the network has no hidden activations to put noise on; give it a hidden layer")
            chunks.append(torch.stack(sums))
    count, first, second = torch.stack(chunks).sum(0).unbind(-1)
    return (second / count - (first / count) ** 2).clamp(min=0).sqrt().float()


def noisy_hidden(scales: Tensor, tape: Tape) -> Callable[[Tensor], Tensor]:
    """Return the hook that adds N(0, scales[i]^2) to the i-th hidden activation, fresh for every row and unit."""
    places = iter(range(len(scales)))
    return lambda h: h + scales[next(places)] * tape.normal(h.shape)
