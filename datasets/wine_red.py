"""Red wine: 1,599 wines, 11 measurements, a taster's quality score from 3 to 8 (UCI).

Cortez, Cerdeira, Almeida, Matos and Reis 2009, "Modeling Wine Preferences by Data Mining",
doi:10.1016/j.dss.2009.05.016.
"""

from dataclasses import dataclass

from bench.datasets._uci import COLLECTION, Uci, published, straddling


@dataclass(frozen=True)
class WineRed(Uci):
    """The 20 published splits; `splits = "gap"` holds out the middle third of a feature, `"80/20"` a random fifth."""

    title = "Red wine"
    files = (
        published(
            "wine-red", "wine-quality-red", 84027, "3ba41eaf4ab562088cf47b5c9dca2b4de2a330c3ee38a7920b4527a09574d5c1"
        ),
    )
    source = f"UCI 186, archive.ics.uci.edu/dataset/186; {COLLECTION}"
    shape = (1599, 11)
    notes = (straddling("26.6 %", "35.0 %"), "targets are whole numbers")
