"""Measures a suite for a gate or a baseline: runs it, or reads the cells that a store has."""

import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from bench.counts import plural
from bench.errors import UserError
from bench.gate.baseline import Baseline
from bench.gate.decide import Gate, gate
from bench.gate.values import Measured, Place, gated_metrics, measured
from bench.gate.verdicts import Rules
from bench.machine.environment import code_version
from bench.metrics import declaration, using_metrics
from bench.plan.suite import Suite
from bench.plugins.registry import Registry
from bench.run.driver import DEFAULT_SETTINGS, SILENT, RunSettings, run
from bench.run.monitor import Monitor
from bench.store.results import StoredResults
from bench.store.store import Store


@contextmanager
def store_for(url: str | None) -> Iterator[Store]:
    """Open a store; without an address an empty one that is removed afterwards.

    A key does not depend on the code that made a cell: an old store would return the numbers of earlier code.
    """
    if url is not None:
        with closing(Store(url)) as store:
            yield store
        return
    with (
        tempfile.TemporaryDirectory(prefix="uqbench-gate-") as folder,
        closing(Store(str(Path(folder) / "gate.db"))) as store,
    ):
        yield store


class StoppedError(UserError):
    """The run was stopped by its user."""


class SuiteMeasurer:
    """Measures one suite in one store, at as many seeds as are wanted."""

    def __init__(
        self,
        suite: Suite,
        registry: Registry,
        store: Store,
        settings: RunSettings = DEFAULT_SETTINGS,
        monitor: Monitor = SILENT,
    ) -> None:
        self.suite, self.registry, self.store = suite, registry, store
        self.settings, self.monitor = settings, monitor
        self.read = 0  # cells that the store had before

    def __call__(self, seeds: int, places: Collection[Place] | None = None) -> Measured:
        """Run what is missing of the first seeds, of all places or of some, and return what there is."""
        whole = self.suite.model_copy(update={"seeds": seeds})
        with using_metrics(self.registry.metrics):
            for part in self._parts(whole, places):
                summary = run(part, self.registry, self.store, self.settings, self.monitor)
                if summary.left:
                    left = plural(summary.left, "cell")
                    raise StoppedError(f"stopped with {left} left, so there is nothing to decide")
                self.read += summary.skipped if places is None else 0
            return measured(StoredResults(self.store, whole.name), gated_metrics(whole), range(seeds))

    @staticmethod
    def _parts(suite: Suite, places: Collection[Place] | None) -> Iterator[Suite]:
        if places is None:
            yield suite
            return
        methods: dict[str, set[str]] = defaultdict(set)
        relative = any(declaration(name).relative_to for name in gated_metrics(suite))
        for dataset, method in places:
            methods[dataset].add(method)
            if relative and suite.baseline:
                methods[dataset].add(suite.baseline)  # the others are measured against it, seed by seed
        for dataset, chosen in sorted(methods.items()):
            yield suite.only([dataset], sorted(chosen))


def rules_of(suite: Suite) -> Rules:
    """Return the rules that a suite sets for its gate."""
    return Rules(alpha=suite.gate.alpha, margins=suite.margins)


def gate_suite(
    suite: Suite, baseline: Baseline, measure: SuiteMeasurer, looks: tuple[int, ...] = (), rules: Rules | None = None
) -> Gate:
    """Gate a suite; the notes name the source of cells that were not run."""
    # Trained in another form, networks would agree up to rounding only.
    measure.settings = replace(measure.settings, forms=baseline.measured.forms)
    with using_metrics(measure.registry.metrics):
        result = gate(baseline, measure, rules or rules_of(suite), looks)
    notes = []
    if measure.read:
        notes.append(f"{plural(measure.read, 'cell')} read from {measure.store.address}, not run")
        stale = [code for code in result.codes if code != code_version()]
        if stale:
            made_by = ", ".join(code or "unknown" for code in stale)
            notes.append(f"they were made by code {made_by}, not by the present {code_version() or 'one'}")
    return replace(result, notes=tuple(notes))
