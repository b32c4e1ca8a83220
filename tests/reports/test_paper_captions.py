"""Captions of LaTeX tables explain the marks in their cells: no text stands around a table in a paper."""

from collections.abc import Callable

import pytest

from bench.api import Report, Table
from bench.plugins.registry import Registry
from bench.report.tables import text_table
from bench.store.results import StoredResults
from bench.store.store import Store
from tests.fixtures import studies

# What a caption says where cells hold such a mark.
EXPLAINED = {"±": "standard deviation", "–": "dash", "[": "interval", "scaling": "Scaling is", "T = ": "draws"}


@pytest.mark.parametrize(
    ("name", "study"),
    [
        ("shift", studies.shifted),
        ("latency", studies.timed),
        ("softmax", studies.softmax),
        ("noise-levels", studies.learned),
    ],
)
def test_marks_are_explained(name: str, study: Callable[[Store], StoredResults], store: Store) -> None:
    report: Report = Registry().make("report", name, {})
    found = report.section(study(store))
    assert found is not None
    tables = [block for block in found.blocks if isinstance(block, Table)]
    assert tables
    for table in tables:
        text = text_table(table.data)
        content = " ".join([*text.header, *(cell for row in text.rows for cell in row)])
        caption = table.paper_caption or table.caption
        assert all(words in caption for mark, words in EXPLAINED.items() if mark in content), (content, caption)
