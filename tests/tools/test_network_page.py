from dataclasses import dataclass
from pathlib import Path

import pytest
from torch import nn

from bench.api import Network, Problem
from bench.plugins.registry import Registry
from tools.network_page import PROBLEMS, card, page, sizes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "networks.md"


@pytest.mark.slow
def test_the_page_is_current() -> None:
    expected = page(Registry()) + "\n"
    assert PAGE.read_text("utf-8") == expected, "run: python -m tools.network_page docs/networks.md"


@dataclass(frozen=True)
class Line(Network):
    """A line."""

    bias: bool = True  # whether it misses the origin

    stackable = False

    def skip(self, problem: Problem) -> str | None:
        return "made for tables" if len(problem.inputs) == 3 else None

    def build(self, problem: Problem, outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(problem.inputs[0], outputs, self.bias), nn.Dropout(0.5))


def test_sizes_are_counted() -> None:
    assert sizes(Line(), PROBLEMS["rows"]) == ["9", "1", "1.6e-05", "alone"]  # 8 products and 8 sums


def test_a_card_tells_everything() -> None:
    told = card("line", "A line.\n\n    y = a x + b\n\nEuclid.", Line())
    for said in (
        "## line\n\nA line.\n\nA line.\n\n```text\ny = a x + b\n```\n\nEuclid.\n\n- ",
        "- option `bias`: bool, default true; whether it misses the origin\n",
        "- skips images: made for tables",
        "- trains alone, never in a stack",
    ):
        assert said in told
