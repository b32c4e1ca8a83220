"""The gate inside pytest: `pytest --uqbench-baseline FILE`, one test a method, dataset and metric family.

Every pytest of an environment loads this module, so it imports nothing of weight and does nothing without its option.
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
    """Add the options."""
    group = parser.getgroup(*GROUP)
    group.addoption("--uqbench-baseline", metavar="FILE", help="hold the suite of this baseline to it, as tests")
    group.addoption(
        "--uqbench-suite", metavar="SUITE", help="the suite file, where it is not a built-in one of the baseline's name"
    )
    group.addoption("--uqbench-store", metavar="URL", help="read what is stored there and run the rest into it")
    group.addoption("--uqbench-strict", action="store_true", help="inconclusive comparisons fail, too")
    group.addoption(
        "--uqbench-plugin", action="append", default=[], metavar="FILE", help="a file with a plug-in; may be repeated"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the gate's tests to what was collected, before -k and -m choose among them."""
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
        from bench.plan.suite import load_suite

        self.config = config
        self.strict: bool = config.getoption("uqbench_strict")
        self.baseline: Baseline = read_baseline(Path(path))
        self.suite = load_suite(config.getoption("uqbench_suite") or self.baseline.suite).only([], [])
        check_suite_against(self.suite, self.baseline, path)
        self._made: Gate | None = None

    @property
    def made(self) -> "Gate":
        """The gate, run once."""
        if self._made is None:
            from bench.gate.measure import Measuring, gate_suite, store_for
            from bench.plugins.registry import Registry

            registry = Registry([Path(file) for file in self.config.getoption("uqbench_plugin")])
            with store_for(self._store()) as store:
                self._made = gate_suite(self.suite, self.baseline, Measuring(self.suite, registry, store))
        return self._made

    def _store(self) -> str | None:
        """The processes of pytest-xdist share one store, and with it the work: a store gives each cell out once."""
        given: str | None = self.config.getoption("uqbench_store")
        worker: dict[str, Any] | None = getattr(self.config, "workerinput", None)
        if given or worker is None:
            return given
        return str(worker_folder(self.config) / f"{worker['testrunuid']}.db")


def worker_folder(config: pytest.Config) -> Path:
    """Return where the processes of pytest-xdist meet."""
    return Path(config.rootpath) / ".pytest_cache" / "uqbench"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove what the processes of pytest-xdist shared; the one that started them does it."""
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
        """Yield one test a method, dataset and metric family of the baseline."""
        from bench.metrics import find_declaration

        for (dataset, method), rows in sorted(self.run.baseline.measured.values.items()):
            families = sorted({metric.family for name in rows if (metric := find_declaration(name))})
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
        """Fail where a metric of the family regressed, or where cells were lost."""
        from bench.gate.text import told

        own = [row for row in self.run.made.rows if row.place == self.place and row.family in (self.family, "")]
        bad = [row for row in self.run.made.failing(strict=self.run.strict) if row in own]
        if bad:
            raise GateFailure("\n".join(told(row) for row in bad))
        compared = [row for row in own if row.verdict not in ("not compared", "new")]
        if not compared:
            pytest.skip("; ".join(told(row) for row in own) or "nothing to compare")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the numbers instead of a traceback."""
        from bench.errors import UserError

        if isinstance(excinfo.value, GateFailure | UserError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return what stands for the test in a report."""
        return Path(self.config.rootpath), None, f"uqbench gate: {self.name}"


class GateFailure(Exception):  # noqa: N818  # a failure of the test, no error of the program
    """What regressed, in words."""
