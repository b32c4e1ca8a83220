"""Executes docs/notebook.ipynb in an empty folder and keeps its outputs, as text and pictures.

python -m tools.execute_notebook docs/notebook.ipynb
"""

import argparse
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

KEPT = ("text/plain", "image/png")


def execute(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Return the notebook with the outputs of a run in a folder; a cell that fails raises."""
    notebook: nbformat.NotebookNode = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    for cell in notebook.cells:
        cell.metadata.clear()  # times of the run
        for output in cell.get("outputs", ()):
            if "data" in output:
                output["data"] = {kind: text for kind, text in output["data"].items() if kind in KEPT}
    return notebook


def main() -> None:
    """Execute the notebook and write it back."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("file", type=Path, help="the notebook")
    path = arguments.parse_args().file
    with tempfile.TemporaryDirectory() as folder:
        nbformat.write(execute(path, Path(folder)), path)


if __name__ == "__main__":
    main()
