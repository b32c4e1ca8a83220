"""Energy efficiency: 768 simulated buildings, 8 features, the heating load (UCI).

Tsanas and Xifara 2012, "Accurate Quantitative Estimation of Energy Performance of Residential Buildings",
doi:10.1016/j.enbuild.2012.03.003.
"""

from dataclasses import dataclass

from bench.datasets._uci import COLLECTION, Uci, published


@dataclass(frozen=True)
class Energy(Uci):
    """The 20 published splits; `splits = "gap"` holds out the middle third of a feature, `"80/20"` a random fifth."""

    title = "Energy efficiency"
    files = (published("energy", "energy", 35309, "7f8bf024cea437267d56be99b7af7bb3faebec8a7bccfbb20d06d52d9372a950"),)
    source = f"UCI 242, archive.ics.uci.edu/dataset/242; {COLLECTION}"
    shape = (768, 8)
    notes = ("the second target of the source, the cooling load, is not in the file",)
