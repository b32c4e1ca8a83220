"""Kin8nm: 8,192 simulated positions of an 8-link robot arm, the distance of its end from a target (DELVE).

DELVE's kin family, the variant with 8 inputs, high non-linearity and medium noise; not a UCI set.
"""

from dataclasses import dataclass

from bench.datasets._uci import COLLECTION, Uci, published


@dataclass(frozen=True)
class Kin8nm(Uci):
    """The 20 published splits; `splits = "gap"` holds out the middle third of a feature, `"80/20"` a random fifth."""

    files = (
        published("kin8nm", "kin8nm", 1187840, "a694ce0c7a21390f2bd2a205c36f2482cd974637a207038696716e22f3bbe810"),
    )
    source = f"DELVE, www.cs.toronto.edu/~delve/data/kin/desc.html; {COLLECTION}"
    shape = (8192, 8)
