"""A study goes on where an export of it ended: its cells count as done, and the whole is that of one run."""

import tarfile
from pathlib import Path

import pytest

from bench.plan.cells import Refused, plan
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.run.driver import run
from bench.store.store import Store
from tools.gallery_results import STORE, unpacked
from tools.published_results import merged, pack

EXPORTS = Path(__file__).resolve().parents[2] / "results"
EMBEDDED = ("equal-cost", "mcni-ablation", "toy-sweep")  # exported whole, with data that need no download


def values(store: Store) -> list[tuple[object, ...]]:
    rows = store.values("tiny")
    return sorted((row["method"], row["seed"], row["metric"], row["value"]) for row in rows if row["value"] is not None)


@pytest.mark.slow
def test_a_study_goes_on_where_its_export_ended(tiny_file: Path, tmp_path: Path) -> None:
    part, whole = (load_suite(str(tiny_file), [f"seeds={count}"]) for count in (1, 2))
    with Store(str(tmp_path / "part.db")) as store:
        assert run(part, Registry(), store).stored == 2
    archive = tmp_path / "exports" / "tiny.tar.xz"
    archive.parent.mkdir()
    pack(str(tmp_path / "part.db"), archive, ["tiny"])

    with tarfile.open(archive) as content:
        content.extractall(tmp_path / "elsewhere", filter="data")
    path = tmp_path / "elsewhere" / STORE
    with Store(str(path)) as store:
        summary = run(whole, Registry(), store)
        assert (summary.skipped, summary.stored) == (2, 2)
    pack(str(path), archive, ["tiny"])

    with Store(str(tmp_path / "whole.db")) as store, merged(archive.parent) as exported:
        run(whole, Registry(), store)
        assert values(exported) == values(store)
        keys = [sorted(cell["key"] for cell in one.cells("tiny")) for one in (exported, store)]
        assert keys[0] == keys[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", EMBEDDED)
def test_nothing_is_left_to_do_of_a_published_study(name: str) -> None:
    wanted = {
        cell.key
        for task in plan(load_suite(name), Registry(), "cpu")
        if not isinstance(task, Refused)
        for cell in task.cells
    }
    with unpacked(EXPORTS / f"{name}.tar.xz") as store:
        assert wanted
        assert store.done(wanted) == wanted
