"""A wrapper is a method around another method: it calibrates the other's predictions on rows that did not train."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.api.base_method import BaseMethod
from bench.api.dataset import Array
from bench.metrics import Prediction
from bench.spec.plugin import PluginSpec


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that did not train the predictor: its prediction there, and the targets that were observed."""

    prediction: Prediction
    observed: Array  # [rows], in training units; classes as integers


class Wrapper(BaseMethod):
    """A method whose predictions are made from those of another one.

    Subclass it as a frozen dataclass whose fields are the options. One of them is `method`, the inner method, with a
    default: `method: PluginSpec = PluginSpec("mc-dropout")`. A suite names another one as `method = "swag"`, or with
    options as `method = { name = "swag", samples = 10 }`.

    The inner method trains as it does without the wrapper, and its networks are shared with its own cells, so a wrapper
    costs no training. Then `calibrate` sees its predictions at held-out rows: the suite's calibration rows, or where
    it sets none aside those that early stopping watched. `predict` changes its prediction at other rows. Both are
    pure: they change nothing and take every random number from their generator.

    With `folds = K`, a class variable or an option, the inner method is trained K times, each time without one part of
    the training rows, and both hooks see K predictors, all in the same unit.
    """

    method: PluginSpec  # the inner method
    folds: int = 0  # 0: one predictor and one held-out part; K: K of each, by cross-validation

    def calibrate(self, held: Sequence[HeldOut], generator: np.random.Generator) -> Any:
        """Return what `predict` needs to know, from the held-out rows of each predictor (one without folds)."""
        raise NotImplementedError

    def predict(self, state: Any, predictions: Sequence[Prediction], generator: np.random.Generator) -> Prediction:
        """Return the prediction at some rows, from what each predictor says there.

        A row depends on its own predictions alone, and on the random numbers that are drawn for it.
        """
        raise NotImplementedError

    def doubts(self, state: Any) -> Sequence[str]:
        """Return what readers of the results should know, one line each (too few calibration rows, ...)."""
        return ()
