"""What is kept of every cell beside its values; no part of a key, because no value depends on it."""

from dataclasses import dataclass
from typing import Literal, get_args

from bench.errors import unknown_name

What = Literal["predictions", "moments", "none"]
Exactness = Literal["compact", "float32"]


@dataclass(frozen=True)
class Keep:
    """What a run keeps of the predictions of its cells, and whether it keeps their networks."""

    what: What = "predictions"  # all draws; mean and variance alone; or nothing
    precision: Exactness = "compact"  # 16 bits where no metric changes by more than 1e-4 of its value, or float32
    networks: bool = False  # which are also looked for, so that they need not be trained again

    def __post_init__(self) -> None:
        for name, value, known in (("keep", self.what, What), ("keep_precision", self.precision, Exactness)):
            if value not in get_args(known):
                raise unknown_name(name, str(value), get_args(known))


PREDICTIONS, MOMENTS = Keep(), Keep("moments")
