"""uqbench: a benchmark harness that compares uncertainty methods for neural networks.

Importing `bench` costs nothing: torch, pandas, scipy and others are loaded when they are first needed. The functions
for notebooks and scripts (docs/python.md) are those of `bench.workflow`, loaded on first use.
"""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.errors import UserError
    from bench.reproduction import Reproduced, reproduce
    from bench.run.options import RunOptions
    from bench.stats import Margin, Settings
    from bench.workflow import (
        Rankings,
        SuiteRun,
        compare_methods,
        load_results,
        merge_stores,
        open_store,
        rank_methods,
        recalibrate,
        rescore,
        row_tables,
        run_suite,
        write_leaderboard,
        write_report,
    )

# Two OpenMP threads that spin while they wait slow small steps down 30-fold on a busy machine. The runtime reads this
# when torch is imported, so it has to stand here, before anything of ours can import it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Without it a matrix product of MKL differs in its last bits with where the matrix lies in memory, so with the place of
# a network in its stack. Read when the library is loaded, too.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

__version__ = "0.2.0"

__all__ = ["Margin", "Rankings", "Reproduced", "RunOptions", "Settings", "SuiteRun", "UserError"]
__all__ += ["compare_methods", "load_results", "merge_stores", "open_store", "rank_methods", "run_suite"]
__all__ += ["recalibrate", "reproduce", "rescore", "row_tables", "write_leaderboard", "write_report"]


if not TYPE_CHECKING:  # a type checker sees the names above, and no others

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'bench' has no attribute {name!r}; it has {', '.join(__all__)}")
        if name in ("Margin", "Settings"):  # of the statistics, which load pandas
            from bench import stats

            return getattr(stats, name)
        from bench import reproduction, workflow

        return getattr(reproduction if name in ("Reproduced", "reproduce") else workflow, name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
