"""Fits estimators, and predicts with the state that they returned."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from bench.api import Estimator, Examples, NewNetwork, Prediction, Problem, Task
from bench.api.tape import stream
from bench.errors import UserError
from bench.training.guards import place_of
from bench.training.limits import threads
from bench.training.predictors import require_prediction
from bench.training.rows import Prepared

SEEDS = 2**32  # an estimator's seed is below: scikit-learn and numpy refuse larger ones


@dataclass(frozen=True, eq=False)
class FittedEstimator:
    """An estimator with its state."""

    estimator: Estimator
    state: Any
    task: Task

    def predict(self, x: Tensor, draws: int, seed: int) -> Prediction:
        """Let the estimator predict, with the global generators seeded and its number of threads."""
        rows = x.numpy(force=True).copy()  # the estimator may write into it
        seed %= SEEDS
        with controlled(self.estimator, seed):
            prediction = self.estimator.predict(self.state, rows, draws, seed)
        where = place_of(self.estimator, "predict")
        require_prediction(prediction, self.task, len(x), where)
        if prediction.draw_count > draws:
            raise UserError(f"{where}: {prediction.draw_count} draws, but at most {draws} were wanted")
        return prediction


def fit_estimator(
    estimator: Estimator, problem: Problem, data: Prepared, new_network: NewNetwork, seed: int
) -> FittedEstimator:
    """Fit an estimator to the training rows of prepared data."""
    rows = data.rows

    def examples(index: Tensor) -> Examples:
        x, y = (part[index].numpy(force=True) for part in (rows.x, rows.y))
        return Examples(problem, x, y, new_network, data.law)

    train, validation = examples(rows.train), examples(rows.validation) if len(rows.validation) else None
    seed = stream(seed, "fit") % SEEDS
    with controlled(estimator, seed):
        state = estimator.fit(train, validation, seed)
    return FittedEstimator(estimator, state, problem.task)


@contextmanager
def controlled(estimator: Estimator, seed: int) -> Iterator[None]:
    """Seed the global generators and set the threads of native libraries; both are as before after the block."""
    python, legacy, own = random.getstate(), np.random.get_state(), torch.random.get_rng_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # libraries that know no other generator read it
    torch.manual_seed(seed)
    count = estimator.threads or torch.get_num_threads()
    try:
        with threads(count), threadpool_limits(count):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002
        torch.random.set_rng_state(own)
