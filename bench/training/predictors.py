"""What predicts at any rows once a cell is trained, whatever kind of method it has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from torch import Tensor

from bench.api import Array, ClassPrediction, Method, Prediction, RegressionPrediction, Task
from bench.errors import UserError
from bench.training.divergence import name_not_finite
from bench.training.drawing import Drawing, draw
from bench.training.guards import place_of
from bench.training.limits import Limits
from bench.training.member import Fitted


class NotFiniteError(Exception):
    """A prediction is not finite; the message says where that arose first."""


class Predictor(Protocol):
    """Predicts at rows in training units, in training units."""

    def predict(self, x: Tensor, draws: int, seed: int) -> Prediction:
        """Return the prediction of this many draws, or of fewer where there are no more different ones.

        Draw t is the same function at all rows of one seed, whatever T is. Raises NotFiniteError.
        """


@dataclass(frozen=True, eq=False)
class Networks:
    """The trained networks of a method."""

    method: Method
    networks: Sequence[Fitted]
    task: Task
    limits: Limits = Limits()

    def predict(self, x: Tensor, draws: int, seed: int) -> Prediction:
        """Draw functions, and let the method say what they state."""
        drawn = draw(Drawing(self.method, self.networks, self.task, x, seed, draws), self.limits)
        if not np.isfinite(drawn).all():
            raise NotFiniteError(self._first_not_finite(drawn))
        prediction = self.method.predict(drawn, self.task)
        require_prediction(prediction, self.task, len(x), place_of(self.method, "predict"))
        return prediction

    def _first_not_finite(self, drawn: Array) -> str:
        """Return the first tensor of a network that is not finite, or else the first of the drawn values."""
        for k, network in enumerate(self.networks):
            if tensor := name_not_finite(network):
                return f"{tensor} of network {k} after the fit (see finish and remember)"
        bad = ~np.isfinite(drawn).all(2)
        t, row = np.argwhere(bad)[0]
        return f"draw {t} at row {row} ({int(bad.sum())} of {bad.size} values; see draw)"


def require_prediction(prediction: object, task: Task, rows: int, where: str) -> None:
    """Raise a UserError unless it is a prediction of the task at so many rows."""
    kind = RegressionPrediction if task == "regression" else ClassPrediction
    names = ", ".join(each.__name__ for each in kind.__subclasses__())
    if not isinstance(prediction, kind):
        raise UserError(f"{where}: a {type(prediction).__name__} is no prediction of a {task}; return one of {names}")
    if prediction.row_count != rows:
        raise UserError(f"{where}: the prediction has {prediction.row_count} rows, but it is of {rows}")
