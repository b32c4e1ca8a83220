"""Holds out training rows by whole blocks: groups of rows, or the rows of one moment, the latest first.

Rows of one group, or neighbours in time, are alike. Held out at random, they would tell early stopping, a search and a
calibration how well a network remembers, not how well it will do at the test rows, which are of other groups or later.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bench.api import Array, Blocks
from bench.api.tape import generator
from bench.errors import UserError


def part_of(blocks: Blocks, rows: Tensor) -> Blocks:
    """Return the blocks of some training rows."""
    return Blocks(blocks.of_rows[rows.numpy()], blocks.ordered)


def hold_out(blocks: Blocks, validation: int, calibration: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return training, validation and calibration rows, so many as whole blocks come near to.

    Blocks in the order of time are trained, validated and calibrated on in this order; others are drawn at random.
    """
    block, sizes = _numbered(blocks)
    wanted = [calibration, validation] if blocks.ordered else [validation, calibration]
    _check_count(blocks, len(sizes), 1 + sum(count > 0 for count in wanted))
    order = _order(blocks, len(sizes), seed, "validation")
    parts, first = [], 0
    for number, count in enumerate(wanted):
        reserve = 1 + sum(later > 0 for later in wanted[number + 1 :])
        last = _end(sizes[order], first, count, len(order) - reserve) if count else first
        parts.append(_rows(block, order[first:last]))
        first = last
    held = parts[::-1] if blocks.ordered else parts
    return _rows(block, order[first:]), held[0], held[1]


def block_folds(blocks: Blocks, count: int, seed: int) -> list[tuple[Tensor, Tensor]]:
    """Return `count` pairs of (training, held-out) rows.

    Groups are dealt out to folds of about the same size. In the order of time the rows are cut into `count` + 1 parts:
    fold k trains on the first k + 1 parts and holds out the next.
    """
    block, sizes = _numbered(blocks)
    _check_count(blocks, len(sizes), count + blocks.ordered)
    if blocks.ordered:
        cuts = _cuts(sizes, count)
        numbers = np.arange(len(sizes))
        return [(_rows(block, numbers[: cuts[k]]), _rows(block, numbers[cuts[k] : cuts[k + 1]])) for k in range(count)]
    fold_of, filled = np.zeros(len(sizes), dtype=np.int64), np.zeros(count)
    for each in _order(blocks, len(sizes), seed, "folds"):
        fold_of[each] = int(np.argmin(filled))
        filled[fold_of[each]] += sizes[each]
    return [
        (_rows(block, np.flatnonzero(fold_of != k)), _rows(block, np.flatnonzero(fold_of == k))) for k in range(count)
    ]


def _numbered(blocks: Blocks) -> tuple[Array, Array]:
    """Return the number of the block of each row, in the order of their values, and the rows of each block."""
    _, block = np.unique(blocks.of_rows, return_inverse=True)
    return block, np.bincount(block)


def _check_count(blocks: Blocks, found: int, needed: int) -> None:
    if found < needed:
        what = "moments" if blocks.ordered else "groups"
        raise UserError(
            f"the training rows have {found} {what}, at least {needed} are needed: rows are held out by whole {what}; "
            "hold out fewer parts (validation, calibration, folds)"
        )


def _order(blocks: Blocks, count: int, seed: int, purpose: str) -> Array:
    """Return the numbers of the blocks in the order in which they are held out."""
    if blocks.ordered:
        return np.arange(count)[::-1]
    order: Array = torch.randperm(count, generator=generator(seed, purpose)).numpy()
    return order


def _end(sizes: Array, first: int, wanted: int, most: int) -> int:
    """Return where a part ends that begins at a block and comes nearest to so many rows; at least one block long."""
    totals = np.cumsum(sizes[first:most])
    return first + 1 + int(np.argmin(np.abs(totals - wanted)))


def _cuts(sizes: Array, count: int) -> list[int]:
    """Return the first blocks of the parts after the first, and the end; every part has at least one block."""
    totals, cuts = np.cumsum(sizes), [0]
    for k in range(count):
        near = 1 + int(np.argmin(np.abs(totals - totals[-1] * (k + 1) / (count + 1))))
        cuts.append(min(max(near, cuts[-1] + 1), len(sizes) - (count - k)))
    return [*cuts[1:], len(sizes)]


def _rows(block: Array, numbers: Sequence[int] | Array) -> Tensor:
    return torch.from_numpy(np.flatnonzero(np.isin(block, numbers)))
