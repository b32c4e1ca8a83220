"""Boston housing: 506 districts, 13 features, the median value of a home in 1,000 dollars (UCI).

Harrison and Rubinfeld 1978, "Hedonic Housing Prices and the Demand for Clean Air".
"""

from dataclasses import dataclass

from bench.datasets._uci import COLLECTION, Uci, published


@dataclass(frozen=True)
class Boston(Uci):
    """The 20 published splits; `splits = "gap"` holds out the middle third of a feature, `"80/20"` a random fifth."""

    title = "Boston housing"
    files = (
        published("boston", "bostonHousing", 49082, "baadf72995725d76efe787b664e1f083388c79ba21ef9a7990d87f774184735a"),
    )
    source = f"StatLib, lib.stat.cmu.edu/datasets/boston; {COLLECTION}"
    shape = (506, 13)
    notes = ("withdrawn from UCI; one feature encodes the share of Black residents, and targets are cut off at 50",)
