"""What may be compared is decided by rows, harness, protocol and versions of metrics."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.spec.cell import Cell, Outcome
from bench.spec.plugin import SUBMITTED, PluginSpec
from bench.spec.protocol import Protocol, Training
from bench.spec.spec import CellSpec
from bench.store.comparable import HARNESS, METRICS, PROTOCOL, ROWS, differences, require_comparable
from bench.store.store import Store, SuiteRecord
from tests.fixtures.commands import Command

SPEC = CellSpec(
    dataset=PluginSpec("houses"), data="a", method=PluginSpec("m"), protocol=Protocol(), split=0, seed=0, harness=2
)


def cell(method: str, spec: CellSpec = SPEC, training: dict[str, Any] | None = None) -> dict[str, Any]:
    text = json.dumps(training or {})
    return {"dataset": "houses", "method": method, "spec": spec.text, "status": "ok", "training": text}


CHANGED = {
    ROWS: cell("mine", replace(SPEC, data="b")),
    HARNESS: cell("mine", replace(SPEC, harness=3)),
    PROTOCOL: cell("mine", replace(SPEC, protocol=Protocol(draws=7))),
    METRICS: cell("mine", training={"metric_versions": {"crps": 2}}),
}


@pytest.mark.parametrize("reason", CHANGED)
def test_each_difference_is_named_with_its_method(reason: str) -> None:
    cells = [cell("one"), cell("two"), CHANGED[reason]]
    (found,) = differences(cells, "one")
    assert (found.dataset, found.method, found.reason) == ("houses", "mine", reason)
    assert not differences(cells, "one", ["one", "two"])
    with pytest.raises(UserError, match=f"not comparable: houses: mine has {reason}; "):
        require_comparable(cells, "one")
    require_comparable(cells, "one", ["one", "two"])


def test_versions_count_for_the_metrics_that_are_compared_as_they_are_after_rescoring() -> None:
    cells = [cell("one") | {"key": "k"}, CHANGED[METRICS]]
    require_comparable(cells, "one", metrics=["rmse", "nll"])
    require_comparable(cells, "one", metrics=["crps"], versions={"k": {"crps": "2"}})
    for versions in ({}, {"other": {"crps": "2"}}, {"k": {"crps": "3"}}):
        with pytest.raises(UserError, match="mine has other versions of metrics; 'uqbench rescore' brings"):
            require_comparable(cells, "one", metrics=["crps@group=north"], versions=versions)


def test_what_a_suite_may_change_for_one_method_is_no_difference() -> None:
    trained = replace(SPEC, protocol=Protocol(training=Training(epochs=7)))
    submitted = replace(SPEC, method=PluginSpec("x", SUBMITTED), protocol=Protocol(draws=7))
    assert not differences([cell("one"), cell("two", trained), cell("three", submitted)], None)
    assert not differences(
        [cell("one"), cell("two", replace(SPEC, data="b", split=1))], None
    )  # other rows, other split


def test_of_two_the_baseline_is_right() -> None:
    (found,) = differences([cell("a"), cell("b", replace(SPEC, data="b"))], "b")
    assert found.method == "a"


def test_a_merge_says_what_may_be_compared_and_a_comparison_refuses_the_rest(command: Command, tmp_path: Path) -> None:
    record = SuiteRecord("tiny", "Tiny", "published", ["rmse"], "{}")
    for name, method, data in (("there.db", "published", "a"), ("here.db", "mine", "b")):
        cells = [
            Cell.of(replace(SPEC, method=PluginSpec(method), data=data, seed=n, split=n), "houses", method)
            for n in range(6)
        ]
        with Store(str(tmp_path / name)) as store:
            store.want(record, cells)
            store.save([(each, Outcome("ok", metrics={"rmse": 1.0 + each.seed})) for each in cells], "tiny")
    done = command("merge", "there.db", "--store", "here.db")
    assert done.code == 0, done.err
    assert "not comparable: tiny: houses: mine has other rows" in done.out
    refused = command("compare", "mine", "published", "--store", "here.db")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "not comparable: houses: mine has other rows" in refused.err
