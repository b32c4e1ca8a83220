"""What a run, a plan and a page need to know of any method, however it is trained. Nothing here loads torch."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from bench.api.dataset import Problem
from bench.api.style import Look


class BaseMethod:
    """A name in `uqbench list methods`. Subclass `Method`, `Estimator` or `Wrapper`, not this class."""

    version: ClassVar[str] = "1"  # part of a cell's key: raise it when the numbers change
    later: ClassVar[frozenset[str]] = frozenset()  # options that came later: no part of a key at their defaults
    alone: ClassVar[bool] = False  # True: each of its cells is computed in a fresh process of its own
    spread: ClassVar[Literal["posterior", "level", "aleatoric"]] = (
        "posterior"  # what its draws' variance is about; see Method
    )
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {}  # options worth searching, and the values to try
    expected_failures: ClassVar[Mapping[str, str]] = {}  # checks of 'uqbench verify' it fails, and why that is right
    title: ClassVar[str] = ""  # what tables for papers call it; by default its name with blanks
    look: ClassVar[Look | None] = None  # how figures draw it; None: a look that depends on its name alone

    def skip(self, problem: Problem) -> str | None:
        """Return why this method cannot do the problem, or None."""
        return None
