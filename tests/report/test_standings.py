from bench.report.standings import MOST_VALUES, standing_lines, value_lines
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
    _, *lines, datasets, _, _ = standing_lines(StoredResults(store, "made"))
    assert [line.split() for line in lines] == [["a", "1.00"], ["b", "2.00"], ["c", "3.00"]]
    assert datasets.split() == ["datasets", "2"]


def test_means_are_shown_with_calibration_among_them(store: Store) -> None:
    metrics = ["rmse", "mae", "r2", "rmse_std", "mae_std", "crps"]  # the first about calibration is the sixth

    def value(dataset: str, method: str, seed: int, metric: str) -> float:
        return float("nan") if (method, seed) == ("b", 2) else seed + metrics.index(metric)

    fill(store, value, methods=["a", "b"], seeds=3, metrics=metrics, shown=metrics)
    heading, a, b = value_lines(StoredResults(store, "made"))
    assert " ".join(heading.split()) == "one, mean of 3 seeds rmse ↓ mae ↓ r2 ↑ rmse_std ↓ crps ↓"
    assert [a.split()[0], *map(float, a.split()[1:])] == ["a", 1, 2, 3, 4, 6]
    assert b.split()[:4] == ["b", "(2", "of", "3)"]
    assert [float(text) for text in b.split()[4:]] == [0.5, 1.5, 2.5, 3.5, 5.5]
    assert max(map(len, (heading, a, b))) <= 100


def test_means_of_a_large_study_are_left_to_the_report(store: Store) -> None:
    methods = [f"m{n}" for n in range(MOST_VALUES + 1)]
    fill(store, lambda *at: 1.0, methods=methods, datasets=["one"], seeds=1)
    assert list(value_lines(StoredResults(store, "made"))) == ["uqbench report shows the values of each dataset"]


def test_a_column_has_equally_many_decimals_a_target_and_fits_a_terminal(store: Store) -> None:
    names = ["rmse", "nll", "coverage95", "interval_score95", "crps"]
    levels = {"a": [55.94, 5.508, 0.8864, 238.7, 42.63], "b": [60.7, 5.5, 0.9, 250.0, 43.0]}
    fill(
        store,
        lambda _, method, seed, metric: levels[method][names.index(metric)],
        methods=["a", "b"],
        seeds=2,
        metrics=names,
        shown=names,
    )
    heading, a, b = value_lines(StoredResults(store, "made"))
    assert "coverage95 → 0.95" in heading
    assert [text.partition(".")[2] for text in b.split()[1:]] == ["70", "500", "9000", "0", "00"]
    assert [text.index(".") for text in (a.rstrip()[::-1], b.rstrip()[::-1])] == [2, 2]
    assert max(map(len, (heading, a, b))) <= 100
