import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import __version__
from bench.cli.main import LISTED, app
from bench.metrics import catalogue
from bench.plan.suite import suite_names
from bench.plugins.registry import Registry
from tests.fixtures.commands import Command

WritePlugin = Callable[[str, str], Path]


@pytest.fixture
def call(command: Command) -> Command:
    """Run the command in this process, in an empty folder, with the exit code that the shell would see."""
    return command


@pytest.mark.parametrize("kind", ["methods", "datasets", "reports", "suites", "metrics"])
def test_list(kind: str, call: Command) -> None:
    expected = {
        "methods": list(Registry().plugins("method")),
        "datasets": list(Registry().plugins("dataset")),
        "reports": list(Registry().plugins("report")),
        "suites": list(suite_names()),
        "metrics": list(catalogue()),
    }[kind]
    plain, as_json = call("list", kind), call("list", kind, "--json")
    assert (plain.code, as_json.code, plain.err) == (0, 0, "")
    assert [line.split()[0] for line in plain.out.splitlines()] == expected
    rows = json.loads(as_json.out)
    assert [row["name"] for row in rows] == expected
    assert all(row["summary"] for row in rows)


def test_list_alone_counts_what_each_list_has(call: Command) -> None:
    lines = [line.split()[:2] for line in call("list").out.splitlines()]
    assert [kind for kind, _ in lines] == list(LISTED)
    assert all(len(call("list", kind).out.splitlines()) == int(count) for kind, count in lines)
    rows = json.loads(call("list", "--json").out)
    assert [[row["name"], str(row["count"])] for row in rows] == lines


def test_a_suite_is_an_argument_or_an_option_of_every_command() -> None:
    """In rank it stands before the names of methods, as test_stats.py shows; submit takes a folder alone."""
    for name, command in app.commands.items():
        options = {text for parameter in command.params for text in parameter.opts}
        if {"suite", "suites", "--suite"} & options and name not in {"rank", "submit"}:
            assert "--suite" in options, name
            assert {"suite", "suites"} & options, name


def test_a_suite_is_named_once(call: Command, tiny_file: Path) -> None:
    dry = ("--dry-run", "--store", "s.db")
    assert call("run", "--suite", str(tiny_file), *dry).out == call("run", str(tiny_file), *dry).out
    assert "name one suite" in call("run", str(tiny_file), "--suite", "quick", *dry).err


def test_list_tells_where_a_plugin_of_ones_own_is_from(call: Command, write_plugin: WritePlugin) -> None:
    path = write_plugin("my_own", "@dataclass(frozen=True)\nclass Mine(Method):\n    pass\n")
    lines = call("list", "methods", "--plugin", str(path)).out.splitlines()
    (mine,) = (line for line in lines if line.startswith("my-own"))
    assert mine.endswith(f"The plug-in my_own.  (file {path})")


def test_metrics_are_listed_with_direction_and_unit(call: Command) -> None:
    rows = {row["name"]: row for row in json.loads(call("list", "metrics", "--json").out)}
    assert rows["rmse"]["direction"] == "lower"
    assert rows["picp"]["target"] == pytest.approx(0.9973, abs=1e-4)
    assert rows["msll"]["relative_to"] == "nll_mc"


GOOD = 'title = "t"\n[datasets.toy]\n[methods.deterministic]\n'
MISTAKES: dict[str, tuple[tuple[str, ...], str]] = {
    "no-such-command": (("lst",), "Did you mean 'list'"),
    "no-such-list": (("list", "method"), "did you mean methods"),
    "run-of-nothing": (("run",), "Missing argument 'SUITE'"),
    "no-such-option": (("run", "quick", "--sed", "3"), "--sed"),
    "no-such-suite": (("run", "quik"), "did you mean quick"),
    "suite-without-its-ending": (("run", "good"), "a suite of your own is named by its file: good.toml"),
    "no-such-file": (("run", "gone.toml"), "no such file"),
    "bad-toml": (("run", "bad.toml"), "not valid TOML"),
    "bad-seeds": (("run", "quick", "--seeds", "0"), "--seeds"),
    "many-seeds": (("run", "quick", "--seeds", "many"), "--seeds"),
    "bad-set": (("run", "quick", "--set", "foo"), "expected key=value"),
    "bad-set-key": (("run", "quick", "--set", "trainin.epochs=3"), "did you mean training?"),
    "bad-set-value": (("run", "quick", "--set", "training.epochs=few"), "training.epochs"),
    "bad-method": (("run", "quick", "--method", "mc-dropot"), "did you mean mc-dropout"),
    "own-method": (("run", "quick", "--method", "mine"), "a method of your own needs --plugin FILE"),
    "file-as-dataset": (("run", "quick", "--dataset", "bikes.csv"), "csv:bikes.csv?target=TARGET"),
    "verify-another": (("verify", "method", "mc-dropout", "--plugin", "mine.py"), "mine.py has the method 'mine'"),
    "verify-another-metric": (("verify", "metric", "rmse", "--plugin", "mine.py"), "mine.py has no metric"),
    "bad-dataset": (("run", "quick", "--dataset", "digit"), "did you mean digits"),
    "bad-device": (("run", "quick", "--device", "tpu"), "'auto', 'cpu', 'cuda'"),
    "bad-data": (("run", "quick", "--data", "gone"), "--data gone: no such folder"),
    "bad-plugin": (("run", "quick", "--plugin", "gone.py"), "no such file"),
    "text-as-plugin": (("run", "quick", "--plugin", "bad.toml"), "not a Python file"),
    "bad-store": (("run", "good.toml", "--store", "foo://bar"), "expected an SQLite file"),
    "store-in-a-file": (("run", "good.toml", "--store", "bad.toml/x.db"), "--store"),
    "text-as-store": (("report", "--store", "long.txt"), "file is not a database"),
    "no-store": (("report",), "no such store; create one with 'uqbench run"),
    "no-store-named": (("report", "--store", "gone.db"), "no such store"),
    "no-cuda": (("run", "quick", "--device", "cuda", "--dry-run"), "no CUDA device"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_one_line_and_exit_2(case: str, call: Command, tmp_path: Path) -> None:
    import torch

    if case == "no-cuda" and torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    (tmp_path / "bad.toml").write_text("title = ", "utf-8")
    (tmp_path / "good.toml").write_text(GOOD, "utf-8")
    (tmp_path / "mine.py").write_text("from bench.api import Method\nclass Mine(Method):\n    pass\n", "utf-8")
    (tmp_path / "long.txt").write_text("no database " * 500, "utf-8")
    arguments, reason = MISTAKES[case]
    answer = call(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("uqbench: ")
    assert answer.err.count("\n") == 1
    assert reason in answer.err
    assert not (tmp_path / "runs").exists()


TYPO = """
@dataclass(frozen=True)
class Mine(Method):
    def loss(self, net, batch, tape):
        return batch.loss(net(batch.X))
"""


def test_verify_prints_a_reason_once_with_all_checks_that_failed_by_it(
    call: Command, write_plugin: WritePlugin
) -> None:
    path = write_plugin("mine", TYPO)
    only = [argument for name in ("seeded", "finite", "version", "shapes") for argument in ("--only", name)]
    done = call("verify", "method", "mine", "--plugin", str(path), *only)
    assert done.code == 1
    assert done.out.count("'Batch' object has no attribute 'X'") == 1
    assert "FAILED   for the same reason as shapes: finite, seeded\n" in done.out
    assert done.out.endswith("method mine: 1 ok, 3 failed\n")
    rows = json.loads(call("verify", "method", "mine", "--plugin", str(path), "--json", *only).out)["checks"]
    assert sum("no attribute 'X'" in row["message"] for row in rows) == 3


def test_help_and_version(call: Command) -> None:
    alone = call()
    assert alone.code == 0
    assert alone.out == call("--help").out
    assert len(alone.out.splitlines()) > 5
    assert call("--version").out == f"uqbench, version {__version__}\n"
    for command in ("list", "run", "report", "doctor"):
        assert command in alone.out
        assert call(command, "--help").code == 0
    said = call("run", "--help").out
    options = (
        "--method",
        "--dataset",
        "--seeds",
        "--splits",
        "--set",
        "--store",
        "--device",
        "--data",
        "--plugin",
        "--dry-run",
        "--json",
    )
    assert all(option in said for option in options)


def test_dry_run_runs_nothing(call: Command, tiny_file: Path, tmp_path: Path) -> None:
    answer = call("run", str(tiny_file), "--dry-run", "--store", "s.db")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[-1] == "4 cells to run, 0 stored"
    assert not (tmp_path / "s.db").exists()
    rows = json.loads(call("run", str(tiny_file), "--dry-run", "--json", "--store", "s.db").out)
    assert [(r["method"], r["seed"], r["state"]) for r in rows] == [
        (m, s, "to run") for m in ("deterministic", "mc-dropout") for s in (0, 1)
    ]


def test_seeds_share_the_splits_that_are_given(call: Command, tiny_file: Path) -> None:
    part = ("run", str(tiny_file), "--dry-run", "--json", "--method", "deterministic")
    rows = json.loads(call(*part, "--seeds", "4", "--splits", "2").out)
    assert [(row["split"], row["seed"]) for row in rows] == [(0, 0), (1, 1), (0, 2), (1, 3)]
    assert "3 seeds cannot be shared evenly by 2 splits" in call(*part, "--seeds", "3", "--splits", "2").err


def test_datasets_and_methods_asked_for_by_name_join_the_suite(call: Command, tiny_file: Path) -> None:
    answer = call("run", str(tiny_file), "--dry-run", "--json", "--dataset", "wine", "--method", "mcni-fixed")
    assert {(row["dataset"], row["method"]) for row in json.loads(answer.out)} == {("wine", "mcni-fixed")}
    assert answer.code == 0


def test_dry_run_of_a_broken_plugin_says_so(call: Command, tiny_file: Path, write_plugin: WritePlugin) -> None:
    path = write_plugin("mine", "class Mine(Method):\n    pass\n")
    answer = call("run", str(tiny_file), "--dry-run", "--plugin", str(path))
    assert "cannot run: method 'mine'" in answer.out
    assert "4 cells to run" in answer.out
    assert answer.code == 1


@pytest.mark.slow
def test_run_then_rerun_then_report(call: Command, tiny_file: Path, tmp_path: Path) -> None:
    first = call("run", str(tiny_file), "--store", "s.db", "--json")
    assert first.code == 0
    assert first.err == ""  # no progress bar without a terminal
    told = json.loads(first.out)
    assert (told["stored"], told["skipped"], told["failed"], told["suite"]) == (4, 0, [], "tiny")
    second = call("run", str(tiny_file), "--store", "sqlite:///s.db", "--seeds", "3")
    assert second.out.startswith("tiny: 2 cells run, 4 stored before, 0 diverged, 0 failed, in ")
    dry = call("run", str(tiny_file), "--store", "s.db", "--seeds", "4", "--dry-run")
    assert dry.out.splitlines()[-1] == "2 cells to run, 6 stored"
    report = call("report", "--store", "s.db", "--out", "out", "--pdf")
    assert (report.code, report.out) == (0, "report: out/index.html\n")
    assert (tmp_path / "out" / "index.html").is_file()
    assert (tmp_path / "out" / "report.md").is_file()
    figures = tmp_path / "out" / "figures"
    assert {p.stem for p in figures.glob("*.pdf")} == {p.stem for p in figures.glob("*.png")} != set()
    assert call("report", "tinny", "--store", "s.db").code == 2


@pytest.mark.slow
def test_a_failing_method_is_exit_1_and_told_once(call: Command, tiny_file: Path, write_plugin: WritePlugin) -> None:
    body = "def loss(self, net, batch, tape):\n        raise RuntimeError('bad\\nluck')"
    path = write_plugin("mine", f"@dataclass(frozen=True)\nclass Mine(Method):\n    {body}\n")
    arguments = ("run", str(tiny_file), "--store", "s.db", "--plugin", str(path))
    answer = call(*arguments)
    assert answer.code == 1
    assert answer.err.splitlines() == [
        "FAILED: toy mine: loss, mine.py:10: RuntimeError: bad luck",
        "uqbench: exit code 1: 2 cells failed",
    ]
    assert "4 cells run, 0 stored before, 0 diverged, 2 failed" in answer.out
    told = json.loads(call(*arguments, "--json").out)
    assert (told["skipped"], len(told["failed"])) == (4, 2)
    assert "Traceback" in told["failed"][0]["message"]


@pytest.mark.slow
def test_a_broken_plugin_is_exit_1_and_the_others_run(
    call: Command, tiny_file: Path, write_plugin: WritePlugin
) -> None:
    path = write_plugin("mine", "class Mine(Method):\n    pass\n")
    answer = call("run", str(tiny_file), "--store", "s.db", "--plugin", str(path))
    assert answer.code == 1
    assert answer.err.startswith("FAILED: toy mine: method 'mine'")
    assert "4 cells run" in answer.out


def test_a_dataset_that_fails_is_told_by_its_name(call: Command, tiny_file: Path) -> None:
    answer = call("run", str(tiny_file), "--store", "s.db", "--set", "network.kind=resnet8")
    assert answer.code == 1
    assert answer.err.startswith("FAILED: toy: network 'resnet8' needs images")
    assert "0 failed, 4 could not begin, in" in answer.out
    assert answer.err.endswith("uqbench: exit code 1: 4 cells could not begin\n")


@pytest.mark.slow
def test_what_cannot_run_here_is_skipped_and_well(call: Command, tiny_file: Path, write_plugin: WritePlugin) -> None:
    body = "def skip(self, problem):\n        return 'not today'"
    path = write_plugin("mine", f"@dataclass(frozen=True)\nclass Mine(Method):\n    {body}\n")
    answer = call("run", str(tiny_file), "--store", "s.db", "--plugin", str(path), "--seeds", "1")
    assert (answer.code, answer.err) == (0, "skipped: toy mine: not today\n")


def test_options_of_a_plugin_of_ones_own_can_be_set(call: Command, tiny_file: Path, write_plugin: WritePlugin) -> None:
    path = write_plugin("mine", "@dataclass(frozen=True)\nclass Mine(Method):\n    strength: float = 0.5\n")
    dry = ("run", str(tiny_file), "--dry-run", "--json", "--plugin", str(path), "--method", "mine")
    keys = [
        {row["key"] for row in json.loads(call(*dry, *more).out)}
        for more in ((), ("--set", "methods.mine.strength=0.7"))
    ]
    assert [len(found) for found in keys] == [2, 2]
    assert not keys[0] & keys[1]


def test_a_method_that_the_suite_does_not_list_can_be_asked_for(call: Command, tiny_file: Path) -> None:
    rows = json.loads(call("run", str(tiny_file), "--dry-run", "--json", "--method", "mcni-fixed").out)
    assert {row["method"] for row in rows} == {"mcni-fixed"}


def test_data_names_the_folder_for_datasets(
    call: Command, tiny_file: Path, write_plugin: WritePlugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UQBENCH_DATA", "")
    body = (
        "@dataclass(frozen=True)\nclass Mine(Dataset):\n    task = 'regression'\n"
        "    def skip(self):\n        from bench.machine.data_files import find_file, missing_file\n"
        "        return None if find_file('mine.txt') else missing_file('mine.txt')\n"
        "    def load(self, split):\n        x = np.arange(9.0)[:, None] + split\n"
        "        return Split('regression', x, x[:, 0], x, x[:, 0])\n"
    )
    path = write_plugin("mine", body)
    dry = ("run", str(tiny_file), "--dry-run", "--plugin", str(path), "--dataset", "mine")
    assert "mine.txt was not found in" in call(*dry).out
    (tmp_path / "mine.txt").touch()
    assert "4 cells to run" in call(*dry, "--data", str(tmp_path)).out


def test_doctor(call: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    well = call("doctor", "--json")
    assert well.code == 0
    assert {"device", "threads", "store", "data"} <= {row["subject"] for row in json.loads(well.out)}
    ill = call("doctor", "--store", "/proc/nowhere/s.db")
    assert ill.code == 1
    assert any(line.startswith("problem  store") for line in ill.out.splitlines())
    assert not (tmp_path / "runs").exists()
