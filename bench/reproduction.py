"""From nothing to the page of a published experiment: `uqbench reproduce`, and `bench.reproduce` for scripts.

Report plug-ins say which experiments there are, which suites repeat them, and what the results say about them.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import UserError, unknown_name
from bench.machine.environment import cores
from bench.run.options import RunOptions
from bench.store import DEFAULT_URL
from bench.workflow import Changes, StoreSource, choose_suite, load_results, registry_of, run_suite, write_report

if TYPE_CHECKING:
    from bench.api import Report, Reproduction, SuitePart
    from bench.plan.suite import Suite
    from bench.plugins.registry import Registry
    from bench.run.duration import Duration
    from bench.store.store import Store
    from bench.workflow import SuiteRun


@dataclass(frozen=True, eq=False)
class Reproduced:
    """What became of an experiment."""

    run: "SuiteRun"
    page: Path | None  # None: the run was stopped, and the same call continues it
    verdicts: tuple[str, ...] = ()  # on the claims of the publication, one line each


@dataclass(frozen=True, eq=False)
class Experiment:
    """A published experiment in the form that was chosen."""

    name: str
    title: str
    protocol: str
    part: "SuitePart"
    whole: bool  # rather than a short form of it
    report: "Report"
    registry: "Registry"
    changes: tuple[str, ...] = ()  # of the user, as KEY=VALUE

    def suite(self) -> "Suite":
        """Return its suite with the user's changes."""
        return self._chosen(self.changes)

    def _chosen(self, changes: tuple[str, ...]) -> "Suite":
        whole = [*_texts(self.part), *changes]
        return choose_suite(self.part.suite, self.registry, datasets=list(self.part.datasets), changes=whole)

    def check_data(self) -> None:
        """Raise a UserError that says how to get the data where some is missing."""
        entries = {name: (entry.use or name, entry.options) for name, entry in self.suite().datasets.items()}
        made = {plugin: self.registry.make("dataset", plugin, options) for plugin, options in entries.values()}
        missing = " ".join(plugin for plugin, dataset in made.items() if dataset.skip())
        if missing:
            raise UserError(
                f"reproduce {self.name}: the data of {missing} is missing; 'uqbench data fetch {missing}' downloads "
                "it, or name its folder with --data DIR"
            )

    def duration(self, store: StoreSource, options: RunOptions) -> "Duration":
        """Return how long the cells take that the store does not have yet."""
        from bench.run.duration import estimate_duration

        workers = 1 if options.executor == "inline" else options.workers or cores()
        measured = self.part.measured
        reference = None if measured is None else (self._chosen(()), measured)
        with _if_there(store) as opened:
            device = options.settings().device
            return estimate_duration(self.suite(), self.registry, opened, workers, reference, device)

    def reproduce(self, store: StoreSource, out: str | Path, options: RunOptions) -> Reproduced:
        """Run what is missing and write the report."""
        self.check_data()
        changes, datasets = [*_texts(self.part), *self.changes], list(self.part.datasets)
        run = run_suite(self.part.suite, datasets=datasets, changes=changes, store=store, options=options)
        if run.summary.left:
            return Reproduced(run, None)
        page = write_report(run.store, out, suites=[run.suite.name])
        results = load_results(run.store, run.suite.name)
        return Reproduced(run, page, tuple(self.report.verdicts([results])))


def reproduce(
    experiment: str,
    *,
    protocol: str | None = None,
    full: bool = False,
    seeds: int | None = None,
    changes: Changes = (),
    store: StoreSource = DEFAULT_URL,
    out: str | Path = "report",
    options: RunOptions = RunOptions(),
) -> Reproduced:
    """Run a published experiment, as far as the store does not have it, and write its report.

    Without `full` it is a short form where the whole would take hours. `seeds` and `changes` are those of `run_suite`;
    the report names what they change.
    """
    return find_experiment(experiment, protocol, full, seeds, changes).reproduce(store, out, options)


def find_experiment(
    name: str, protocol: str | None = None, full: bool = False, seeds: int | None = None, changes: Changes = ()
) -> Experiment:
    """Return an experiment by its name; the protocol is its first one unless another is named."""
    registry = registry_of()
    found = experiments(registry)
    if name not in found:
        raise unknown_name("experiment", name, found)
    report, one = found[name]
    if protocol is not None and protocol not in one.parts:
        raise unknown_name("protocol", protocol, one.parts, f"reproduce {name}")
    chosen = next(iter(one.parts)) if protocol is None else protocol
    texts = _as_texts(changes) if isinstance(changes, Mapping) else list(changes)
    texts += [] if seeds is None else [f"seeds={seeds}"]
    short, whole = one.parts[chosen]
    part = whole if full else short
    return Experiment(name, one.title, chosen, part, part == whole, report, registry, tuple(texts))


def experiments(registry: "Registry") -> "dict[str, tuple[Report, Reproduction]]":
    """Return all experiments that report plug-ins know, by name."""
    found: dict[str, tuple[Report, Reproduction]] = {}
    for plugin in registry.plugins("report"):
        report = registry.make("report", plugin, {})
        found |= {name: (report, one) for name, one in report.reproductions().items()}
    return found


def _texts(part: "SuitePart") -> list[str]:
    seeds = {} if part.seeds is None else {"seeds": part.seeds}
    return _as_texts({**seeds, **part.changes})


def _as_texts(changes: Mapping[str, object]) -> list[str]:
    """Return changes as they are written on the command line: JSON of numbers, texts and lists is TOML, too."""
    return [f"{key}={json.dumps(value)}" for key, value in changes.items()]


@contextmanager
def _if_there(source: StoreSource) -> "Iterator[Store | None]":
    """Open a store for reading; None where the run will make it."""
    from bench.store.store import NoStoreError, Store

    if isinstance(source, Store):
        yield source
        return
    try:
        opened = Store(str(source), create=False, writable=False)
    except NoStoreError:
        yield None
        return
    with closing(opened):
        yield opened
