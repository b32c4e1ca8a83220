"""Plug-ins that call `sys.exit` or raise what no `except Exception` catches: their cells fail, and no others."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.errors import StopNowError, raise_if_stop
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.run.driver import RunSettings, run
from bench.run.executors.local import LocalExecutor, Settings
from bench.run.signals import polite_stop
from bench.run.worker import Message, WorkItem, WorkOrder, run_order
from bench.spec.cell import Outcome
from bench.store.store import Store
from tests.fixtures.runs import Values, statuses, values

WritePlugin = Callable[[str, str], Path]

# The class, and what it raises in the hook.
RAISED = {
    "Exits": ("draw", "(self, net, x, tape)", "sys.exit(0)"),
    "Leaves": ("finish", "(self, net, train, validation, tape)", "raise SystemExit"),
    "Throws": ("loss", "(self, net, batch, tape)", "raise Thrown('own')"),
    "Interrupts": ("predict", "(self, *arguments)", "raise KeyboardInterrupt"),
    "Closes": ("build", "(self, problem, new_network)", "raise GeneratorExit"),
}
HEAD = "import sys\nfrom bench.api import Estimator, Wrapper, PluginSpec\n\nclass Thrown(BaseException):\n    pass\n"
OTHERS = """
@dataclass(frozen=True)
class Fits(Estimator):
    def fit(self, train, validation, seed):
        sys.exit(0)
    def predict(self, state, x, draws, seed):
        sys.exit(0)

@dataclass(frozen=True)
class Wraps(Wrapper):
    method: PluginSpec = PluginSpec("deterministic")
    def calibrate(self, held, generator):
        sys.exit(0)
    def predict(self, state, predictions, generator):
        sys.exit(0)
"""
REFUSED = """
@dataclass(frozen=True)
class Made(Method):
    def __post_init__(self):
        sys.exit(0)

@dataclass(frozen=True)
class Skips(Method):
    def skip(self, problem):
        raise Thrown
"""


def plugins() -> str:
    classes = [
        f"@dataclass(frozen=True)\nclass {name}(Method):\n    def {hook}{given}:\n        {code}\n"
        for name, (hook, given, code) in RAISED.items()
    ]
    return "\n".join([HEAD, *classes, OTHERS, REFUSED])


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["inline", "local"])
def test_no_plugin_ends_a_run(
    engine: str, undisturbed: Values, tiny_file: Path, write_plugin: WritePlugin, store: Store
) -> None:
    names = [f"ends:{name}" for name in (*RAISED, "Fits", "Wraps")]
    refused = ["ends:Made", "ends:Skips"]
    suite = load_suite(str(tiny_file), methods=[*names, *refused])
    registry = Registry([write_plugin("ends", plugins())])
    settings = RunSettings(LocalExecutor([Settings()]) if engine == "local" else None)
    with polite_stop(lambda text: None):  # as every command has it
        summary = run(suite, registry, store, settings)
    assert {cell.method for cell, _ in summary.failures} == set(names)
    assert sorted(each.method for each in summary.refused) == refused
    assert (summary.stored, summary.left, summary.well) == (4, 0, False)
    told = {cell.method: message.partition("\n")[0] for cell, message in summary.failures}
    for name, (hook, _, _) in RAISED.items():
        assert told[f"ends:{name}"].startswith(f"{hook}, ends.py:")
    assert told["ends:Exits"].endswith("SystemExit: 0")
    assert told["ends:Throws"].endswith("Thrown: own")
    assert {method: found for method, found in statuses(store).items() if "failed" not in found} == {
        "deterministic": ["ok", "ok"],
        "mc-dropout": ["ok", "ok"],
    }
    assert {place: value for place, value in values(store).items() if ":" not in place[1]} == undisturbed


@pytest.mark.slow
def test_a_dataset_and_a_metric_that_exit(tiny_file: Path, write_plugin: WritePlugin, store: Store) -> None:
    dataset = "@dataclass(frozen=True)\nclass Mine(Dataset):\n    def load(self, split):\n        raise SystemExit(0)\n"
    metric = (
        "from bench.api import Metric\n\ndef exits(forecast):\n    raise SystemExit(0)\n\nMETRICS = [Metric('exits', "
        "'regression', 'predictive', 'lower', None, '1', frozenset(), 'none', 'test', exits)]\n"
    )
    files = [write_plugin("mine", dataset), write_plugin("exits", metric)]
    summary = run(load_suite(str(tiny_file), datasets=["mine"]), Registry(files), store)
    assert [(each.dataset, each.reason) for each in summary.refused] == [("mine", "load, mine.py:10: SystemExit: 0")]
    assert len(summary.failures) == 4
    assert all("metric 'exits': SystemExit: 0" in message for _, message in summary.failures)


def test_a_real_interrupt_stays_one() -> None:
    interrupt = KeyboardInterrupt()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        raise_if_stop(interrupt)
    with polite_stop(lambda text: None):
        raise_if_stop(interrupt)  # a signal would have raised another one
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(StopNowError) as second:
            os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(StopNowError):
        raise_if_stop(second.value)
    for error in (SystemExit(0), GeneratorExit(), ValueError()):
        raise_if_stop(error)


def test_no_interrupt_of_another_thread_is_real() -> None:
    """Dask runs calls in threads of its workers."""
    raised: list[BaseException] = []

    def check() -> None:
        try:
            raise_if_stop(KeyboardInterrupt())
        except KeyboardInterrupt as error:
            raised.append(error)

    thread = threading.Thread(target=check)
    thread.start()
    thread.join()
    assert raised == []


@pytest.mark.parametrize("raised", [SystemExit(0), GeneratorExit(), None])
def test_every_cell_of_an_order_has_an_outcome(raised: BaseException | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def messages(order: WorkOrder) -> Iterator[Message]:
        yield Message(1, "a", Outcome("ok"))
        if raised is not None:
            raise raised

    monkeypatch.setattr("bench.run.worker._messages", messages)
    found = list(run_order(WorkOrder(1, tuple(WorkItem(key, "") for key in "abc"))))
    assert [(each.key, each.content.status) for each in found if isinstance(each.content, Outcome)] == [
        ("a", "ok"),
        ("b", "failed"),
        ("c", "failed"),
    ]
