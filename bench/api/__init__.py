"""Everything a plug-in author imports. Names are loaded on first use: datasets and reports load no torch."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.api.dataset import Array, Dataset, Problem, Split, Task, float_options, options
    from bench.api.method import Batch, Method, Net, NewNetwork, as_float32
    from bench.api.optim import Optimizer, Step
    from bench.api.report import Block, Curves, Facts, Figure, Report, Results, Section, Table, Text
    from bench.api.tape import BlankTape, LiveTape, Tape

_HOME = {
    "bench.api.dataset": ("Array", "Dataset", "Problem", "Split", "Task", "float_options", "options"),
    "bench.api.method": ("Batch", "Method", "Net", "NewNetwork", "as_float32"),
    "bench.api.optim": ("Optimizer", "Step"),
    "bench.api.report": ("Block", "Curves", "Facts", "Figure", "Report", "Results", "Section", "Table", "Text"),
    "bench.api.tape": ("BlankTape", "LiveTape", "Tape"),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'bench.api' has no attribute {name!r}")
    return getattr(import_module(_MODULE[name]), name)


__all__ = [
    "Array",
    "Batch",
    "BlankTape",
    "Block",
    "Curves",
    "Dataset",
    "Facts",
    "Figure",
    "LiveTape",
    "Method",
    "Net",
    "NewNetwork",
    "Optimizer",
    "Problem",
    "Report",
    "Results",
    "Section",
    "Split",
    "Step",
    "Table",
    "Tape",
    "Task",
    "Text",
    "as_float32",
    "float_options",
    "options",
]
