"""Power plant: 9,568 hours of a combined cycle plant, 4 features, the electrical output in MW (UCI).

Tufekci 2014, "Prediction of Full Load Electrical Power Output of a Base Load Operated Combined Cycle Power Plant",
doi:10.1016/j.ijepes.2014.02.027.
"""

from dataclasses import dataclass

from bench.datasets._uci import COLLECTION, Uci, published, straddling


@dataclass(frozen=True)
class Power(Uci):
    """The 20 published splits; `splits = "gap"` holds out the middle third of a feature, `"80/20"` a random fifth."""

    title = "Power plant"
    files = (
        published("power", "power-plant", 308680, "daebd20c408dfc5c4979604f240e891be162c3a5d00d662380aa669044a1fb31"),
    )
    source = f"UCI 294, archive.ics.uci.edu/dataset/294; {COLLECTION}"
    shape = (9568, 4)
    notes = (straddling("0.8 %", "1.3 %"),)
