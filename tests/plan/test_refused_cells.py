"""What a plan refuses, each with its reason: faulty plug-ins, networks that do not fit, splits that are no data."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bench.api import Split
from bench.errors import UserError
from bench.plan.cells import Refused, Task, checked, plan
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry

WritePlugin = Callable[[str, str], Path]
FAULTS = {
    "method-skip": ("Method", "def skip(self, problem):\n        raise KeyError('oops')", "KeyError: 'oops'"),
    "method-hint": ("Method", "level: 'Nowhere' = 3", "NameError"),
    "method-post": ("Method", "def __post_init__(self):\n        1 / 0", "ZeroDivisionError"),
    "method-plain": ("Method", "level: object = object", "not JSON serializable"),
    "dataset-skip": ("Dataset", "def skip(self):\n        raise KeyError('oops')", "KeyError: 'oops'"),
    "dataset-load": ("Dataset", "def load(self, split):\n        raise OSError('gone')", "OSError: gone"),
    "dataset-none": (
        "Dataset",
        "def load(self, split):\n        return None",
        "load must return a Split, got NoneType",
    ),
    "dataset-huge": ("Dataset", "def load(self, split):\n        return np.zeros(10**15)", "MemoryError"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_plugin_is_refused_and_the_others_are_planned(
    fault: str, tiny_file: Path, write_plugin: WritePlugin
) -> None:
    kind, body, reason = FAULTS[fault]
    path = write_plugin("faulty", f"@dataclass(frozen=True)\nclass Faulty({kind}):\n    {body}\n")
    added = {"methods": ["faulty"]} if kind == "Method" else {"datasets": ["faulty"]}
    planned = list(plan(load_suite(str(tiny_file), **added), Registry([path])))
    (refused,) = (p for p in planned if isinstance(p, Refused))
    assert refused.fault
    assert "faulty" in (refused.method, refused.dataset)
    assert reason in refused.reason
    assert sum(isinstance(p, Task) for p in planned) == 2


def test_a_reason_to_skip_is_no_fault(tiny_file: Path, write_plugin: WritePlugin) -> None:
    body = "def skip(self, problem):\n        return f'not for {problem.task}'"
    path = write_plugin("picky", f"@dataclass(frozen=True)\nclass Picky(Method):\n    {body}\n")
    planned = list(plan(load_suite(str(tiny_file), methods=["picky"]), Registry([path])))
    assert [p for p in planned if isinstance(p, Refused)] == [
        Refused("toy", "picky", "not for regression", fault=False, cells=2)
    ]


def test_a_network_that_does_not_fit_the_data_is_refused(tiny_file: Path) -> None:
    suite = load_suite(str(tiny_file), ("network.kind=resnet8",), datasets=["digits"])
    planned = list(plan(suite, Registry()))
    assert [(p.dataset, isinstance(p, Refused)) for p in planned] == [
        ("toy", True),
        ("digits", False),
        ("digits", False),
    ]


def test_checked() -> None:
    x, y = np.zeros((4, 2)), np.zeros(4)
    good = Split("regression", x, y, x, y)
    assert checked(good) is good
    labelled = Split("classification", x, np.array([0, 1, 2, 0]), x, np.array([0, 1, 2, 2]), classes=3)
    assert checked(labelled) is labelled
    for split, reason in (
        (dataclasses.replace(good, train_x=np.zeros((0, 2)), train_y=np.zeros(0)), "train_x has no rows"),
        (dataclasses.replace(good, test_x=np.zeros((0, 2)), test_y=np.zeros(0)), "test_x has no rows"),
        (dataclasses.replace(good, train_y=np.zeros(3)), "one value for each of the 4 rows"),
        (dataclasses.replace(good, train_y=np.zeros((4, 1))), r"train_y has one column.*write y\[:, 0\]"),
        (dataclasses.replace(good, test_y=np.zeros((4, 3))), r"test_y has 3 columns; a dataset has one target: choose"),
        (dataclasses.replace(good, test_y=np.zeros((4, 3, 1))), "one value for each of the 4 rows"),
        (dataclasses.replace(labelled, train_y=np.eye(4)[:, :3]), r"train_y has 3 columns.*y\.argmax\(1\)"),
        (dataclasses.replace(good, test_x=np.full((4, 2), np.nan)), "test_x: 8 of 8 values are NaN"),
        (dataclasses.replace(good, train_y=np.full(4, np.inf)), "train_y: 4 of 4 values are NaN or infinite"),
        (dataclasses.replace(good, test_x=np.zeros((4, 3))), "differ in shape"),
        (dataclasses.replace(labelled, classes=0), "classes must be at least 2"),
        (dataclasses.replace(labelled, classes=2), "train_y must hold classes from 0 to 1"),
        (dataclasses.replace(labelled, test_y=np.array([-1, 0, 0, 0])), "test_y must hold classes"),
        (dataclasses.replace(labelled, test_y=np.array([0.5, 0, 0, 0])), "test_y must hold classes"),
    ):
        with pytest.raises(UserError, match=reason):
            checked(split)
