"""Protein structure: 45,730 decoys, 9 physicochemical features, the RMSD from the native structure (UCI).

Rana 2013, "Physicochemical Properties of Protein Tertiary Structure". Five published splits, not twenty.
"""

from dataclasses import dataclass

from bench.datasets._uci import COLLECTION, Uci, published, straddling


@dataclass(frozen=True)
class Protein(Uci):
    """The 5 published splits; `splits = "gap"` holds out the middle third of a feature, `"80/20"` a random fifth."""

    files = (
        published(
            "protein",
            "protein-tertiary-structure",
            3528658,
            "d35f332707e8a73f21e021039250a1e7b26e14f7dd826a0337ffa8e8e48b9727",
        ),
    )
    source = f"UCI 265, archive.ics.uci.edu/dataset/265; {COLLECTION}"
    shape = (45730, 9)
    count = 5
    notes = (straddling("6.5 %", "6.6 %"),)
