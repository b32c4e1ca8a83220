"""The gate inside pytest: `pytest --uqbench-baseline FILE`, one test per method, dataset and metric family.

Every pytest of an environment loads this module, so it imports nothing slow and does nothing without its option.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from bench.gate.baseline import Baseline
    from bench.gate.decide import Gate

GROUP = "uqbench", "the gate of uqbench"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the gate."""
    group = parser.getgroup(*GROUP)
    group.addoption("--uqbench-baseline", metavar="FILE", help="compare the suite of this baseline with it, as tests")
    group.addoption(
        "--uqbench-suite", metavar="SUITE", help="the suite file, where it is not a built-in one of the baseline's name"
    )
    group.addoption("--uqbench-store", metavar="URL", help="read stored cells from there and store new ones")
    group.addoption("--uqbench-strict", action="store_true", help="inconclusive comparisons fail as well")
    group.addoption(
        "--uqbench-plugin", action="append", default=[], metavar="FILE", help="a file with a plug-in; may be repeated"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the gate's tests to the collected ones, before -k and -m select."""
    if path := config.getoption("uqbench_baseline"):
        from bench.errors import UserError

        try:
            collector = GateCollector.from_parent(session, name=f"uqbench[{Path(path).name}]", run=Run(config, path))
            items.extend(collector.collect())
        except UserError as error:
            raise pytest.UsageError(str(error)) from None


class Run:
    """One gate for all tests of a session; it runs when the first of them does."""

    def __init__(self, config: pytest.Config, path: str) -> None:
        from bench.gate.baseline import read_baseline
        from bench.gate.same_suite import check_suite_against
        from bench.metrics import using_metrics
        from bench.plan.suite import load_suite
        from bench.plugins.registry import Registry

        self.config = config
        self.strict: bool = config.getoption("uqbench_strict")
        self.baseline: Baseline = read_baseline(Path(path))
        self.registry = Registry([Path(file) for file in config.getoption("uqbench_plugin")])
        with using_metrics(self.registry.metrics):
            self.suite = load_suite(config.getoption("uqbench_suite") or self.baseline.suite).only([], [])
        check_suite_against(self.suite, self.baseline, path)
        self._gate: Gate | None = None

    @property
    def gate(self) -> "Gate":
        """The gate, run once."""
        if self._gate is None:
            from bench.gate.measure import SuiteMeasurer, gate_suite, store_for

            with store_for(self._store()) as store:
                self._gate = gate_suite(self.suite, self.baseline, SuiteMeasurer(self.suite, self.registry, store))
        return self._gate

    def _store(self) -> str | None:
        """Return the store; the processes of pytest-xdist share one, so that each cell is run once."""
        given: str | None = self.config.getoption("uqbench_store")
        worker: dict[str, Any] | None = getattr(self.config, "workerinput", None)
        if given or worker is None:
            return given
        return str(worker_folder(self.config) / f"{worker['testrunuid']}.db")


def worker_folder(config: pytest.Config) -> Path:
    """Return the folder that the processes of pytest-xdist share."""
    return Path(config.rootpath) / ".pytest_cache" / "uqbench"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove the folder that the processes of pytest-xdist shared, in the process that started them."""
    config = session.config
    if config.getoption("uqbench_baseline") and not hasattr(config, "workerinput"):
        import shutil

        shutil.rmtree(worker_folder(config), ignore_errors=True)


class GateCollector(pytest.Collector):
    """The tests of one baseline."""

    def __init__(self, *, run: Run, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run

    def collect(self) -> "Iterator[GateItem]":
        """Yield one test per method, dataset and metric family of the baseline."""
        metrics = self.run.registry.metrics
        for (dataset, method), rows in sorted(self.run.baseline.measured.values.items()):
            families = sorted({metric.family for name in rows if (metric := metrics.get(name.partition("@")[0]))})
            for family in families:
                yield GateItem.from_parent(
                    self, name=f"{dataset}-{method}-{family}", run=self.run, place=(dataset, method), family=family
                )


class GateItem(pytest.Item):
    """One method on one dataset by one family of metrics."""

    def __init__(self, *, run: Run, place: tuple[str, str], family: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run, self.place, self.family = run, place, family

    def runtest(self) -> None:
        """Fail where a metric of the family regressed, or where cells have no result."""
        from bench.gate.output import sentence

        own = [row for row in self.run.gate.rows if row.place == self.place and row.family in (self.family, "")]
        failed = [row for row in self.run.gate.failing(strict=self.run.strict) if row in own]
        if failed:
            raise GateFailure("\n".join(sentence(row) for row in failed))
        if all(row.verdict in ("not compared", "new") for row in own):
            pytest.skip("; ".join(sentence(row) for row in own) or "nothing to compare")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the numbers instead of a traceback."""
        from bench.errors import UserError

        if isinstance(excinfo.value, GateFailure | UserError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the name of the test in a report."""
        return Path(self.config.rootpath), None, f"uqbench gate: {self.name}"


class GateFailure(Exception):  # noqa: N818  # a test that failed, not an error of the program
    """The comparisons that failed, one sentence each."""
