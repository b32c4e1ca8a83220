"""The first screen of every published result: a section that fails is a note on the page and no error."""

from pathlib import Path

import pytest

from bench.api import Report, Table
from bench.plugins.registry import Registry
from bench.store.results import StoredResults
from tools.gallery_results import unpacked

pytestmark = pytest.mark.slow
EXPORTS = sorted((Path(__file__).parents[2] / "results").glob("*.tar.xz"))


@pytest.mark.parametrize("archive", EXPORTS, ids=lambda path: path.name.partition(".")[0])
def test_every_published_result_has_its_first_screen(archive: Path) -> None:
    report: Report = Registry().make("report", "overview", {})
    with unpacked(archive) as store:
        for suite in store.suites():
            results = StoredResults(store, suite)
            found = report.section(results)
            assert found is not None
            methods = results.cells["method"].nunique()
            assert any(isinstance(block, Table) and len(block.data) >= min(2, methods) for block in found.blocks)
