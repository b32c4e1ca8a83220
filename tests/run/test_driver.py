import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench.plan.suite import Suite, load_suite
from bench.plugins.registry import Registry
from bench.run import driver
from bench.run.driver import rerun, run
from bench.run.monitor import Monitor
from bench.run.summary import Summary
from bench.run.worker import Message, WorkOrder
from bench.spec.cell import Cell, Outcome
from bench.store.store import Owner, Store, new_owner
from tests.fixtures.runs import Values, new_store, statuses, values

WritePlugin = Callable[[str, str], Path]


class Watcher(Monitor):
    """Calls a function for every cell that has a result."""

    def __init__(self, watch: Callable[[Cell, Outcome | None], None]) -> None:
        self.watch = watch

    def cell_done(self, cell: Cell, outcome: Outcome | None) -> None:
        self.watch(cell, outcome)


def test_a_run_stores_every_cell_with_its_surroundings(tiny: Suite, store: Store) -> None:
    seen: list[tuple[str, int, str]] = []

    def watch(cell: Cell, outcome: Outcome | None) -> None:
        seen.append((cell.method, cell.seed, outcome.status if outcome else "stored before"))

    summary = run(tiny, Registry(), store, monitor=Watcher(watch))
    assert (summary.stored, summary.skipped, summary.failures, summary.well) == (4, 0, [], True)
    assert sorted(seen) == [(m, s, "ok") for m in ("deterministic", "mc-dropout") for s in (0, 1)]
    for row in store.cells("tiny"):
        assert json.loads(row["training"])["epochs"] == [2]
        assert json.loads(row["environment"])["device"] == "cpu"
        arrays = store.load_arrays(row["key"])
        assert arrays is not None
        assert set(arrays) == {"observed", "mean", "variance", "noise", "x", "truth", "history/train_loss"}
        assert arrays["history/train_loss"][0, -1] == np.float32(json.loads(row["training"])["train_loss"][0])


@pytest.mark.slow
def test_the_last_run_decides_what_a_suite_consists_of(tiny_file: Path, store: Store) -> None:
    def places() -> list[tuple[str, int]]:
        return [(row["method"], row["seed"]) for row in store.cells("tiny")]

    run(load_suite(str(tiny_file), ["seeds=3"]), Registry(), store)
    assert len(places()) == 6
    part = load_suite(str(tiny_file), ["seeds=1"]).only([], ["mc-dropout"])
    run(part, Registry(), store)
    assert places() == [("deterministic", s) for s in range(3)] + [("mc-dropout", 0)]
    summary = run(load_suite(str(tiny_file), ["seeds=2"]), Registry(), store)
    assert len(places()) == 4
    assert summary.stored == 0, "results outlive the plan that asked for them"


def test_notes_on_data_and_refusals_are_kept_for_the_reader(
    tiny_file: Path, store: Store, write_plugin: Callable[[str, str], Path]
) -> None:
    broken = write_plugin(
        "broken",
        "@dataclass(frozen=True)\n"
        "class Broken(Method):\n    def skip(self, problem):\n        return 'no such thing here'\n",
    )
    registry = Registry([broken])
    run(load_suite(str(tiny_file), (), ["broken"]), registry, store)
    told = {(row["dataset"], row["method"]): row["text"] for row in store.remarks("tiny")}
    assert "training points" in told["toy", ""]
    assert told["toy", "broken"] == "could not run: no such thing here"


def test_a_failed_attempt_at_what_the_suite_does_not_list_leaves_no_remark(tiny_file: Path, store: Store) -> None:
    def attempt(dataset: str) -> Summary:
        return run(load_suite(str(tiny_file), (), (), [dataset]).only([dataset], []), Registry(), store)

    for typo in ("csv:gone.csv", "csv:gone.csv?target=y"):
        assert attempt(typo).broken == 4
    assert store.remarks("tiny") == []
    listed = tiny_file.with_name("listed.toml")
    listed.write_text(tiny_file.read_text("utf-8") + "[datasets.gone]\nuse = 'csv'\npath = 'gone.csv'\n", "utf-8")
    run(load_suite(str(listed)).only(["gone"], []), Registry(), store)
    assert [row["text"] for row in store.remarks("listed")] == ["could not run: gone.csv: no such file"]


@pytest.mark.slow
def test_stored_metrics_are_those_of_the_stored_predictions(tiny_file: Path, store: Store) -> None:
    """In original units, against the definition."""
    noisy = ["methods.mc-dropout.rate=0.5", "draws=20", "network.activation=tanh"]
    run(load_suite(str(tiny_file), noisy), Registry(), store)
    for row in store.cells("tiny"):
        arrays = store.load_arrays(row["key"])
        assert arrays is not None
        rmse = math.sqrt(np.mean((arrays["observed"] - arrays["mean"]) ** 2))
        assert values(store)["toy", row["method"], row["seed"], "rmse"] == pytest.approx(rmse, rel=1e-9)
        split = Registry().make("dataset", "toy", {"rows": 40}).load(row["split"])
        np.testing.assert_array_equal(arrays["observed"], split.test_y)
        if row["method"] == "mc-dropout":
            nll = np.mean(
                0.5 * np.log(2 * np.pi * arrays["variance"])
                + (arrays["observed"] - arrays["mean"]) ** 2 / (2 * arrays["variance"])
            )
            assert values(store)["toy", "mc-dropout", row["seed"], "nll_mc"] == pytest.approx(nll, rel=1e-6)


@pytest.mark.slow
def test_the_same_command_gives_the_same_bits(tiny: Suite, store: Store, undisturbed: Values) -> None:
    torch.manual_seed(1)  # nobody's global seed plays a part
    before = torch.get_rng_state()
    run(tiny, Registry(), store)
    assert torch.equal(torch.get_rng_state(), before)
    assert len(values(store)) > 20
    assert values(store) == undisturbed


@pytest.mark.slow
def test_a_second_run_trains_nothing(tiny: Suite, store: Store) -> None:
    run(tiny, Registry(), store)
    before = values(store)

    seen: list[Outcome | None] = []
    summary = run(tiny, Registry(), store, monitor=Watcher(lambda cell, outcome: seen.append(outcome)))
    assert (summary.stored, summary.skipped) == (0, 4)
    assert seen == [None] * 4, "a stored cell ran again"
    assert values(store) == before


class StoppedError(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 3])
def test_a_run_that_was_stopped_is_completed_to_the_same_bits(
    after: int, tiny: Suite, store: Store, undisturbed: Values
) -> None:
    count = 0

    def stop(cell: Any, outcome: Any) -> None:
        nonlocal count
        count += 1
        if count == after:
            raise StoppedError

    with pytest.raises(StoppedError):
        run(tiny, Registry(), store, monitor=Watcher(stop))
    assert sum(s == "ok" for found in statuses(store).values() for s in found) == after
    assert run(tiny, Registry(), store).skipped == after
    assert values(store) == undisturbed


@pytest.mark.slow
class FirstOnly(Monitor):
    """Stops a run when its first cell has a result."""

    def __init__(self) -> None:
        self.done = 0
        self.texts: list[str] = []

    def cell_done(self, cell: Cell, outcome: Outcome | None) -> None:
        self.done += 1

    def progress(self, state: object) -> None:
        self.texts.append(str(state))

    def should_stop(self) -> bool:
        return self.done > 0


def test_a_monitor_stops_a_run_between_units(tiny_file: Path, store: Store) -> None:
    """What was handed out is finished and stored, the rest is left and counted."""
    suite = load_suite(str(tiny_file), datasets=["diabetes"])
    monitor = FirstOnly()
    summary = run(suite, Registry(), store, monitor=monitor)
    assert 0 < summary.stored == monitor.done < 8
    assert summary.stored + summary.left == 8
    assert any("/2 datasets" in text for text in monitor.texts)
    assert run(suite, Registry(), store).skipped == summary.stored


def test_more_seeds_keep_the_old_cells(tiny_file: Path, tmp_path: Path) -> None:
    grown, at_once = new_store(tmp_path, "grown"), new_store(tmp_path, "at_once")
    run(load_suite(str(tiny_file), ["seeds=1"]), Registry(), grown)
    old = values(grown)
    summary = run(load_suite(str(tiny_file), ["seeds=3"]), Registry(), grown)
    assert (summary.stored, summary.skipped) == (4, 2)
    run(load_suite(str(tiny_file), ["seeds=3"]), Registry(), at_once)
    assert values(grown) == values(at_once)
    assert old.items() < values(grown).items()


@pytest.mark.slow
def test_a_cell_of_another_suite_is_not_run_again(tiny: Suite, tiny_file: Path, store: Store) -> None:
    run(tiny, Registry(), store)
    other = tiny_file.with_name("other.toml")
    other.write_text(tiny_file.read_text("utf-8").replace("[methods.mc-dropout]", "").replace("baseline", "#"), "utf-8")
    assert run(load_suite(str(other)), Registry(), store).skipped == 2
    assert {key[1] for key in values(store, "other")} == {"deterministic"}


@pytest.mark.slow
def test_an_ensemble_trains_its_networks(tiny_file: Path, store: Store) -> None:
    suite = load_suite(str(tiny_file), ["methods.deep-ensemble.networks=3"], methods=["deep-ensemble"])
    run(suite.only([], ["deep-ensemble", "deterministic"]), Registry(), store)
    rows = {(row["method"], row["seed"]): json.loads(row["training"]) for row in store.cells("tiny")}
    ensemble, single = rows["deep-ensemble", 0]["train_loss"], rows["deterministic", 0]["train_loss"]
    assert len(set(ensemble)) == 3  # three different networks
    assert ensemble[0] == pytest.approx(single[0], rel=1e-5)  # the first is the deterministic one


@pytest.mark.slow
def test_classification_runs_through(tiny_file: Path, store: Store) -> None:
    suite = load_suite(str(tiny_file), ["seeds=1"], datasets=["digits"]).only(["digits"], ["mc-dropout"])
    assert run(suite, Registry(), store).well
    found = values(store)
    assert 0 <= found["digits", "mc-dropout", 0, "accuracy"] <= 1
    assert not {"rmse", "nll_mc"} & {key[3] for key in found}


def test_summary_is_well_only_without_faults() -> None:
    from bench.plan.cells import Refused

    assert Summary().well
    assert Summary(refused=[Refused("d", "m", "not made for this", fault=False, cells=2)]).well
    assert not Summary(refused=[Refused("d", "m", "broken", fault=True, cells=2)]).well
    assert not Summary(left=1).well


def test_a_summary_accounts_for_every_cell_of_the_suite(
    tiny_file: Path, write_plugin: WritePlugin, store: Store
) -> None:
    """What keeps a run from being well is among the counts that are printed; nothing was counted for refused cells."""
    body = "def skip(self, problem):\n        return 'not today'"
    picky = write_plugin("picky", f"@dataclass(frozen=True)\nclass Picky(Method):\n    {body}\n")
    broken = write_plugin("broken", "class Broken(Method):\n    pass\n")
    suite = load_suite(str(tiny_file), ["seeds=3"], methods=["picky", "broken"]).only([], ["picky", "broken"])
    done = run(suite, Registry([picky, broken]), store)
    assert "0 failed, 3 could not begin, 3 not applicable, in" in str(done)
    assert not done.well
    assert str(Summary(stored=1, left=2)) == "1 cell run, 0 stored before, 0 diverged, 0 failed, 2 left, in 0.0 s"


def answer_at_once(order: WorkOrder) -> Iterator[Message]:
    for item in order.items:
        yield Message(order.number, item.key, Outcome("ok", metrics={"rmse": 1.0}))


def test_short_units_are_leased_together_and_what_was_not_begun_is_given_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [Cell(f"k{seed:02}", "toy", 0, "m", seed, "{}") for seed in range(60)]
    leased: list[int] = []
    lease = store.lease

    def counted(keys: Sequence[str], owner: Owner) -> set[str]:
        leased.append(len(keys))
        return lease(keys, owner)

    class StopsAfterTwenty(Monitor):
        stored = 0

        def cell_done(self, cell: Cell, outcome: Outcome | None) -> None:
            self.stored += 1

        def should_stop(self) -> bool:
            return self.stored >= 20

    monkeypatch.setattr(driver, "run_order", answer_at_once)
    monkeypatch.setattr(store, "lease", counted)
    summary = rerun(cells, Registry(), store, monitor=StopsAfterTwenty())
    assert summary.stored >= 20
    assert summary.stored + summary.left == 60
    assert leased[0] == 1  # units may take minutes: nothing is kept from other drivers
    assert len(leased) < summary.stored / 2
    assert len(lease([cell.key for cell in cells], new_owner())) == summary.left


def test_a_run_says_that_it_waits_for_the_cells_of_another(
    tiny: Suite, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other run is of this process, so that it is alive, and gives its cells back when this one waits."""
    other, said = new_owner(), []
    run(tiny, Registry(), store)
    keys = [str(cell["key"]) for cell in store.cells("tiny")]
    fresh = Store(store.address + ".again")
    assert fresh.lease(keys, other) == set(keys)

    class Listener(Monitor):
        def progress(self, state: object) -> None:
            said.append(str(state))
            if "waiting" in str(state):
                fresh.release(other)

    monkeypatch.setattr(driver, "SECONDS_BETWEEN_CHECKS", 0.01)
    assert run(tiny, Registry(), fresh, monitor=Listener()).stored == 4
    assert "waiting for 4 cells that another run of this store computes" in said
