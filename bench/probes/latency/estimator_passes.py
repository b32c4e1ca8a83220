"""How an estimator is timed: fitted once to the training rows of its cell, then asked for T draws batch by batch."""

from collections.abc import Sequence

import numpy as np
import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

from bench.api import Array, ClassPrediction, Estimator, Prediction
from bench.api.tape import stream
from bench.probes.base import Subject
from bench.probes.latency.modes import Mode
from bench.training.drawing import Cuts
from bench.training.estimators import SEEDS, FittedEstimator, fit_estimator
from bench.training.limits import threads
from bench.training.network_factory import network_factory
from bench.training.rows import prepare


def estimator_modes(estimator: Estimator, subject: Subject, draws: Sequence[int], rows: Array) -> dict[int, Mode]:
    """Return how it is timed for each number of draws, as far as it has so many; it predicts `rows` in one call.

    It is fitted to all training rows, because the cost of a prediction may depend on them.
    """
    problem = subject.split.problem
    data = prepare(subject.split, subject.protocol, subject.seed, "cpu")
    fitted = fit_estimator(estimator, problem, data, network_factory(subject.network, problem), subject.seed)
    seed = stream(subject.seed, "test")
    most = fitted.predict(data.inputs(rows), max(draws), seed).draw_count
    return {t: _mode(fitted, t, seed % SEEDS, len(rows)) for t in [t for t in draws if t <= most] or [1]}


def _mode(fitted: FittedEstimator, draws: int, seed: int, rows: int) -> Mode:
    estimator, libraries = fitted.estimator, ThreadpoolController()
    count = estimator.threads or torch.get_num_threads()

    def evaluate(x: Tensor) -> Tensor:
        with threads(count), libraries.limit(limits=count):
            return _values(estimator.predict(fitted.state, x.numpy(force=True), draws, seed))

    return Mode(evaluate, Cuts(large=False, by_row=False, rows=rows, draws=draws, networks=1), count)


def _values(prediction: Prediction) -> Tensor:
    """Return the points or the probabilities `[T, rows, outputs]`, as a network returns them."""
    if isinstance(prediction, ClassPrediction):
        return torch.from_numpy(np.ascontiguousarray(prediction.probabilities))
    return torch.from_numpy(np.ascontiguousarray(prediction.centre[..., None]))
