"""Predictors of wrappers: the predictors of the inner method, calibrated on rows that did not train them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from bench.api import Array, HeldOut, Prediction, Split, Task, Wrapper
from bench.api.tape import stream
from bench.training.guards import place_of
from bench.training.member import Rows
from bench.training.predictors import Predictor, require_prediction
from bench.training.rows import Prepared


@dataclass(frozen=True, eq=False)
class Part:
    """A predictor of the inner method with its rows: of the whole cell, or of one fold."""

    predictor: Predictor
    data: Prepared

    def predict(self, x: Tensor, draws: int, seed: int, whole: Prepared) -> Prediction:
        """Return the prediction at rows in this part's units, in training units of the whole cell."""
        prediction = self.predictor.predict(x, draws, seed)
        return prediction if self.data is whole else whole.scaled(self.data.original(prediction))


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A calibrated wrapper.

    Its inner functions are the same at calibration rows and at all others: the scores of rows that are predicted by
    other draws than those of the calibration rows would not be exchangeable with them.
    """

    wrapper: Wrapper
    parts: Sequence[Part]
    whole: Prepared
    task: Task
    draws: int
    seed: int  # of the inner draws
    state: Any

    @property
    def doubts(self) -> list[str]:
        """What readers of its results should know."""
        rows = self.whole.rows
        set_aside = len(self.parts) > 1 or len(rows.calibration) > 0
        shared = f"calibrated on the {len(rows.calibrating)} rows of early stopping: the suite sets none aside"
        return [*self.wrapper.doubts(self.state), *([] if set_aside else [shared])]

    def predict(self, x: Tensor, draws: int, seed: int) -> Prediction:
        """Let the wrapper predict from what the inner method predicts; the seed is of its own random numbers."""
        predictions = [part.predict(self._inputs(part, x), self.draws, self.seed, self.whole) for part in self.parts]
        own = np.random.default_rng(stream(seed, "wrapper"))
        prediction = self.wrapper.predict(self.state, predictions, own)
        require_prediction(prediction, self.task, len(x), place_of(self.wrapper, "predict"))
        return prediction

    def _inputs(self, part: Part, x: Tensor) -> Tensor:
        return x if part.data is self.whole else part.data.inputs(self.whole.original_inputs(x))


def calibrate(
    wrapper: Wrapper, parts: Sequence[Part], whole: Prepared, split: Split, draws: int, seed: int
) -> Calibrated:
    """Calibrate a wrapper on the held-out rows of each part; `whole` has the units of the cell."""
    inner = stream(seed, "test")  # so that a wrapper's predictions are made from those that the inner method has
    held = []
    for part in parts:
        rows = part.data.rows.calibrating
        prediction = part.predict(part.data.rows.x[rows], draws, inner, whole)
        held.append(HeldOut(prediction, _observed(split, rows, whole)))
    state = wrapper.calibrate(held, np.random.default_rng(stream(seed, "calibrate")))
    return Calibrated(wrapper, parts, whole, split.task, draws, inner, state)


def rows_for_inner(rows: Rows) -> Rows:
    """Return the rows as the inner method may use them after its training.

    What it tunes on the calibration rows would no longer be as good at other rows: it tunes on the validation rows.
    """
    return Rows(rows.task, rows.x, rows.y, rows.train, rows.validation)


def _observed(split: Split, rows: Tensor, whole: Prepared) -> Array:
    observed: Array = np.asarray(split.train_y)[rows.numpy()]
    if split.task == "classification":
        return observed.astype(np.int64)
    return (observed.astype(np.float64) - whole.target_mean) / whole.target_std
