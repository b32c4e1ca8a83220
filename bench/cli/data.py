"""`uqbench data`: find, download and verify the files of datasets."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli.options import json_option, output_option, plugin_option, set_data_folder
from bench.cli.output import Group, echo, end
from bench.errors import UserError
from bench.spec.sizes import MOST_SEEDS

if TYPE_CHECKING:
    from bench.api import Dataset

MOST_UNASKED = 10**9  # bytes of a dataset that is downloaded without being named
names_argument = click.argument("names", nargs=-1, metavar="[NAME]...")
suite_option = click.option("--suite", metavar="SUITE", help="The datasets of a suite, with its options.")
folder_option = click.option("--data", "folder", metavar="DIR", help="The folder to search first and to download to.")


@click.group(cls=Group)
def data() -> None:
    """Find, download and verify the files of datasets.

    Files are searched for in --data (or, without it, in UQBENCH_DATA), then in the user's cache folder.
    """


@data.command("list")
@names_argument
@suite_option
@folder_option
@plugin_option
@json_option
def list_(names: Sequence[str], suite: str | None, folder: str | None, plugins: Sequence[str], as_json: bool) -> None:
    """List the folders that are searched, and which files are there."""
    from bench.machine.data_files import data_folders, find_file

    set_data_folder(folder)
    rows: list[dict[str, Any]] = []
    for name, dataset in _datasets(names, plugins, suite).items():
        for file in dataset.files:
            path = find_file(file.name)
            whole = path is not None and file.size in (None, path.stat().st_size)
            state = "missing" if path is None else "there" if whole else "damaged"
            row = {"dataset": name, "file": file.name, "bytes": file.size, "state": state}
            rows.append(row | {"path": str(path) if path else None, "url": file.origin.url})
        if not dataset.files:
            rows.append({"dataset": name, "file": None, "bytes": 0, "state": "no download", "path": None, "url": None})
    if as_json:
        echo(json.dumps({"folders": [str(f) for f in data_folders()], "files": rows}, indent=2))
        return
    for place in data_folders():
        echo(f"searched: {place}{'' if place.is_dir() else ' (no such folder)'}")
    width = max((len(row["dataset"]) for row in rows), default=0)
    for row in rows:
        size = "size not published" if row["bytes"] is None else f"{row['bytes']:,} bytes"
        about = f"{row['path'] or row['file']} ({size})" if row["file"] else "needs no file"
        echo(f"{row['dataset']:<{width}}  {row['state']:<11}  {about}")


@data.command()
@names_argument
@suite_option
@folder_option
@plugin_option
def fetch(names: Sequence[str], suite: str | None, folder: str | None, plugins: Sequence[str]) -> None:
    """Download what is missing (those named, or all but very large ones) and verify it."""
    from bench.machine.data_files import data_folders
    from bench.machine.download import is_there

    _make_folder(folder)
    set_data_folder(folder)
    place, failures = data_folders()[0], 0
    for name, dataset in _datasets(names, plugins, suite).items():
        if not dataset.files:
            if name in names or suite:
                echo(f"{name}: needs no download")
            continue
        if _found(dataset):
            echo(f"{name}: there already")
            continue
        size = sum(origin.size or 0 for origin in {file.origin for file in dataset.files})
        if size > MOST_UNASKED and not names and not suite:
            echo(f"{name}: left out, {size:,} bytes; for these: uqbench data fetch {name}")
            continue
        try:
            dataset.fetch(place)
            wrong = [file.name for file in dataset.files if not is_there(file, place)]
            if wrong:
                raise UserError(f"{wrong[0]} is missing or damaged in {place} after the download")
            echo(f"{name}: downloaded to {place} and verified")
        except UserError as error:  # go on with the others
            failures += 1
            echo(f"uqbench: {name}: {' '.join(str(error).split())}", err=True)
    if failures:
        end(2)


@data.command()
@names_argument
@suite_option
@folder_option
@plugin_option
@json_option
def verify(names: Sequence[str], suite: str | None, folder: str | None, plugins: Sequence[str], as_json: bool) -> None:
    """Compare every file found with its checksum; exit 1 if one is damaged, or missing from a named dataset."""
    from bench.machine.data_files import find_file

    set_data_folder(folder)
    rows: list[dict[str, Any]] = []
    for name, dataset in _datasets(names, plugins, suite).items():
        for file in dataset.files:
            path = find_file(file.name)
            fault = file.fault(path) if path else None
            state = "missing" if path is None else "damaged" if fault else "ok"
            rows.append({"dataset": name, "file": file.name, "state": state, "path": str(path or ""), "fault": fault})
    if as_json:
        echo(json.dumps(rows, indent=2))
    for row in () if as_json else rows:
        about = f": {row['fault']}" if row["fault"] else ""
        echo(f"{row['state']:<8} {row['dataset']:<9} {row['path'] or row['file']}{about}")
    bad = ("damaged", "missing") if names or suite else ("damaged",)
    if any(row["state"] in bad for row in rows):
        end(1)


@data.command()
@click.argument("name", metavar="NAME")
@output_option("--out", default="data-export", show_default=True, metavar="DIR", help="The folder to write to.")
@click.option("--splits", type=click.IntRange(1, MOST_SEEDS), default=5, show_default=True, help="At most so many.")
@folder_option
@plugin_option
@json_option
def export(name: str, out: str, splits: int, folder: str | None, plugins: Sequence[str], as_json: bool) -> None:
    """Write the exact rows of every split of the dataset NAME, to train elsewhere: DIR/split-0.npz, ...

    A file holds train_x, train_y, test_x and test_y in original units, in the order that predictions keep. data.json
    has the fingerprint of every split, and submission.toml is the document that 'uqbench score' and 'uqbench submit'
    read, to be filled in.
    """
    from bench.plan.data_export import export_data

    set_data_folder(folder)
    (dataset,) = _datasets([name], plugins).values()
    if reason := dataset.skip():
        raise UserError(f"dataset {name!r} {reason}")
    found = export_data(name, dataset, Path(out), splits)
    if as_json:
        echo(json.dumps(found, indent=2))
        return
    for split in found["splits"]:
        rows = f"{split['train_rows']:,} training and {split['test_rows']:,} test rows"
        echo(f"{split['file']}: {rows}, fingerprint {split['data']}")
    echo(f"{Path(out) / 'submission.toml'}: fill it in, then 'uqbench score {out}'")


def _datasets(names: Sequence[str], plugins: Sequence[str], suite: str | None = None) -> dict[str, "Dataset"]:
    """Return the named datasets and those of a suite; without either, all."""
    from bench.plan.suite import load_suite
    from bench.plugins.registry import Registry

    registry = Registry([Path(p) for p in plugins])
    given: dict[str, tuple[str, Mapping[str, Any]]] = {name: (name, {}) for name in names}
    if suite:
        entries = load_suite(suite).datasets
        given = {name: (entry.use or name, entry.options) for name, entry in entries.items()} | given
    datasets: dict[str, Dataset] = {}
    for name, (plugin, options) in (given or {name: (name, {}) for name in registry.plugins("dataset")}).items():
        try:
            datasets[name] = registry.make("dataset", plugin, options)
        except UserError as error:
            if given:
                raise
            echo(f"uqbench: {error}", err=True)  # one broken plug-in does not hide the others
    return datasets


def _found(dataset: "Dataset") -> bool:
    from bench.machine.data_files import find_file

    paths = [(file, find_file(file.name)) for file in dataset.files]
    return all(path is not None and file.fault(path) is None for file, path in paths)


def _make_folder(folder: str | None) -> None:
    try:
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--data {folder}: {error.strerror}") from None
