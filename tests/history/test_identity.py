"""Which stored cells are the same cell of other versions."""

import copy
import json
from typing import Any

import pytest

from bench.history.identity import Form, Wanted, form_of, lineages
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
