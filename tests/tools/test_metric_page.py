import re
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.metrics.discovery import BUILT_IN
from tools.metric_page import markdown, updated

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_document_is_current() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert updated(text) == text, "run: python -m tools.metric_page docs/metrics.md"


def test_every_metric_is_one_row_of_seven_cells() -> None:
    rows = [line for line in markdown(BUILT_IN).splitlines() if line.startswith("| `")]
    assert len(rows) == len(BUILT_IN)
    assert all(len(re.split(r"(?<!\\)\|", row)) == 9 for row in rows)


def test_a_document_without_the_marks_is_an_error() -> None:
    with pytest.raises(UserError, match="lacks the marks"):
        updated("nothing here")


def test_the_example_of_the_document_works() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(examples) >= 2
    for example in examples:
        exec(compile(example, str(DOCUMENT), "exec"), {"__name__": "example"})
