"""Puts a scored submission into a store, beside the runs of a suite on the same rows.

Its method's name in the suite ends with `MARK`, so that every table, page and file that names it says that nobody ran
it here. What was verified and what is only reported is stored with each cell.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.errors import UserError
from bench.machine.environment import facts
from bench.metrics.kept import pack
from bench.spec.cell import Cell, Outcome
from bench.spec.plugin import SUBMITTED, PluginSpec
from bench.spec.protocol import Training
from bench.spec.spec import HARNESS, CellSpec, spec_or_none
from bench.store.store import Store, SuiteRecord
from bench.submissions.scoring import VERIFIED, Scored, ScoredSubmission

MARK = "(not re-run)"


@dataclass(frozen=True)
class Entered:
    """What was stored."""

    suite: str
    datasets: tuple[str, ...]  # as the suite names them
    method: str  # with its mark
    new: int
    there: int  # that were stored before


def enter(store: Store, found: ScoredSubmission, suite: str | None = None, *, replacing: bool = False) -> Entered:
    """Store the predictions as cells of a suite that has runs on the same rows; all of them, or none."""
    name = _suite(store, suite)
    record = store.suites()[name]
    stored = store.cells(name)
    own = [(scored, _twin(stored, scored, name, store)) for scored in found.scored]
    label = f"{found.submission.method} {MARK}"
    environment, now = facts("cpu"), time.time()
    results = []
    for scored, (dataset, twin) in own:
        cell = Cell.of(_spec(found, scored, twin), dataset, label)
        results.append((cell, _outcome(found, scored, environment, now)))
    places = {(cell.dataset, cell.split, cell.seed): cell for cell, _ in results}
    before = [row for row in stored if row["method"] == label and row["dataset"] in {c.dataset for c, _ in results}]
    others = []
    for row in before:
        place = (row["dataset"], row["split"], row["seed"])
        if place not in places:
            others.append(Cell(row["key"], row["dataset"], row["split"], label, row["seed"], row["spec"] or ""))
        elif places[place].key != row["key"] and not replacing:
            raise UserError(
                f"{label} has other predictions for {place[0]}, split {place[1]}, seed {place[2]} in the store "
                f"{store.address}; --replace shows the new ones instead"
            )
    cells = [cell for cell, _ in results]
    there = store.done(cell.key for cell in cells)
    kept = SuiteRecord(name, record["title"], record["baseline"], record["metrics"], record["content"])
    store.save(results, name)
    store.want(kept, [*others, *cells])
    datasets = tuple(dict.fromkeys(cell.dataset for cell in cells))
    for dataset in datasets:
        about = found.submission
        store.remark(name, dataset, label, [f"predictions submitted by {about.who}, scored here, {SUBMITTED}"])
    return Entered(name, datasets, label, len(cells) - len(there), len(there))


def _suite(store: Store, suite: str | None) -> str:
    known = store.suites()
    if suite is not None:
        store.require_suite(suite)
        return suite
    if len(known) != 1:
        raise UserError(f"--store {store.address} has {len(known)} suites; name one with --suite")
    return next(iter(known))


def _twin(stored: Sequence[Mapping[str, Any]], scored: Scored, suite: str, store: Store) -> tuple[str, CellSpec]:
    """Return the dataset, as the suite names it, and the specification of a run on the same rows with the same seed."""
    wanted = scored.predictions
    fault = f"no run on rows of the fingerprint {wanted.data}"
    for row in stored:
        spec = spec_or_none(row["spec"])
        if spec is None or spec.data != wanted.data or spec.method.origin == SUBMITTED:
            continue
        if (spec.split, spec.seed) != (wanted.split, wanted.used_seed):
            fault = f"no run of split {wanted.split}, seed {wanted.used_seed} on these rows"
        elif spec.protocol.probe.get("kind") != "test":
            fault = f"its probe {spec.protocol.probe.get('kind')!r} needs the method itself, not predictions"
        else:
            return str(row["dataset"]), spec
    raise UserError(
        f"{wanted.file}: suite {suite} of the store {store.address} has {fault}; run the suite first, and see "
        "'uqbench data export' for the rows of its splits"
    )


def _spec(found: ScoredSubmission, scored: Scored, twin: CellSpec) -> CellSpec:
    """Return the specification of a submitted cell: the data of its twin, and a training of which nothing is known."""
    about = found.submission
    options = {"who": about.who, "how": about.how, "kind": about.kind, "file": scored.hash}
    unknown = PluginSpec("not known", SUBMITTED)
    return CellSpec(
        dataset=twin.dataset,
        data=twin.data,
        method=PluginSpec(about.method, SUBMITTED, options=options),
        protocol=replace(twin.protocol, training=Training(), network=unknown, grid={}),
        split=twin.split,
        seed=twin.seed,
        harness=HARNESS,
    )


def _outcome(found: ScoredSubmission, scored: Scored, environment: Mapping[str, Any], now: float) -> Outcome:
    about = found.submission
    submission = {
        "who": about.who,
        "how": about.how,
        "submitted": time.strftime("%Y-%m-%d", time.gmtime(now)),
        "verified": list(VERIFIED),
        "reported": dict(about.reported),
        "re-run": False,
    }
    record = {"submission": submission, **scored.finding.record}
    return Outcome(
        "ok",
        metrics=scored.finding.metrics,
        training=record,
        timing={"finished": now},
        environment=environment,
        arrays=scored.finding.arrays,
        predictions=(pack(kept, "float32", scored.finding.metrics) or b"") if (kept := scored.finding.kept) else b"",
    )
