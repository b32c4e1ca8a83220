"""Built-in suites: digits is run; those of papers are compared with the papers, and with public code."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.run.driver import run
from bench.spec.plugin import PluginSpec
from bench.spec.protocol import Training
from bench.store.results import StoredResults
from bench.store.store import Store

METHODS = ["deterministic", "mc-dropout", "mcni-fixed", "mcni-learned", "deep-ensemble"]


@pytest.mark.slow
def test_the_digits_study_runs_for_all_methods_of_the_paper(tmp_path: Path) -> None:
    suite = load_suite("digits", ["seeds=1", "training.epochs=8", "draws=10"])
    with closing(Store(str(tmp_path / "r.db"))) as store:
        summary = run(suite, Registry(), store)
        assert (summary.stored, summary.well, summary.diverged) == (5, True, 0)
        table = StoredResults(store, "digits").frame.pivot(index="method", columns="metric", values="value")
    assert set(table.index) == set(METHODS)
    assert (table["accuracy"] > 0.9).all()  # guessing: 0.1
    assert {"ece", "brier", "nll_categorical", "aurc"} <= set(table.columns)


@pytest.mark.parametrize(("name", "epochs", "seeds"), [("cifar10", 160, 5), ("cifar10-short", 3, 2)])
def test_the_cifar_suites_follow_the_text_of_the_paper(name: str, epochs: int, seeds: int) -> None:
    suite = load_suite(name)
    protocol = suite.protocol_for("cifar10")
    training = protocol.training
    assert list(suite.methods) == (METHODS if name == "cifar10" else METHODS[:4])
    assert protocol.network == PluginSpec("resnet8")
    assert (training.optimizer, training.learning_rate, training.momentum) == ("sgd", 0.1, 0.9)
    assert (training.weight_decay, training.batch, training.schedule) == (3e-4, 128, "cosine")
    assert suite.methods["mcni-fixed"].options == {"alpha": 0.02}
    assert suite.methods["mc-dropout"].options == {"rate": 0.3}
    assert (training.epochs, suite.seeds) == (epochs, seeds)


@pytest.mark.parametrize(("name", "epochs", "seeds"), [("cifar10-code", 160, 5), ("cifar10-code-short", 16, 5)])
def test_the_cifar_suites_follow_the_public_code(name: str, epochs: int, seeds: int) -> None:
    """Section 3 of the facts on it: network, training, where dropout acts, one alpha for each layer from 0.25."""
    suite = load_suite(name)
    protocol = suite.protocol_for("cifar10")
    network = {"width": 4, "shortcut": "padding", "initialisation": "he", "noise_at": "last-branch"}
    assert protocol.network == PluginSpec("resnet8", options=network)
    assert (protocol.validation, protocol.scale_inputs) == (0.0, True)
    assert protocol.training == Training(
        optimizer="sgd",
        learning_rate=0.1,
        momentum=0.9,
        nesterov=True,
        weight_decay=3e-4,
        schedule="step",
        epochs=epochs,
        batch=128,
        partial_batch=True,
        augmentation="crop-flip-black",
    )
    assert {method: entry.options for method, entry in suite.methods.items()} == {
        "deterministic": {},
        "mc-dropout": {"rate": 0.3, "per_row": True},
        "mcni-fixed": {"alpha": 0.02},
        "mcni-learned": {"alpha": 0.25, "granularity": "layer"},
    }
    assert suite.seeds == seeds


@pytest.mark.parametrize("name", ["cifar10", "cifar10-code"])
def test_short_suites_differ_from_the_whole_ones_in_length_only(name: str) -> None:
    whole, short = (load_suite(each).model_dump() for each in (name, f"{name}-short"))
    whole["methods"].pop("deep-ensemble", None)
    for suite in (whole, short):
        for key in ("name", "title", "seeds"):
            suite.pop(key)
        suite["protocol"].pop("draws")
        suite["protocol"]["training"].pop("epochs")
    assert whole == short


@pytest.mark.parametrize(
    ("name", "like", "fixed"), [("softmax-demo", "cifar10", 0.02), ("softmax-demo-code", "cifar10-code", 0.05)]
)
def test_demonstrations_train_as_the_suites_of_their_protocol(name: str, like: str, fixed: float) -> None:
    suite, whole = load_suite(name), load_suite(like)
    protocol, other = (each.protocol_for("cifar10") for each in (suite, whole))
    assert replace(protocol, probe=other.probe) == other
    assert list(suite.methods) == METHODS[:4]
    assert suite.methods["mcni-fixed"].options == {"alpha": fixed}
    for method in ("deterministic", "mc-dropout", "mcni-learned"):
        assert suite.methods[method] == whole.methods[method]
    assert protocol.probe["levels"] == [round(0.01 * step, 2) for step in range(16)]
    code = {"noise_seed": 42, "pixels": "8-bit"} if name.endswith("code") else {}
    assert {key: protocol.probe[key] for key in ("noise_seed", "pixels") if key in protocol.probe} == code


def test_shift_is_measured_on_the_networks_of_the_short_study() -> None:
    shift, study = load_suite("shift-cifar10-code-short"), load_suite("cifar10-code-short")
    protocol, other = (suite.protocol_for("cifar10") for suite in (shift, study))
    assert replace(protocol, probe=other.probe, draws=other.draws) == other
    assert {name: method for name, method in shift.methods.items() if name in study.methods} == study.methods


@pytest.mark.parametrize("name", ["softmax-demo", "softmax-demo-code"])
def test_the_demonstrated_image_is_number_8195_a_ship(name: str) -> None:
    dataset = Registry().make("dataset", "cifar10", {})
    if reason := dataset.skip():
        pytest.skip(reason)
    probe = load_suite(name).protocol_for("cifar10").probe
    assert np.flatnonzero(dataset.load(0).test_y == probe["label"])[probe["image"]] == 8195


def test_the_toy_suites_share_everything_that_text_and_code_share() -> None:
    """Section 1 of the facts: even grid, one sample of seed 123; other settings have names of their own."""
    text, code = load_suite("toy"), load_suite("toy-code")
    assert text.protocol_for("toy") == code.protocol_for("toy")
    assert code.datasets["toy"].options == {**text.datasets["toy"].options, "x": "even", "sample": 123}
    assert text.methods["mc-dropout"].options == {"rate": 0.2}
    assert code.methods["mc-dropout"].options == {"rate": 0.2, "per_row": True}
    assert code.methods["mcni-fixed"].options == text.methods["mcni-fixed"].options == {"alpha": 0.05}
    assert code.methods["mcni-learned"].options == {"alpha": 0.2, "penalty": 0.15}  # weight decay -0.3
    stored = code.methods["mcni-learned-stored"]
    assert (stored.options, code.protocol_for("toy", "mcni-learned-stored").training.epochs) == ({"alpha": 0.37}, 1500)
    assert code.methods["mc-dropout-stored"].options["rate"] == 0.05


def test_latencies_are_measured_with_the_settings_of_table_iii() -> None:
    latency, table = load_suite("latency"), load_suite("cifar10")
    for method in METHODS[:4]:
        assert latency.methods[method] == table.methods[method]
    assert latency.protocol_for("cifar10-shaped").network == table.protocol_for("cifar10").network


def test_the_suite_of_gal_and_ghahramani_follows_their_experiment() -> None:
    """The settings of experiment.py and net/net.py in github.com/yaringal/DropoutUncertaintyExps, commit 6eb4497."""
    suite = load_suite("uci-gal")
    for name in suite.datasets:
        protocol = suite.protocol_for(name, "mc-dropout-prior")
        training = protocol.training
        assert (training.optimizer, training.learning_rate, training.weight_decay) == ("adam", 0.001, 0.0)
        assert (training.epochs, training.batch, training.partial_batch, training.patience) == (4000, 128, True, 0)
        assert protocol.network.options == {"hidden": [50]}
        assert (protocol.validation, protocol.folds, protocol.refit) == (0.2, 1, True)
        assert (protocol.search, protocol.search_by, protocol.draws) == ("grid", "nll_mixture", 10_000)
    assert suite.methods["mc-dropout-prior"].space["rate"] == [0.005, 0.01, 0.05, 0.1]
    # Their precisions, in original units, as standard deviations in training units: within the grid of the suite.
    spread = {"boston": 9.19, "concrete": 16.70, "energy": 10.08, "yacht": 15.14}
    precisions = {"boston": (0.1, 0.2), "concrete": (0.025, 0.075), "energy": (0.25, 0.75), "yacht": (0.25, 0.75)}
    noises = suite.methods["mc-dropout-prior"].space["noise"]
    assert set(suite.datasets) == set(precisions)
    for name, taus in precisions.items():
        for tau in taus:
            assert min(noises) <= tau**-0.5 / spread[name] <= max(noises)


@pytest.mark.parametrize(
    ("sweep", "base", "dataset"), [("toy-sweep", "toy", "toy"), ("uci-sweep", "uci-fixed", "yacht")]
)
def test_a_sweep_differs_from_its_experiment_in_the_levels_only(sweep: str, base: str, dataset: str) -> None:
    swept = load_suite(sweep)
    assert swept.protocol_for(dataset) == load_suite(base).protocol_for(dataset)
    assert swept.datasets[dataset] == load_suite(base).datasets[dataset]
    for label, method in swept.methods.items():
        (level,) = method.options.values()
        assert label == f"{method.use}-{level:g}"
    assert swept.baseline in swept.methods


def test_the_sensitivity_of_the_toy_experiment_varies_what_the_paper_leaves_open() -> None:
    varied, base = load_suite("toy-sensitivity"), load_suite("toy")
    for dataset in varied.datasets:
        assert varied.protocol_for(dataset) == base.protocol_for("toy")
    options = {name: {"rows": 200, "test": "same", **entry.options} for name, entry in varied.datasets.items()}
    assert options == {"toy": base.datasets["toy"].options, "toy-even": {**base.datasets["toy"].options, "x": "even"}}
    for label, method in varied.methods.items():
        own = base.methods[method.use or label].options
        assert {**own, **method.options} == {**method.options}, "an option of the paper's is missing"
        assert set(method.options) - set(own) <= {"sigma_gradient", "penalty"}


@pytest.mark.parametrize("part", ["leaderboard-sample", "leaderboard-uci-searched"])
def test_the_suites_of_the_leaderboard_are_alike(part: str) -> None:
    """The sample has cells of the leaderboard; the searched one differs in its search and in what is searched."""
    suite, whole = load_suite(part), load_suite("leaderboard-uci")
    sample = part == "leaderboard-sample"
    assert suite.datasets.items() <= whole.datasets.items()
    assert (suite.methods.items() <= whole.methods.items()) if sample else (list(suite.methods) == list(whole.methods))
    assert (suite.baseline, suite.metrics) == (whole.baseline, whole.metrics)
    for dataset in suite.datasets:
        for method in suite.methods:
            own, other = suite.protocol_for(dataset, method), whole.protocol_for(dataset, method)
            if not sample:
                rate, decay = own.training.learning_rate, own.training.weight_decay
                trained = replace(other.training, learning_rate=rate, weight_decay=decay)
                other = replace(other, training=trained)
                own = replace(own, search=other.search, folds=other.folds, search_by=other.search_by, grid=other.grid)
            assert own == other
