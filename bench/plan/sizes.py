"""Refuses plans and cells that are larger than can be meant, before anything of that size is made."""

import math
import re
from contextlib import suppress
from typing import Any

from bench.api import Network, Split, options
from bench.errors import UserError
from bench.plan.suite import Suite
from bench.spec.sizes import (
    MOST_CELLS,
    MOST_CONFIGURATIONS,
    MOST_DRAWN_VALUES,
    MOST_NETWORKS,
    MOST_POINTS,
    MOST_WEIGHTS,
    WIDEST_LAYER,
)
from bench.spec.spec import CellSpec


def check_plan(suite: Suite) -> None:
    """Raise UserError if a suite has too many cells for one plan."""
    parts = len(suite.datasets), len(suite.methods), suite.seeds
    if math.prod(parts) > MOST_CELLS:
        counts = "{:,} datasets x {:,} methods x {:,} seeds".format(*parts)
        raise UserError(
            f"{suite.where}: {counts} are {math.prod(parts):,} cells, a plan has at most {MOST_CELLS:,}; choose a part "
            "with --dataset, --method or --seeds"
        )


def check_network(network: Network, where: str) -> None:
    """Raise UserError if an option of a network is a size that no layer has."""
    for name, value in options(network).items():
        for size in value if isinstance(value, tuple) else (value,):
            if isinstance(size, int) and size > WIDEST_LAYER:
                raise UserError(f"{where}: {name}: expected at most {WIDEST_LAYER:,}, got {size}")


def check_cell(spec: CellSpec, method: Any, network: Network, split: Split) -> None:
    """Raise UserError if a cell would draw, train or search more than can be meant; `method` is what is trained."""
    problem = split.problem
    drawn = spec.protocol.draws * len(split.test_y) * problem.outputs
    if drawn > MOST_DRAWN_VALUES:
        what = f"{spec.protocol.draws:,} draws at {len(split.test_y):,} rows with {problem.outputs} outputs"
        raise UserError(f"draws: {what} are {drawn:,} numbers, at most {MOST_DRAWN_VALUES:,} are drawn; take fewer")
    if not method.alone:
        if method.networks > MOST_NETWORKS:
            raise UserError(f"a cell has at most {MOST_NETWORKS:,} networks, got {method.networks:,}")
        weights = _weights(network, split)
        if weights > MOST_WEIGHTS:
            raise UserError(f"network: it has {weights:,} weights, at most {MOST_WEIGHTS:,} are allowed")
    if spec.protocol.search != "none":
        _check_search(spec)


def _check_search(spec: CellSpec) -> None:
    points = math.prod(len(values) for values in (*spec.protocol.grid.values(), *spec.space.values()))
    if points > MOST_POINTS:
        raise UserError(f"grid: it has {points:,} points, at most {MOST_POINTS:,} are allowed")
    chosen = re.fullmatch(r"random:(\d+)", spec.protocol.search)
    tried = min(points, int(chosen[1])) if chosen else points
    if tried > MOST_CONFIGURATIONS:
        raise UserError(
            f"search: {tried:,} configurations, at most {MOST_CONFIGURATIONS:,} are trained; try some of them with "
            'search = "random:100"'
        )


def _weights(network: Network, split: Split) -> int:
    """Return how many weights a network has; 0 where that is not known before it is made."""
    import torch

    # On this device tensors have a shape and no memory. A network that cannot be made there says so when it is trained.
    with suppress(Exception), torch.device("meta"):
        return sum(weight.numel() for weight in network.build(split.problem, split.problem.outputs).parameters())
    return 0
