"""`uqbench reproduce`: from nothing to the page of an experiment, resumed, and what is wrong in one line."""

from pathlib import Path

import pytest

import bench
from bench.api import Measured
from bench.plan.suite import load_suite, suite_names
from bench.plugins.registry import Registry
from bench.reproduction import Experiment, experiments, find_experiment
from bench.run import duration
from bench.run.duration import Duration, estimate_duration, in_words
from bench.store.store import Store
from tests.fixtures.commands import Command

SMALL = ("--seeds", "2", "--set", "training.epochs=5", "--set", "draws=20", "--engine", "inline")


def test_from_nothing_to_the_page_and_again(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = command("reproduce", "toy", *SMALL)
    assert done.code == 0, done.err
    first, second, *_ = done.out.splitlines()
    assert first == ("toy by protocol text, the whole experiment: Section IV, Figure 1: intervals on the toy function")
    assert second.startswith("suite toy, 10 cells to run: about ")
    assert "with 1 worker (" in second
    assert "cannot be decided" in done.out  # two seeds decide nothing
    assert done.out.splitlines()[-1] == "report: report/index.html"
    page = (tmp_path / "report" / "index.html").read_text("utf-8")
    assert page.index("Results at a glance") < page.index("Paper reproduction") < page.index("Results by dataset")

    monkeypatch.setattr(duration, "calibration_seconds", lambda: 0.03)
    small = {"training.epochs": 5, "draws": 20}
    options = bench.RunOptions(executor="inline")
    again = find_experiment("toy", seeds=2, changes=small).duration("runs/uqbench.db", options)
    assert str(again) == "10 cells stored: nothing is left to run"
    more = find_experiment("toy", seeds=3, changes=small).duration("runs/uqbench.db", options)
    assert (more.missing, more.stored) == (5, 10)
    # What was computed here counts, once it is long enough.
    assert "by the cells in the store" not in more.basis
    monkeypatch.setattr(duration, "FEWEST_SECONDS", 0.0)
    scaled = find_experiment("toy", seeds=3, changes=small).duration("runs/uqbench.db", options)
    with Store("runs/uqbench.db", create=False, writable=False) as store:
        taken = sum(cell["seconds"] for cell in store.cells("toy"))
    assert scaled.basis == "by the cells in the store"
    assert 0.2 * taken < scaled.seconds < 2 * taken  # 5 cells more, after 10
    monkeypatch.setattr(duration, "cpu_model", lambda: "another machine")
    assert find_experiment("toy", seeds=3, changes=small).duration("runs/uqbench.db", options).basis == more.basis


def test_mistakes_are_one_line(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UQBENCH_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for arguments, message in (
        (["toys"], "unknown experiment 'toys'; did you mean toy?"),
        (["toy", "--protocol", "cod"], "reproduce toy: unknown protocol 'cod'; did you mean code?"),
        (["cifar10"], "the data of cifar10 is missing; 'uqbench data fetch cifar10' downloads it"),
        (["toy", "--set", "epochs"], "--set epochs: expected key=value"),
    ):
        done = command("reproduce", *arguments)
        assert (done.code, len(done.err.splitlines())) == (2, 1), done.err
        assert message in done.err


def test_every_experiment_has_suites_that_exist(command: Command) -> None:
    registry = Registry()
    found = experiments(registry)
    assert list(found) == ["toy", "uci", "cifar10", "softmax", "latency"]
    for name, (report, one) in found.items():
        for protocol, parts in one.parts.items():
            for part in parts:
                assert part.suite in suite_names()
                assert Experiment(name, one.title, protocol, part, True, report, registry).suite().datasets
    listed = command("list", "experiments").out
    assert all(line.split()[0] in found for line in listed.splitlines())


def test_a_duration_is_scaled_by_what_was_measured(tmp_path: Path) -> None:
    """Twice the seconds for twice the work: the measurement holds for other numbers of seeds and what is stored."""
    registry = Registry()
    suite = load_suite("toy", {"seeds": 4, "draws": 20})
    half = load_suite("toy", {"seeds": 2, "draws": 20})
    measured = Measured(seconds=1000.0, calibration=1e9)  # on a machine that is very slow: nothing is left of it here
    fast = estimate_duration(suite, registry, None, 1, (suite, measured))
    assert (fast.missing, fast.stored, fast.workers) == (20, 0, 1)
    assert fast.seconds < 1e-3
    rough = estimate_duration(suite, registry, None, 1)
    less = estimate_duration(half, registry, None, 1)
    assert 0.3 < less.seconds / rough.seconds < 1.0
    assert "rough" in rough.basis
    with Store(str(tmp_path / "empty.db")) as store:
        assert estimate_duration(suite, registry, store, 1).missing == 20


def test_durations_in_words() -> None:
    assert [in_words(seconds) for seconds in (0.2, 70, 600, 9000)] == [
        "1 second",
        "70 seconds",
        "10 minutes",
        "2.5 hours",
    ]
    some, last = Duration(3, 1, 600.0, 2, "measured"), Duration(1, 0, 20.0, 1, "rough")
    assert str(some) == "3 cells to run, 1 stored: about 10 minutes with 2 workers (measured)"
    assert str(last) == "1 cell to run: about 20 seconds with 1 worker (rough)"


def test_in_python_as_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(bench.UserError, match="unknown experiment"):
        bench.reproduce("toys")
    suite = find_experiment("toy", seeds=3, changes={"training.epochs": 5}).suite()
    assert (suite.seeds, suite.protocol_for("toy").training.epochs) == (3, 5)
    assert find_experiment("toy", changes=["training.epochs=5"]).suite().seeds == 100
