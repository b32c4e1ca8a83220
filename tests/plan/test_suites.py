"""Built-in suites: digits is run; those of CIFAR-10 and of MC dropout's authors are compared with their papers."""

from contextlib import closing
from pathlib import Path

import pytest

from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.run.driver import run
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


@pytest.mark.parametrize("name", ["cifar10", "cifar10-cpu"])
def test_the_cifar_suites_follow_the_paper(name: str) -> None:
    suite = load_suite(name)
    protocol = suite.protocol_for("cifar10")
    training = protocol.training
    assert list(suite.methods) == METHODS
    assert protocol.network.name == "resnet8"
    assert (training.optimizer, training.learning_rate, training.momentum) == ("sgd", 0.1, 0.9)
    assert (training.weight_decay, training.batch, training.schedule) == (3e-4, 128, "cosine")
    assert suite.methods["mcni-fixed"].options == {"alpha": 0.02}
    assert suite.methods["mc-dropout"].options == {"rate": 0.3}
    assert (training.epochs, suite.seeds) == ((160, 5) if name == "cifar10" else (3, 2))


def test_the_suite_for_a_cpu_differs_from_the_papers_in_length_only() -> None:
    full, short = (load_suite(name).model_dump() for name in ("cifar10", "cifar10-cpu"))
    for suite in (full, short):
        for key in ("name", "title", "seeds"):
            suite.pop(key)
        suite["protocol"].pop("draws")
        suite["protocol"]["training"].pop("epochs")
        suite["methods"]["deep-ensemble"].pop("networks")
    assert full == short


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
