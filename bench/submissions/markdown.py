"""A scored submission as text and as Markdown, for a terminal and for a pull request."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.counts import plural
from bench.metrics import catalogue
from bench.submissions.scoring import VERIFIED, ScoredSubmission
from bench.text_tables import markdown_table

Checked = tuple[Path, ScoredSubmission | str]  # a path with its submission, or with what is wrong with it


def mean_metrics(found: ScoredSubmission) -> dict[str, float]:
    """Return the mean of each metric over the splits that have it, without those by group."""
    names = dict.fromkeys(name for each in found.scored for name in each.finding.metrics if "@" not in name)
    known = [name for name in names if name in catalogue()]
    return {
        name: float(np.mean([each.finding.metrics[name] for each in found.scored if name in each.finding.metrics]))
        for name in known
    }


def as_plain(found: ScoredSubmission) -> dict[str, Any]:
    """Return a scored submission as plain data."""
    about = found.submission
    return {
        "method": about.method,
        "who": about.who,
        "how": about.how,
        "dataset": about.dataset,
        "kind": about.kind,
        "verified": list(VERIFIED),
        "reported": dict(about.reported),
        "mean": mean_metrics(found),
        "predictions": [
            {
                "file": each.predictions.file,
                "split": each.predictions.split,
                "seed": each.predictions.used_seed,
                "data": each.predictions.data,
                "metrics": dict(each.finding.metrics),
            }
            for each in found.scored
        ],
    }


def as_markdown(checked: Sequence[Checked]) -> str:
    """Return the result of a check as Markdown."""
    parts = ["# Submissions\n"]
    for path, found in checked:
        if isinstance(found, str):
            parts.append(f"## {_code(str(path))}: refused\n\n{_code(found)}\n")
            continue
        about = found.submission
        rows = [[name, f"{value:.4g}"] for name, value in mean_metrics(found).items()]
        reported = [f"- {_code(f'{name}: {value}')}" for name, value in about.reported.items()] or ["- nothing"]
        parts += [
            f"## {_code(str(path))}: valid\n",
            f"{_code(about.method)} on {_code(about.dataset)}, {plural(len(found.scored), 'split')}, "
            f"{_code(about.kind)}\n",
            f"- who: {_code(about.who)}\n- how: {_code(about.how)}\n",
            "Verified here:\n",
            *(f"- {what}" for what in VERIFIED),
            "\nOnly reported, not re-run:\n",
            *reported,
            "",
            *markdown_table(["metric", "mean over splits"], rows),
        ]
    return "\n".join(parts) + "\n"


def _code(text: str) -> str:
    """Return text of anybody's as code, which is shown as it is."""
    shown = text.replace("`", "'")
    return f"`{shown}`"
