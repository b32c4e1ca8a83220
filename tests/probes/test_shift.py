"""The shift probe against the ordinary probe on a dataset that is shifted itself, and against scikit-learn."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from bench.api import Split
from bench.errors import UserError
from bench.metrics import Forecast, catalogue, declaration
from bench.plan.cells import Refused, plan
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.probes import make_probe
from bench.probes._conditions import means
from bench.probes.shift import Shift, _detection
from bench.run.driver import run
from bench.spec.cell import Outcome
from bench.spec.protocol import Protocol
from bench.store.results import StoredResults
from bench.store.store import Store

Load = Callable[..., Split]
USUAL = Protocol().probe  # the ordinary one
METHODS = {
    "deterministic": {},
    "mcni-fixed": {"alpha": 0.3},
    "deep-ensemble": {"networks": 2},
    "test-time-augmentation": {"level": 0.3},  # noise of its own for every row
}
SHIFTS = [("gaussian-noise", 5), ("motion-blur", 3), ("occlusion", 2)]
FOREIGN = ["inverted", "permuted"]
PROBE = Shift(corruptions=[kind for kind, _ in SHIFTS], severities=[2, 3, 5], foreign=FOREIGN)
FEW = 70


@dataclass(frozen=True)
class Answers:
    """What one method says to the probe, and what it says on datasets that are shifted themselves."""

    method: str
    shifted: Outcome
    few: Outcome  # the same, asked about the first rows only
    usual: dict[str, Outcome]  # by condition
    usual_of_few: dict[str, Outcome]


@pytest.fixture(scope="module", params=METHODS)
def answers(request: pytest.FixtureRequest, ask: Callable[..., list[Outcome]], load: Load) -> Answers:
    kinds = [("none", 1), *SHIFTS, *((name, 1) for name in FOREIGN)]
    names = ["", *(f"{kind}:{severity}" for kind, severity in SHIFTS), *FOREIGN]
    splits = [load("digits-shifted", shift=kind, severity=severity) for kind, severity in kinds]
    cut = [replace(split, test_x=split.test_x[:FEW], test_y=split.test_y[:FEW]) for split in splits[:4]]
    own = [(PROBE.spec, load()), (replace(PROBE, rows=FEW).spec, load())]
    questions = [*own, *((USUAL, split) for split in (*splits, *cut))]
    shifted, few, *usual = ask(request.param, METHODS[request.param], questions)
    whole, rest = usual[: len(splits)], usual[len(splits) :]
    return Answers(
        request.param, shifted, few, dict(zip(names, whole, strict=True)), dict(zip(names, rest, strict=False))
    )


def under(outcome: Outcome, condition: str) -> dict[str, float]:
    parts = [(name.partition("@"), value) for name, value in outcome.metrics.items()]
    return {name: value for (name, _, stated), value in parts if stated == condition}


def without_detection(values: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if not name.startswith("ood_")}


@pytest.mark.slow
def test_clean_rows_are_scored_as_by_the_ordinary_probe(answers: Answers) -> None:
    usual = answers.usual[""]
    assert len(usual.metrics) > 15
    assert under(answers.shifted, "") == usual.metrics
    assert under(answers.shifted, "all:0") == usual.metrics
    scores = {name for name in answers.shifted.arrays if name.startswith("scores/")}
    assert answers.shifted.arrays.keys() - scores == usual.arrays.keys()
    for name, array in usual.arrays.items():
        np.testing.assert_array_equal(answers.shifted.arrays[name], array)


@pytest.mark.slow
def test_a_condition_is_what_a_shifted_dataset_gives(answers: Answers) -> None:
    for kind, severity in SHIFTS:
        condition = f"{kind}:{severity}"
        assert without_detection(under(answers.shifted, condition)) == answers.usual[condition].metrics
        assert answers.usual[condition].metrics != answers.usual[""].metrics


def test_the_scores_behind_the_detection_of_foreign_images_are_stored(answers: Answers) -> None:
    own = entropy(answers.shifted.arrays["mean"], axis=1)
    for name in FOREIGN:
        scores = answers.shifted.arrays[f"scores/entropy@{name}"]
        assert scores.dtype == np.float32
        measured = answers.shifted.metrics[f"ood_auroc@{name}"]
        truth = np.repeat([0, 1], [len(own), len(scores)])
        # Scores are stored with fewer digits.
        assert roc_auc_score(truth, np.concatenate([own, scores])) == pytest.approx(measured, abs=1e-3)
        np.testing.assert_allclose(scores, entropy(answers.usual[name].arrays["mean"], axis=1), atol=1e-5)


def test_fewer_rows_are_the_first_of_the_same_images(answers: Answers) -> None:
    assert len(answers.few.arrays["observed"]) == FEW
    for condition, usual in answers.usual_of_few.items():
        assert without_detection(under(answers.few, condition)) == usual.metrics


def test_detection_equals_scikit_learn_on_stored_predictions(answers: Answers) -> None:
    clean = answers.usual[""].arrays["mean"]
    for condition in (*FOREIGN, "gaussian-noise:5"):
        other = answers.usual[condition].arrays["mean"]
        scores = entropy(np.concatenate([clean, other]), axis=1)
        foreign = np.repeat([0, 1], [len(clean), len(other)])  # the positives
        found = under(answers.shifted, condition)
        assert found["ood_auroc"] == pytest.approx(roc_auc_score(foreign, scores), abs=1e-12)
        assert found["ood_aupr"] == pytest.approx(average_precision_score(foreign, scores), abs=1e-12)
        false_positives, recall, _ = roc_curve(foreign, scores, drop_intermediate=False)
        assert found["ood_fpr95"] == pytest.approx(false_positives[np.argmax(recall >= 0.95)], abs=1e-12)
        assert ("ood_auroc_mutual_information" in found) == (answers.method != "deterministic")  # T > 1
        if condition in FOREIGN:
            assert not without_detection(found)  # their labels mean nothing


def test_detection_by_mutual_information_equals_scikit_learn() -> None:
    random = np.random.default_rng(5)
    draws = [random.dirichlet(np.full(4, level), (6, 90)) for level in (0.3, 0.7)]
    own, other = (Forecast("classification", np.zeros(90, int), d) for d in draws)
    scores = np.concatenate([entropy(d.mean(0), axis=1) - entropy(d, axis=2).mean(0) for d in draws])
    found = dict(_detection(own, other))
    expected = roc_auc_score(np.repeat([0, 1], 90), scores)
    assert found["ood_auroc_mutual_information"] == pytest.approx(expected, abs=1e-12)
    precision = average_precision_score(np.repeat([0, 1], 90), scores)
    assert found["ood_aupr_mutual_information"] == pytest.approx(precision, abs=1e-12)
    assert found["ood_fpr95_mutual_information"] != found["ood_fpr95"]
    assert found["ood_auroc_mutual_information"] != pytest.approx(found["ood_auroc"], abs=1e-3)


def test_means_over_corruptions(answers: Answers) -> None:
    for severity in PROBE.severities:
        parts = [under(answers.shifted, f"{corruption}:{severity}") for corruption in PROBE.corruptions]
        found = under(answers.shifted, f"all:{severity}")
        assert {"accuracy", "ece", "brier", "nll_categorical", "ood_auroc"} <= found.keys()
        for name, value in found.items():
            assert value == pytest.approx(math.fsum(part[name] for part in parts) / len(parts), rel=1e-12)


def test_a_mean_needs_all_corruptions() -> None:
    assert means([{"a": 1.0, "b": 2.0}, {"a": 4.0}]) == {"a": 2.5}
    assert means([{"a": math.inf}, {"a": 1.0}]) == {"a": math.inf}


def test_all_metrics_are_declared(answers: Answers) -> None:
    assert {declaration(name).task for name in answers.shifted.metrics} == {"classification"}
    assert all(math.isfinite(value) for value in answers.shifted.metrics.values())


def test_what_cannot_be_shifted(load: Load) -> None:
    PROBE.check(load())
    with pytest.raises(UserError, match=r"images with classes, not for regression of rows of shape \(10,\)"):
        PROBE.check(load("diabetes"))
    with pytest.raises(UserError, match="not for classification of rows"):
        PROBE.check(load("wine"))
    split = load()
    with pytest.raises(UserError, match="pixels from 0 to 1, the test images have 0 to 16"):
        PROBE.check(replace(split, test_x=split.test_x * 16))


def test_a_dataset_that_does_not_fit_is_refused_before_training() -> None:
    suite = load_suite("shift-digits", datasets=["toy"]).only(["toy"], ["deterministic"])
    [refused] = plan(suite, Registry())
    assert isinstance(refused, Refused)
    assert "probe 'shift' is for images" in refused.reason


def test_rows_drawn() -> None:
    assert make_probe(USUAL).rows_drawn(50) == 50
    assert PROBE.rows_drawn(50) == 50 * (1 + 9 + 2)
    assert replace(PROBE, rows=20).rows_drawn(50) == 20 * 12
    assert replace(PROBE, rows=60).rows_drawn(50) == 50 * 12


@pytest.mark.slow
def test_the_suite_small(tmp_path: Path) -> None:
    """The built-in suite with every corruption and severity; less training, fewer draws and one seed."""
    changes = ["seeds=1", "training.epochs=25", "draws=3"]
    suite = load_suite("shift-digits", changes).only([], ["deterministic", "mc-dropout"])
    store = Store(str(tmp_path / "store.db"))
    assert run(suite, Registry(), store).well
    frame = StoredResults(store, suite.name).frame
    assert {name.partition("@")[0] for name in frame["metric"]} <= catalogue().keys()
    values = frame.set_index(["method", "metric"])["value"]
    for method in suite.methods:
        accuracy, detection = (
            [values[method, f"{name}@all:{severity}"] for severity in range(first, 6)]
            for name, first in (("accuracy", 0), ("ood_auroc", 1))
        )
        assert accuracy[0] > 0.9
        assert accuracy == sorted(accuracy, reverse=True)  # worse with every severity
        assert detection == sorted(detection)  # and less certain
        assert values[method, "ood_auroc@uniform-noise"] > 0.7
