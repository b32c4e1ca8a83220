"""The rooms of the house and the order of their imports, read from the source."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TypeVar

import pytest

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("methods", "datasets", "reports")

# A room imports only from rooms above it in this list; ARCHITECTURE.md says what is in each.
ROOMS = [
    "counts",
    "csv_cells",
    "errors",
    "json_values",
    "text_tables",
    "spec",
    "machine",
    "metrics",
    "stats",
    "api",
    "training",
    "networks",
    "probes",
    "plugins",
    "plan",
    "store",
    "submissions",
    "run",
    "web",
    "report",
    "gate",
    "history",
    "leaderboard",
    "testing",
    "workflow",
    "reproduction",
    "cli",
]
Node = TypeVar("Node", bound=ast.AST)
HEAVY = {"torch", "pandas", "scipy", "seaborn", "matplotlib", "sklearn", "numpy", "sqlalchemy", "pydantic"}


@cache
def core_files() -> dict[str, Path]:
    """The modules of the harness by name."""
    folders = [folder for folder in (ROOT / "bench").rglob("*") if folder.is_dir() and not folder.is_symlink()]
    files = [path for folder in (ROOT / "bench", *folders) for path in folder.glob("*.py")]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in files}


@cache
def imports(path: Path, *, module_level: bool = False) -> frozenset[str]:
    """The modules a file imports; at module level, without functions and without what is for type checking only.

    `from a import b` is a.b where that is a module of ours, and a otherwise.
    """
    found: set[str] = set()
    for node in _statements(ast.parse(path.read_text("utf-8")), module_level):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write absolute imports"
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & set(core_files())
            found |= inner | ({str(node.module)} if len(inner) < len(node.names) else set())
    return frozenset(found)


def _statements(node: ast.AST, module_level: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        checking = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if module_level and (checking or inside):
            continue
        yield child
        yield from _statements(child, module_level)


def room(module: str) -> str:
    return module.split(".")[1]


def plugin_files() -> list[Path]:
    folders = [*(ROOT / kind for kind in KINDS), ROOT / "bench" / "networks"]
    return [path for folder in folders for path in sorted(folder.glob("*.py"))]


def plugin_names() -> set[str]:
    """The names of methods and datasets; the others have names such as "summary" and "conv" that are ordinary words."""
    words = ("reports", "networks")
    named = [p for p in plugin_files() if p.parent.name not in words and not p.stem.startswith("_")]
    return {p.stem.replace("_", "-") for p in named} - {"power"}  # also a word of statistics


def data_files() -> list[Path]:
    """What is in the folders of the core beside its modules, without the suites."""
    folders = {path.parent for path in core_files().values()} | {
        p.parent for p in (ROOT / "bench").rglob("templates/*")
    }
    found = [path for folder in folders for path in folder.iterdir() if path.is_file()]
    wraps = {"wrapper.py.txt"}  # names the method that a new wrapper is around
    return [path for path in found if path.suffix not in (".py", ".pyc") and path.name not in wraps]


def test_every_module_is_in_a_room() -> None:
    at_the_door = {"bench", "bench.__main__"}
    assert {room(name) for name in core_files().keys() - at_the_door} == set(ROOMS)


@pytest.mark.parametrize("name", sorted(core_files().keys() - {"bench", "bench.__main__"}))
def test_a_room_imports_only_from_rooms_above_it(name: str) -> None:
    """Imports inside functions and for type checking count, too."""
    used = {i for i in imports(core_files()[name]) if i.startswith("bench.")}
    below = {i for i in used if ROOMS.index(room(i)) > ROOMS.index(room(name))}
    assert not below, f"{name} is in the room {room(name)!r}, which comes before {sorted(map(room, below))}"


def test_no_module_imports_itself_through_others() -> None:
    files = core_files()
    graph = {name: (imports(path, module_level=True) & set(files)) - {name} for name, path in files.items()}
    assert len(graph) > 100
    list(TopologicalSorter(graph).static_order())  # raises CycleError


@pytest.mark.parametrize("path", plugin_files(), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_a_plugin_imports_bench_api_and_its_own_helpers(path: Path) -> None:
    kind = path.parent.name
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        found = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in [str(node.module)] if isinstance(node, ast.ImportFrom) else found:
            assert name.split(".")[0] not in KINDS, f"{path}: import it as bench.{name}"
            helper = name.startswith(f"bench.{kind}._") or name == f"bench.{kind}"
            assert name.split(".")[0] != "bench" or name == "bench.api" or helper, f"{path} imports {name}"


@pytest.mark.parametrize("name", core_files())
def test_the_core_names_no_plugin(name: str) -> None:
    path = core_files()[name]
    plugins = {f"bench.{kind}" for kind in (*KINDS, "networks") if room(f"{name}.") != kind}
    assert not [i for i in imports(path) if any(i == p or i.startswith(f"{p}.") for p in plugins)]
    strings = {n.value for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Constant)}
    assert not plugin_names() & strings


def test_data_files_of_the_core_name_no_plugin() -> None:
    """Suites name plug-ins, that is what they are for; nothing else that is shipped with the core does."""
    files = {path.parent.relative_to(ROOT / "bench") / path.name: path for path in data_files()}
    assert len(files) > 5
    for place, path in files.items():
        words = set(re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)*", path.read_text("utf-8")))
        assert not words & plugin_names(), place


LIGHT = [
    "bench", "bench.__main__", "bench.errors", "bench.plugins.registry", "bench.machine.data_files",
    "bench.machine.download", "bench.machine.environment", "bench.run.executors", "bench.run.executors.local",
    *(name for name in core_files() if room(f"{name}.") == "cli" and name != "bench.cli.doctor"),
]  # fmt: skip


@pytest.mark.parametrize("name", LIGHT)
def test_light_modules_import_nothing_heavy(name: str) -> None:
    path = core_files()[name]
    assert not {i.split(".")[0] for i in imports(path, module_level=True)} & HEAVY


@pytest.mark.slow
def test_nothing_reads_a_global_seed() -> None:
    """Every random draw takes an explicit generator (that torch's is given back is tested with the run).

    Estimators may call libraries that know the global generators only: one module seeds those, and restores them.
    """
    forbidden = {"np.random.seed", "random.seed", "np.random.rand", "np.random.randn"}
    for path in (*core_files().values(), *plugin_files()):
        calls = {ast.unparse(call.func) for call in _nodes(path, ast.Call, with_text="random.")}
        assert not calls & forbidden or path.as_posix().endswith("bench/training/estimators.py"), path


def _nodes(path: Path, kind: type[Node], *, with_text: str) -> Iterator[Node]:
    """The nodes of a kind in a file that has this text at all: to parse all files takes seconds."""
    text = path.read_text("utf-8")
    tree = ast.parse(text if with_text in text else "")
    return (node for node in ast.walk(tree) if isinstance(node, kind))


@pytest.mark.slow
def test_one_module_decodes_the_specification_of_a_cell() -> None:
    """All others read it with `read_spec`; nobody takes one apart by key or position."""
    tools = sorted((ROOT / "tools").glob("*.py"))
    for path in (*core_files().values(), *plugin_files(), *tools):
        calls = _nodes(path, ast.Call, with_text="json.loads")
        decoded = [ast.unparse(call) for call in calls if ast.unparse(call.func) == "json.loads"]
        if path != core_files()["bench.spec.spec"]:
            assert not [call for call in decoded if "spec" in call], path
        taken = _nodes(path, ast.Subscript, with_text="spec[")
        assert not [n for n in taken if re.search(r"\bspec$", ast.unparse(n.value))], path


WIDEST = 8


@pytest.mark.parametrize("name", core_files())
def test_no_function_takes_more_than_eight_parameters(name: str) -> None:
    """A parameter object is easier to call and to extend. The commands are exempt: click hands each option over."""
    for node in ast.walk(ast.parse(core_files()[name].read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            own = [argument.arg for argument in arguments if argument.arg not in ("self", "cls")]
            command = name.startswith("bench.cli.") and any("click" in ast.unparse(d) for d in node.decorator_list)
            assert command or len(own) <= WIDEST, f"{name}.{node.name} takes {len(own)}: {', '.join(own)}"
