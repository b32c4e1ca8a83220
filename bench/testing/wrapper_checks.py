"""All checks of a wrapper: a method around another method."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from bench.api import Array, Forecast, PluginSpec, Prediction, RegressionPrediction
from bench.errors import UserError
from bench.metrics import score
from bench.plugins.registry import Registry
from bench.testing import declarations
from bench.testing.check import Check, NotApplicable, require
from bench.testing.isolation import global_generators_untouched
from bench.testing.problems import PROBLEMS, split_of
from bench.testing.wrapper_subject import DRAWS, ROWS, WrapperSubject
from bench.training.wrapped import Calibrated


def wrapper_checks() -> Iterator[Check[WrapperSubject]]:
    """Yield every check that a wrapper has to pass, the fast ones first."""
    yield declarations.OPTIONS
    yield declarations.VERSION
    documented = "its documentation has a first line, an equation and a reference"
    yield Check("docstring", documented, declarations.check_method_docstring)
    yield declarations.LOOK
    yield declarations.expected_failures_check(wrapper_checks)
    yield Check("skip", "skip returns None or a reason, and not a reason for every task", _skip)
    yield Check("inner-method", "its option `method` has a default that can be made", _inner_method)
    yield Check("inner-methods", "it works around two kinds of predictions, and refuses others in a line", _inner)
    yield Check("prediction", "its predictions fit the task and have no NaN, far from the data, too", _prediction)
    yield Check("scored", "every metric that applies can be computed", _scored)
    yield Check("calibrates", "other held-out targets give other predictions", _calibrates)
    yield Check(
        "held-out-only", "nothing but the held-out rows and the seed decides what is calibrated", _held_out_only
    )
    yield Check("seeded", "the same seed gives the same predictions to the last bit", _seeded)
    yield Check("row-wise", "a row's prediction does not depend on the other rows", _row_wise)
    yield Check("no-state", "calibrating and predicting change nothing", _no_state)
    yield Check("global-randomness", "global random generators are untouched", _global_randomness)
    yield Check("few-rows", "it survives one, two and three calibration rows, and says what they are too few for", _few)


def _skip(subject: WrapperSubject) -> None:
    declarations.check_reasons([subject.plugin.skip(problem) for problem in PROBLEMS.values()])


def _inner_method(subject: WrapperSubject) -> None:
    defaults = {field.name: field.default for field in fields(subject.plugin)}  # type: ignore[arg-type]
    given = defaults.get("method", MISSING)
    form = 'write method: PluginSpec = PluginSpec("NAME")'
    require(isinstance(given, PluginSpec), f"the option method, the inner method, has no default; {form}")
    folds = subject.plugin.folds
    require(isinstance(folds, int) and folds >= 0 and folds != 1, f"folds is {folds!r}; 0, or 2 and more")
    assert isinstance(given, PluginSpec)
    registry = Registry()
    if given.name not in registry.plugins("method"):
        raise NotApplicable(f"its inner method {given.name!r} is neither built in nor of a package")
    registry.make("method", given.name, given.options, "method")


def _inner(subject: WrapperSubject) -> None:
    for task in subject.tasks:
        tried = {name: found for (at, name), found in subject.attempts.items() if at == task}
        refusals = {name: str(found) for name, found in tried.items() if isinstance(found, UserError)}
        for name, text in refusals.items():
            require(text.strip() and "\n" not in text, f"it refuses {name} with {text!r}; say why in one line")
        first = next(iter(refusals.values()), "")
        works = len(tried) - len(refusals)
        require(
            works >= 2,
            f"it works around {works} of {len(tried)} kinds of predictions of a {task}; the first refusal: {first}",
        )


def _prediction(subject: WrapperSubject) -> None:
    for calibrated in subject.calibrated:
        for where, x in (("near the data", calibrated.whole.test_x), ("far from it", 50 * calibrated.whole.test_x)):
            prediction = _predicted(calibrated, x)
            bad = _count_nan(prediction)
            require(
                not bad, f"{bad} numbers of its prediction {where} are NaN; look for inf - inf, 0 / 0 and empty rows"
            )
            if isinstance(prediction, RegressionPrediction):
                require(np.isfinite(prediction.centre).all(), f"the predicted point {where} is infinite")
            draws = prediction.draw_count
            require(draws <= DRAWS * len(calibrated.parts), f"{draws} draws from {DRAWS} of the inner method")


def _scored(subject: WrapperSubject) -> None:
    for calibrated in subject.calibrated:
        split = split_of(calibrated.task, ROWS)
        prediction = calibrated.whole.original(_predicted(calibrated))
        found = score(Forecast.of(prediction, split.test_y, None, calibrated.whole.scale))
        wanted = "rmse" if calibrated.task == "regression" else "accuracy"
        require(wanted in found, f"its prediction has no {wanted}")


def _calibrates(subject: WrapperSubject) -> None:
    task, inner = subject.places[0]
    split = split_of(task, ROWS)
    # Labels that the networks do not expect, or targets that are far from what they predict.
    wrong = (split.train_y + 1) % 3 if task == "classification" else split.train_y + 5 * np.sign(split.train_y)
    one = _predicted(subject.calibrate(task, inner))
    other = _predicted(subject.calibrate(task, inner, split=replace(split, train_y=wrong)))
    require(
        not equal(one, other), "held-out targets that are all wrong give the same predictions; use held in calibrate"
    )


def _held_out_only(subject: WrapperSubject) -> None:
    task, inner = subject.places[0]
    one = subject.calibrate(task, inner)
    expected = _predicted(one)
    _predicted(one, 3 * one.whole.test_x)
    again = subject.calibrate(task, inner)
    require(equal(expected, _predicted(again)), "what was predicted before changes what is calibrated; keep no state")
    require(equal(expected, _predicted(one)), "what is calibrated later changes an earlier state; return a new one")


def _seeded(subject: WrapperSubject) -> None:
    for task, inner in subject.places:
        one, other = (_predicted(subject.calibrate(task, inner, seed=5)) for _ in range(2))
        advice = "take every random number from the generator, and keep no state"
        require(equal(one, other), f"the same seed gave another prediction; {advice}")


def _row_wise(subject: WrapperSubject) -> None:
    for calibrated in subject.calibrated:
        x = calibrated.whole.test_x
        mixed = x.clone()
        mixed[7:] = 3 * x[7:].flip(0)
        whole = _predicted(calibrated, x).rows(slice(0, 7))
        for what, part in (("is alone", x[:7]), ("stands before other rows", mixed)):
            found = _predicted(calibrated, part).rows(slice(0, 7))
            advice = "use each row's own prediction, and draw random numbers row by row, as generator.random(rows)"
            require(close(whole, found), f"a row's prediction changes when it {what}; {advice}")


def _no_state(subject: WrapperSubject) -> None:
    wrapper = subject.plugin
    for place in subject.places:
        held, predictions = subject.material(*place)
        given = {"held": held, "predictions": predictions, "the wrapper": vars(wrapper)}
        before = copy.deepcopy(given)
        state = wrapper.calibrate(held, np.random.default_rng(1))
        kept = copy.deepcopy(state)
        one = wrapper.predict(state, predictions, np.random.default_rng(2))
        for what, old in before.items():
            require(equal(old, given[what]), f"calibrating or predicting changed {what}; make new arrays")
        require(equal(kept, state), "predict changed the state; return a new prediction and keep nothing")
        other = wrapper.predict(kept, predictions, np.random.default_rng(2))
        require(
            equal(one, other), "a copy of the state predicts otherwise; all that predict needs must be in the state"
        )


def _global_randomness(subject: WrapperSubject) -> None:
    with global_generators_untouched("take random numbers from the generator that the hook is given"):
        for task, inner in subject.places:
            _predicted(subject.calibrate(task, inner))


def _few(subject: WrapperSubject) -> None:
    for task, inner in subject.places:
        for rows in (1, 2, 3):
            try:
                calibrated = subject.calibrate(task, inner, rows=rows)
                prediction = _predicted(calibrated)
            except UserError as error:
                require("\n" not in str(error), f"{rows} calibration rows are refused in several lines; use one")
                continue
            bad = _count_nan(prediction)
            require(not bad, f"with {rows} calibration rows {bad} numbers are NaN; say infinity where nothing is known")
            doubts = list(subject.plugin.doubts(calibrated.state))
            good = all(isinstance(doubt, str) and doubt.strip() and "\n" not in doubt for doubt in doubts)
            require(good, f"doubts returned {doubts!r}; return one line each")


def _predicted(calibrated: Calibrated, x: Tensor | None = None) -> Prediction:
    return calibrated.predict(calibrated.whole.test_x if x is None else x, DRAWS, 1)


def _count_nan(prediction: Prediction) -> int:
    return sum(int(np.isnan(values).sum()) for values in _arrays(prediction) if values.dtype.kind == "f")


def _arrays(value: object) -> list[Array]:
    """Return all arrays of a prediction, those of predictions inside it included."""
    if isinstance(value, np.ndarray):
        return [value]
    inside = [getattr(value, field.name) for field in fields(value)] if is_dataclass(value) else []
    return [array for each in inside for array in _arrays(each)]


def close(one: Prediction, other: Prediction) -> bool:
    """Return whether two predictions are the same up to the rounding of networks."""
    pairs = zip(_arrays(one), _arrays(other), strict=True)
    return type(one) is type(other) and all(
        a.shape == b.shape and np.allclose(a.astype(float), b.astype(float), rtol=1e-4, atol=1e-4) for a, b in pairs
    )


def equal(one: Any, other: Any) -> bool:
    """Return whether two values of any kind are the same to the last bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(equal(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if is_dataclass(one) and not isinstance(one, type):
        return all(equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return bool(one == other)
