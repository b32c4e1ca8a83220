"""Writes the rows of a dataset's splits for training elsewhere, with the fingerprints that submissions state."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from bench.api import Dataset, Split
from bench.errors import UserError
from bench.machine.files import write_output
from bench.plan.cells import checked, fingerprint

TEMPLATE = """\
# Fill in, write one file of predictions per split beside this one, and call 'uqbench score' on this folder.
method = "my-method"
who = "Name, place"
how = "what predicted, in one line"
dataset = {dataset}
kind = "{kind}"          # or {others}

{predictions}
# What cannot be checked, such as the time of training:
[reported]
"""
PREDICTIONS = """\
[[predictions]]
file = "predictions-{split}.npz"
split = {split}
data = "{data}"
"""
KINDS = {"regression": ("normal", "points, quantiles, interval"), "classification": ("probabilities", "logits")}


def export_data(name: str, dataset: Dataset, folder: Path, most: int) -> dict[str, Any]:
    """Write one file per split, at most `most`, `data.json` and a `submission.toml` to be filled in; return the facts.

    A document that is there already is kept.
    """
    found: dict[str, Any] = {"dataset": name, "options": {}, "splits": []}
    count = most
    number = 0
    while number < count:
        split = checked(dataset.load(number))
        if not number:
            count = 1 if dataset.repeats == "seeds" else min(most, split.count or most)
            found |= {"task": split.task, "classes": split.classes, "features": list(split.features)}
        found["splits"].append(_write(split, number, folder))
        number += 1
    write_output(folder / "data.json", json.dumps(found, indent=2) + "\n")
    document = folder / "submission.toml"
    if not document.exists():
        kind, others = KINDS[found["task"]]
        each = "\n".join(PREDICTIONS.format(**row) for row in found["splits"])
        write_output(document, TEMPLATE.format(dataset=json.dumps(name), kind=kind, others=others, predictions=each))
    return found


def _write(split: Split, number: int, folder: Path) -> dict[str, Any]:
    arrays = {name: getattr(split, name) for name in ("train_x", "train_y", "test_x", "test_y")}
    if split.test_groups is not None:
        arrays["test_groups"] = np.asarray(split.test_groups, dtype=np.str_)
    if split.blocks is not None:
        arrays["train_blocks"] = np.unique(split.blocks.of_rows, return_inverse=True)[1]
    if any(array.dtype.hasobject for array in arrays.values()):
        raise UserError("its arrays hold Python objects")
    path = folder / f"split-{number}.npz"
    write_output(path, lambda file: np.savez(file, allow_pickle=False, **arrays))
    return {
        "split": number,
        "file": path.name,
        "data": fingerprint(split),
        "train_rows": len(split.train_y),
        "test_rows": len(split.test_y),
        "shape": list(split.train_x.shape[1:]),
        "gaps": split.gaps,
    }
