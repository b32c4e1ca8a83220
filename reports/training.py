"""Training curves: losses by epoch, mean over seeds, and how long the networks trained."""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.api import Array, Block, Figure, Report, Results, Section, Table, style
from bench.reports._lost_cells import best_method, lost_cells
from bench.reports._predictions import left_out

TRAIN, VALIDATION = "history/train_loss", "history/validation_loss"
POINTS = 60  # of a curve


@dataclass(frozen=True)
class Training(Report):
    """One panel per dataset: training loss (thin) and validation loss (thick) of every method."""

    order = 34
    datasets: int = 6
    seeds: int = 5

    def section(self, results: Results) -> Section | None:
        """Return curves where they were kept and a table of epochs, or None where nothing was trained."""
        blocks: list[Block] = []
        histories = self._histories(results)
        if histories:
            blocks.append(_figure(histories, lost_cells(results), left_out(results, len(histories))))
        table = _epochs(results)
        if table is not None:
            blocks.append(table)
        return Section("Training", blocks) if blocks else None

    def _histories(self, results: Results) -> dict[str, dict[str, dict[str, Array]]]:
        """Return `[epochs]` means of both losses by dataset and method."""
        cells = results.cells[results.cells["status"] == "ok"].sort_values(["dataset", "seed"], kind="stable")
        found: dict[str, dict[str, dict[str, Array]]] = {}
        for (dataset, method), rows in cells.groupby(["dataset", "method"], sort=False):
            if len(found) >= self.datasets and dataset not in found:
                continue
            kept = [results.arrays(str(key)) for key in rows["key"].iloc[: self.seeds]]
            curves = {name: _mean([a[name] for a in kept if name in a]) for name in (TRAIN, VALIDATION)}
            known = {name: curve for name, curve in curves.items() if curve is not None}
            if known:
                found.setdefault(str(dataset), {})[str(method)] = known
        return found


def _mean(histories: list[Array]) -> Array | None:
    """Return the mean over networks and seeds of each epoch that at least half of them reached."""
    if not histories:
        return None
    longest = max(h.shape[-1] for h in histories)
    whole = [(np.atleast_2d(h).astype(float), longest - h.shape[-1]) for h in histories]
    rows = np.concatenate([np.pad(h, ((0, 0), (0, rest)), constant_values=np.nan) for h, rest in whole])
    known = np.isfinite(rows)
    reached = known.sum(axis=0)
    kept = reached * 2 >= len(rows)
    if not kept.any():
        return None
    sums = np.where(known, rows, 0.0).sum(axis=0)
    return np.where(kept, sums / np.maximum(reached, 1), np.nan)


def _figure(histories: dict[str, dict[str, dict[str, Array]]], lost: dict[str, set[str]], rest: str) -> Figure:
    methods = list(dict.fromkeys(method for found in histories.values() for method in found))
    numbers, findings = [], []
    with style.house_style():
        figure, axes = style.panels(len(histories), width=3.4, height=2.5)
        for axis, (dataset, found) in zip(axes, histories.items(), strict=True):
            ends = {}
            for method, curves in found.items():
                for name, width, alpha in ((TRAIN, 0.8, 0.55), (VALIDATION, 1.8, 1.0)):
                    if name not in curves:
                        continue
                    curve = curves[name]
                    epochs = np.flatnonzero(np.isfinite(curve))
                    epochs = epochs[np.unique(np.geomspace(1, len(epochs), POINTS).astype(int)) - 1]
                    line = {**style.look(method).of_line(), "linewidth": width, "alpha": alpha}
                    axis.plot(epochs + 1, curve[epochs], **line)
                    kind = name.removeprefix("history/").replace("_", " ")
                    numbers += [(dataset, method, kind, int(e) + 1, float(curve[e])) for e in epochs]
                    ends[method] = float(np.nanmin(curve))
            findings.append(f"{style.title(dataset)}: {best_method(ends, lost.get(dataset, ()))}")
            axis.set_title(style.short(dataset))
            axis.set_xlabel("epoch")
            axis.set_ylabel("loss (training unit)")
            positive = all(row[4] > 0 for row in numbers if row[0] == dataset)
            style.plain_logarithmic(axis, x=True, y=positive)
        style.legend(figure, methods)
    data = pd.DataFrame(numbers, columns=["dataset", "method", "loss", "epoch", "value"])
    caption = (
        "Loss by epoch, mean over networks and seeds, drawn as far as half of them trained: thin, of the training rows "
        "(with the method's noise and penalties); thick, of the validation rows. Where some have stopped the mean is "
        "of the others, so the end of a curve may jump. Losses of methods with penalties do not compare. Lowest point: "
        f"{'; '.join(findings)}. Not tested.{rest}"
    )
    return Figure("training", caption, figure, data)


def _epochs(results: Results) -> Table | None:
    cells = results.cells.dropna(subset="training")
    rows = []
    for (dataset, method), own in cells.groupby(["dataset", "method"], sort=True):
        records = [json.loads(str(text)) for text in own["training"]]
        epochs = [n for record in records for n in record.get("epochs") or []]
        chosen = [json.dumps(c) for record in records if (c := (record.get("search") or {}).get("chosen"))]
        most = max(set(chosen), key=lambda text: (chosen.count(text), text)) if chosen else ""
        if not epochs and not chosen:  # an estimator has neither networks nor, without a search, anything to choose
            continue
        counts = (
            {"epochs, median": float(np.median(epochs)), "fewest": min(epochs), "most": max(epochs)} if epochs else {}
        )
        rows.append(
            {
                "dataset": dataset,
                "method": method,
                "networks": len(epochs),
                **counts,
                **({"chosen most often": _options(most, chosen)} if chosen else {}),
            }
        )
    if not rows:
        return None
    caption = "How long networks trained, and what a search chose most often"
    return Table(caption, pd.DataFrame(rows).astype(object).fillna("–"), name="epochs", folded=True)


def _options(most: str, chosen: list[str]) -> str:
    options = ", ".join(f"{name} = {value}" for name, value in json.loads(most).items())
    return f"{options} ({chosen.count(most)} of {len(chosen)})"
