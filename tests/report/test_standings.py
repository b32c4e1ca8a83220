from bench.report.standings import standing_lines
from bench.store.results import StoredResults
from bench.store.store import Store
from tests.fixtures.results import fill, steps


def test_a_method_that_diverges_mostly_is_last_and_erases_nobody(store: Store) -> None:
    """Its one good repeat is the best of all; at that repeat alone b is better than a, over all of them it is not."""

    def value(dataset: str, method: str, seed: int, metric: str) -> float:
        if method == "c":
            return 0.1 if seed == 0 else float("nan")
        swapped = {"a": "b", "b": "a"}[method] if seed == 0 else method
        return steps(["a", "b"], gap=1.0, noise=0.0)(dataset, swapped, seed, metric)

    fill(store, value, methods=["c", "b", "a"], datasets=["one", "two"], seeds=10)
    _, *lines, datasets, _ = standing_lines(StoredResults(store, "made"))
    assert [line.split() for line in lines] == [["a", "1.00"], ["b", "2.00"], ["c", "3.00"]]
    assert datasets.split() == ["datasets", "2"]
