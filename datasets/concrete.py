"""Concrete: 1,030 mixtures, 8 features, compressive strength in MPa (UCI).

Yeh 1998, "Modeling of Strength of High-Performance Concrete Using Artificial Neural Networks".
"""

from dataclasses import dataclass

from bench.datasets._uci import COLLECTION, Uci, published, straddling


@dataclass(frozen=True)
class Concrete(Uci):
    """The 20 published splits; `splits = "gap"` holds out the middle third of a feature, `"80/20"` a random fifth."""

    files = (
        published("concrete", "concrete", 57858, "43d290fd2c2a399ad7e62c45cab5337ba94ece69ebdcf5875aa668cb886243de"),
    )
    source = f"UCI 165, archive.ics.uci.edu/dataset/165; {COLLECTION}"
    shape = (1030, 8)
    notes = (straddling("3.4 %", "8.7 %"),)
