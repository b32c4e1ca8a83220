from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from torch import Tensor

from bench.api import Batch, Method, Net, Problem
from bench.api.tape import Tape
from bench.plugins.registry import Registry
from tools.method_page import card, costs, page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "methods.md"


@pytest.mark.slow
def test_the_page_is_current() -> None:
    expected = page(Registry()) + "\n"
    assert PAGE.read_text("utf-8") == expected, "run: python -m tools.method_page docs/methods.md"


@dataclass(frozen=True)
class Thrice(Method):
    """Three passes at once."""

    networks: int = 2
    level: float = 0.5  # of the noise
    law: Literal["gaussian", "uniform"] = "gaussian"

    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {"level": (0.1, 0.5)}
    expected_failures: ClassVar[Mapping[str, str]] = {"variance-shrinks": "its noise is fixed"}
    early_stopping = False

    def skip(self, problem: Problem) -> str | None:
        return "made for tables" if len(problem.inputs) == 3 else None

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> dict[str, Tensor]:
        return {f"copy.{name}": w.clone() for name, w in net.params.items()}

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return net(x) + net(2 * x) + net(3 * x) + self.level * tape.normal((7,)).sum()


def test_costs_are_counted() -> None:
    # Three forward passes, seven random numbers, parameters and a copy of them, two networks.
    assert costs(Thrice()) == ("3.00", "7", "2.00", "2")


def test_a_card_tells_everything() -> None:
    told = card("thrice", "Three passes.\n\n    f = a + b + c\n\nNobody 1999.", Thrice())
    for said in (
        "## thrice\n\nThree passes.\n\nThree passes at once.\n\n```text\nf = a + b + c\n```\n\nNobody 1999.\n\n- ",
        "- option `level`: float, default 0.5; of the noise\n",
        '- option `law`: "gaussian" or "uniform", default "gaussian"',
        "- search `level`: 0.1, 0.5",
        "- skips images: made for tables",
        "- trains all epochs",
        "- fails the check `variance-shrinks`: its noise is fixed",
    ):
        assert said in told
