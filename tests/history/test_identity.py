"""Which stored cells are the same cell of other versions."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from bench.history.identity import Form, Wanted, form_of, given_parts, lineages
from bench.plan.cells import Task, plan
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.spec.spec import SpecError, read_spec, spec_or_none
from tests.fixtures.results import spec


def form(about: dict[str, Any]) -> Form:
    return form_of(read_spec(json.dumps(about)))


def with_options(**options: Any) -> Form:
    return form(spec(options=options))


def test_versions_data_and_seed_play_no_part() -> None:
    other = spec(version=7, seed=3)
    other["harness"], other["dataset"][2], other["method"][1] = 1, "9", "a file"
    assert form(spec()) == form(other)


def test_a_protocol_key_that_is_lacking_stands_at_its_default() -> None:
    old = spec()
    del old["protocol"]["folds"], old["protocol"]["training"]["momentum"], old["protocol"]["probe"], old["space"]
    assert form(old) == form(spec())
    # Where the newer one is not at the default, it is another experiment.
    assert not form(old).agrees_with(form(spec(folds=7)))


def test_every_kind_of_probe_has_its_own_defaults() -> None:
    old, new = ({"kind": "latency", "draws": [1]}, {"kind": "latency", "draws": [1], "batch": 500})
    assert form(spec(probe=old)) == form(spec(probe=new))
    assert not form(spec(probe=old)).agrees_with(form(spec(probe={**new, "batch": 100})))
    assert not form(spec(probe=old)).agrees_with(form(spec()))


def test_a_grid_and_a_space_are_compared_as_a_whole() -> None:
    searched = spec(grid={"learning_rate": [0.1]})
    assert not form(searched).agrees_with(form(spec()))
    tried = {**spec(), "space": {"rate": [0.1, 0.2]}}
    assert not form(tried).agrees_with(form(spec()))


def test_an_option_of_a_plugin_that_is_lacking_agrees_and_another_value_does_not() -> None:
    old, new = with_options(rate=0.1), with_options(rate=0.1, law="normal")
    assert old != new
    assert old.agrees_with(new)
    assert new.agrees_with(old)
    assert not old.agrees_with(with_options(rate=0.9, law="normal"))
    assert not with_options(table={"a": 1}).agrees_with(with_options(table={}))  # an option's value is one value


def test_the_version_of_a_wrappers_inner_method_plays_no_part_and_its_options_do() -> None:
    inner = {"name": "mc-dropout", "origin": "built in", "version": "1", "options": {"rate": 0.1}}
    old = with_options(method=inner, scaled=True)
    assert old == with_options(method={**inner, "version": "2", "origin": "a file"}, scaled=True)
    assert old.agrees_with(with_options(method={**inner, "options": {"rate": 0.1, "per_row": False}}, scaled=True))
    assert not old.agrees_with(with_options(method={**inner, "options": {"rate": 0.2}}, scaled=True))
    assert not old.agrees_with(with_options(method={**inner, "name": "swag"}, scaled=True))


def test_options_of_the_dataset_count_too() -> None:
    rows = spec()
    rows["dataset"] = ["toy", "built in", "1", {"rows": 40}]
    other = copy.deepcopy(rows)
    other["dataset"][3]["rows"] = 50
    assert form(rows).agrees_with(form(spec()))
    assert not form(rows).agrees_with(form(other))


def test_specifications_of_the_oldest_stores_are_read() -> None:
    old = spec(options={"rate": 0.1})
    old["method"], old["dataset"] = ["m", 1, {"rate": 0.1}], ["toy", 1, {}]
    assert form(old) == with_options(rate=0.1)


@pytest.mark.parametrize(
    "broken",
    [{}, {"method": 1}, {**spec(), "protocol": 3}, {**spec(), "dataset": []}, {**spec(), "method": ["m", "x", "1", 5]}],
)
def test_what_is_no_specification_has_no_form(broken: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        form(broken)
    assert spec_or_none(json.dumps(broken)) is None


NORMAL, UNIFORM = with_options(rate=0.1, law="normal"), with_options(rate=0.1, law="uniform")
OLD = with_options(rate=0.1)


def test_an_older_form_is_joined_where_one_label_agrees() -> None:
    found = lineages({"a": Wanted(NORMAL)}, {NORMAL: ["new"], OLD: ["old"], with_options(rate=0.9): ["old"]})
    assert found == {"a": {"new": NORMAL, "old": OLD}}


def test_an_older_form_that_agrees_with_two_labels_belongs_to_neither() -> None:
    found = lineages({"a": Wanted(NORMAL), "b": Wanted(UNIFORM)}, {NORMAL: ["new"], UNIFORM: ["new"], OLD: ["old"]})
    assert found == {"a": {"new": NORMAL}, "b": {"new": UNIFORM}}


def test_two_labels_with_other_values_keep_their_own_past() -> None:
    high, old_high = with_options(rate=0.9, law="normal"), with_options(rate=0.9)
    stored = {NORMAL: ["new"], high: ["new"], OLD: ["old"], old_high: ["old"]}
    found = lineages({"low": Wanted(NORMAL), "high": Wanted(high)}, stored)
    assert found == {"low": {"new": NORMAL, "old": OLD}, "high": {"new": high, "old": old_high}}


def test_one_cell_under_two_labels_is_in_both() -> None:
    found = lineages({"a": Wanted(NORMAL), "b": Wanted(NORMAL)}, {NORMAL: ["new"], OLD: ["old"]})
    assert found["a"] == found["b"] == {"new": NORMAL, "old": OLD}


def test_cells_of_one_version_with_other_options_are_never_joined() -> None:
    """Also where each of them agrees with what is wanted."""
    one, two = with_options(rate=0.1, steps=1), with_options(rate=0.1, steps=2)
    assert lineages({"a": Wanted(OLD)}, {one: ["v"], two: ["v"]}) == {"a": {}}
    assert lineages({"a": Wanted(OLD)}, {one: ["v"], two: ["v", "w"]}) == {"a": {}}  # which of them was it?
    assert lineages({"a": Wanted(OLD)}, {one: ["v"]}) == {"a": {"v": one}}
    # They need not contradict each other.
    more = with_options(rate=0.1, steps=1, law="normal")
    assert lineages({"a": Wanted(OLD)}, {one: ["v"], more: ["v", "w"]}) == {"a": {"w": more}}
    assert lineages({"a": Wanted(more)}, {more: ["v"], one: ["v", "w"]}) == {"a": {"v": more, "w": one}}


def test_a_name_that_a_store_gave_decides() -> None:
    wanted = {"a": Wanted(NORMAL, (OLD,)), "b": Wanted(UNIFORM)}
    assert lineages(wanted, {NORMAL: ["new"], UNIFORM: ["new"], OLD: ["old"]}) == {
        "a": {"new": NORMAL, "old": OLD},
        "b": {"new": UNIFORM},
    }


def test_a_difference_in_words() -> None:
    assert UNIFORM.beside(NORMAL) == 'method law = "uniform"'
    assert NORMAL.beside(OLD) == 'method law = "normal"'
    assert OLD.beside(NORMAL) == ""


GIVEN = frozenset({"method rate"})


def test_a_changed_default_is_an_earlier_version() -> None:
    """Also where it changed twice, and not where the suite gives the option, or where nobody knows whether it does."""
    oldest = with_options(rate=0.1, law="uniform", steps=1)
    old, today = with_options(rate=0.1, law="normal", steps=1), with_options(rate=0.1, law="normal", steps=2)
    stored = {oldest: ["v1"], old: ["v2"], today: ["v3"]}
    assert lineages({"a": Wanted(today, given=GIVEN)}, stored) == {"a": {"v1": oldest, "v2": old, "v3": today}}
    assert lineages({"a": Wanted(today, given=GIVEN | {"method law"})}, stored) == {"a": {"v2": old, "v3": today}}
    assert lineages({"a": Wanted(today)}, stored) == {"a": {"v3": today}}


def test_a_version_with_two_values_of_an_option_did_not_have_them_as_its_default() -> None:
    tried = [with_options(rate=0.1, steps=steps) for steps in (5, 7)]
    today = with_options(rate=0.1, steps=2)
    wanted = {"a": Wanted(today, given=GIVEN)}
    assert lineages(wanted, {tried[0]: ["v1"], tried[1]: ["v1"], today: ["v2"]}) == {"a": {"v2": today}}
    assert lineages(wanted, {tried[0]: ["v1"], today: ["v1", "v2"]}) == {"a": {"v1": today, "v2": today}}


def test_a_default_of_two_labels_belongs_to_neither() -> None:
    low, high = with_options(rate=0.1, steps=2), with_options(rate=0.1, steps=3)
    wanted = {"low": Wanted(low, given=GIVEN), "high": Wanted(high, given=GIVEN)}
    assert lineages(wanted, {with_options(rate=0.1, steps=1): ["v1"], low: ["v2"], high: ["v2"]}) == {
        "low": {"v2": low},
        "high": {"v2": high},
    }


def test_other_plugins_and_searches_are_never_a_default() -> None:
    today = form(spec())
    network = spec()
    network["protocol"]["network"]["name"] = "resnet8"
    for other in (form(network), form({**spec(), "space": {"rate": [0.1]}}), form(spec(method="n"))):
        assert lineages({"a": Wanted(today, given=frozenset())}, {other: ["v1"]}) == {"a": {}}


def test_what_a_suite_gives_is_what_its_file_says(tiny_file: Path) -> None:
    """Every key that a stored suite gives is the name of a part of the forms of its cells, and no other is."""
    changes = ["methods.mc-dropout.rate=0.2", "methods.mc-dropout.training.epochs=3", "datasets.toy.draws=4"]
    suite = load_suite(str(tiny_file), changes)
    (task,) = (one for one in plan(suite, Registry()) if isinstance(one, Task) and one.method == "mc-dropout")
    given = given_parts(json.dumps(suite.model_dump(mode="json")), "toy", "mc-dropout")
    assert given is not None
    known = form_of(read_spec(task.cells[0].spec)).parts.keys()
    expected = {"method rate", "dataset rows", "network hidden", "training.epochs", "training.batch", "draws"}
    assert given & known == expected
    assert given_parts("{}", "toy", "mc-dropout") is None


def test_what_a_suite_gives_the_inner_method_of_a_wrapper() -> None:
    methods = {"w": {"use": "split-conformal", "method": {"name": "mc-dropout", "rate": 0.2}}}
    given = given_parts(json.dumps({"datasets": {"toy": {}}, "methods": methods}), "toy", "w")
    assert given is not None
    assert "method method rate" in given
