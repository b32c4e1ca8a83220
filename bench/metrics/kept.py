"""The predictions of a cell as they are kept: enough to score it again by any metric of a forecast.

`pack` writes them in the fewest bytes that change no value of a metric by more than `TOLERANCE` of it, which it checks
by scoring what it would read again; `unpack` reads them.
"""

import io
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bench.errors import UserError
from bench.metrics.class_predictions import ClassPrediction, Dirichlet, Logits, Probabilities, Sets
from bench.metrics.compact_arrays import Arrays, Precision, decode, encode
from bench.metrics.forecast import Forecast, Prediction, TargetScale
from bench.metrics.groups import score_by_group
from bench.metrics.normal_mixture import NormalMixture
from bench.metrics.predictions import Normal, NormalInverseGamma, Points, RegressionPrediction
from bench.metrics.quantile_predictions import Quantiles
from bench.metrics.scoring import score
from bench.spec.sizes import MOST_ARRAY_BYTES

FORMAT = 1
TOLERANCE = 1e-4  # the largest change of a metric, as a share of its value
KINDS = {
    kind.__name__: kind
    for kind in (Points, Normal, NormalInverseGamma, NormalMixture, Quantiles, Probabilities, Logits, Dirichlet)
}
POSITIVE = frozenset({"model_variance", "noise_variance", "variances", "nu", "alpha", "beta", "concentration"})
KNOWN = ("law", "posterior")  # what a dataset states beside its targets
Part = Literal["test", "validation"]


@dataclass(frozen=True, eq=False)
class Kept:
    """The forecast of a cell at its test rows, and what else its metrics are computed from."""

    test: Forecast
    validation: Forecast | None = None  # at rows that did not train, with the same observation noise
    unit: tuple[float, float] = (0.0, 1.0)  # mean and standard deviation that made training units original ones
    groups: NDArray[Any] | None = None  # of the test rows, by name
    fewer: Mapping[int, float | None] = field(default_factory=dict)  # the noise fitted for the first so many draws
    precision: str = ""  # of what was read again: "exact", or that of `Precision`

    def scores(self, requested: Collection[str] = (), names: Collection[str] | None = None) -> dict[str, float]:
        """Return every metric that applies, or those of `names`; also by group, and of the first draws alone."""
        values = score(self.test, names, requested=requested)
        if self.groups is not None:
            values |= score_by_group(self.test, self.groups, requested, names)
        for first in self.fewer:
            fewer = score(self.first(first), names, requested=requested)
            values |= {f"{name}@T={first}": value for name, value in fewer.items()}
        return values

    def first(self, draws: int) -> Forecast:
        """Return the forecast at the test rows of the first draws, with the noise that was fitted for them."""
        own = self.test
        assert own.stated is not None, "kept predictions are stated"
        known = (own.truth, own.law, own.posterior)
        return Forecast.of(own.stated.draws(draws), own.observed, self.fewer[draws], own.scale, *known)


def pack(kept: Kept, exactness: Literal["compact", "float32"], values: Mapping[str, float]) -> bytes | None:
    """Return the predictions as the content of an array file; None for predictions that no file can hold.

    `values` are all metrics that a probe found; those of the file's content must equal them within the tolerance.
    """
    tries: Sequence[Precision] = ("16 bits", "float32", "float64") if exactness == "compact" else ("float32", "float64")
    requested = frozenset(name for name in values if "@" not in name)
    for precision in tries:
        try:
            arrays = _to_arrays(kept, precision)
        except UserError:
            return None
        if sum(array.nbytes for array in arrays.values()) > MOST_ARRAY_BYTES:
            return None
        again = _from_arrays(arrays)
        exact = _equal(kept, again)
        if exact or precision == "float64" or _close(again, requested, values):
            about = json.loads(arrays["about"].tobytes()) | {"precision": "exact" if exact else precision}
            content = io.BytesIO()
            np.savez_compressed(content, allow_pickle=False, **(arrays | {"about": _json(about)}))
            return content.getvalue()
    raise AssertionError("double precision is always taken")


def unpack(arrays: Mapping[str, NDArray[Any]]) -> Kept:
    """Return what `pack` wrote, from the arrays of its file; raises ValueError for any other content."""
    try:
        return _from_arrays(arrays)
    except (UserError, KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise ValueError(f"no predictions of a cell ({' '.join(str(error).split())[:100]})") from error


def names_of(part: Part) -> str:
    """Return how the names of the arrays of one part begin."""
    return f"{part}/"


def about(content: bytes) -> dict[str, Any]:
    """Return what a file of predictions says of itself."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        found: dict[str, Any] = json.loads(arrays["about"].tobytes())
    return found


def _close(again: Kept, requested: frozenset[str], values: Mapping[str, float]) -> bool:
    """Whether the scores of what was read again are within the tolerance of those that were computed before."""
    try:
        found = again.scores(requested)
    except UserError:  # a metric of a plug-in that cannot be computed from them
        return False
    if requested != {name for name in found if "@" not in name}:
        return False
    pairs = [(value, values.get(name, np.nan)) for name, value in found.items()]
    return all(one == two or abs(one - two) <= TOLERANCE * abs(two) for one, two in pairs)


def _equal(one: Kept, two: Kept) -> bool:
    for own, other in ((one.test, two.test), (one.validation, two.validation)):
        if own is None or other is None:
            continue
        a, b = _fields(own.stated), _fields(other.stated)
        if not all(np.array_equal(a[name], b[name]) for name in a):
            return False
    return True


def _fields(prediction: Any) -> dict[str, Any]:
    inner = prediction.beside if isinstance(prediction, Sets) else prediction
    return {each.name: getattr(inner, each.name) for each in fields(inner)}


def _to_arrays(kept: Kept, precision: Precision) -> Arrays:
    test = kept.test
    scale = test.scale and [test.scale.mean, test.scale.std, test.scale.minimum, test.scale.maximum]
    names = sorted({str(name) for name in kept.groups}) if kept.groups is not None else None
    facts: dict[str, Any] = {
        "format": FORMAT,
        "task": test.task,
        "unit": list(kept.unit),
        "noise": test.noise_variance,
        "scale": scale,
        "fewer": [[first, noise] for first, noise in kept.fewer.items()],
        "groups": names,
        "precision": precision,
    }
    arrays: Arrays = {}
    parts: list[tuple[Part, Forecast | None]] = [("test", test), ("validation", kept.validation)]
    for part, forecast in parts:
        if forecast is not None:
            prefix = names_of(part)
            facts[part], own = _prediction_arrays(prefix, forecast.stated, kept.unit, precision)
            arrays |= own | {f"{prefix}observed": _smallest(forecast.observed)}
    for name, known in zip(KNOWN, (test.law, test.posterior), strict=True):
        if known is not None:  # exactly: the regret of an oracle is 0
            facts[name], own = _prediction_arrays(f"{name}/", known, None, "float64")
            arrays |= own
    if test.truth is not None:
        arrays["test/truth"] = test.truth
    if names is not None and kept.groups is not None:
        arrays["test/groups"] = np.searchsorted(names, kept.groups.astype(str)).astype(np.uint8)
    return arrays | {"about": _json(facts)}


def _prediction_arrays(
    prefix: str, prediction: Prediction | None, unit: tuple[float, float] | None, precision: Precision
) -> tuple[dict[str, Any], Arrays]:
    """Return facts and arrays of a prediction, in training units if these are given."""
    arrays: Arrays = {}
    sets = isinstance(prediction, Sets)
    if isinstance(prediction, Sets):
        arrays[f"{prefix}members"] = prediction.members
        prediction = prediction.beside
    if type(prediction) not in KINDS.values():
        raise UserError(f"{type(prediction).__name__}: predictions of a class of their own are not kept")
    assert prediction is not None
    if unit is not None and not isinstance(prediction, ClassPrediction):
        prediction = _in_training_units(prediction, *unit)
    facts: dict[str, Any] = {"kind": type(prediction).__name__, "sets": sets, "fields": {}}
    for name, values in _fields(prediction).items():
        if name == "levels":  # one for all rows
            arrays[prefix + name] = values
            facts["fields"][name] = ["float64", "<f8"]
        elif isinstance(values, str):
            facts[name] = values
        elif values is not None:
            positive = name in POSITIVE or isinstance(prediction, Probabilities)
            own, coding = encode(prefix + name, values, precision, positive=positive)
            arrays |= own
            facts["fields"][name] = [coding, values.dtype.str]
    return facts, arrays


def _in_training_units(prediction: RegressionPrediction, mean: float, std: float) -> RegressionPrediction:
    """Return the prediction that was scaled to original units: where networks made it, in single precision."""
    scaled = prediction.affine(1 / std, -mean / std)
    with np.errstate(over="ignore"):
        parts = {name: v.astype(np.float32) for name, v in _fields(scaled).items() if isinstance(v, np.ndarray)}
    parts.pop("levels", None)  # of quantiles: they have no unit
    if not all(np.isfinite(values).all() for values in parts.values()):
        return scaled
    try:
        single: RegressionPrediction = replace(scaled, **parts)  # type: ignore[type-var]  # it is a dataclass
    except UserError:  # a parameter that must be positive was rounded to 0
        return scaled
    own, again = _fields(prediction), _fields(single.affine(std, mean))
    return single if all(np.array_equal(own[name], again[name]) for name in parts) else scaled


def _from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Kept:
    facts = json.loads(arrays["about"].tobytes())
    if facts["format"] != FORMAT:
        raise ValueError(f"format {facts['format']}, this uqbench knows {FORMAT}")
    mean, std = (float(each) for each in facts["unit"])
    scale = TargetScale(*facts["scale"]) if facts["scale"] else None
    test = _forecast("test", arrays, facts, scale)
    has_validation = facts.get("validation") and "validation/observed" in arrays
    validation = _forecast("validation", arrays, facts, scale) if has_validation else None
    groups = np.array(facts["groups"])[arrays["test/groups"]] if facts["groups"] else None
    fewer = {int(first): None if noise is None else float(noise) for first, noise in facts["fewer"]}
    return Kept(test, validation, (mean, std), groups, fewer, str(facts["precision"]))


def _forecast(
    part: Part, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any], scale: TargetScale | None
) -> Forecast:
    prefix, own = names_of(part), facts[part]
    prediction = _prediction(prefix, arrays, own)
    if not isinstance(prediction, ClassPrediction):
        mean, std = facts["unit"]
        prediction = prediction.affine(float(std), float(mean))
    if own["sets"]:
        assert isinstance(prediction, Probabilities | Logits | Dirichlet)
        prediction = Sets(arrays[f"{prefix}members"], prediction)
    classes = isinstance(prediction, ClassPrediction)
    observed = arrays[f"{prefix}observed"]
    observed = observed.astype(np.int64) if classes else observed.astype(np.float64)
    noise = None if facts["noise"] is None else float(facts["noise"])
    if part != "test":
        return Forecast.of(prediction, observed, noise, scale)
    law, posterior = (_prediction(f"{name}/", arrays, facts[name]) if name in facts else None for name in KNOWN)
    assert posterior is None or isinstance(posterior, RegressionPrediction)
    return Forecast.of(prediction, observed, noise, scale, arrays.get("test/truth"), law, posterior)


def _prediction(prefix: str, arrays: Mapping[str, NDArray[Any]], own: Mapping[str, Any]) -> Prediction:
    """Return a prediction in the units in which it was written."""
    given: dict[str, Any] = {}
    for name, (coding, dtype) in own["fields"].items():
        given[name] = decode(prefix + name, arrays, coding).astype(np.dtype(dtype), copy=False)
    if "tails" in own:
        given["tails"] = own["tails"]
    prediction: Prediction = KINDS[own["kind"]](**given)
    return prediction


def _smallest(observed: NDArray[Any]) -> NDArray[Any]:
    """Return targets in single precision where that is exact, labels in few bytes."""
    if observed.dtype.kind != "f":
        return observed.astype(np.min_scalar_type(int(observed.max())))
    with np.errstate(over="ignore"):
        single = observed.astype(np.float32)
    return single if np.array_equal(single, observed) else observed


def _json(content: Any) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(content, allow_nan=False).encode(), dtype=np.uint8)
