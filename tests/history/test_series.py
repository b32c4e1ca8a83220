"""Series as they are read from stores."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.errors import UserError
from bench.history.files import metric_history
from bench.history.points import points
from bench.history.series import Series, read_series, wanted_labels
from bench.leaderboard import collect
from bench.spec.cell import Cell, Outcome
from bench.spec.spec import read_spec
from bench.store.store import Store, SuiteRecord
from tests.fixtures.results import ENVIRONMENT, cell, fill, noisy, save_values, spec, store_of_versions

CHECKED_OUT = "0123456789ab"


def of_leaderboard(store: Store) -> list[Series]:
    return [line.series for line in collect(store).history.lines]


def of_stores(*stores: Store) -> list[Series]:
    return [line.series for line in metric_history(stores, "rmse").lines]


def codes(series: Series) -> list[str]:
    return [version.code for version in series.versions]


def test_versions_of_a_method_are_one_line(store: Store) -> None:
    old = {**ENVIRONMENT, "code": "aaaaaaaaaaaa"}
    fill(store, lambda d, m, s, k: 2.0 + s, version="1", environment=old, wanted=False, finished=1.0e9)
    fill(store, lambda d, m, s, k: 1.0 + s, version="2", finished=1.5e9)
    found = of_leaderboard(store)
    assert {(one.label.dataset, one.label.method, one.metric) for one in found} == {("one", m, "rmse") for m in "abc"}
    first, second = points(found[0], 0.95)
    assert (first.version.code, first.mean, first.repeats) == ("aaaaaaaaaaaa", 4.5, 6)
    assert (second.version.code, second.mean) == (CHECKED_OUT, 3.5)
    assert first.version.finished < second.version.finished
    assert first.version.plugins == "method 1, dataset 1, network 1, harness 2"
    # The interval of Student's t: 2.5706 is its quantile with 5 degrees of freedom.
    half = 2.570582 * np.std(np.arange(6), ddof=1) / np.sqrt(6)
    assert [first.low, first.high] == pytest.approx([4.5 - half, 4.5 + half])


def test_another_version_of_a_plugin_is_another_version_also_of_the_same_code(store: Store) -> None:
    fill(store, lambda d, m, s, k: 2.0 + s, version="1", wanted=False, finished=1.0e9, methods=["a"])
    fill(store, lambda d, m, s, k: 1.0 + s, version="2", finished=1.5e9, methods=["a"])
    (one,) = of_leaderboard(store)
    assert codes(one) == [CHECKED_OUT, CHECKED_OUT]
    assert one.values.tolist() == [[2.0 + s for s in range(6)], [1.0 + s for s in range(6)]]


def test_a_plugin_that_is_a_file_is_another_version_with_every_content(store: Store) -> None:
    for content, value, ended in (("hash1", 1.0, 1.0), ("hash2", 2.0, 2.0)):
        cells = []
        for seed in range(3):
            about = spec(seed=seed)
            about["method"][1] = content
            cells.append(cell(about))
        save_values(store, cells, [value] * 3, "abc", ended)
    (one,) = of_stores(store)
    assert [version.plugins.partition(",")[0] for version in one.versions] == ["method 1 (hash1)", "method 1 (hash2)"]
    assert one.values.tolist() == [[1.0] * 3, [2.0] * 3]
    assert one.changed_plugins(0) == ""
    assert one.changed_plugins(1) == "changed: method 1 (hash1) -> method 1 (hash2)"


def test_other_options_are_another_line(store: Store) -> None:
    fill(store, lambda d, m, s, k: 1.0 + s)
    other = spec("one", "a", 0, one_split=True)
    other["method"] = ["a", "built in", "1", {"rate": 0.9}]
    made = Outcome("ok", metrics={"rmse": 5.0}, environment={**ENVIRONMENT, "code": "bbb"})
    store.save([(cell(other), made)])
    assert of_leaderboard(store) == []
    assert [codes(one) for one in of_stores(store)] == [[CHECKED_OUT]] * 3


def test_a_key_that_a_later_version_added_is_no_other_line(store: Store) -> None:
    """Of the protocol, where its default is known, and of a plug-in, where it is not."""
    fill(store, lambda d, m, s, k: 1.0 + s, methods=["a"])
    for code, options, ended in (("older", {}, 1.0), ("old", {"rate": 0.1}, 2.0)):
        cells = []
        for seed in range(3):
            about = spec("one", "a", seed, one_split=True)
            del about["protocol"]["folds"], about["protocol"]["training"]["momentum"]
            about["method"][3] = options
            cells.append(cell({**about, "harness": 1}))
        made = Outcome(
            "ok", metrics={"rmse": 9.0}, timing={"finished": ended}, environment={**ENVIRONMENT, "code": code}
        )
        store.save([(each, made) for each in cells])
    (one,) = of_leaderboard(store)
    assert codes(one) == ["older", "old", CHECKED_OUT]
    (same,) = of_stores(store)
    assert codes(same) == codes(one)


def test_two_labels_of_one_plugin_are_told_apart(store: Store) -> None:
    """What older code made without the option that tells them apart is given to neither; what has it, to its own."""

    def cells(label: str, version: int, **options: Any) -> list[Cell]:
        return [cell(spec(version=version, seed=seed, options=options), label) for seed in range(3)]

    save_values(store, cells("any", 1, rate=0.1), [9.0] * 3, "one", 1.0, wanted=False)
    save_values(store, cells("any", 2, rate=0.1, law="normal"), [1.0] * 3, "two", 2.0, wanted=False)
    save_values(store, cells("normal", 3, rate=0.1, law="normal"), [2.0] * 3, "three", 3.0)
    save_values(store, cells("uniform", 3, rate=0.1, law="uniform"), [3.0] * 3, "three", 3.0)
    normal, uniform = of_stores(store)
    assert (normal.label.method, codes(normal)) == ("normal", ["two", "three"])
    assert (uniform.label.method, codes(uniform)) == ("uniform", ["three"])
    assert normal.values.mean(axis=1).tolist() == [1.0, 2.0]


def test_versions_may_come_from_several_stores_and_may_be_dirty(tmp_path: Path) -> None:
    first = store_of_versions(tmp_path / "1.db", noisy([1.0, 1.0]), ["a", "b"])
    second = store_of_versions(tmp_path / "2.db", noisy([2.0, 2.0, 2.0]), ["x", "y", "c-dirty"])
    (one,) = of_stores(first, second)
    assert set(codes(one)) == {"a", "b", "x", "y", "c-dirty"}


def test_a_cell_that_two_stores_have_counts_once(tmp_path: Path) -> None:
    stores = [Store(str(tmp_path / f"{number}.db")) for number in range(2)]
    for number, store in enumerate(stores):
        save_values(store, [cell(spec(seed=seed)) for seed in range(4)], [float(number)] * 4, "abc", 10.0 + number)
    (one,) = of_stores(*stores)
    assert one.values.tolist() == [[1.0] * 4]  # the later one


def test_stores_that_know_a_label_by_other_options_have_lines_of_their_own(tmp_path: Path) -> None:
    stores = [Store(str(tmp_path / f"{number}.db")) for number in range(3)]
    given: tuple[dict[str, Any], ...] = ({"rate": 0.1}, {"rate": 0.1, "law": "normal"}, {"rate": 0.9, "law": "normal"})
    for number, (store, options) in enumerate(zip(stores, given, strict=True)):
        cells = [cell(spec(version=number, seed=seed, options=options)) for seed in range(2)]
        save_values(store, cells, [float(number)] * 2, f"c{number}", 1.0 + number)
    newest, other = of_stores(*stores)
    assert (newest.label.options, codes(newest)) == ("method rate = 0.9", ["c2"])
    assert (other.label.options, codes(other)) == ("method rate = 0.1", ["c0", "c1"])
    assert {label.method for label in wanted_labels(stores, None)} == {"m"}


def test_only_full_provenance_is_on_the_leaderboard(store: Store) -> None:
    fill(store, lambda d, m, s, k: 1.0 + s, methods=["a"], finished=1.5e9)
    for version, lacking in (("0.1", {"code": "abc-dirty"}), ("0.2", {"packages": {}}), ("0.3", {"cpu": ""})):
        facts = {**ENVIRONMENT, "code": "bbb", **lacking}
        fill(store, lambda d, m, s, k: 2.0, methods=["a"], wanted=False, environment=facts, version=version)
    assert of_leaderboard(store) == []
    (one,) = of_stores(store)
    assert len(one.versions) == 4


def test_what_has_no_commit_is_known_by_its_package_or_not_at_all(store: Store) -> None:
    cells = [cell(spec(version=version)) for version in range(2)]
    save_values(store, cells[:1], [1.0], "", 1.0, facts={"packages": {"uqbench": "0.1.0"}})
    save_values(store, cells[1:], [1.0], "", 2.0)
    (one,) = of_stores(store)
    assert [version.name for version in one.versions] == ["uqbench 0.1.0", "uqbench"]


def test_a_version_without_a_finite_value_is_no_point(store: Store) -> None:
    for version, value in enumerate((1.0, float("inf"), 3.0)):
        save_values(store, [cell(spec(version=version))], [value], f"c{version}", float(version))
    (one,) = of_stores(store)
    assert codes(one) == ["c0", "c2"]


def test_foreign_cells_are_passed_over(store: Store) -> None:
    save_values(store, [cell(spec())], [1.0], "abc", 1.0)
    strange = [Cell(f"k{number}", "toy", 0, "m", 0, text) for number, text in enumerate(("", "{}", "[]", "no json"))]
    store.save([(each, Outcome("ok", metrics={"rmse": 1.0})) for each in strange])
    (one,) = of_stores(store)
    assert one.values.tolist() == [[1.0]]


def test_lines_of_too_few_versions_are_not_asked_for(store: Store) -> None:
    save_values(store, [cell(spec())], [1.0], "abc", 1.0)
    wanted = wanted_labels([store], None)
    assert len(read_series([store], wanted, {"tiny": ["rmse"]})) == 1
    assert read_series([store], wanted, {"tiny": ["rmse"]}, fewest=2) == []


def test_machines_are_counted(store: Store) -> None:
    for version, cpu in enumerate(("one", "one", "other")):
        save_values(store, [cell(spec(version=version))], [1.0], f"c{version}", float(version), facts={"cpu": cpu})
    (one,) = of_stores(store)
    assert one.machines == 2


def test_mistakes_are_told(tmp_path: Path) -> None:
    store = store_of_versions(tmp_path / "s.db", noisy([1.0]), ["a"])
    with pytest.raises(UserError, match="unknown metric 'rmsee'; did you mean rmse"):
        metric_history([store], "rmsee")
    with pytest.raises(UserError, match="no value of it is stored"):
        metric_history([store], "ece")
    with pytest.raises(UserError, match="unknown suite 'quick'"):
        metric_history([store], "rmse", "quick")
    assert np.isfinite(metric_history([store], "rmse", "tiny").lines[0].series.values[0, 0])
    store.want(SuiteRecord("second", "", None, [], "{}"), [])
    with pytest.raises(UserError, match="holds 2 suites; name one with --suite: second, tiny"):
        metric_history([store], "rmse")


def with_default(store: Store, rate: float, code: str, finished: float, options: dict[str, Any]) -> None:
    """Store three seeds of a version of the code whose plug-in has this default, in a suite that gives `options`."""
    cells = [cell(spec(seed=seed, options={"rate": rate, "steps": 1})) for seed in range(3)]
    content = {"protocol": {}, "datasets": {"toy": {}}, "methods": {"m": options}}
    store.want(SuiteRecord("tiny", "Tiny", None, ["rmse"], json.dumps(content)), cells)
    environment = {**ENVIRONMENT, "code": code}
    timing = {"finished": finished, "cpu_seconds": 1.0, "seconds": 1.0}
    made = Outcome("ok", metrics={"rmse": rate}, environment=environment, timing=timing)
    store.save([(each, made) for each in cells], "tiny")


def test_a_changed_default_is_a_version_and_no_gap(tmp_path: Path, store: Store) -> None:
    """In one store, whose earlier cells no suite wants any more, and in one store per version."""
    stores = [Store(str(tmp_path / f"{number}.db")) for number in range(2)]
    for number, (rate, code) in enumerate(((0.1, "old000000000"), (0.2, "new000000000"))):
        for one in (store, stores[number]):
            with_default(one, rate, code, 1.0e9 + number, {"steps": 1})
    for found in (of_stores(store), of_leaderboard(store), of_stores(*stores)):
        (line,) = found
        assert codes(line) == ["old000000000", "new000000000"]
        assert line.values[:, 0].tolist() == [0.1, 0.2]
        assert [version.options for version in line.versions] == [("method rate = 0.1",), ("method rate = 0.2",)]
        assert line.changed_plugins(1) == "changed: method rate = 0.1 -> method rate = 0.2"
        assert line.label.options == ""


def test_an_option_that_one_of_the_suites_gives_is_no_default(tmp_path: Path) -> None:
    stores = [Store(str(tmp_path / f"{number}.db")) for number in range(2)]
    with_default(stores[0], 0.1, "old", 1.0, {"rate": 0.1})
    with_default(stores[1], 0.2, "new", 2.0, {})
    assert [codes(line) for line in of_stores(*stores)] == [["new"], ["old"]]


def test_runs_of_one_version_are_counted_by_store(tmp_path: Path) -> None:
    values = noisy([1.0, 1.0])
    stores = [store_of_versions(tmp_path / f"{n}.db", values + n, ["a", "b"]) for n in range(3)]
    (line,) = of_stores(*stores)
    assert np.array(line.runs) == pytest.approx(values.mean(axis=1)[:, None] + np.arange(3))


def test_one_seed_on_two_splits_is_two_repeats(store: Store) -> None:
    """A suite whose seeds share splits has other values of the same seeds: they are no pairs of the earlier ones."""
    about = [read_spec(json.dumps(spec(seed=seed))) for seed in range(4)]
    shared = [replace(one, split=one.split % 2) for one in about]
    for specs, code, ended in ((about, "old", 1.0), (shared, "new", 2.0)):
        cells = [Cell.of(one, "toy", "m") for one in specs]
        save_values(store, cells, [ended + n for n in range(4)], code, ended)
    (line,) = of_stores(store)
    assert line.seeds == (0, 1, 2, 2, 3, 3)
    assert np.isfinite(line.values).sum(axis=1).tolist() == [4, 2]
