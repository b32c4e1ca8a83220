"""Writes the generated parts of pages in docs/results from the exports in results/: each stands between two marks.

    python -m tools.result_tables docs/results

A part is a function of the exports. `PAGES` has all of them; a new page is a file with marks and an entry there.
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from tools import ablation_parts, equal_cost_parts, gal_parts, shift_parts, sweep_parts, truth_parts, uci_fixed_parts
from tools.findings import Exports, run_size
from tools.pages import replace_part
from tools.results_page import EXPORTS

Part = Callable[[Exports], str]


def _size(suite: str) -> Part:
    return lambda exports: run_size(exports.required(suite))


PAGES: Mapping[str, Mapping[str, Part]] = {
    "equal-cost.md": {
        "size": _size("equal-cost"),
        "shown": equal_cost_parts.shown_differences,
        "learned": equal_cost_parts.against_learned,
    },
    "mcni-ablation.md": {
        "size": _size("mcni-ablation"),
        "shown": ablation_parts.shown_differences,
        "variants": ablation_parts.variants,
    },
    "shift-digits.md": {
        "size": _size("shift-digits"),
        "scores": shift_parts.scores,
        "detection": shift_parts.detection,
        "observations": shift_parts.observations,
    },
    "toy-sweep.md": {
        "size": _size("toy-sweep"),
        "by width": sweep_parts.by_width,
        "which widths": sweep_parts.which_widths,
        "learned": sweep_parts.learned,
        "settings": sweep_parts.settings,
        "uci size": _size("uci-sweep"),
        "uci": sweep_parts.uci,
    },
    "truth.md": {"cells": truth_parts.size, "findings": truth_parts.tested, "regret": truth_parts.regret},
    "uci-fixed.md": {
        "size": _size("uci-fixed"),
        "rmse": uci_fixed_parts.rmse,
        "literature": uci_fixed_parts.literature,
    },
    "uci-gal.md": {
        "size": _size("uci-gal"),
        "rmse": gal_parts.rmse,
        "log likelihood": gal_parts.log_likelihood,
        "splits": gal_parts.splits,
        "chosen": gal_parts.chosen,
    },
}


def page(name: str, text: str, exports: Exports) -> str:
    """Return a page with its generated parts anew."""
    for part, write in PAGES[name].items():
        text = replace_part(text, part, f"\n{write(exports)}\n")
    return text


def main() -> None:
    """Write the generated parts of all pages."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path, help="docs/results")
    folder = arguments.parse_args().folder
    with Exports(EXPORTS) as exports:
        for name in PAGES:
            path = folder / name
            path.write_text(page(name, path.read_text("utf-8"), exports), "utf-8")


if __name__ == "__main__":
    main()
