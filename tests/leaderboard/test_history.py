from bench.leaderboard import collect
from bench.store import Store
from tests.leaderboard.made import ENVIRONMENT, fill


def test_versions_of_a_method_are_one_line(store: Store) -> None:
    old = {**ENVIRONMENT, "code": "aaaaaaaaaaaa"}
    fill(store, lambda d, m, s, k: 2.0 + s, version="1", environment=old, wanted=False, finished=1.0e9)
    fill(store, lambda d, m, s, k: 1.0 + s, version="2", finished=1.5e9)
    lines = collect(store).history
    assert {(line.dataset, line.method, line.metric) for line in lines} == {("one", m, "rmse") for m in "abc"}
    first, second = lines[0].points
    assert (first.code, first.mean, first.repeats) == ("aaaaaaaaaaaa", 4.5, 6)
    assert (second.code, second.mean) == ("0123456789ab", 3.5)
    assert first.finished < second.finished
    assert "method 1" in first.version
    assert first.low < 4.5 < first.high


def test_other_options_are_another_line(store: Store) -> None:
    fill(store, lambda d, m, s, k: 1.0 + s)
    from bench.cell import Outcome
    from tests.leaderboard.made import cell_of, spec_of

    spec = spec_of("one", "a", 0, one_split=True)
    spec["method"] = ["a", "built in", "1", {"rate": 0.9}]
    cell = cell_of("one", "a", 0, spec)
    store.save([(cell, Outcome("ok", metrics={"rmse": 5.0}, environment={**ENVIRONMENT, "code": "bbb"}))])
    assert collect(store).history == ()


def test_a_key_that_a_later_version_added_is_no_other_line(store: Store) -> None:
    """What was run before a protocol knew a key stands at its default."""
    from bench.cell import Outcome
    from tests.leaderboard.made import cell_of, spec_of

    fill(store, lambda d, m, s, k: 1.0 + s, methods=["a"])
    cells = []
    for seed in range(3):
        spec = spec_of("one", "a", seed, one_split=True)
        del spec["protocol"]["folds"], spec["protocol"]["training"]["momentum"]
        cells.append(cell_of("one", "a", seed, {**spec, "harness": 1}))
    old = {**ENVIRONMENT, "code": "old"}
    store.save((c, Outcome("ok", metrics={"rmse": 9.0}, timing={"finished": 1.0}, environment=old)) for c in cells)
    (line,) = collect(store).history
    assert [point.code for point in line.points] == ["old", "0123456789ab"]
