"""Cells of wrappers: the inner method is part of their key, of a search and of what is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.plan.cells import Refused, Task, plan
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.spec.cell import Cell
from bench.spec.spec import foreign_plugins, read_spec

WriteSuite = Callable[..., str]
WritePlugin = Callable[[str, str], Path]
WRAPPER = """
from bench.api import PluginSpec, Wrapper
@dataclass(frozen=True)
class Around(Wrapper):
    method: PluginSpec = PluginSpec("deterministic")
    folds: int = 0
"""
INNER = "@dataclass(frozen=True)\nclass Mine(Method):\n    strength: float = 0.5\n    size: int = 3\n"


def wrapped_cells(write_suite: WriteSuite, files: tuple[Path, ...], methods: str, head: str = "") -> list[Cell]:
    text = f'title = "t"\nseeds = 1\ntraining.epochs = 2\n{head}\n[datasets.toy]\nrows = 40\n{methods}'
    planned = list(plan(load_suite(write_suite(text)), Registry(files)))
    tasks = [one for one in planned if isinstance(one, Task)]
    assert len(tasks) == len(planned), planned
    return [cell for task in tasks for cell in task.cells]


def test_the_inner_method_is_part_of_the_key_by_its_content(write_plugin: WritePlugin, write_suite: WriteSuite) -> None:
    wrapper = write_plugin("around", WRAPPER)
    first, edited, back = (
        wrapped_cells(write_suite, (wrapper, write_plugin("mine", text)), '[methods.around]\nmethod = "mine"\n')[0]
        for text in (INNER, INNER + "# another thought\n", INNER)
    )
    assert first.key == back.key != edited.key
    inner = read_spec(first.spec).method.options["method"]
    assert inner["name"] == "mine"
    assert len(inner["origin"]) == 16
    assert inner["options"] == {"strength": 0.5, "size": 3}
    assert foreign_plugins(read_spec(first.spec))["method mine"] == inner["origin"]  # gate and rerun name it


def test_the_inner_method_may_have_options(write_plugin: WritePlugin, write_suite: WriteSuite) -> None:
    files = (write_plugin("around", WRAPPER), write_plugin("mine", INNER))
    table = '[methods.{}]\nuse = "around"\nmethod = {}\n'
    forms = ['"mine"', '{ name = "mine" }', '{ name = "mine", strength = 0.5 }', '{ name = "mine", strength = 0.7 }']
    found = wrapped_cells(write_suite, files, "".join(table.format(f"m{n}", form) for n, form in enumerate(forms)))
    same, other = {cell.key for cell in found[:3]}, found[3].key
    assert len(same) == 1
    assert other not in same


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("method = 3", r'methods\.around: method: expected the method to wrap, as "NAME" or'),
        ("method = { rate = 0.1 }", "expected the method to wrap"),
        ('method = "mcdropout"', r"methods\.around: method: unknown method 'mcdropout'; did you mean mc-dropout"),
        (
            'method = { name = "mc-dropout", rat = 0.1 }',
            r"methods\.around: method: unknown option 'rat'; did you mean rate",
        ),
        ('method = "around"', "'around' is a wrapper, too; name a method that is trained"),
    ],
)
def test_mistakes_about_the_inner_method_are_one_line(
    options: str, reason: str, write_plugin: WritePlugin, write_suite: WriteSuite
) -> None:
    with pytest.raises(UserError, match=reason):
        wrapped_cells(write_suite, (write_plugin("around", WRAPPER),), f"[methods.around]\n{options}\n")


def test_a_search_is_about_the_inner_methods_options(write_plugin: WritePlugin, write_suite: WriteSuite) -> None:
    inner = INNER + "    search_space = {'strength': (0.1, 0.2), 'size': (1, 2)}\n"
    files = (write_plugin("around", WRAPPER), write_plugin("mine", inner))
    found = wrapped_cells(
        write_suite,
        files,
        '[methods.mine]\n[methods.around]\nmethod = "mine"\n[methods.given]\nuse = "around"\n'
        'method = { name = "mine", size = 2 }\ngrid.strength = [0.3, 0.4]\n',
        'search = "grid"',
    )
    spaces = {cell.method: read_spec(cell.spec).space for cell in found}
    assert spaces["around"] == spaces["mine"] == {"strength": [0.1, 0.2], "size": [1, 2]}
    assert spaces["given"] == {"strength": [0.3, 0.4]}
    methods = '[methods.around]\nmethod = "mine"\ngrid.strenth = [0.3, 0.4]\n'
    with pytest.raises(UserError, match=r"methods\.around: grid: method: unknown option 'strenth'"):
        wrapped_cells(write_suite, files, methods, 'search = "grid"')


@pytest.mark.parametrize(
    ("head", "options", "refused"),
    [
        ("validation = 0.0", "", "a wrapper needs rows that do not train; give calibration a share"),
        ("validation = 0.0", "folds = 3", ""),
        ("validation = 0.0\ncalibration = 0.2", "", ""),
        ('search = "grid"\nrefit = true', "", "a wrapper needs rows that do not train"),
        ("", "folds = 1", "folds: expected 0, or from 2 to "),
        ('probe.kind = "latency"', "folds = 3", "this probe times one inner method, the wrapper has 3"),
    ],
)
def test_a_wrapper_needs_rows_to_calibrate_on(
    head: str, options: str, refused: str, write_plugin: WritePlugin, write_suite: WriteSuite
) -> None:
    text = f'title = "t"\nseeds = 1\n{head}\n[datasets.toy]\nrows = 40\n[methods.around]\n{options}\n'
    registry = Registry([write_plugin("around", WRAPPER)])
    (found,) = plan(load_suite(write_suite(text)), registry)
    assert refused in found.reason if isinstance(found, Refused) else not refused
