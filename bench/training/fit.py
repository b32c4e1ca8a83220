"""Trains members: sorts them into groups that can share a graph, and gives every group a stack."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import torch

from bench.training.flops import Cost, measure
from bench.training.limits import Limits, is_large, threads
from bench.training.member import Fitted, Member
from bench.training.stack import Progress, Stack
from bench.training.stacked_calls import StackedCalls


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
            for item in Stack([members[n] for n in group], cost, large, limits).run():
                if isinstance(item, Progress):
                    waiting = len(members) - ended - item.training
                    yield replace(item, waiting=waiting, ended=ended)
                else:
                    ended += 1
                    yield group[item[0]], item[1]


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
