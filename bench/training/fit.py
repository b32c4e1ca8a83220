"""Trains members: sorts them into groups that can share a graph, and gives every group a stack."""

import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import torch

from bench.errors import UserError
from bench.training.flops import Cost, measure
from bench.training.limits import Limits, is_large, threads
from bench.training.member import Fitted, Member
from bench.training.progress import Progress
from bench.training.stack import Stack
from bench.training.stacked_calls import StackedCalls
from bench.training.transfers import release_memory


def fit(members: Sequence[Member], limits: Limits = Limits()) -> Iterator[tuple[int, Fitted]]:
    """Train all members; yield the number and result of each as soon as it ends."""
    for item in fit_with_progress(members, limits):
        if not isinstance(item, Progress):
            yield item


def fit_with_progress(members: Sequence[Member], limits: Limits = Limits()) -> Iterator[tuple[int, Fitted] | Progress]:
    """Train all members as `fit` does, and yield the progress about once a second."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, member in enumerate(members):
        groups.setdefault(member.stack_key(), []).append(number)
    ended = 0
    for group in groups.values():
        # Slow learners train longest: they come first, so that none of them remains alone at the end.
        group.sort(key=lambda number: members[number].training.learning_rate)
        cost = measure(members[group[0]])
        large = is_large(cost.flops_per_row, limits, cost.alone)
        with computing_as_trained(cost, limits), torch.no_grad():
            for item in _fit_group([members[n] for n in group], cost, large, limits):
                if isinstance(item, Progress):
                    waiting = len(members) - ended - item.training
                    yield replace(item, waiting=waiting, ended=ended)
                else:
                    ended += 1
                    yield group[item[0]], item[1]


def _fit_group(
    members: Sequence[Member], cost: Cost, large: bool, limits: Limits
) -> Iterator[tuple[int, Fitted] | Progress]:
    """Train members that share a graph; where the device is out of memory, with half as many at once.

    Those that have not ended begin again: a member's result does not depend on how many others train beside it.
    """
    left = list(range(len(members)))
    while left:
        numbers, stack = list(left), Stack([members[n] for n in left], cost, large, limits)
        slots = len(stack.slots)
        try:
            for item in stack.run():
                if isinstance(item, Progress):
                    yield item
                else:
                    left.remove(numbers[item[0]])
                    yield numbers[item[0]], item[1]
        except torch.OutOfMemoryError:
            if slots <= max(2, stack.team_size):
                few = "one network" if large else f"{slots} networks"
                raise UserError(f"out of memory: the device cannot train {few} at once; take smaller batches") from None
            limits = replace(limits, slots=slots // 2)
            warnings.warn(f"out of memory with {slots} networks: training goes on with half as many", stacklevel=2)
        if left:  # not before the exception is gone, which holds what was computed
            del stack
            release_memory(members[0].rows.x.device)


def computing_as_trained(cost: Cost, limits: Limits) -> AbstractContextManager[None]:
    """Compute with as many threads as networks of this cost are trained with.

    Steps of a stack are too small to share between threads: two took twice as long as one.
    """
    return threads(torch.get_num_threads() if is_large(cost.flops_per_row, limits, cost.alone) else 1)


def train_again(member: Member, calls: type[StackedCalls]) -> None:
    """Train one network alone and without `vmap`, every call through another class than `StackedCalls`."""
    cost, limits = measure(member), Limits(path="plain", compiling=False)
    with threads(torch.get_num_threads() if is_large(cost.flops_per_row, Limits()) else 1), torch.no_grad():
        deque(Stack([member], cost, True, limits, calls).run(), maxlen=0)
