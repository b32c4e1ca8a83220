"""The specification of a cell: one text, one key, every format; and a new field reaches everybody who reads it."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from bench.api import options
from bench.history.identity import CHANGING, form_of
from bench.leaderboard.rerun import NOT_IN_SUITES, rerun, suite_text
from bench.leaderboard.rows import Row
from bench.plan.cells import Task, plan
from bench.plan.suite import Suite, load_suite
from bench.plugins.registry import Registry
from bench.run.job import Job
from bench.run.worker import WorkItem, WorkOrder, run_order
from bench.spec.cell import Outcome
from bench.spec.plugin import PluginSpec
from bench.spec.protocol import Protocol, Training
from bench.spec.spec import FORMAT, ON_REQUEST, CellSpec, SpecError, read_spec, spec_or_none
from bench.store.provenance import Provenance, provenance
from bench.training import stored_networks
from bench.training.checkpoints import place_of

SPEC = CellSpec(
    dataset=PluginSpec("toy", options={"rows": 40}),
    data="a fingerprint",
    method=PluginSpec("mc-dropout", options={"rate": 0.1, "per_row": False}),
    protocol=Protocol(draws=5),
    space={"rate": [0.1, 0.2]},
    split=3,
    seed=3,
    harness=2,
)

# Another value of every field: a new field needs one here, and then passes through every test below.
CHANGED: dict[str, Any] = {
    "dataset": PluginSpec("toy", options={"rows": 50}),
    "data": "another fingerprint",
    "method": PluginSpec("mc-dropout", options={"rate": 0.3, "per_row": True, "input_rate": 0.2}),
    "protocol": Protocol(draws=6, network=PluginSpec("mlp", options={"hidden": [5], "activation": "relu"})),
    "space": {"per_row": [True, False]},
    "metrics": {"own_bias": "0123456789abcdef"},
    "split": 4,
    "seed": 4,
    "harness": 1,
    "device": "cuda",
}
every_field = pytest.mark.parametrize("name", [field.name for field in fields(CellSpec)])


def changed(spec: CellSpec, name: str) -> CellSpec:
    return replace(spec, **{name: CHANGED[name]})


@every_field
def test_every_field_is_read_back_and_part_of_the_key(name: str) -> None:
    other = changed(SPEC, name)
    assert read_spec(SPEC.text) == SPEC
    assert read_spec(other.text) == other
    assert other.key != SPEC.key


def test_the_text_is_canonical() -> None:
    """The order in which options were written plays no part, and a tuple of a plug-in is a list."""
    turned = replace(SPEC, method=PluginSpec("mc-dropout", options={"per_row": False, "rate": 0.1}))
    assert turned.text == SPEC.text
    assert json.loads(SPEC.text)["format"] == FORMAT
    assert read_spec(SPEC.text).text == SPEC.text


def test_a_key_stays_what_it_was_where_later_fields_have_their_defaults() -> None:
    """Stored cells stay known: this key was computed before `shuffle`, `stop_together` and others existed."""
    assert SPEC.key == "2500a2f2a35c71de3b43d234a9496d39"
    for part, field in [(Training, name) for name in Training.later] + [(Protocol, name) for name in Protocol.later]:
        assert field not in json.loads(SPEC.text)["protocol"]
        assert field not in json.loads(SPEC.text)["protocol"]["training"]
        assert field in part.__dataclass_fields__
    unshuffled = replace(SPEC, protocol=Protocol(draws=5, training=Training(shuffle=False)))
    assert json.loads(unshuffled.text)["protocol"]["training"]["shuffle"] is False
    assert unshuffled.key != SPEC.key
    assert read_spec(unshuffled.text) == unshuffled


FORMAT_1 = {
    "harness": 2,
    "dataset": ["toy", "built in", "1", {"rows": 40}],
    "method": ["mc-dropout", "built in", "1", {"rate": 0.1, "per_row": False}],
    "protocol": {"draws": 5},
    "space": {"rate": [0.1, 0.2]},
    "data": "a fingerprint",
    "seed": 3,
}


def test_format_1_of_earlier_stores_is_read() -> None:
    assert read_spec(json.dumps(FORMAT_1)) == SPEC
    oldest = FORMAT_1 | {"dataset": ["toy", 1, {"rows": 40}]}
    del oldest["space"]
    assert read_spec(json.dumps(oldest)) == replace(SPEC, space={})


@pytest.mark.parametrize(
    ("text", "reason", "parts"),
    [
        ("", "it is not JSON", set(CHANGED)),
        ('{"data": "x"', "it is not JSON", set(CHANGED)),
        ("[1]", "it is not a JSON object", set(CHANGED)),
        ('{"format": 3}', "it has format 3, this uqbench reads 1 and 2", set(CHANGED)),
        (json.dumps({**SPEC.plain(), "format": 2, "more": 1}), "more: ", {"more"}),
        (json.dumps({**SPEC.plain(), "format": 2, "seed": "3"}), "seed: ", {"seed"}),
        (json.dumps({**SPEC.plain(), "format": 2, "data": ""}), "data: ", {"data"}),
        (json.dumps({**SPEC.plain(), "format": 2, "protocol": {"draw": 1}}), "protocol.draw: ", {"protocol"}),
        (json.dumps({**SPEC.plain(), "format": 2, "method": ["m"]}), "method: ", {"method"}),
        (json.dumps({k: v for k, v in FORMAT_1.items() if k != "harness"}), "harness: ", {"harness"}),
    ],
)
def test_what_is_no_specification_is_refused_with_a_reason(text: str, reason: str, parts: set[str]) -> None:
    with pytest.raises(SpecError, match="the specification of a cell cannot be read") as refused:
        read_spec(text)
    assert reason in str(refused.value)
    assert refused.value.parts == parts
    assert spec_or_none(text) is None
    assert provenance({"spec": text}).spec is None
    assert provenance({"spec": text}).missing != provenance({"spec": SPEC.text}).missing


def test_provenance_names_what_a_specification_does_not_say() -> None:
    complete = provenance({"spec": SPEC.text})
    assert complete.spec == SPEC
    lacking = {name: value for name, value in FORMAT_1.items() if name not in ("seed", "data", "harness")}
    said = set(provenance({"spec": json.dumps(lacking)}).missing) - set(complete.missing)
    assert said == {"the seed", "the hash of the data", "what was run (plug-ins, options, protocol)"}


@every_field
def test_a_history_sees_every_field_that_no_version_changes(name: str) -> None:
    own, other = form_of(SPEC), form_of(changed(SPEC, name))
    assert (own == other) is (name in CHANGING)


@every_field
def test_checkpoints_are_shared_by_methods_alone_and_networks_also_by_metrics(name: str) -> None:
    other = changed(SPEC, name)
    assert (place_of(SPEC) == place_of(other)) is (name in ("method", "space"))
    kept = stored_networks.place_of
    assert (kept(SPEC) == kept(other)) is (name in ("method", "space", "metrics"))


def test_of_a_protocol_kept_networks_ignore_what_comes_after_the_training() -> None:
    changed_protocols = {
        "draws": replace(SPEC.protocol, draws=7),
        "probe": replace(SPEC.protocol, probe={"kind": "shift"}),
        "folds": replace(SPEC.protocol, folds=7),
        "validation": replace(SPEC.protocol, validation=0.3),
    }
    for name, protocol in changed_protocols.items():
        other = replace(SPEC, protocol=protocol)
        assert place_of(other) != place_of(SPEC)
        same = stored_networks.place_of(other) == stored_networks.place_of(SPEC)
        assert same is (name in stored_networks.AFTER_TRAINING)


@pytest.fixture
def planned(tiny: Suite) -> CellSpec:
    """The specification of a cell that this machine can run."""
    tasks = [task for task in plan(tiny.only([], ["mc-dropout"]), Registry()) if isinstance(task, Task)]
    return read_spec(tasks[0].cells[0].spec)


def outcome_of(text: str) -> Outcome:
    messages = run_order(WorkOrder(1, (WorkItem("key", text),)))
    (outcome,) = (each.content for each in messages if isinstance(each.content, Outcome))
    return outcome


@every_field
def test_a_worker_runs_what_every_field_says_or_refuses(
    name: str, planned: CellSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[Job] = []

    def record(made: Sequence[Job], *rest: Any) -> Iterator[tuple[int, Outcome]]:
        jobs.extend(made)
        yield from ((number, Outcome("ok")) for number in range(len(made)))

    monkeypatch.setattr("bench.run.worker.run_jobs", record)
    outcome = outcome_of(changed(planned, name).text)
    if outcome.status == "failed":  # this worker cannot make other rows or another version's numbers
        assert name in ("dataset", "data", "metrics", "split", "harness", "device")
        assert outcome.message.startswith("this worker")
    else:
        (job,) = jobs
        method = PluginSpec("mc-dropout", options=options(job.method))
        assert {**vars(job), "method": method}[name] == CHANGED[name]


def test_a_table_of_an_earlier_version_is_read_as_a_network() -> None:
    older = {**SPEC.plain(), "format": FORMAT}
    older["protocol"] = {**older["protocol"], "network": {"kind": "conv", "hidden": [4], "activation": "relu"}}
    network = read_spec(json.dumps(older)).protocol.network
    assert network == PluginSpec("conv", options={"hidden": [4], "activation": "relu"})
    assert read_spec(json.dumps(older)).text != json.dumps(older, sort_keys=True)  # its key was that of its own text


@pytest.mark.parametrize("change", [{"version": "7"}, {"origin": "0123456789abcdef"}, {"options": {"hidden": [4]}}])
def test_a_worker_refuses_another_network(change: dict[str, Any], planned: CellSpec) -> None:
    """Another version, another file, or one whose defaults are not those that the driver completed."""
    other = replace(planned.protocol, network=replace(planned.protocol.network, **change))
    outcome = outcome_of(replace(planned, protocol=other).text)
    assert outcome.status == "failed"
    assert outcome.message.startswith("this worker has another network 'mlp'")


def test_a_history_knows_a_network_by_name_and_options_and_a_rerun_writes_its_table() -> None:
    def with_network(network: PluginSpec) -> CellSpec:
        return replace(SPEC, protocol=replace(SPEC.protocol, network=network))

    mlp = PluginSpec("mlp", options={"hidden": [4]})
    assert form_of(with_network(mlp)) == form_of(with_network(replace(mlp, version="2", origin="a file")))
    assert not form_of(with_network(mlp)).agrees_with(form_of(with_network(PluginSpec("conv"))))
    assert '[network]\nkind = "mlp"\nhidden = [4]\n' in suite_text([row_of(with_network(mlp))], 1)


def built_in() -> CellSpec:
    """The specification of a cell of the built-in suite whose row `row_of` returns."""
    (task,) = plan(load_suite("quick", ["seeds=1"]).only(["diabetes"], ["mc-dropout"]), Registry())
    assert isinstance(task, Task)
    return read_spec(task.cells[0].spec)


def row_of(*specs: CellSpec) -> Row:
    sources = {spec.key: Provenance(spec, {"code": "abc"}, ()) for spec in specs}
    return Row("quick", "diabetes", "mc-dropout", len(specs), sources, (0,), {"ok": len(specs)}, 0.0, 0.0, 0.0)


@every_field
def test_a_rerun_names_a_built_in_suite_only_for_its_very_cells(name: str) -> None:
    spec = built_in()
    assert not rerun([row_of(spec)], Registry()).file
    assert bool(rerun([row_of(changed(spec, name))], Registry()).file) is (name not in NOT_IN_SUITES)


@every_field
def test_the_suite_file_of_a_rerun_says_every_field(name: str) -> None:
    same = suite_text([row_of(SPEC)], 1) == suite_text([row_of(changed(SPEC, name))], 1)
    assert same is (name in NOT_IN_SUITES)


def test_the_suite_file_of_a_rerun_names_the_metrics_on_request() -> None:
    asked = replace(SPEC, metrics={"mpiw_captured": ON_REQUEST, "own_bias": "0123456789abcdef"})
    assert 'metrics = ["mpiw_captured"]' in suite_text([row_of(asked)], 1)
    assert "metrics" not in suite_text([row_of(SPEC)], 1)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"), kw_only=True)
class WiderSpec(CellSpec):
    """What a specification would be with one more ingredient."""

    ingredient: str = "usual"


@pytest.fixture
def wider(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Everybody builds and reads specifications with the new ingredient."""
    for module in [module for name, module in sys.modules.items() if name.startswith("bench.")]:
        if getattr(module, "CellSpec", None) is CellSpec:
            monkeypatch.setattr(module, "CellSpec", WiderSpec)
    read_spec.cache_clear()
    yield
    read_spec.cache_clear()


@pytest.mark.slow
@pytest.mark.usefixtures("wider")
def test_a_new_ingredient_is_seen_by_everybody_who_reads_specifications(planned: CellSpec) -> None:
    """No consumer was changed for it: each takes it into account, or refuses it."""
    assert isinstance(planned, WiderSpec)  # the plan built it
    other = replace(planned, ingredient="new")
    assert read_spec(other.text) == other
    assert other.key != planned.key
    assert not form_of(other).agrees_with(form_of(planned))
    assert place_of(other) != place_of(planned)
    assert outcome_of(planned.text).status == "ok"
    refused = outcome_of(other.text)
    assert refused.status == "failed"
    assert "ingredient" in refused.message.partition("\n")[0]
    of_suite = built_in()
    assert isinstance(of_suite, WiderSpec)
    assert not rerun([row_of(of_suite)], Registry()).file
    assert rerun([row_of(replace(of_suite, ingredient="new"))], Registry()).file
    # A text from before there was the ingredient has the usual one.
    before = {name: value for name, value in other.plain().items() if name != "ingredient"}
    assert read_spec(json.dumps({**before, "format": FORMAT})) == planned


def test_without_the_new_ingredient_its_texts_are_refused() -> None:
    text = WiderSpec(**vars(SPEC)).text
    with pytest.raises(SpecError, match="ingredient"):
        read_spec(text)
