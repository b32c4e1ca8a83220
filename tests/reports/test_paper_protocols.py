"""Departures from the paper's protocols: untouched suites have none, and every planted one is reported by its name."""

import json
from typing import Any

import pandas as pd
import pytest

from bench.plugins.registry import Registry
from bench.probes.softmax_noise import SoftmaxNoise
from bench.reports._paper_experiments import reference
from bench.reports._paper_protocols import Protocol, flat, nearest, protocols, run_of
from tests.fixtures.planned import planned

GPU = "NVIDIA RTX 6000"
SUITES = {  # of each experiment and source
    ("toy", "text"): "toy",
    ("uci", "text"): "uci",
    ("cifar10", "text"): "cifar10",
    ("softmax", "text"): "softmax-demo",
    ("latency", "text"): "latency",
    ("toy", "code"): "toy-code",
    ("uci", "code"): "uci-code",
    ("cifar10", "code"): "cifar10-code",
    ("softmax", "code"): "softmax-demo-code",
}


def cells_of(suite: str, *changes: str, device: str = GPU, without: tuple[str, ...] = ()) -> pd.DataFrame:
    """The cells of a suite as if they had been run."""
    environment = json.dumps({"device_name": device})
    rows = [(*place, "ok", spec.text, environment) for place, spec in planned(suite, changes)]
    cells = pd.DataFrame(rows, columns=["dataset", "method", "seed", "status", "spec", "environment"])
    return cells[~cells["dataset"].isin(without) & ~cells["method"].isin(without)]


def found(experiment: str, cells: pd.DataFrame) -> tuple[Protocol, list[str]]:
    known = protocols(reference(), experiment)
    run = run_of(cells, known[0].methods)
    return nearest(run, known)


@pytest.mark.parametrize(("experiment", "source"), SUITES)
def test_an_untouched_suite_has_no_departures(experiment: str, source: str) -> None:
    protocol, departed = found(experiment, cells_of(SUITES[experiment, source]))
    assert departed == []
    assert protocol.source == source


PLANTED = [
    ("toy", "methods.mc-dropout.rate=0.5", "methods.mc-dropout.rate is 0.5, in the text of the paper 0.2"),
    ("toy", "methods.mcni-fixed.alpha=0.3", "methods.mcni-fixed.alpha is 0.3, in the text of the paper 0.05"),
    ("toy", "methods.mcni-fixed.law=laplace", "methods.mcni-fixed.law is laplace, in the text of the paper gaussian"),
    ("toy", "methods.mcni-fixed.noise_in=test", "methods.mcni-fixed.noise_in is test, in the text of the paper both"),
    ("toy", "methods.mcni-fixed.sigma_gradient=true", "methods.mcni-fixed.sigma_gradient is true, not our"),
    ("toy", "datasets.toy.x=even", "datasets.toy.x is even, not our uniform for what the text of the paper"),
    ("toy", "methods.mcni-learned.penalty=0.1", "methods.mcni-learned.penalty is 0.1"),
    ("toy", "methods.mcni-learned.granularity=layer", "methods.mcni-learned.granularity is layer"),
    ("toy", "training.optimizer=sgd", "training.optimizer is sgd, in the text of the paper adam"),
    ("toy", "training.learning_rate=0.01", "training.learning_rate is 0.01, in the text of the paper 0.005"),
    ("toy", "training.weight_decay=0.1", "training.weight_decay is 0.1, not our 0.0 for what the text of the paper"),
    ("toy", "training.batch=100", "training.batch is 100, not our 200 for what the text of the paper leaves open"),
    ("toy", "network.hidden=[50]", "network.hidden is [50], in the text of the paper [100]"),
    ("toy", "network.activation=tanh", "network.activation is tanh"),
    ("toy", "datasets.toy.rows=100", "datasets.toy.rows is 100, in the text of the paper 200"),
    ("toy", "draws=50", "draws is 50, in the text of the paper 500"),
    ("toy", "scale_inputs=true", "scale_inputs is true"),
    ("toy", "calibration=0.1", "calibration is 0.1"),
    ("toy", "methods.mcni-fixed.training.epochs=5", "training.epochs is 5, in the text of the paper 500 for"),
    ("uci", "training.patience=5", "training.patience is 5, in the text of the paper 3"),
    ("uci", "training.evaluate_every=10", "training.evaluate_every is 10"),
    ("uci", "training.validate=noisy", "training.validate is noisy"),
    ("uci", "search=random:10", "search is random:10, in the text of the paper grid"),
    ("uci", "search_by=crps", "search_by is crps, in the text of the paper loss"),
    ("uci", "folds=3", "folds is 3, not our 5 for what the text of the paper leaves open"),
    ("uci", "refit=true", "refit is true"),
    ("uci", "grid.learning_rate=[0.001]", "grid.learning_rate is [0.001], in"),
    ("uci", "methods.mc-dropout.grid.rate=[0.5]", "methods.mc-dropout.grid.rate is [0.5], in"),
    ("uci", "methods.mc-dropout.rate=0.5", "methods.mc-dropout.grid.rate is not set, in"),
    ("uci", "scale_targets=false", "scale_targets is false"),
    ("uci", "validation=0.2", "validation is 0.2, not our 0.1 for what the text of the paper leaves open"),
    ("uci", "datasets.yacht.splits=gap", "datasets.yacht.splits is gap, not our standard for what"),
    ("uci", "datasets.yacht.network.hidden=[5]", "network.hidden is [5], not our [50] for what the text of the"),
    ("uci", "seeds=3", "seeds is 3, in the text of the paper 5"),
    ("cifar10", "training.momentum=0.5", "training.momentum is 0.5, in the text of the paper 0.9"),
    ("cifar10", "training.epochs=3", "training.epochs is 3, in the text of the paper 160"),
    ("cifar10", "training.schedule=constant", "training.schedule is constant"),
    ("cifar10", "training.augmentation=crop-flip", "training.augmentation is crop-flip"),
    ("cifar10", "training.precision=bfloat16", "training.precision is bfloat16"),
    ("cifar10", "network.width=8", "network.width is 8"),
    ("cifar10", "network.kind=resnet18", "network.kind is resnet18, in the text of the paper resnet8"),
    ("cifar10", "datasets.cifar10.noise=0.1", "datasets.cifar10.noise is 0.1, in the text of the paper 0.0"),
    ("cifar10", "datasets.cifar10.use=digits", "datasets.cifar10.use is digits"),
    ("softmax-demo", "probe.label=3", "probe.label is 3, in the text of the paper 8"),
    ("latency", "probe.repeats=5", "probe.repeats is 5, in the text of the paper 10"),
    ("latency", "probe.rows=100", "probe.rows is 100, in the text of the paper all"),
    ("latency", "probe.batch=100", "probe.batch is 100, in the text of the paper 500"),
    ("latency", "probe.draws=[1, 10]", "probe.draws is [1, 10], in the text of the paper [1, 10, 50, 100]"),
    ("latency", "probe.threads=1", "probe.threads is 1, not our 0 for what"),
    ("latency", "datasets.cifar10-shaped.test_rows=500", "datasets.cifar10-shaped.test_rows is 500, not our 10000"),
]
EXPERIMENTS = {"softmax-demo": "softmax"}
PLANTED_IN_CODE = [
    ("uci", "search_network.hidden=[50, 50]", "search_network.hidden is [50, 50], in the public code [100, 100]"),
    ("uci", "stop_together=false", "stop_together is false, in the public code true"),
    ("uci", "training.validate=mean:100", "training.validate is mean:100, in the public code mean:500"),
    ("uci", "training.shuffle=true", "training.shuffle is true, in the public code false"),
    ("uci", "training.partial_batch=false", "training.partial_batch is false, in the public code true"),
    ("uci", "training.evaluate_from=0", "training.evaluate_from is 0, in the public code 1"),
    ("uci", "refit_less=0", "refit_less is 0, in the public code 1"),
    ("uci", "scale_by=training", "scale_by is training, in the public code each-part"),
    ("uci", "datasets.yacht.splits=standard", "datasets.yacht.splits is standard, in the public code 80/20"),
    ("uci", "methods.mc-dropout.per_row=false", "methods.mc-dropout.per_row is false, in the public code true"),
    ("uci", "splits=5", "repeats_share_rows is false, in the public code true"),
    ("cifar10", "training.nesterov=false", "training.nesterov is false, in the public code true"),
    ("cifar10", "network.shortcut=projection", "network.shortcut is projection, in the public code padding"),
    ("cifar10", "network.noise_at=blocks", "network.noise_at is blocks, in the public code last-branch"),
    ("cifar10", "network.initialisation=torch", "network.initialisation is torch, in the public code he"),
    ("cifar10", "datasets.cifar10.shift=gaussian-noise", "datasets.cifar10.shift is gaussian-noise, in the public"),
    ("softmax", "probe.noise_seed=1", "probe.noise_seed is 1, in the public code 42"),
    ("softmax", "probe.pixels=float", "probe.pixels is float, in the public code 8-bit"),
    ("softmax", "probe.levels=[0.0, 0.1]", "probe.levels is [0.0, 0.1], in the public code [0.0, 0.01, "),
    ("toy", "datasets.toy.sample=1", "datasets.toy.sample is 1, in the public code 123"),
]


@pytest.mark.parametrize(("suite", "change", "text"), PLANTED)
def test_a_planted_departure_is_reported_by_name(suite: str, change: str, text: str) -> None:
    protocol, departed = found(EXPERIMENTS.get(suite, suite), cells_of(suite, change))
    assert protocol.source == "text"
    assert any(each.startswith(text) for each in departed), departed


@pytest.mark.parametrize(("experiment", "change", "text"), PLANTED_IN_CODE)
def test_a_departure_from_the_public_code_is_the_only_one(experiment: str, change: str, text: str) -> None:
    protocol, departed = found(experiment, cells_of(SUITES[experiment, "code"], change))
    assert protocol.source == "code"
    assert [each.startswith(text) for each in departed] == [True], departed


def test_a_single_change_is_the_only_departure() -> None:
    _, departed = found("uci", cells_of("uci", "datasets.yacht.network.hidden=[5]"))
    assert len(departed) == 1
    assert departed[0].endswith(" on yacht")


def test_what_is_missing_is_reported() -> None:
    _, departed = found("uci", cells_of("uci", without=("protein", "mcni-learned")))
    assert departed == ["dataset protein is missing", "method mcni-learned is missing"]


def test_a_method_that_is_missing_on_some_datasets_is_reported() -> None:
    cells = cells_of("uci")
    there = (cells["method"] != "mcni-learned") | ~cells["dataset"].isin(["boston", "energy"])
    assert found("uci", cells[there])[1] == ["method mcni-learned is missing on boston, energy"]


def test_the_device_matters_for_times_alone() -> None:
    _, departed = found("latency", cells_of("latency", device="Made CPU"))
    assert "device is Made CPU, in the text of the paper RTX 6000" in departed
    assert found("toy", cells_of("toy", device="Made CPU"))[1] == []


def test_repeats_on_the_same_rows_are_a_departure() -> None:
    cells = cells_of("toy")
    cells["spec"] = [text.replace(f'"data": "{seed}"', '"data": "0"') for text, seed in cells[["spec", "seed"]].values]
    assert found("toy", cells)[1] == [
        "repeats_share_rows is true, not our false for what the text of the paper leaves open"
    ]


@pytest.mark.parametrize("suite", ["toy", "uci"])
def test_repeats_of_which_some_have_the_same_rows_are_a_departure(suite: str) -> None:
    assert found(suite, cells_of(suite, "seeds=6", "splits=3"))[1] == [
        "repeats_share_rows is some, not our false for what the text of the paper leaves open"
    ]


def test_times_of_the_dataset_itself_have_no_departures() -> None:
    """Suite latency has images of its shape."""
    cells = cells_of("latency").assign(dataset="cifar10")
    options = {"noise": 0.0, "severity": 3, "shift": "none"}
    other = {"name": "cifar10", "options": options, "origin": "built in", "version": "1"}
    cells["spec"] = [json.dumps({**json.loads(text), "dataset": other}) for text in cells["spec"]]
    assert found("latency", cells)[1] == []
    other["options"] = {**options, "shift": "gaussian-noise"}
    cells["spec"] = [json.dumps({**json.loads(text), "dataset": other}) for text in cells["spec"]]
    assert found("latency", cells)[1] == [
        "datasets.cifar10.shift is gaussian-noise, not our none for what the text of the paper leaves open"
    ]


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (("method", "options"), "methods.mcni-fixed.surprise"),
        (("dataset", "options"), "datasets.toy.surprise"),
        (("protocol", "network", "options"), "network.surprise"),
        (("protocol", "probe"), "probe.surprise"),
        (("space",), "methods.mcni-fixed.grid.surprise"),
    ],
)
def test_an_option_that_nobody_thought_of_is_a_departure(part: tuple[str, ...], name: str) -> None:
    cells = cells_of("toy", "seeds=1", without=("mc-dropout", "mcni-learned"))
    content = json.loads(cells.loc[cells["method"] == "mcni-fixed", "spec"].iloc[0])
    table: Any = content
    for key in part:
        table = table[key]
    table["surprise"] = [1]
    cells["spec"] = json.dumps(content)
    departed = found("toy", cells)[1]
    assert f"{name} is [1], about which the protocol says nothing" in departed


def test_a_plugin_of_another_origin_is_a_departure() -> None:
    cells = cells_of("toy")
    contents = [json.loads(text) for text in cells["spec"]]
    for content in contents:
        content["dataset"]["origin"] = "toy.py 0123"
    cells["spec"] = [json.dumps(content) for content in contents]
    assert found("toy", cells)[1] == ["datasets.toy.origin is toy.py 0123, about which the protocol says nothing"]


def test_rules_name_datasets_and_methods_that_exist() -> None:
    """A rule of another spelling would be a rule of nothing, and hide no departure."""
    for experiment in reference()["experiments"]:
        for protocol in protocols(reference(), experiment):
            for path in (*protocol.rules, *protocol.irrelevant):
                kind, _, rest = path.partition(".")
                if kind in ("datasets", "methods"):
                    known = (*protocol.datasets, *protocol.stand_ins) if kind == "datasets" else protocol.methods
                    assert rest.startswith(tuple(f"{name}." for name in known)), path


def test_options_that_specifications_leave_out_have_their_defaults() -> None:
    registry = Registry()
    made = {"datasets.toy": registry.make("dataset", "toy", {}), "network": registry.make("network", "resnet8", {})}
    made |= {f"methods.{name}": registry.make("method", name, {}) for name in ("mcni-fixed", "mcni-learned")}
    made["probe"] = SoftmaxNoise()
    for path, value in flat(reference()["common"]["unwritten"]):
        place, _, name = path.rpartition(".")
        default = getattr(made[place], name)
        assert ("none" if default is None else default) == value, path
        assert name in made[place].later, path
