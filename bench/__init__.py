"""uqbench: a benchmark harness that compares uncertainty methods for neural networks.

Importing `bench` costs nothing: torch, pandas, scipy and seaborn are loaded when they are first needed.
"""

import os

# Two OpenMP threads that spin while they wait slow small steps down 30-fold on a busy machine. The runtime reads this
# when torch is imported, so it has to stand here, before anything of ours can import it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Without it a matrix product of MKL differs in its last bits with where the matrix lies in memory, so with the place of
# a network in its stack. Read when the library is loaded, too.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

__version__ = "0.1.0"
