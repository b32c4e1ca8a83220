"""The settings of a comparison, and its possible verdicts."""

import math
from dataclasses import dataclass
from typing import Literal

from bench.errors import UserError, unknown_name
from bench.stats.corrections import NAMES, Correction

Verdict = Literal["better", "worse", "equivalent", "inconclusive"]


@dataclass(frozen=True)
class Margin:
    """How large a difference matters: a number in the metric's unit, or a share of the seeds' standard deviation."""

    size: float = 0.5
    relative: bool = True

    def __post_init__(self) -> None:
        if not (math.isfinite(self.size) and self.size > 0.0):
            raise UserError(f"margin {self.size:g}: expected a number above 0, such as 0.01 or 0.5sd")

    @classmethod
    def read(cls, text: str) -> "Margin":
        """Return the margin of a text such as '0.5sd' or '0.01'."""
        number = text.strip().removesuffix("sd")
        try:
            return cls(float(number), relative=number != text.strip())
        except ValueError:
            raise UserError(
                f"margin {text!r}: expected a number in the metric's unit such as 0.01, or a share of the seeds' "
                "standard deviation such as 0.5sd"
            ) from None

    def __str__(self) -> str:
        return f"{self.size:g} standard deviations over seeds" if self.relative else f"{self.size:g}"


@dataclass(frozen=True)
class Settings:
    """The assumptions of a comparison; printed with it."""

    alpha: float = 0.05
    level: float = 0.95
    power: float = 0.8
    correction: Correction = "holm"
    margin: Margin = Margin()
    test_share: float | None = None  # of test rows in overlapping splits; None: as declared; 0: independent repeats
    resamples: int = 4_000  # of bootstrap intervals and permutations: the same everywhere, so that intervals are, too
    seed: int = 0  # of the bootstrap and of sampled permutations

    def __post_init__(self) -> None:
        for name in ("alpha", "level", "power"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise UserError(f"{name} {getattr(self, name):g}: expected a number between 0 and 1")
        if self.test_share is not None and not 0.0 <= self.test_share < 1.0:
            raise UserError(f"test share {self.test_share:g}: expected 0 (independent repeats) or a share below 1")
        if self.correction not in NAMES:
            raise unknown_name("correction", self.correction, NAMES)
