"""What one draw may state about a class: logits or probabilities, a Dirichlet, or a set beside probabilities.

All arrays are [T, N, C]: T draws at N rows over C classes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bench.errors import UserError
from bench.metrics.arrays import BoolArray, FloatArray, float_array, numeric_array, require_distributions


class ClassPrediction(ABC):
    """T predictions of classes at N rows.

    The variance of the indicator of a class has two parts, [T, N, C] each: `model_variance` of its probability, and
    `noise_variance`, the mean of p (1 - p).
    """

    @property
    @abstractmethod
    def probabilities(self) -> NDArray[Any]:
        """The probability of each class, [T, N, C]."""

    @property
    def draw_count(self) -> int:
        """T, the number of draws."""
        return int(self.probabilities.shape[0])

    @property
    def row_count(self) -> int:
        """N, the number of rows."""
        return int(self.probabilities.shape[1])

    def rows(self, index: slice | NDArray[Any]) -> Self:
        """Return the prediction at some of the rows."""
        return self._map(lambda values: values[:, index])

    def draws(self, first: int | None) -> Self:
        """Return the first draws."""
        return self._map(lambda values: values[:first])

    def _map(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Self:
        """Return the prediction with its arrays [T, N, C] changed."""
        changed = {field.name: change(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        return replace(self, **changed)  # type: ignore[type-var]  # subclasses are dataclasses

    @property
    def states_model(self) -> bool:
        """Whether a draw by itself states how uncertain its probabilities are."""
        return False

    @property
    def model_variance(self) -> FloatArray:
        """The stated variance of the probabilities: 0 where a draw states probabilities alone."""
        return np.zeros(self.probabilities.shape)

    @property
    def noise_variance(self) -> FloatArray:
        """The mean of p (1 - p)."""
        p = self.probabilities.astype(np.float64, copy=False)
        return p * (1 - p) - self.model_variance

    @property
    def expected_entropy(self) -> FloatArray:
        """The mean of the entropy of the probabilities, [T, N], in nat: the part that is noise."""
        p = self.probabilities.astype(np.float64, copy=False)
        entropy: FloatArray = -(p * np.log(np.maximum(p, np.finfo(np.float64).tiny))).sum(-1)
        return entropy


@dataclass(frozen=True, eq=False)
class Probabilities(ClassPrediction):
    """Probabilities that sum to 1 within 1e-3; their precision is kept, because they may be many."""

    values: NDArray[Any]

    def __post_init__(self) -> None:
        values = numeric_array(self.values, "probabilities", (None, None, None))
        require_distributions(values, "probabilities")
        object.__setattr__(self, "values", values)

    @property
    def probabilities(self) -> NDArray[Any]:
        """The probabilities as stated."""
        return self.values


@dataclass(frozen=True, eq=False)
class Logits(ClassPrediction):
    """Logits, whose softmax are the probabilities."""

    values: FloatArray

    def __post_init__(self) -> None:
        values = float_array(self.values, "logits", (None, None, None))
        if values.shape[-1] < 2:
            raise UserError("logits: one class only; give a binary classifier two columns")
        object.__setattr__(self, "values", values)

    @property
    def probabilities(self) -> FloatArray:
        """The softmax of the logits."""
        shifted = np.exp(self.values - self.values.max(-1, keepdims=True))
        probabilities: FloatArray = shifted / shifted.sum(-1, keepdims=True)
        return probabilities


@dataclass(frozen=True, eq=False)
class Dirichlet(ClassPrediction):
    """Dirichlet distributions of the probabilities: evidential classification, prior networks."""

    concentration: FloatArray

    def __post_init__(self) -> None:
        values = float_array(self.concentration, "concentration", (None, None, None))
        if values.shape[-1] < 2:
            raise UserError("concentration: one class only; give a binary classifier two columns")
        if values.min() <= 0:
            raise UserError(f"concentration: lowest value is {float(values.min()):.6g}, must be above 0")
        object.__setattr__(self, "concentration", values)

    @property
    def strength(self) -> FloatArray:
        """The sum of the concentrations, [T, N]."""
        total: FloatArray = self.concentration.sum(-1)
        return total

    @property
    def probabilities(self) -> FloatArray:
        """The mean of the distribution."""
        return self.concentration / self.strength[..., None]

    @property
    def states_model(self) -> bool:
        """True: a Dirichlet is a distribution of probabilities."""
        return True

    @property
    def model_variance(self) -> FloatArray:
        """The variance of each probability, p (1 - p) / (strength + 1)."""
        p = self.probabilities
        return p * (1 - p) / (self.strength[..., None] + 1)

    @property
    def expected_entropy(self) -> FloatArray:
        """The mean of the entropy under the Dirichlet, in closed form (Malinin and Gales, NeurIPS 2018)."""
        from scipy.special import digamma

        gaps = digamma(self.concentration + 1) - digamma(self.strength + 1)[..., None]
        entropy: FloatArray = -(self.probabilities * gaps).sum(-1)
        return entropy


@dataclass(frozen=True, eq=False)
class Sets(ClassPrediction):
    """One set of classes per row, [N, C] booleans, beside the probabilities it was made from. A set may be empty."""

    members: BoolArray
    beside: Probabilities | Logits | Dirichlet

    def __post_init__(self) -> None:
        members = np.asarray(self.members)
        wanted = self.beside.probabilities.shape[1:]
        if members.dtype != np.bool_ or members.shape != wanted:
            raise UserError(
                f"members: expected booleans of shape {list(wanted)}, got {members.dtype} of {list(members.shape)}"
            )
        object.__setattr__(self, "members", members)

    def rows(self, index: slice | NDArray[Any]) -> Self:
        """Return the sets at some of the rows."""
        return replace(self, members=self.members[index], beside=self.beside.rows(index))

    def draws(self, first: int | None) -> Self:
        """Return the first draws beside the sets, which are those of all draws."""
        return replace(self, beside=self.beside.draws(first))

    @property
    def probabilities(self) -> NDArray[Any]:
        """The probabilities beside the sets."""
        return self.beside.probabilities

    @property
    def states_model(self) -> bool:
        """Whether the probabilities beside the sets do."""
        return self.beside.states_model

    @property
    def model_variance(self) -> FloatArray:
        """That of the probabilities beside the sets."""
        return self.beside.model_variance

    @property
    def expected_entropy(self) -> FloatArray:
        """That of the probabilities beside the sets."""
        return self.beside.expected_entropy
