"""Differences between networks that were trained in two equivalent ways."""

from dataclasses import dataclass, replace

import numpy as np
import torch

from bench.api import Array, Method, float_options
from bench.testing.problems import PLAIN, SHORT, STACK, Cell, members_of, train
from bench.training.fit import fit
from bench.training.member import Member, finish


@dataclass(frozen=True)
class Difference:
    """How far two trained cells are apart."""

    largest: float  # difference of their draws
    equal: bool  # are all their tensors the same to the last bit?


def against_plain(stacked: Cell) -> Difference:
    """Compare a cell trained in a stack with the same cell trained without one."""
    plain = train(stacked.method, stacked.split, SHORT, PLAIN)
    return Difference(_gap(stacked.draws(6), plain.draws(6, limits=PLAIN)), identical(stacked, plain))


def against_crowd(alone: Cell) -> Difference:
    """Compare a cell trained alone in a stack with the same cell trained among others of other seeds and options."""
    method, split = alone.method, alone.split
    own = members_of(method, split, SHORT)[1]
    others: list[Member] = []
    for seed, other in enumerate(neighbours(method, 2)):
        others += members_of(other, split, SHORT, seed)[1]
    members = [*others[:1], *own, *others[1:]]
    done = dict(fit(members, STACK))
    trained = [finish(member, done[place]) for place, member in enumerate(members)]
    crowd = replace(alone, networks=trained[1 : 1 + len(own)])
    return Difference(_gap(alone.draws(6), crowd.draws(6)), identical(alone, crowd))


def neighbours(method: Method, count: int) -> list[Method]:
    """Return copies of the method with other values of its float options, where it allows them."""
    copies = []
    for number in range(count):
        other = method
        for name, value in float_options(method).items():
            try:
                other = replace(other, **{name: value * (0.9 - 0.1 * number)})  # type: ignore[type-var]  # a dataclass
            except ValueError:
                continue
        copies.append(other)
    return copies


def _gap(one: Array, other: Array) -> float:
    if one.shape != other.shape or not np.array_equal(np.isfinite(one), np.isfinite(other)):
        return np.inf
    return float(np.nanmax(np.abs(one - other), initial=0.0))


def identical(one: Cell, other: Cell) -> bool:
    """Return whether all tensors of two cells' networks are the same to the last bit."""
    return all(
        torch.equal(tensor, getattr(b, part)[name])
        for a, b in zip(one.networks, other.networks, strict=True)
        for part in ("params", "buffers", "memory")
        for name, tensor in getattr(a, part).items()
    )
