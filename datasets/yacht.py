"""Yacht hydrodynamics: 308 hull designs and speeds, 6 features, the residuary resistance (UCI).

Gerritsma, Onnink and Versluis 1981, "Geometry, Resistance and Stability of the Delft Systematic Yacht Hull Series".
"""

from dataclasses import dataclass

from bench.datasets._uci import COLLECTION, Uci, published


@dataclass(frozen=True)
class Yacht(Uci):
    """The 20 published splits; `splits = "gap"` holds out the middle third of a feature, `"80/20"` a random fifth."""

    files = (published("yacht", "yacht", 11487, "00dfecc0fc01ddd4c90b558a3ac11b246df8ebcfea130724223475a9a67f0ea1"),)
    source = f"UCI 243, archive.ics.uci.edu/dataset/243; {COLLECTION}"
    shape = (308, 6)
