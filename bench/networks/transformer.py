"""A small transformer on rows: every feature is a token, and one more token gathers what the head reads.

    z_j = x_j e_j + b_j,   softmax(q k^T / sqrt(d)) v,   h <- h + attention(norm(h)),   h <- h + W2 s(W1 norm(h))

The FT-Transformer of Gorishniy et al. 2021, "Revisiting Deep Learning Models for Tabular Data", arXiv:2106.11959, with
the ReLU as s; attention of Vaswani et al. 2017, arXiv:1706.03762.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.api import Hidden, Network, Problem, unchanged
from bench.networks._activations import require_positive

MOST_TOKENS = 256  # attention costs the square of it


class Attention(nn.Module):
    """Multi-head self-attention, written out: the fused kernel has no batching rule for stacks."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.input = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, h: Tensor) -> Tensor:
        """Return what every token gathers from all `[rows, tokens, width]`."""
        rows, tokens, width = h.shape
        parts = self.input(h).view(rows, tokens, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)  # [rows, heads, tokens, width of a head]
        weights = torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]), -1)
        gathered: Tensor = self.output((weights @ value).transpose(1, 2).reshape(rows, tokens, width))
        return gathered


class Block(nn.Module):
    """Attention and two linear layers, each with a norm before it and a shortcut around it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm = nn.LayerNorm(width)
        self.inner, self.outer = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, h: Tensor, hidden: Hidden) -> Tensor:
        """Return the tokens; the hidden activations are what attention gathers, and those between the linear layers."""
        h = h + hidden(self.attention(self.attention_norm(h)))
        added: Tensor = self.outer(hidden(F.relu(self.inner(self.norm(h)))))
        return h + added


class RowTransformer(nn.Module):
    """A transformer whose tokens are the features of a row."""

    def __init__(self, features: int, outputs: int, width: int, blocks: int, heads: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(width)
        self.scale = nn.Parameter(torch.empty(features, width).uniform_(-bound, bound))
        self.shift = nn.Parameter(torch.empty(features + 1, width).uniform_(-bound, bound))  # the last: of the gatherer
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, outputs)

    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        """Return the outputs `[rows, outputs]`."""
        tokens = F.pad(x.flatten(1)[..., None] * self.scale, (0, 0, 0, 1)) + self.shift
        for block in self.blocks:
            tokens = block(tokens, hidden)
        outputs: Tensor = self.head(F.relu(self.norm(tokens[:, -1])))
        return outputs


@dataclass(frozen=True)
class TransformerNetwork(Network):
    """Pre-norm blocks; the feed-forward layers are twice as wide as the tokens."""

    width: int = 16  # of a token
    blocks: int = 2
    heads: int = 2  # of the attention; they share the width

    def __post_init__(self) -> None:
        require_positive("width, blocks and heads", self.width, self.blocks, self.heads)
        if self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads, got {self.width} and {self.heads}")

    def skip(self, problem: Problem) -> str | None:
        """Only rows of few numbers."""
        features = math.prod(problem.inputs)
        return None if features <= MOST_TOKENS else f"has a token per feature, at most {MOST_TOKENS}, not {features}"

    def build(self, problem: Problem, outputs: int) -> nn.Module:
        """Return the network."""
        return RowTransformer(math.prod(problem.inputs), outputs, self.width, self.blocks, self.heads)
