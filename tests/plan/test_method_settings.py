"""Training, network and grids of single methods: who wins, what becomes part of the key, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.gate.same_suite import suite_content, suite_differences
from bench.leaderboard.rerun import suite_text
from bench.leaderboard.rows import Row
from bench.plan.cells import Planned, Refused, Task, plan
from bench.plan.suite import Suite, load_suite
from bench.plan.units import Units
from bench.plugins.registry import Registry
from bench.run.driver import run
from bench.spec.spec import CellSpec, read_spec
from bench.store.provenance import provenance
from bench.store.results import StoredResults
from bench.store.store import Store
from tests.fixtures.suites import tiny_suite

OWN = "[methods.mc-dropout.training]\nepochs = 5\n[methods.mc-dropout.network]\nhidden = [3]\n"
SEARCH = 'search = "grid"\nfolds = 2\n'


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Suite]:
    """Load the tiny suite with further tables, and changes of the command line."""

    def suite(*tables: str, changes: tuple[str, ...] = (), front: str = "") -> Suite:
        path = tmp_path / "own.toml"
        path.write_text(front + tiny_suite(*tables), "utf-8")
        return load_suite(str(path), changes)

    return suite


def specs(suite: Suite) -> dict[str, CellSpec]:
    """Return the specification of the first cell of each method."""
    tasks = [task for task in plan(suite, Registry()) if isinstance(task, Task)]
    return {task.method: read_spec(task.cells[0].spec) for task in tasks}


def test_a_methods_own_settings_win_over_a_datasets(load: Callable[..., Suite]) -> None:
    suite = load(OWN, changes=("datasets.toy.training.epochs=7", "datasets.toy.training.batch=9"))
    assert suite.methods["mc-dropout"].options == {}
    usual, own = (suite.protocol_for("toy", method) for method in ("deterministic", "mc-dropout"))
    assert (usual.training.epochs, usual.training.batch, usual.network.options["hidden"]) == (7, 9, [4])
    assert (own.training.epochs, own.training.batch, own.network.options["hidden"]) == (5, 9, [3])
    assert suite.protocol_for("toy") is usual
    assert suite.only(["toy"], ["mc-dropout"]).protocol_for("toy", "mc-dropout") is own


def test_the_command_line_wins_over_all_and_can_name_one_method(load: Callable[..., Suite]) -> None:
    suite = load(OWN, changes=("training.epochs=3", "methods.deterministic.training.epochs=8"))
    assert suite.protocol_for("toy", "mc-dropout").training.epochs == 3
    assert suite.protocol_for("toy", "mc-dropout").network.options["hidden"] == [3]
    assert suite.protocol_for("toy", "deterministic").training.epochs == 8
    draws = load("[methods.mine]\ndraws = 3\n", changes=("draws=6",))  # an option that is called like a key
    assert draws.methods["mine"].options == {"draws": 3}


def test_the_cell_is_that_of_a_suite_with_these_settings_for_all(load: Callable[..., Suite]) -> None:
    own, usual = specs(load(OWN)), specs(load())
    everywhere = specs(load(changes=("training.epochs=5", "network.hidden=[3]")))
    assert own["mc-dropout"].key == everywhere["mc-dropout"].key != usual["mc-dropout"].key
    assert own["deterministic"].key == usual["deterministic"].key


def test_a_grid_replaces_the_methods_search_space_and_a_value_ends_the_search(load: Callable[..., Suite]) -> None:
    grid = "[methods.mc-dropout.grid]\nrate = [0.1, 0.3]\nlearning_rate = [0.2]\n[grid]\nlearning_rate = [0.1, 0.5]\n"
    found = specs(load(grid, front=SEARCH))
    assert found["mc-dropout"].space == {"rate": [0.1, 0.3]}
    assert found["mc-dropout"].protocol.grid == {"learning_rate": [0.2]}
    assert found["deterministic"].protocol.grid == {"learning_rate": [0.1, 0.5]}
    given = specs(load(grid, front=SEARCH, changes=("methods.mc-dropout.rate=0.4", "training.learning_rate=0.3")))
    assert given["mc-dropout"].space == {}
    assert given["mc-dropout"].method.options["rate"] == 0.4
    assert given["mc-dropout"].protocol.grid == given["deterministic"].protocol.grid == {}
    changed = ("methods.deterministic.training.learning_rate=0.3",)
    alone = specs(load(grid, front=SEARCH, changes=changed))
    assert alone["deterministic"].protocol.grid == {}
    assert alone["deterministic"].protocol.training.learning_rate == 0.3
    assert alone["mc-dropout"].protocol.grid == {"learning_rate": [0.2]}


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("training.epoch = 3", "methods.mc-dropout: training: unknown key 'epoch'; did you mean epochs"),
        ("training = 3", "methods.mc-dropout: training: "),
        ("training.nesterov = true", 'methods.mc-dropout: training.nesterov is for optimizer = "sgd"'),
        ("network.hidden = [0]", "methods.mc-dropout: network: hidden: expected whole numbers above 0, got 0"),
        ("grid = 3", "methods.mc-dropout: grid: expected a table"),
        ("grid.rate = 0.1", "methods.mc-dropout: grid.rate: expected a list of values to try, got 0.1"),
        ("grid.rate = []", "methods.mc-dropout: grid.rate: expected a list of values to try, got []"),
        ("grid.rate = [0.1]\nrate = 0.2", "methods.mc-dropout: grid.rate: it is also given a value"),
        (
            "grid.learning_rate = [0.1]\ntraining.learning_rate = 0.2",
            "methods.mc-dropout: grid.learning_rate: it is also given a value",
        ),
        ("grid.learning_rate = [0.0]", "methods.mc-dropout: grid.learning_rate: a rate of 0 trains nothing"),
        ("grid.ratte = [0.1]", "methods.mc-dropout: grid: unknown option 'ratte'; did you mean rate"),
        ("grid.rate = [0.1, 1.0]", "methods.mc-dropout: grid: rate must be in [0, 1)"),
        ("grid.rate = ['a']", "methods.mc-dropout: grid: rate: "),
    ],
)
def test_mistakes_name_the_method_and_the_key(table: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(SEARCH + tiny_suite(table), "utf-8")  # mc-dropout's table is the last one
    with pytest.raises(UserError) as caught:
        list(plan(load_suite(str(path)), Registry()))
    assert str(caught.value).startswith(f"{path}: {reason}")
    assert "\n" not in str(caught.value)


def test_a_network_that_does_not_fit_refuses_its_method_alone(load: Callable[..., Suite]) -> None:
    planned: list[Planned] = list(plan(load("[methods.mc-dropout.network]\nkind = 'resnet8'\n"), Registry()))
    (refused,) = (each for each in planned if isinstance(each, Refused))
    assert (refused.method, refused.fault) == ("mc-dropout", True)
    assert [task.method for task in planned if isinstance(task, Task)] == ["deterministic"]


def test_cells_of_other_settings_are_other_units(load: Callable[..., Suite]) -> None:
    table = "[methods.again]\nuse = 'deterministic'\n"
    for tables, count in ((table, 1), (f"{table}training.epochs = 9\n", 2)):
        units = Units()
        for task in plan(load(tables).only([], ["deterministic", "again"]), Registry()):
            assert isinstance(task, Task)
            units.add_task(task, task.cells)
        assert len(units.cut(1)) == count


def test_the_gate_sees_another_setting_of_one_method(load: Callable[..., Suite]) -> None:
    then = suite_content(load(OWN))
    assert suite_differences(then, load(OWN)) == []
    assert suite_differences(then, load(OWN, changes=("methods.mc-dropout.training.epochs=6",))) == [
        "methods.mc-dropout.training.epochs was 5 and is 6"
    ]
    gridded = load(OWN + "[methods.mc-dropout.grid]\nrate = [0.1]\n")
    assert suite_differences(then, gridded) == ["methods.mc-dropout.grid.rate was not given and is [0.1]"]
    assert suite_differences(then, load(OWN, changes=("draws=6",))) == ["draws was 5 and is 6"]
    written = load(OWN, changes=("methods.deterministic.training.batch=100",))  # what the suite says anyway
    assert suite_differences(then, written) == []


@pytest.mark.slow
def test_each_method_trains_by_its_own_settings_and_can_be_run_again(
    load: Callable[..., Suite], store: Store, tmp_path: Path
) -> None:
    table = OWN + "[methods.mc-dropout.grid]\nrate = [0.1, 0.3]\n"
    suite = load(table, front=SEARCH)
    run(suite, Registry(), store)
    cells = StoredResults(store, suite.name).cells
    records = {
        (record["method"], record["seed"]): json.loads(str(record["training"])) for record in cells.to_dict("records")
    }
    assert {epochs for (method, _), r in records.items() if method == "deterministic" for epochs in r["epochs"]} == {2}
    assert {epochs for (method, _), r in records.items() if method == "mc-dropout" for epochs in r["epochs"]} == {5}
    assert all(r["search"]["chosen"]["rate"] in (0.1, 0.3) for (m, _), r in records.items() if m == "mc-dropout")
    sources: dict[str, Any] = {
        str(key): provenance({"spec": text})
        for key, text in cells[cells["method"] == "mc-dropout"][["key", "spec"]].itertuples(index=False)
    }
    again = tmp_path / "again.toml"
    again.write_text(suite_text([Row(suite.name, "toy", "mc-dropout", 2, sources, (0, 1), {}, 0, 0, 0)], 2), "utf-8")
    tasks = [task for task in plan(load_suite(str(again)), Registry()) if isinstance(task, Task)]
    assert {cell.key for task in tasks for cell in task.cells} == set(sources)
