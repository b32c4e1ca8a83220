"""Plug-ins that fail, networks that diverge, a full disk: what a run makes of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.plan.suite import Suite, load_suite
from bench.plugins.registry import Registry
from bench.run.driver import run
from bench.store.store import Store
from tests.fixtures.runs import Values, new_store, statuses, values

WritePlugin = Callable[[str, str], Path]
FAULTS = {
    "loss": "def loss(self, net, batch, tape):\n        raise RuntimeError('bad\\nluck')",
    "draw": "def draw(self, net, x, tape):\n        raise RuntimeError('bad\\nluck')",
    "build": "def build(self, problem, new_network):\n        raise RuntimeError('bad\\nluck')",
    "finish": "def finish(self, net, train, validation, tape):\n        raise RuntimeError('bad\\nluck')",
    "user": "def loss(self, net, batch, tape):\n        from bench.errors import UserError\n"
    "        raise UserError('RuntimeError: bad luck')",
}


@pytest.mark.slow
@pytest.mark.parametrize("where", FAULTS)
def test_a_failing_method_fails_its_own_cells_only(
    where: str, undisturbed: Values, tiny_file: Path, write_plugin: WritePlugin, store: Store
) -> None:
    path = write_plugin("a_faulty", f"@dataclass(frozen=True)\nclass Faulty(Method):\n    {FAULTS[where]}\n")
    text = tiny_file.read_text("utf-8").replace(
        "[methods.deterministic]", "[methods.a-faulty]\n[methods.deterministic]"
    )
    tiny_file.write_text(text, "utf-8")  # the faulty one comes first
    summary = run(load_suite(str(tiny_file)), Registry([path]), store)
    assert not summary.well
    assert {cell.method for cell, _ in summary.failures} == {"a-faulty"}
    assert len(summary.failures) == 2
    for _, message in summary.failures:
        where_it_is = "" if where == "user" else f"{where}, a_faulty.py:10: "  # the line of a mistake that is named
        assert message.startswith(f"{where_it_is}RuntimeError: bad luck\n")
        assert "Traceback" in message
        assert "a_faulty.py" in message  # where it happened
    assert statuses(store) == {"a-faulty": ["failed"] * 2, "deterministic": ["ok"] * 2, "mc-dropout": ["ok"] * 2}
    assert values(store) == undisturbed


@pytest.mark.slow
def test_a_fault_in_drawing_is_its_own_cells_alone(tiny_file: Path, tmp_path: Path, store: Store) -> None:
    """The seeds are trained together; only the one with 31 test rows cannot be drawn."""
    head = "from dataclasses import dataclass\nimport numpy as np\nfrom bench.api import *\n@dataclass(frozen=True)\n"
    dataset, method = tmp_path / "uneven.py", tmp_path / "choosy.py"
    dataset.write_text(
        head + "class Uneven(Dataset):\n    task = 'regression'\n    def load(self, split):\n"
        "        x = np.linspace(0, 1, 30 + split)[:, None]\n"
        "        return Split('regression', x[:30], x[:30, 0], x, x[:, 0])\n",
        "utf-8",
    )
    method.write_text(
        head + "class Choosy(Method):\n    def draw(self, net, x, tape):\n"
        "        if x.shape[0] == 31:\n            raise RuntimeError('not 31')\n        return net(x)\n",
        "utf-8",
    )
    suite = load_suite(str(tiny_file), ["seeds=3"], methods=["choosy"], datasets=["uneven"])
    summary = run(suite.only(["uneven"], ["choosy"]), Registry([dataset, method]), store)
    assert [message.partition("\n")[0] for _, message in summary.failures] == [
        "draw, choosy.py:8: RuntimeError: not 31"
    ]
    assert statuses(store)["choosy"] == ["ok", "failed", "ok"]


@pytest.mark.slow
def test_failed_cells_run_again(tiny_file: Path, write_plugin: WritePlugin, store: Store) -> None:
    body = "@dataclass(frozen=True)\nclass Mine(Method):\n    {}\n"
    suite = load_suite(str(tiny_file), methods=["mine"])
    broken = write_plugin("mine", body.format(FAULTS["draw"]))
    assert run(suite, Registry([broken]), store).stored == 4
    mended = write_plugin("mine", body.format("pass"))
    summary = run(suite, Registry([mended]), store)
    assert (summary.stored, summary.skipped, summary.well) == (2, 4, True)
    assert statuses(store)["mine"] == ["ok", "ok"]


@pytest.mark.slow
def test_a_faulty_dataset_takes_no_other_down(tiny_file: Path, write_plugin: WritePlugin, store: Store) -> None:
    body = (
        "@dataclass(frozen=True)\nclass Mine(Dataset):\n    def load(self, split):\n        raise OSError('no disk')\n"
    )
    suite = load_suite(str(tiny_file), datasets=["mine"])
    summary = run(suite, Registry([write_plugin("mine", body)]), store)
    assert (summary.stored, summary.well) == (4, False)
    assert [(r.dataset, r.reason) for r in summary.refused] == [("mine", "load, mine.py:10: OSError: no disk")]


@pytest.mark.slow
def test_a_diverged_method_harms_no_other(
    undisturbed: Values, tiny_file: Path, write_plugin: WritePlugin, store: Store
) -> None:
    body = "def loss(self, net, batch, tape):\n        return batch.loss(net(batch.x)) * float('inf')"
    path = write_plugin("mine", f"@dataclass(frozen=True)\nclass Mine(Method):\n    {body}\n")
    summary = run(load_suite(str(tiny_file), methods=["mine"]), Registry([path]), store)
    assert (summary.diverged, summary.stored, summary.well) == (2, 6, True)
    assert statuses(store)["mine"] == ["diverged", "diverged"]
    assert values(store) == undisturbed


@pytest.mark.slow
def test_divergence_of_one_seed_is_its_own(tiny_file: Path, write_plugin: WritePlugin, tmp_path: Path) -> None:
    """Two seeds in one stack; the data of the second explodes in training."""
    body = (
        "@dataclass(frozen=True)\nclass Mine(Dataset):\n    task = 'regression'\n    explode: bool = False\n"
        "    def load(self, split):\n        x = np.random.default_rng(split).normal(size=(40, 1))\n"
        "        y = x[:, 0] * (1e30 if self.explode and split == 1 else 1.0)\n"
        "        return Split('regression', x, y, x, y)\n"
    )
    path = write_plugin("mine", body)
    found = {}
    for explode in ("false", "true"):
        store = new_store(tmp_path, explode)
        changes = ["scale_targets=false", f"datasets.mine.explode={explode}"]
        suite = load_suite(str(tiny_file), changes, datasets=["mine"]).only(["mine"], ["deterministic"])
        run(suite, Registry([path]), store)
        found[explode] = statuses(store)["deterministic"], {k: v for k, v in values(store).items() if k[2] == 0}
    assert found["false"][0] == ["ok", "ok"]
    assert found["true"][0] == ["ok", "diverged"]
    assert found["true"][1] == found["false"][1]


def test_an_extreme_learning_rate_is_recorded_and_not_scored(tiny_file: Path, store: Store) -> None:
    summary = run(load_suite(str(tiny_file), ["training.learning_rate=1e30"]), Registry(), store)
    assert (summary.diverged, summary.stored) == (4, 4)
    assert values(store) == {}
    assert all("not finite" in row["message"] for row in store.cells("tiny"))
    assert run(load_suite(str(tiny_file), ["training.learning_rate=1e30"]), Registry(), store).skipped == 4


def test_a_full_disk_ends_the_run(tiny: Suite, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be stored must not be taken for a plug-in's failure and trained on."""

    def full(*arguments: Any) -> None:
        raise UserError("--store: No space left on device")

    monkeypatch.setattr(store, "save", full)
    with pytest.raises(UserError, match="No space left"):
        run(tiny, Registry(), store)
