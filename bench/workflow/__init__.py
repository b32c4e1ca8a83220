"""Use from Python: the functions behind the commands, for notebooks and scripts.

    import bench

    run = bench.run_suite("quick", methods=["mc-dropout", "mcni-fixed"], datasets=["diabetes"], seeds=5)
    run.results.frame                                                  # a data frame, one row per metric value
    bench.compare_methods(run.results, "mcni-fixed", "mc-dropout")     # paired tests, with verdicts
    bench.write_report(run.store, "report")                            # report/index.html

All of them are exported from `bench`. A mistake in the arguments raises `bench.UserError` with one line that says what
would be right; docs/python.md is a worked example.
"""

from bench.errors import UserError
from bench.run.options import RunOptions
from bench.workflow.comparing import Rankings, compare_methods, rank_methods
from bench.workflow.pages import write_leaderboard, write_report
from bench.workflow.results import load_results, recalibrate, row_tables
from bench.workflow.running import SuiteRun, choose_suite, run_suite
from bench.workflow.sources import Changes, Files, Names, StoreSource, SuiteSource, open_store, registry_of
from bench.workflow.stores import merge_stores, rescore

__all__ = [
    "Changes",
    "Files",
    "Names",
    "Rankings",
    "RunOptions",
    "StoreSource",
    "SuiteRun",
    "SuiteSource",
    "UserError",
    "choose_suite",
    "compare_methods",
    "load_results",
    "merge_stores",
    "open_store",
    "rank_methods",
    "recalibrate",
    "registry_of",
    "rescore",
    "row_tables",
    "run_suite",
    "write_leaderboard",
    "write_report",
]
