"""Nothing of the test rows reaches what is trained: not scaling, not early stopping, not selection."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.api import Split
from bench.plan.cells import Refused, Task, plan
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.run.job import Job
from bench.run.jobs import outcomes
from bench.spec.cell import Outcome
from bench.training.limits import Limits

SUITE = """
title = "Leakage"
seeds = 2
draws = 3
[training]
epochs = 6
patience = 1
batch = 32
[network]
hidden = [5]
[datasets.diabetes]
[datasets.wine]
[datasets.two-moons]
[methods.mc-dropout]
"""


def trained(task: Task, splits: Sequence[Split]) -> list[Outcome]:
    jobs = [Job(task.plugin, task.protocol, split, cell.seed) for cell, split in zip(task.cells, splits, strict=True)]
    ended = dict(outcomes(jobs, limits=Limits(compiling=False)))
    return [ended[number] for number in range(len(jobs))]


@pytest.mark.slow
@pytest.mark.parametrize("dataset", ["diabetes", "wine", "two-moons"])
def test_other_test_rows_train_the_same_networks(dataset: str, tmp_path: Path) -> None:
    path = tmp_path / "leakage.toml"
    path.write_text(SUITE, "utf-8")
    task = next(iter(plan(load_suite(str(path)).only([dataset], []), Registry())))
    assert not isinstance(task, Refused)
    plain = trained(task, task.splits)
    for outcome in plain:
        assert outcome.status == "ok", outcome.message

    # Other test targets: the same training, and the very same predictions.
    others = trained(task, [replace(s, test_y=s.test_y[::-1]) for s in task.splits])
    for before, after in zip(plain, others, strict=True):
        assert after.training == before.training
        assert before.arrays is not None
        assert after.arrays is not None
        np.testing.assert_array_equal(after.arrays["mean"], before.arrays["mean"])
        assert after.metrics != before.metrics  # they are scored against others

    # Wild test inputs: the same training.
    others = trained(task, [replace(s, test_x=1e3 * s.test_x - 7) for s in task.splits])
    for before, after in zip(plain, others, strict=True):
        assert after.training == before.training

    # The control: other training targets do change it.
    others = trained(task, [replace(s, train_y=s.train_y[::-1]) for s in task.splits])
    for before, after in zip(plain, others, strict=True):
        assert after.training != before.training
