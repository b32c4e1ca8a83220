"""Fully connected layers that overwrite their own activations while many functions are drawn at once.

Under `vmap` a layer whose weights or inputs differ between draws is a product, a sum with the bias and an activation,
each of which writes a tensor of megabytes. Sum and activation are bound by memory, and took more time than the product.
Written into the memory of the product they give the same bits: they are the same operations on the same numbers.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._C._functorch import get_unwrapped, is_batchedtensor, maybe_get_level
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from bench.api import Hidden


class Dense(nn.Linear):
    """An `nn.Linear` that adds its bias in place where it draws many functions at once."""

    def forward(self, x: Tensor) -> Tensor:
        """Return `x w' + b`."""
        product_levels = _levels(x) | _levels(self.weight)
        # A bias that differs between draws does not fit into a product that does not.
        if not product_levels or not _draws_now() or not _levels(self.bias) <= product_levels:
            return super().forward(x)
        return torch.matmul(x, self.weight.t()).add_(self.bias)


def activated(activation: Hidden, fresh: Tensor) -> Tensor:
    """Return the activation of a layer's output, which nothing else may read: its memory may be used again."""
    # Outside `vmap` outputs of layers may be cached from one draw to the next, and are kept.
    in_place = activation is F.relu and is_batchedtensor(fresh) and _draws_now()
    return F.relu_(fresh) if in_place else activation(fresh)


def _draws_now() -> bool:
    """Return whether no gradient needs the values that are overwritten, and no graph is recorded."""
    return not torch.is_grad_enabled() and get_proxy_mode() is None


def _levels(tensor: Tensor) -> set[int]:
    """Return the nested `vmap`s over which a tensor differs."""
    levels = set()
    while is_batchedtensor(tensor):
        levels.add(maybe_get_level(tensor))
        tensor = get_unwrapped(tensor)
    return levels
