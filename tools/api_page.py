"""The page docs/api.md: every name of bench.api, every hook of a plug-in and every method of the tape.

python -m tools.api_page docs/api.md
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import bench.api
from bench.plugins.describe import comment
from tools.pages import write_page

INTRODUCTION = """# The names of bench.api

*Written by `python -m tools.api_page docs/api.md` from the docstrings in `bench/`; edit those.*

A plug-in imports everything from one place:

```python
from bench.api import Batch, Method, Net, Tape
```

A name is loaded when it is first used, so a dataset or a report does not load torch. The tests of a plug-in import the
conformance kit from `bench.testing`. [CONTRIBUTING.md](../CONTRIBUTING.md) has a method, a dataset and a report that
work, [tutorial.md](tutorial.md) a method step by step.
"""

# In the order in which an author meets them; a test compares these names with bench.api.__all__.
SECTIONS = {
    "Methods": "Method Net Batch Tape LiveTape BlankTape TapeLength choose Optimizer Step Tensors NewNetwork Look "
    "as_float32",
    "Estimators": "Estimator Examples BaseMethod",
    "Wrappers": "Wrapper HeldOut PluginSpec",
    "Predictions": "Prediction RegressionPrediction Points Normal NormalInverseGamma NormalMixture Quantiles Mixture "
    "ClassPrediction Probabilities Logits Dirichlet Sets",
    "Datasets": "Dataset Law Replication Split Blocks PublishedShifts Problem Task Array File find_file "
    "missing_file verified_file data_folders download extract by_hand read_array_file import_torchvision corruptions",
    "Networks": "Network Hidden unchanged",
    "Metrics": "Metric Forecast",
    "Reports": "Report Results Curves Kept Section Block Text Facts Table Figure "
    "Reproduction SuitePart Measured catalogue declaration condition "
    "sort_by_score risk_coverage_curve reliability_curve pit_values quantile_curve CellSpec read_spec "
    "spec_or_none lacking_timing_facts stats style plural",
    "All plug-ins": "UserError unknown_name options float_options",
}
ALIASES = {
    "Array": "Any numpy array.",
    "Block": "What a section consists of: `Text`, `Facts`, `Table` or `Figure`.",
    "Hidden": "What a method does to a hidden activation: a function of a tensor that returns one of the same shape.",
    "NewNetwork": "A function that builds the suite's network with a given number of outputs.",
    "Prediction": "What a method may state about its rows: a `RegressionPrediction` or a `ClassPrediction`.",
    "Tensors": "Tensors by name: `Mapping[str, Tensor]`.",
    "Replication": "How the numbered splits of a dataset are related: `'independent'`, `'splits'` or `'seeds'`.",
    "Task": "`'regression'` or `'classification'`.",
}


def page() -> str:
    """Return the page."""
    lines = [INTRODUCTION]
    for title, names in SECTIONS.items():
        lines.append(f"## {title}\n")
        for name in names.split():
            lines += [f"### {name}\n", *entry(name, getattr(bench.api, name)), ""]
    return "\n".join(lines).rstrip()


def entry(name: str, thing: Any) -> Iterator[str]:
    """Yield the lines on one name: its docstring and its members."""
    if name in ALIASES:
        yield ALIASES[name]
    elif isinstance(thing, ModuleType):
        yield _doc(thing) + "\n"
        yield from _names_of(thing)
    elif inspect.isclass(thing):
        yield _doc(thing)
        members = [*_attributes(thing), *_methods(thing)]
        yield from (["", *members] if members else [])
    else:
        yield f"`{_signature(thing)}`\n\n{_doc(thing)}"


def _names_of(module: ModuleType) -> Iterator[str]:
    """Yield a line for every public function and class of a module, and one line with its constants."""
    listed = getattr(module, "__all__", None)
    own = {n: v for n, v in vars(module).items() if getattr(v, "__module__", module.__name__) == module.__name__}
    public: Mapping[str, Any] = {n: getattr(module, n) for n in listed} if listed else own
    constants = [f"`{name}`" for name in public if name.isupper() and name != "TYPE_CHECKING"]
    if constants:
        yield f"- constants: {', '.join(constants)}"
    for name, thing in public.items():
        if inspect.isfunction(thing) and not name.startswith("_"):
            yield f"- `{_signature(thing)}`: {_first(thing)}"
        elif inspect.isclass(thing):
            yield f"- `{name}`: {_first(thing)}"
            yield from (f"  {line}" for line in _methods(thing) if not listed)


def _attributes(cls: type[Any]) -> Iterator[str]:
    """Yield the annotated attributes of a class, each with its default and the comment behind it."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(tree, ast.ClassDef)
    for node in tree.body:
        if isinstance(node, ast.AnnAssign):
            name, meaning = ast.unparse(node.target), comment(cls, ast.unparse(node.target))
            default = (
                f" = {ast.unparse(node.value)}"
                if node.value and "field(" not in ast.unparse(node.value).lower()
                else ""
            )
            kind = re.sub(r"^ClassVar\[(.*)\]$", r"\1", ast.unparse(node.annotation)).strip("'")
            yield f"- `{name}: {kind}{default}`" + (f": {meaning}" if meaning else "")


def _methods(cls: type[Any]) -> Iterator[str]:
    for name, thing in vars(cls).items():
        function = thing.fget if isinstance(thing, property) else thing
        if inspect.isfunction(function) and function.__doc__ and not (name.startswith("_") and name != "__call__"):
            call = _signature(function).replace("__call__", cls.__name__.lower(), 1)
            yield f"- `{name if isinstance(thing, property) else call}`: {' '.join(_doc(function).split())}"


def _signature(function: Any) -> str:
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    tree.args.args = [argument for argument in tree.args.args if argument.arg != "self"]
    return f"{tree.name}({ast.unparse(tree.args)}) -> {ast.unparse(tree.returns) if tree.returns else None}"


def _doc(thing: Any) -> str:
    return inspect.getdoc(thing) or ""


def _first(thing: Any) -> str:
    return _doc(thing).partition("\n")[0]


if __name__ == "__main__":
    write_page(__doc__, page)
