"""The notebook of the documentation runs in an empty folder, and the outputs that it shows are those of its cells."""

from pathlib import Path

import pytest

pytest.importorskip("nbclient", reason="nbclient is not installed: pip install 'uqbench[test]'")

from tools.execute_notebook import execute

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path) -> None:
    notebook = execute(NOTEBOOK, tmp_path)
    printed = ["".join(one["text"]) for cell in notebook.cells for one in cell.get("outputs", ()) if "text" in one]
    assert [text.split()[0] for text in printed] == ["15", "Writing", "5", "report/index.html"]
    assert (tmp_path / "report" / "index.html").is_file()


def test_the_notebook_shows_its_outputs() -> None:
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in code)
    kinds = {kind for cell in code for output in cell.outputs for kind in output.get("data", {})}
    assert kinds == {"text/plain", "image/png"}
