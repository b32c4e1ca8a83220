"""The oracle: it states the law of the data, which it reads from the dataset, or the exact posterior given the rows.

    knows = "law":        q(y | x) = p(y | x)
    knows = "posterior":  q(y | x) = int p(y | x, w) p(w | data) dw,   with p(w) the prior that drew the function

No proper score has a better expectation than that of the law (Gneiting and Raftery, "Strictly Proper Scoring Rules,
Prediction, and Estimation", 2007, doi:10.1198/016214506000001437); none has a better one than that of the posterior
among all methods that know the prior and the rows alone (Bernardo and Smith, Bayesian Theory, 1994). Both are
references for methods that have to learn, on datasets that state their law.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bench.api import Array, Estimator, Examples, Look, Prediction, Problem, UserError


@dataclass(frozen=True)
class Oracle(Estimator):
    """One prediction per row, from the dataset's own law; nothing is learned."""

    knows: Literal["law", "posterior"] = "law"  # what it states: the law itself, or the posterior given the rows

    look = Look("grey", "--", "P")

    def skip(self, problem: Problem) -> str | None:
        """Skip datasets that state no law, or, for the posterior, none that has one."""
        if problem.law is None:
            return "the dataset states no law; use it on the datasets of suite truth"
        nowhere = np.zeros((1, *problem.inputs))
        if self.knows == "posterior" and problem.law.given(nowhere, np.zeros(1)) is None:
            return "the law of the dataset has no exact posterior; use knows = 'law'"
        return None

    def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
        """Return the law in training units, or the posterior given the training rows."""
        found = train.law if self.knows == "law" or train.law is None else train.law.given(train.x, train.y)
        if found is None:
            raise UserError("oracle: the dataset states no law")
        return found

    def predict(self, state: Any, x: Array, draws: int, seed: int) -> Prediction:
        """Return the law at the rows."""
        stated: Prediction = state.at(x.astype(np.float64))
        return stated
