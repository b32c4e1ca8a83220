"""Imports go one way. Read from the source, so that nothing has to be imported to break the rule."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("methods", "datasets", "reports")
PUBLIC = {
    "bench.api", "bench.tape", "bench.metrics", "bench.optim", "bench.data", "bench.errors", "bench.corruptions",
    "bench.download", "bench.torchvision_compat", "bench.stats", "bench.theme",
}  # fmt: skip
HEAVY = {"torch", "pandas", "scipy", "seaborn", "matplotlib", "sklearn", "numpy", "sqlalchemy", "pydantic"}


def imports(path: Path, *, module_level: bool = False) -> set[str]:
    """The modules a file imports, without those for type checking only.

    `from a import b` is a.b where that is a module of ours, and a otherwise.
    """
    modules = set(core_files())
    found: set[str] = set()
    for node in _statements(ast.parse(path.read_text("utf-8")), module_level):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write absolute imports"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in modules or node.module == "bench" else str(node.module))
    return found


def _statements(node: ast.AST, module_level: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        checking = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if checking or (module_level and inside):
            continue
        yield child
        yield from _statements(child, module_level)


def core_files() -> dict[str, Path]:
    """The modules of the harness by name."""
    parts = ("metrics", "engines", "gate", "history", "leaderboard", "probes", "stats", "testing")
    folders = (ROOT / "bench", *(ROOT / "bench" / part for part in parts))
    files = [path for folder in folders for path in folder.glob("*.py")]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in files}


def plugin_files() -> list[Path]:
    return [path for kind in KINDS for path in sorted((ROOT / kind).glob("*.py"))]


@pytest.mark.parametrize("path", plugin_files(), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_a_plugin_imports_the_public_api_and_its_own_helpers(path: Path) -> None:
    kind = path.parent.name
    for name in imports(path):
        if name.split(".")[0] != "bench" or name == "bench":
            assert name.split(".")[0] not in KINDS, f"{path}: import it as bench.{name}"
            continue
        public = any(name == module or name.startswith(f"{module}.") for module in PUBLIC)
        helper = name.startswith(f"bench.{kind}._") or name == f"bench.{kind}"
        assert public or helper, f"{path} imports {name}"


@pytest.mark.parametrize("name", core_files())
def test_the_core_names_no_plugin(name: str) -> None:
    path = core_files()[name]
    plugins = {f"bench.{kind}" for kind in KINDS}
    assert not [i for i in imports(path) if any(i == p or i.startswith(f"{p}.") for p in plugins)]
    strings = {n.value for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Constant)}
    # Reports have names such as "summary" that are ordinary words.
    named = [p for p in plugin_files() if p.parent.name != "reports" and not p.stem.startswith("_")]
    names = {p.stem.replace("_", "-") for p in named} - {"power"}  # also a word of statistics
    assert not names & strings


def module_graph(*, module_level: bool) -> dict[str, set[str]]:
    files = core_files()
    return {name: (imports(path, module_level=module_level) & set(files)) - {name} for name, path in files.items()}


def test_the_core_has_no_import_cycle() -> None:
    graph = module_graph(module_level=True)
    assert len(graph) > 30
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError
    assert order.index("bench.errors") < order.index("bench.store") < order.index("bench.render")


def test_the_command_line_is_on_top_and_the_api_at_the_bottom() -> None:
    graph = module_graph(module_level=False)
    assert not [name for name, used in graph.items() if "bench.cli" in used]
    assert graph["bench.api"] <= {"bench.optim", "bench.tape", "bench.data", "bench.download"}
    assert graph["bench.errors"] == set()
    below_the_run = ("api", "tape", "optim", "networks", "member", "stack", "draw", "graph", "protocol", "metrics")
    above = {f"bench.{name}" for name in ("run", "store", "results", "render", "doctor", "suite", "registry", "plan")}
    for name in below_the_run:
        assert not graph[f"bench.{name}"] & above, name
    for name, used in graph.items():
        if name.startswith("bench.metrics"):
            assert all(u.startswith("bench.metrics") or u == "bench.errors" for u in used), name


@pytest.mark.parametrize(
    "name",
    [
        "bench",
        "bench.errors",
        "bench.cli",
        "bench.cli_data",
        "bench.cli_engine",
        "bench.cli_gate",
        "bench.cli_leaderboard",
        "bench.cli_options",
        "bench.cli_plugins",
        "bench.cli_run",
        "bench.cli_stats",
        "bench.cli_store",
        "bench.engines",
        "bench.engines.local",
        "bench.data",
        "bench.download",
        "bench.environment",
        "bench.registry",
    ],
)
def test_light_modules_import_nothing_heavy(name: str) -> None:
    path = core_files()[name]
    assert not {i.split(".")[0] for i in imports(path, module_level=True)} & HEAVY


def test_nothing_reads_a_global_seed() -> None:
    """Every random draw takes an explicit generator (that torch's is given back is tested with the run)."""
    forbidden = {"np.random.seed", "random.seed", "np.random.rand", "np.random.randn"}
    for path in (*core_files().values(), *plugin_files()):
        calls = {ast.unparse(n.func) for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Call)}
        assert not calls & forbidden, path
