"""All checks of an estimator: what it declares, what its predictions are and what they depend on."""

import pickle
from collections.abc import Iterator

import numpy as np
import torch

from bench.api import ClassPrediction, Forecast, Problem, Split, options
from bench.plugins.faults import explain
from bench.testing import declarations
from bench.testing.check import Check, CheckFailure, require
from bench.testing.estimator_subject import EstimatorSubject, FittedCell, fit_cell
from bench.testing.predictions import numbers_of, prediction_gap
from bench.testing.problems import PROBLEMS, constant_split, missing_class_split, require_learned, split_of, tiny_splits

FAR = 50.0  # standard deviations of the inputs
ROUNDING = 1e-5  # of predictions in training units
IMAGES = Problem("classification", (3, 8, 8), 3)
MANY = Problem("regression", (2,), 1, rows=10**9)


def estimator_checks() -> Iterator[Check[EstimatorSubject]]:
    """Yield every check that an estimator has to pass, the fast ones first."""
    yield declarations.OPTIONS
    yield declarations.VERSION
    documented = "its documentation has a first line, an equation and a reference"
    yield Check("docstring", documented, declarations.check_method_docstring)
    yield Check("search-space", "every value worth searching can be built", declarations.check_search_space)
    yield declarations.expected_failures_check(estimator_checks)
    yield declarations.LOOK
    yield Check("skip", "skip returns None or a reason, and not a reason for every task", _skip)
    yield Check("prediction", "it states a prediction of its task at every row, with at most T draws", _prediction)
    yield Check("finite", "predictions are finite near the data and far from it", _finite)
    yield Check("draws", "T = 1 and T = 1000 work, and draw t is the same for any T", _draws)
    yield Check("rows", "a row's prediction is the same alone as among others", _rows)
    yield Check("seeded", "the same seed gives the same fit and prediction to the last bit", _seeded)
    yield Check("fresh-process", "a fresh process gives the same prediction to the last bit", _fresh_process)
    yield Check("no-state", "it keeps nothing: other fits and predictions change none before them", _no_state)
    yield Check("round-trip", "a state that was pickled and read back predicts the same", _round_trip)
    yield Check("learns", "it predicts a simple function better than a constant", _learns)
    yield Check("no-validation", "it does without validation rows", _no_validation)
    yield Check("tiny-data", "it survives one, two and three rows", _tiny_data)
    yield Check("constant-targets", "it survives targets that are all the same", _constant_targets)
    yield Check("missing-class", "it survives a class without training rows", _missing_class)


def _skip(subject: EstimatorSubject) -> None:
    for problem in (*PROBLEMS.values(), IMAGES, MANY):
        declarations.check_reason(subject.plugin.skip(problem))
    require(subject.tasks, "skip refuses both regression and classification on rows of numbers")
    for task in subject.tasks:
        try:
            fit_cell(subject.plugin, split_of(task)).predict(3)
        except Exception as error:
            found = f"skip accepts {task}, but {explain(error)}"
            raise CheckFailure(f"{found}; let skip return the reason where it cannot do a problem") from error


def _prediction(subject: EstimatorSubject) -> None:
    for cell in subject.cells:
        classes = cell.split.classes
        for draws in (1, 6):
            for x in (cell.data.test_x, cell.data.test_x[:1]):
                stated = cell.predict(draws, x)  # which checks its kind, rows and draws
                if isinstance(stated, ClassPrediction):
                    columns = stated.probabilities.shape[-1]
                    advice = "give a column to classes without training rows, too (problem.outputs)"
                    require(columns == classes, f"{columns} columns for {classes} classes; {advice}")


def _finite(subject: EstimatorSubject) -> None:
    for cell in subject.cells:
        near = cell.data.test_x
        for where, x in (("near the data", near), ("far from it", FAR * near), ("at zero", torch.zeros_like(near[:1]))):
            _require_finite(cell, where, x)


def _require_finite(cell: FittedCell, what: str, x: torch.Tensor | None = None) -> None:
    stated = cell.predict(4, x)
    # An interval may be infinite where it is stated as one; a mean may not.
    centre = stated.probabilities if isinstance(stated, ClassPrediction) else stated.centre
    bad = int((~np.isfinite(centre)).sum())
    require(not bad, f"{what}: {bad} predicted values are not finite")


def _draws(subject: EstimatorSubject) -> None:
    for cell in subject.cells:
        x = cell.data.test_x[:4]
        many = cell.predict(1000, x)
        for count in (1, 7):
            few = cell.predict(count, x)
            wanted = min(count, many.draw_count)
            found = f"T = {count} gave {few.draw_count} draws, although T = 1000 gave {many.draw_count}"
            require(few.draw_count == wanted, f"{found}; return min(T, all there are)")
            gap = prediction_gap(few, many.draws(count))
            advice = "make draw t from the seed and t alone, and return the first T"
            require(
                gap < ROUNDING, f"the first draws of T = 1000 differ by {gap:.2g} from those of T = {count}; {advice}"
            )


def _rows(subject: EstimatorSubject) -> None:
    for cell in subject.cells:
        x = cell.data.test_x[:7]
        whole = cell.predict(5, x)
        for row in range(len(x)):
            gap = prediction_gap(whole.rows(slice(row, row + 1)), cell.predict(5, x[row : row + 1]))
            advice = "a draw is one function: its random numbers must not depend on which rows are asked for"
            require(gap < ROUNDING, f"row {row} alone differs by {gap:.2g} from the same row among 7; {advice}")


def _seeded(subject: EstimatorSubject) -> None:
    for cell in subject.cells:
        first, again = cell.predict(8, seed=5), cell.predict(8, seed=5)
        advice = "take random numbers from the seed, or from a global generator, which the harness seeds"
        require(prediction_gap(first, again) == 0, f"the same seed gave other predictions of one fit; {advice}")
        other = fit_cell(subject.plugin, cell.split).predict(8, seed=5)
        require(prediction_gap(first, other) == 0, f"a second fit with the same seed predicts otherwise; {advice}")


def _fresh_process(subject: EstimatorSubject) -> None:
    here = [numbers_of(cell.predict(5)) for cell in subject.cells]
    there = subject.numbers_elsewhere(5)
    advice = "look for sets whose order matters, the time, the process number, or files that it reads"
    for one, other in zip(here, there, strict=True):
        same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))
        require(same, f"a fresh process gives another prediction with the same seed; {advice}")


def _no_state(subject: EstimatorSubject) -> None:
    before = repr(options(subject.plugin)), sorted(vars(subject.plugin))
    for cell in subject.cells:
        first = cell.predict(5)
        x = cell.data.test_x.clone()
        fit_cell(subject.plugin, split_of(cell.split.task, rows=60), seed=21).predict(3)
        gap = prediction_gap(first, cell.predict(5))
        advice = "keep what was fitted in the state, not on the class, the module or in globals"
        require(gap == 0, f"after another fit its predictions differ by {gap:.2g}; {advice}")
        require(torch.equal(x, cell.data.test_x), "predict changed its rows in place")
    after = repr(options(subject.plugin)), sorted(vars(subject.plugin))
    require(before == after, "fit or predict changed the estimator; return all that was fitted as the state")


def _round_trip(subject: EstimatorSubject) -> None:
    for cell in subject.cells:
        try:
            state = pickle.loads(pickle.dumps(cell.fitted.state))  # one that this process made
        except Exception as error:
            raise CheckFailure(
                f"the state cannot be pickled: {type(error).__name__}: {error}; keep plain data, arrays and objects of "
                "importable classes"
            ) from error
        copy = FittedCell(cell.split, cell.data, type(cell.fitted)(subject.plugin, state, cell.split.task))
        gap = prediction_gap(cell.predict(5), copy.predict(5))
        require(gap == 0, f"a state that was pickled and read back predicts other values, by {gap:.2g}")


def _learns(subject: EstimatorSubject) -> None:
    for cell in subject.cells:
        mean = Forecast.of(cell.data.original(cell.predict(100)), cell.split.test_y).mean
        require_learned(cell.split, mean, "; predictions are in training units: standardised targets, classes from 0")


def _no_validation(subject: EstimatorSubject) -> None:
    for task in subject.tasks:
        _require_finite(fit_cell(subject.plugin, split_of(task), validation=0.0), "without validation rows")


def _survives(subject: EstimatorSubject, split: Split, what: str) -> None:
    try:
        _require_finite(fit_cell(subject.plugin, split), what)
    except CheckFailure:
        raise
    except Exception as error:
        raise CheckFailure(f"{what}: {explain(error)}") from error


def _tiny_data(subject: EstimatorSubject) -> None:
    for task in subject.tasks:
        for what, split in tiny_splits(task):
            _survives(subject, split, what)


def _constant_targets(subject: EstimatorSubject) -> None:
    subject.need("regression")
    _survives(subject, constant_split(), "constant targets")


def _missing_class(subject: EstimatorSubject) -> None:
    subject.need("classification")
    _survives(subject, missing_class_split(), "a class without training rows")
