"""Choice of options by cross-validation: the configurations that are tried, and the best of them.

Every configuration is trained on the same folds from the same initial weights. The choice depends on the cell alone:
the training rows of its split, its seed, the suite's grid and the method's search space.
"""

import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bench.api.tape import stream


@dataclass(frozen=True)
class Configuration:
    """Values for options of the training and of the method."""

    training: Mapping[str, float]
    method: Mapping[str, Any]

    def applied(self, method: Any, training: Any) -> tuple[Any, Any]:
        """Return a method and a training with these values."""
        return replace(method, **self.method), replace(training, **self.training)


def configurations(
    kind: str, grid: Mapping[Any, Sequence[float]], space: Mapping[str, Sequence[Any]], seed: int
) -> list[Configuration]:
    """Return the configurations to try: all points of the grid, or N distinct ones for `random:N`."""
    names = [*grid, *space]
    points = list(itertools.product(*grid.values(), *space.values()))
    if kind == "none":
        points = []
    elif found := re.fullmatch(r"random:(\d+)", kind):
        generator = np.random.default_rng(stream(seed, "configurations"))
        sample = generator.permutation(len(points))[: int(found[1])]
        points = [points[number] for number in sorted(sample)]
    named = [dict(zip(names, point, strict=True)) for point in points]
    return [Configuration({n: one[n] for n in grid}, {n: one[n] for n in space}) for one in named]


@dataclass(frozen=True)
class Selection:
    """The result of a search."""

    tried: Sequence[Configuration]
    losses: Sequence[Sequence[float]]  # of every configuration on every fold; infinite: diverged
    epochs: Sequence[Sequence[int]]
    best_epochs: Sequence[Sequence[int]] = ()  # whose weights early stopping kept
    criterion: str = "loss"  # what the losses are: `search_by` of the protocol

    @property
    def means(self) -> list[float]:
        """The mean validation loss of every configuration."""
        return [sum(losses) / len(losses) for losses in self.losses]

    @property
    def best(self) -> int | None:
        """The index of the (first) configuration with the lowest mean; None if all diverged."""
        means = self.means
        number = min(range(len(means)), key=means.__getitem__)
        return number if math.isfinite(means[number]) else None

    @property
    def chosen(self) -> Configuration | None:
        """The best configuration."""
        return None if self.best is None else self.tried[self.best]

    @property
    def epochs_to_refit(self) -> int:
        """The number of epochs that the best configuration needed: the mean of its folds."""
        found = (self.best_epochs or self.epochs)[self.best or 0]
        return max(1, round(sum(found) / len(found)))

    def record(self) -> dict[str, Any]:
        """Return the summary that is stored with a cell."""
        if self.best is None or self.chosen is None:
            return {"configurations": len(self.tried), "folds": len(self.losses[0])}
        return {
            "chosen": {**self.chosen.training, **self.chosen.method},
            "validation_loss" if self.criterion == "loss" else f"validation_{self.criterion}": self.means[self.best],
            "configurations": len(self.tried),
            "folds": len(self.losses[self.best]),
            **({"epochs": list(self.epochs[self.best])} if any(self.epochs[self.best]) else {}),
        }

    def to_json(self) -> str:
        """Return the whole search as JSON; a loss that is not finite is null."""
        finite = [[loss if math.isfinite(loss) else None for loss in losses] for losses in self.losses]
        tried = [asdict(each) for each in self.tried]
        best = {"best_epochs": self.best_epochs, "criterion": self.criterion}
        return json.dumps({"tried": tried, "losses": finite, "epochs": self.epochs, **best}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Selection":
        """Return the search that `to_json` wrote."""
        content = json.loads(text)
        losses = [[math.inf if loss is None else loss for loss in each] for each in content["losses"]]
        tried = [Configuration(**each) for each in content["tried"]]
        best = content.get("best_epochs", ()), content.get("criterion", "loss")
        return cls(tried, losses, content["epochs"], *best)
