"""Cells of a plan and their keys: what changes a key, and what does not."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bench.api import Dataset, Split
from bench.errors import UserError
from bench.plan.cells import Refused, Task, fingerprint, plan
from bench.plan.suite import load_suite
from bench.plugins.kinds import Kind
from bench.plugins.registry import Registry
from bench.probes import make_probe
from bench.spec.cell import Cell
from bench.spec.plugin import PluginSpec
from bench.spec.spec import read_spec

WriteSuite = Callable[..., str]
WritePlugin = Callable[[str, str], Path]


def cells(path: str, changes: tuple[str, ...] = (), files: tuple[Path, ...] = ()) -> list[Cell]:
    planned = list(plan(load_suite(path, changes), Registry(files)))
    tasks = [p for p in planned if isinstance(p, Task)]
    assert len(tasks) == len(planned), planned
    return [cell for task in tasks for cell in task.cells]


def keys(path: str, changes: tuple[str, ...] = (), files: tuple[Path, ...] = ()) -> set[str]:
    return {cell.key for cell in cells(path, changes, files)}


def test_every_cell_has_its_own_key_and_place(tiny_file: Path) -> None:
    found = cells(str(tiny_file))
    assert len({c.key for c in found}) == 4
    assert [(c.dataset, c.method, c.seed, c.split) for c in found] == [
        ("toy", "deterministic", 0, 0),
        ("toy", "deterministic", 1, 1),
        ("toy", "mc-dropout", 0, 0),
        ("toy", "mc-dropout", 1, 1),
    ]
    assert [c.key for c in cells(str(tiny_file))] == [c.key for c in found]


def test_seeds_share_splits_in_turn_and_each_split_is_loaded_once(
    tiny_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = cells(str(tiny_file), ("seeds=6",))
    toy, loaded = Registry().load("dataset", "toy"), []
    load = toy.load

    def counting(self: Dataset, number: int) -> Split:
        loaded.append(number)
        split: Split = load(self, number)
        return split

    monkeypatch.setattr(toy, "load", counting)
    found = cells(str(tiny_file), ("seeds=6", "splits=3"))
    assert loaded == [0, 1, 2]
    assert [(c.split, c.seed) for c in found[:6]] == [(0, 0), (1, 1), (2, 2), (0, 3), (1, 4), (2, 5)]
    # A cell is the same cell, however the suite came to it.
    assert [a.key == b.key for a, b in zip(plain, found, strict=True)] == [True, True, True, False, False, False] * 2
    assert keys(str(tiny_file), ("seeds=6", "splits=6")) == {cell.key for cell in plain}


def test_splits_of_the_same_rows_are_not_shared(tiny_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of their seeds is a repeat of its own, as it is without `splits`."""
    monkeypatch.setattr(Registry().load("dataset", "toy"), "repeats", "seeds")
    assert keys(str(tiny_file), ("seeds=4", "splits=2")) == keys(str(tiny_file), ("seeds=4",))


@pytest.mark.parametrize(
    "change",
    [
        "draws=6",
        "validation=0.2",
        "scale_inputs=false",
        "scale_targets=false",
        "training.epochs=3",
        "training.learning_rate=0.01",
        "training.weight_decay=0.1",
        "training.momentum=0.5",
        "training.batch=50",
        "training.patience=1",
        "training.optimizer=sgd",
        "training.schedule=cosine",
        "network.hidden=[5]",
        "network.activation=tanh",
        "datasets.toy.rows=41",
        "datasets.toy.test=fresh",
        "datasets.toy.x=even",
        "datasets.toy.sample=5",
    ],
)
def test_every_ingredient_changes_every_key(change: str, tiny_file: Path) -> None:
    assert keys(str(tiny_file)).isdisjoint(keys(str(tiny_file), (change,)))


@pytest.mark.parametrize(
    ("kind", "name", "earlier", "later"),
    [
        ("dataset", "toy", {"rows": 200, "test": "same"}, {"x": "even", "sample": 0}),
        ("network", "resnet8", {"width": 16, "shortcut": "projection"}, {"noise_at": "last-branch"}),
        ("network", "resnet18", {"width": 64, "shortcut": "projection"}, {"initialisation": "he"}),
    ],
)
def test_options_that_came_later_are_part_of_a_key_where_they_have_other_values(
    kind: Kind, name: str, earlier: dict[str, object], later: dict[str, object]
) -> None:
    """Stored cells keep the keys that they had before there were such options."""
    registry = Registry()
    assert registry.spec(kind, name, registry.make(kind, name, {})).options == earlier
    changed = registry.spec(kind, name, registry.make(kind, name, later))
    assert changed.options == earlier | later
    assert registry.spec(kind, name, registry.make(kind, name, changed.options)) == changed


def test_later_options_of_a_probe_are_part_of_a_key_where_they_have_other_values() -> None:
    table = {"kind": "softmax-noise", "label": 8, "image": 2, "levels": [0.0, 0.1]}
    assert make_probe(table).spec == make_probe(table | {"pixels": "float"}).spec == table
    later = {"pixels": "8-bit", "noise_seed": 0}
    assert make_probe(table | later).spec == table | later


def test_a_method_option_changes_the_keys_of_that_method_only(tiny_file: Path) -> None:
    plain, changed = cells(str(tiny_file)), cells(str(tiny_file), ("methods.mc-dropout.rate=0.3",))
    same = [a.method for a, b in zip(plain, changed, strict=True) if a.key == b.key]
    assert same == ["deterministic", "deterministic"]


@pytest.mark.parametrize("change", ["title=Other", "baseline=deterministic", 'metrics=["rmse"]'])
def test_what_cannot_change_a_number_changes_no_key(change: str, tiny_file: Path) -> None:
    assert keys(str(tiny_file)) == keys(str(tiny_file), (change,))


def test_suites_share_cells_under_other_names(tiny_file: Path, write_suite: WriteSuite) -> None:
    text = tiny_file.read_text("utf-8").replace("[datasets.toy]", '[datasets.renamed]\nuse = "toy"')
    text = text.replace("[methods.mc-dropout]", '[methods.label]\nuse = "mc-dropout"\nrate = 0.1')
    text = text.replace('baseline = "mc-dropout"', "")
    other = write_suite(text, "other")
    assert keys(other) == keys(str(tiny_file))
    assert {c.method for c in cells(other)} == {"deterministic", "label"}


@pytest.mark.parametrize(
    ("kind", "used", "name"), [("dataset", "toy", "boston"), ("method", "mc-dropout", "deep-ensemble")]
)
def test_nothing_has_the_name_of_another(
    kind: str, used: str, name: str, tiny_file: Path, write_suite: WriteSuite
) -> None:
    text = tiny_file.read_text("utf-8").replace(f"[{kind}s.{used}]", f'[{kind}s.{name}]\nuse = "{used}"')
    text = text.replace('baseline = "mc-dropout"', "")
    fault = f"{kind}s.{name}: uses '{used}' under the name of another {kind}; give it a name of its own"
    with pytest.raises(UserError, match=fault):
        keys(write_suite(text, "other"))


def test_more_seeds_keep_the_first_keys(tiny_file: Path) -> None:
    more = keys(str(tiny_file), ("seeds=5",))
    assert keys(str(tiny_file)) < more
    assert len(more) == 10


@pytest.mark.parametrize("plugin", ["bench.methods.deterministic.Deterministic", "bench.datasets.toy.Toy"])
def test_a_plugins_version_changes_its_keys(plugin: str, tiny_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {(c.method, c.seed): c.key for c in cells(str(tiny_file))}
    monkeypatch.setattr(f"{plugin}.version", "2")
    after = {(c.method, c.seed): c.key for c in cells(str(tiny_file))}
    changed = {method for (method, seed), key in before.items() if after[method, seed] != key}
    assert changed == ({"deterministic"} if "methods" in plugin else {"deterministic", "mc-dropout"})


@pytest.mark.parametrize("kind", ["Method", "Dataset"])
def test_a_plugin_on_the_command_line_is_known_by_its_content(
    kind: str, write_plugin: WritePlugin, write_suite: WriteSuite
) -> None:
    body = (
        f"@dataclass(frozen=True)\nclass Mine({kind}):\n    task = 'regression'\n"
        "    def load(self, split):\n        x = np.arange(9.0)[:, None] + split\n"
        "        return Split('regression', x, x[:, 0], x, x[:, 0])\n"
    )
    tables = {"datasets": "toy", "methods": "deterministic", f"{kind.lower()}s": "mine"}
    suite = write_suite('title = "t"\n' + "".join(f"[{k}.{v}]\n" for k, v in tables.items()))
    first, edited, back = (
        keys(suite, (), (write_plugin("mine", text),)) for text in (body, body + "# another thought\n", body)
    )
    assert first.isdisjoint(edited)
    assert first == back


NETWORK = """
import math
from torch import nn
@dataclass(frozen=True)
class Mine(Network):
    width: int = 3
    def skip(self, problem):
        return "is for rows" if len(problem.inputs) > 1 else None
    def build(self, problem, outputs):
        first = nn.Linear(math.prod(problem.inputs), self.width)
        return nn.Sequential(first, nn.Dropout(), nn.Linear(self.width, outputs))
"""


def test_a_network_on_the_command_line_is_known_by_its_content(tiny_file: Path, write_plugin: WritePlugin) -> None:
    change, wider = ("network.kind=mine",), ("network.kind=mine", "network.width=4")
    first, edited, back = (
        cells(str(tiny_file), change, (write_plugin("mine", text),))
        for text in (NETWORK, NETWORK + "# another thought\n", NETWORK)
    )
    assert not {c.key for c in first} & {c.key for c in edited}
    assert first == back
    network = read_spec(first[0].spec).protocol.network
    assert (network.name, network.options, len(network.origin)) == ("mine", {"width": 3}, 16)
    assert keys(str(tiny_file), wider, (write_plugin("mine", NETWORK),)).isdisjoint(c.key for c in first)


def test_the_version_of_a_network_changes_all_keys(tiny_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys(str(tiny_file))
    monkeypatch.setattr("bench.networks.mlp.MLPNetwork.version", "2")
    assert before.isdisjoint(keys(str(tiny_file)))


def test_a_network_is_completed_with_its_defaults(tiny_file: Path) -> None:
    network = read_spec(cells(str(tiny_file))[0].spec).protocol.network
    assert network == PluginSpec("mlp", options={"hidden": [4], "activation": "relu"})
    assert keys(str(tiny_file)) == keys(str(tiny_file), ("network.activation=relu",))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("network.hiden=[3]", r"tiny\.toml: network: unknown option 'hiden'; did you mean hidden\?"),
        ("network.hidden=[0]", r"tiny\.toml: network: hidden: expected whole numbers above 0, got 0"),
        ("network.hidden=3", r"tiny\.toml: network: hidden: .*valid array, got 3"),
        ("network.activation=gelu", r"tiny\.toml: network: activation: .*'relu' or 'tanh', got 'gelu'"),
        ("network.kind=mlpp", r"tiny\.toml: network: unknown network 'mlpp'; did you mean mlp\?"),
        ("datasets.toy.network.hiden=[3]", r"tiny\.toml: datasets\.toy: network: unknown option 'hiden'"),
    ],
)
def test_mistakes_in_a_network_are_told_before_anything_runs(change: str, reason: str, tiny_file: Path) -> None:
    with pytest.raises(UserError, match=reason):
        list(plan(load_suite(str(tiny_file), (change,)), Registry()))


def test_a_network_that_cannot_be_loaded_is_refused(tiny_file: Path, write_plugin: WritePlugin) -> None:
    broken = write_plugin("mine", NETWORK.replace("width: int = 3", "width: 'Nowhere' = 3"))
    (refused,) = plan(load_suite(str(tiny_file), ("network.kind=mine",)), Registry([broken]))
    assert isinstance(refused, Refused)
    assert "NameError" in refused.reason


def test_other_rows_give_other_keys(tiny_file: Path, write_plugin: WritePlugin) -> None:
    """Also where the author of a dataset forgot to raise its version."""
    body = (
        "@dataclass(frozen=True)\nclass Mine(Dataset):\n    task = 'regression'\n"
        "    def load(self, split):\n        x = np.arange(9.0)[:, None] * {}\n"
        "        return Split('regression', x, x[:, 0], x, x[:, 0])\n"
    )
    found = []
    for factor in (1, 2):
        suite = load_suite(str(tiny_file), datasets=["mine"]).only(["mine"], [])
        tasks = plan(suite, Registry([write_plugin("mine", body.format(factor))]))
        found.append({cell.key for task in tasks if isinstance(task, Task) for cell in task.cells})
    assert len(found[0]) == len(found[1]) == 4
    assert not found[0] & found[1]


def test_the_kind_of_device_is_part_of_the_key_unless_it_is_a_cpu(tiny_file: Path) -> None:
    """Its generator decides the random numbers. Estimators run on the host wherever the networks are."""
    suite = load_suite(str(tiny_file), methods=["gaussian-process"])

    def keys(*device: str) -> dict[str, set[str]]:
        tasks = [task for task in plan(suite, Registry(), *device) if isinstance(task, Task)]
        return {task.method: {cell.key for cell in task.cells} for task in tasks}

    host, gpu = keys(), keys("cuda")
    assert keys("cpu") == host
    assert keys("cuda:1") == gpu
    assert {name for name in host if host[name] == gpu[name]} == {"gaussian-process"}
    assert all(not host[name] & gpu[name] for name in host if name != "gaussian-process")


def test_the_fingerprint_sees_every_array() -> None:
    split = Split("regression", np.zeros((4, 2)), np.zeros(4), np.zeros((2, 2)), np.zeros(2))
    seen = {fingerprint(split)}
    for field in ("train_x", "train_y", "test_x", "test_y"):
        array = getattr(split, field).copy()
        array.flat[0] = 1e-9
        seen.add(fingerprint(dataclasses.replace(split, **{field: array})))
        seen.add(fingerprint(dataclasses.replace(split, **{field: getattr(split, field).astype("f4")})))
    assert len(seen) == 9
    assert fingerprint(dataclasses.replace(split, train_x=np.zeros((2, 4)).T)) == fingerprint(split)  # same content


def test_the_spec_is_readable(tiny_file: Path) -> None:
    spec = read_spec(cells(str(tiny_file))[-1].spec)
    assert spec.method == PluginSpec("mc-dropout", "built in", "1", {"rate": 0.1, "per_row": False, "input_rate": None})
    assert spec.protocol.training.epochs == 2
    assert spec.seed == 1
