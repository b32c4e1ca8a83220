"""Random forest: trees grown on bootstrap samples, each a draw.

    f_t(x) = mean of the targets (or the shares of the classes) in the leaf of tree t that holds x

Breiman 2001, "Random Forests", doi:10.1023/A:1010933404324. The forest's prediction is the mean of the trees. Their
spread is that of single trees, not of their mean: a tree whose leaves hold one row each follows the noise of the data.
Through scikit-learn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from bench.api import Array, Estimator, Examples, Look, Points, Prediction, Probabilities


@dataclass(frozen=True)
class RandomForest(Estimator):
    """T draws are the first T trees."""

    trees: int = 100  # grown for one result
    min_leaf: int = 1  # rows that a leaf holds at least
    features: float = 1.0  # share of the features that a split may choose from

    look = Look("green", "-.", "^")
    spread = "aleatoric"
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {"min_leaf": (1, 3, 10), "features": (0.33, 1.0)}

    def __post_init__(self) -> None:
        if self.trees < 1 or self.min_leaf < 1:
            raise ValueError(f"trees and min_leaf must be at least 1, got {self.trees} and {self.min_leaf}")
        if not 0 < self.features <= 1:
            raise ValueError(f"features must be above 0 and at most 1, got {self.features}")

    def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
        """Return the trees and, for classes, those that the training rows have."""
        forest = RandomForestRegressor if train.problem.task == "regression" else RandomForestClassifier
        options = {"min_samples_leaf": self.min_leaf, "max_features": self.features, "random_state": seed}
        fitted = forest(self.trees, **options).fit(_flat(train.x), train.y)
        return fitted.estimators_, getattr(fitted, "classes_", None), train.problem.outputs

    def predict(self, state: Any, x: Array, draws: int, seed: int) -> Prediction:
        """Return what each of the first trees predicts."""
        trees, known, classes = state
        if known is None:
            return Points(np.stack([tree.predict(_flat(x)) for tree in trees[:draws]]))
        probabilities = np.zeros((min(draws, len(trees)), len(x), classes))  # 0 for a class without training rows
        probabilities[..., known] = [tree.predict_proba(_flat(x)) for tree in trees[:draws]]
        return Probabilities(probabilities)


def _flat(x: Array) -> Array:
    """Return every row, also an image, as a list of numbers."""
    return x.reshape(len(x), -1)
