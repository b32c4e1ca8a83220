"""An estimator under test, fitted to small problems, here or in another process."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any

from torch import Tensor

from bench.api import Array, Estimator, Prediction, Split, Task, options
from bench.plugins.registry import Registry
from bench.run.apart import in_fresh_process
from bench.testing.check import NotApplicable, require
from bench.testing.predictions import numbers_of
from bench.testing.problems import LEARNING, PROBLEMS, SEED, split_of
from bench.training.estimators import FittedEstimator, fit_estimator
from bench.training.network_factory import network_factory
from bench.training.rows import Prepared, prepare


@dataclass(frozen=True, eq=False)
class FittedCell:
    """An estimator fitted to one split."""

    split: Split
    data: Prepared
    fitted: FittedEstimator

    def predict(self, draws: int, x: Tensor | None = None, seed: int = 1) -> Prediction:
        """Return the prediction in training units, at the test rows unless others are given."""
        return self.fitted.predict(self.data.test_x if x is None else x, draws, seed)


def fit_cell(estimator: Estimator, split: Split, *, seed: int = SEED, validation: float = 0.2) -> FittedCell:
    """Fit an estimator to a split as a run does."""
    protocol = replace(LEARNING, validation=validation)
    data, problem = prepare(split, protocol, seed, "cpu"), split.problem
    network = Registry().make("network", protocol.network.name, protocol.network.options)
    return FittedCell(split, data, fit_estimator(estimator, problem, data, network_factory(network, problem), seed))


class EstimatorSubject:
    """An estimator under test; fits that several checks need are made once."""

    def __init__(self, plugin: Estimator) -> None:
        self.plugin = plugin

    @cached_property
    def tasks(self) -> list[Task]:
        """The tasks that the estimator does not skip."""
        return [problem.task for problem in PROBLEMS.values() if self.plugin.skip(problem) is None]

    @cached_property
    def cells(self) -> list[FittedCell]:
        """The estimator fitted to a problem of every task that it does not skip."""
        require(self.tasks, "skip refuses regression and classification on rows of numbers; nothing can be checked")
        return [fit_cell(self.plugin, split_of(task)) for task in self.tasks]

    def need(self, task: Task) -> None:
        """Raise NotApplicable if the estimator skips this task."""
        if reason := self.plugin.skip(PROBLEMS[task]):
            raise NotApplicable(f"it skips {task}: {reason}")

    def numbers_elsewhere(self, draws: int) -> list[list[Array]]:
        """Return the numbers of the predictions of all `cells`, fitted in a fresh process."""
        cls = type(self.plugin)
        if "<" in cls.__qualname__ or cls.__module__ == "__main__":
            raise NotApplicable("its class is not at the top level of a module, which another process could import")
        file = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
        arguments = (cls.__module__, file, cls.__qualname__, options(self.plugin), draws)
        return list(in_fresh_process(_fit_and_predict, *arguments))


def _fit_and_predict(module: str, file: str, name: str, given: Mapping[str, Any], draws: int) -> Iterator[list[Array]]:
    """In another process: yield the numbers of the predictions, task by task."""
    cls: Any = _imported(module, file)
    for part in name.split("."):
        cls = getattr(cls, part)
    for cell in EstimatorSubject(cls(**given)).cells:
        yield numbers_of(cell.predict(draws))


def _imported(module: str, file: str) -> ModuleType:
    """Import a module by its name, or else its file; a plug-in file has a name that no path leads to."""
    try:
        return importlib.import_module(module)
    except ImportError:
        spec = importlib.util.spec_from_file_location(module, file)
        if spec is None or spec.loader is None:
            raise
        found = importlib.util.module_from_spec(spec)
        sys.modules[module] = found
        spec.loader.exec_module(found)
        return found
