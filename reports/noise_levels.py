"""What methods learned beside their weights: a histogram of every layer's noise levels, and their summary."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.api import Array, Block, Figure, Report, Results, Section, Table, Text, style

FRONT = "inspect/"
BINS = 30


@dataclass(frozen=True)
class NoiseLevels(Report):
    """Histograms for each dataset and method whose cells keep what they learned, over all seeds."""

    order = 32
    figures: int = 6
    layers: int = 9

    def section(self, results: Results) -> Section | None:
        """Return histograms and a table, or None where no method shows anything."""
        found = _found(results)
        if not found:
            return None
        introduction = (
            "Learned levels (such as alpha of MCNI, one per weight), of all seeds together; the dashed line is the "
            "mean. A level near 0 has switched its noise off; the sign of a level has no meaning where noise is "
            "symmetric."
        )
        blocks: list[Block] = [Text(introduction)]
        rows = []
        for (dataset, method), layers in found.items():
            if len(blocks) <= self.figures:
                blocks.append(self._figure(dataset, method, layers))
            for layer, values in layers.items():
                ends, off = np.quantile(values, [0.05, 0.5, 0.95]), float((np.abs(values) < 1e-3).mean())
                rows.append((dataset, method, layer, values.size, values.mean(), values.std(), *ends, off))
        columns = ["dataset", "method", "layer", "values", "mean", "standard deviation"]
        columns += ["5 %", "median", "95 %", "share below 0.001"]
        paper = (
            "Noise levels learned, by layer, all seeds together: number of values, mean, standard deviation, "
            "quantiles, and the share of values whose size is below 0.001, whose noise is switched off."
        )
        data = pd.DataFrame(rows, columns=columns)
        blocks.append(Table("Noise levels learned, by layer", data, name="noise-levels", paper_caption=paper))
        return Section("Noise levels learned", blocks)

    def _figure(self, dataset: str, method: str, layers: dict[str, Array]) -> Figure:
        panels = dict(list(layers.items())[: self.layers])
        numbers, sizes = [], {}
        with style.house_style():
            figure, axes = style.panels(len(panels), width=2.9, height=2.0)
            for axis, (layer, values) in zip(axes, panels.items(), strict=True):
                counts, edges = np.histogram(values, bins=BINS)
                axis.stairs(counts / values.size, edges, fill=True, color=style.COLOURS[0], alpha=0.75)
                axis.axvline(values.mean(), color=style.INK, linewidth=1, linestyle=(0, (4, 2)))
                axis.set_title(style.short(layer))
                axis.set_xlabel("level of the noise")
                axis.set_ylabel("share of values")
                numbers += [(layer, edges[i], edges[i + 1], int(n)) for i, n in enumerate(counts)]
                sizes[layer] = float(np.abs(values).mean())
        data = pd.DataFrame(numbers, columns=["layer", "from", "to", "values"])
        rest = f" {len(layers) - len(panels)} more layers are in the table." if len(layers) > len(panels) else ""
        findings = "; ".join(f"{layer} {size:.3f}" for layer, size in sizes.items())
        caption = (
            f"{style.title(dataset)}, {style.title(method)}: distribution of the learned levels in each layer. Mean "
            f"size, whatever the sign: {findings}.{rest}"
        )
        return Figure(f"noise-levels-{dataset}-{method}", caption, figure, data)


def _found(results: Results) -> dict[tuple[str, str], dict[str, Array]]:
    """Return the finite values of each layer by dataset and method, all seeds and networks together."""
    found: dict[tuple[str, str], dict[str, list[Array]]] = {}
    cells = results.cells[results.cells["status"] == "ok"].sort_values("seed")
    for (dataset, method), rows in cells.groupby(["dataset", "method"], sort=False):
        for number, key in enumerate(rows["key"]):
            arrays = {name: array for name, array in results.arrays(str(key)).items() if name.startswith(FRONT)}
            if number == 0 and not arrays:
                break  # a method shows something in every cell or in none
            for name, array in arrays.items():
                values = np.ravel(np.asarray(array, dtype=float))
                layers = found.setdefault((str(dataset), str(method)), {})
                layers.setdefault(name.removeprefix(FRONT), []).append(values[np.isfinite(values)])
    joined = {
        place: {layer: whole for layer, parts in layers.items() if (whole := np.concatenate(parts)).size}
        for place, layers in found.items()
    }
    return {place: layers for place, layers in joined.items() if layers}
