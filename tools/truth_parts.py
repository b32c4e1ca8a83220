"""The generated parts of docs/results/truth.md: findings with their tests, and the regret of every method."""

import math
from collections.abc import Callable, Sequence

import pandas as pd
from scipy import stats

from bench.stats.corrections import holm
from bench.text_tables import markdown_table
from tools.findings import Exports

METRICS = ["law_regret", "mean_cost", "noise_cost", "model_cost", "noise_ratio", "model_ratio", "function_coverage"]
METRICS += ["posterior_ratio", "class_regret", "confidence_gap", "model_ratio@group=gap", "model_ratio@group=data"]
METRICS += ["law_regret@group=gap", "law_regret@group=data", "law_regret@group=beyond", "conditional_coverage_error"]
AT_EACH_X = ["mean-variance", "mean-variance-ensemble", "evidential-regression", "quantile-regression"]
REFERENCES = ["oracle", "exact-posterior"]
SIZES = {"growing-50": 50, "growing-500": 500, "growing-10000": 10_000}
ONE_LEVEL = 0.5 * math.log(math.sinh(2 * math.log(3)) / (2 * math.log(3)))  # 1/2 (log E n - E log n), n = 3^x


def values(exports: Exports) -> pd.DataFrame:
    """Return the values per dataset, method and seed, one column per metric."""
    frame = exports.required("truth").frame
    own = frame[frame["metric"].isin(METRICS)]
    table = own.pivot(index=["dataset", "method", "seed"], columns="metric", values="value")
    return table.reindex(columns=METRICS)


class Means:
    """Means over seeds, by dataset, method and metric."""

    def __init__(self, table: pd.DataFrame) -> None:
        means = table.groupby(["dataset", "method"]).mean().stack().dropna().reset_index()
        means.columns = pd.Index(["dataset", "method", "metric", "value"])
        places = zip(means["dataset"], means["method"], means["metric"], strict=True)
        self._values = {
            (str(dataset), str(method), str(metric)): float(value)
            for (dataset, method, metric), value in zip(places, means["value"], strict=True)
        }

    def value(self, dataset: str, method: str, metric: str) -> float:
        """Return one of them; NaN where there is none."""
        return self._values.get((dataset, method, metric), math.nan)

    def learned(self, dataset: str, metric: str) -> dict[str, float]:
        """Return the values on one dataset by method, lowest first, without references."""
        own = {place[1]: value for place, value in self._values.items() if place[::2] == (dataset, metric)}
        return dict(sorted(((m, v) for m, v in own.items() if m not in REFERENCES), key=lambda item: item[1]))

    @property
    def places(self) -> list[tuple[str, str]]:
        """Datasets with their methods."""
        return list(dict.fromkeys((dataset, method) for dataset, method, _ in self._values))


def nearest_to_one(ratios: dict[str, float]) -> str:
    """Return the method whose ratio is off 1 by the smallest factor."""
    return min(ratios, key=lambda method: abs(math.log(ratios[method])))


class SignTests:
    """Counts on how many seeds one value is below another; p of the exact sign test, corrected over the whole page.

    The test needs no more than repeats that are independent, which the splits of suite truth are, and knows infinity.
    """

    def __init__(self, table: pd.DataFrame, corrected: Sequence[float] = ()) -> None:
        self._table, self._corrected = table, corrected
        self.p: list[float] = []

    def below(self, low: tuple[str, str, str], high: tuple[str, str, str] | float) -> str:
        """Return on how many seeds (dataset, method, metric) is below another, or below a number, and p."""
        one = self._values(low)
        other = self._values(high) if isinstance(high, tuple) else high
        difference = (one - other).dropna()
        wins, decided = int((difference < 0).sum()), int((difference != 0).sum())
        self.p.append(float(stats.binomtest(wins, decided).pvalue))
        p = self._corrected[len(self.p) - 1] if self._corrected else self.p[-1]
        return f"on {wins} of {decided} seeds, p {'= ' + format(p, '.2f') if p >= 0.01 else '< ' + _next_power(p)}"

    def _values(self, place: tuple[str, str, str]) -> "pd.Series[float]":
        dataset, method, metric = place
        return self._table[metric].xs((dataset, method), level=("dataset", "method"))


def _next_power(p: float) -> str:
    """Return the next power of ten above a small p, in plain numbers."""
    digits = max(0, -math.floor(math.log10(p)) - 1)
    return f"{10.0**-digits:.{digits}f}"


def _range(values: dict[str, float]) -> str:
    """Return the lowest and the highest finite value; those that are infinite are named as such."""
    finite = [value for value in values.values() if math.isfinite(value)]
    endless = len(values) - len(finite)
    return f"{min(finite):.2f} to {max(finite):.2f}" + (f" ({endless} of them infinitely much)" if endless else "")


def findings(table: pd.DataFrame) -> str:
    """Return the findings, numbered, each with its tests; p by Holm over all tests of the page."""
    finders: Sequence[Callable[[Means, SignTests], str]] = (_one_level, _rows, _gap, _posterior, _shape, _classes)
    means, raw = Means(table), SignTests(table)
    for find in finders:
        find(means, raw)
    tests = SignTests(table, holm(raw.p).tolist())
    return "\n\n".join(f"{number}. {find(means, tests)}" for number, find in enumerate(finders, start=1))


def _one_level(means: Means, tests: SignTests) -> str:
    regret = means.learned("growing-500", "law_regret")
    own = {method: value for method, value in regret.items() if method in AT_EACH_X}
    others = {method: value for method, value in regret.items() if method not in AT_EACH_X}
    worst, best = list(own)[-1], next(iter(others))
    shown = tests.below(("growing-500", worst, "law_regret"), ("growing-500", best, "law_regret"))
    return (
        f"**Stating noise at each x matters more than the posterior.** Where the noise grows (`growing-500`), the "
        f"{len(own)} methods that state it at each x lose {_range(own)} nat to the law; the {len(others)} others lose "
        f"{_range(others)}. The last of the first, `{worst}`, loses less than the first of the others, `{best}`, "
        f"{shown}. One noise level costs {ONE_LEVEL:.2f} even where the function is exact: the noise of a "
        f"deep ensemble has the right size (x{means.value('growing-500', 'deep-ensemble', 'noise_ratio'):.2f}) in the "
        "wrong places."
    )


def _rows(means: Means, tests: SignTests) -> str:
    def series(method: str, metric: str) -> str:
        return ", ".join(f"{means.value(dataset, method, metric):.3f}" for dataset in SIZES)

    def fell(method: str, metric: str) -> str:
        return tests.below(("growing-10000", method, metric), ("growing-50", method, metric))

    rows = ", ".join(f"{rows:,}" for rows in SIZES.values())
    return (
        f"**More rows repair the mean and not the noise.** With {rows} rows the error of the mean of a deep ensemble "
        f"costs {series('deep-ensemble', 'mean_cost')} nat (lower at the end {fell('deep-ensemble', 'mean_cost')}), "
        f"its noise {series('deep-ensemble', 'noise_cost')} (lower {fell('deep-ensemble', 'noise_cost')}). An "
        f"ensemble of mean-variance networks loses {series('mean-variance-ensemble', 'law_regret')} in all (lower "
        f"{fell('mean-variance-ensemble', 'law_regret')})."
    )


def _gap(means: Means, tests: SignTests) -> str:
    stated = {m: v for m, v in means.learned("gap", "model_ratio@group=gap").items() if v > 0}
    few, near = sum(ratio < 0.5 for ratio in stated.values()), nearest_to_one(stated)

    def lost(method: str) -> str:
        values = [means.value("gap", method, f"law_regret@group={place}") for place in ("data", "gap", "beyond")]
        return ", ".join(f"{value:.2f}" for value in values)

    too_little = tests.below(("gap", "deep-ensemble", "model_ratio@group=gap"), 1.0)
    beyond = "law_regret@group=beyond"
    less = tests.below(("gap", "gaussian-process", beyond), ("gap", "deep-ensemble", beyond))
    dropout = tests.below(("gap", "mc-dropout", beyond), ("gap", "deep-ensemble", beyond))
    return (
        f"**Between and beyond the data.** In the gap of `gap`, {few} of the {len(stated)} methods that state any "
        f"model uncertainty state less than half of the error of their mean; `{near}` is nearest to it "
        f"(x{stated[near]:.2f}), a deep ensemble has x{stated['deep-ensemble']:.2f} (too little {too_little}). At the "
        f"data, in the gap and beyond, a deep ensemble loses {lost('deep-ensemble')} nat, a Gaussian process "
        f"{lost('gaussian-process')} (beyond, less than the ensemble {less}), MC dropout {lost('mc-dropout')} (beyond, "
        f"less {dropout})."
    )


def _posterior(means: Means, tests: SignTests) -> str:
    parts = []
    for dataset in ("linear", "process"):
        ratios = {m: v for m, v in means.learned(dataset, "posterior_ratio").items() if v > 0}
        near, below = nearest_to_one(ratios), sum(ratio < 0.5 for ratio in ratios.values())
        covered = means.value(dataset, "exact-posterior", "function_coverage")
        less = tests.below((dataset, "deep-ensemble", "posterior_ratio"), 1.0)
        parts.append(
            f"on `{dataset}` {below} of {len(ratios)} methods state less than half of its standard deviation, `{near}` "
            f"is nearest (x{ratios[near]:.2f}), a deep ensemble has x{ratios['deep-ensemble']:.2f} (less than the "
            f"posterior {less}); the 90 % intervals of the exact posterior cover {covered:.0%} of the true function "
            "there"
        )
    return f"**Against the exact posterior:** {'; '.join(parts)}."


def _shape(means: Means, tests: SignTests) -> str:
    worlds = ("skewed", "heavy-tailed", "bimodal")
    parts, ensemble = [], []
    for world in worlds:
        best, value = next(iter(means.learned(world, "law_regret").items()))
        less = tests.below((world, best, "law_regret"), (world, "deep-ensemble", "law_regret"))
        parts.append(f"on `{world}` by `{best}` ({value:.2f} nat; less than a deep ensemble {less})")
        cheaper = tests.below(("constant", "deep-ensemble", "law_regret"), (world, "deep-ensemble", "law_regret"))
        ensemble.append(f"{means.value(world, 'deep-ensemble', 'law_regret'):.2f} ({cheaper})")
    return (
        f"**A normal with the right variance is not enough where the noise is not normal.** Least is lost "
        f"{', '.join(parts)}. With normal noise of the same size (`constant`) a deep ensemble loses "
        f"{means.value('constant', 'deep-ensemble', 'law_regret'):.2f}, less than on each of the three: "
        f"{', '.join(ensemble)}."
    )


def _classes(means: Means, tests: SignTests) -> str:
    parts = []
    for world in ("overlapping-classes", "wrong-labels"):
        gaps = means.learned(world, "confidence_gap")
        (least, low), (most, high) = next(iter(gaps.items())), list(gaps.items())[-1]
        many = sum(gap > 0.02 for gap in gaps.values())
        below = tests.below((world, least, "confidence_gap"), 0.0)
        less = tests.below((world, "deep-ensemble", "confidence_gap"), (world, most, "confidence_gap"))
        parts.append(
            f"on `{world}` {many} of {len(gaps)} methods are too confident by more than 0.02, most of all `{most}` "
            f"({high:+.2f}; more than a deep ensemble {less}); least confident is `{least}` ({low:+.2f}; "
            f"below 0 {below})"
        )
    return f"**Confidence against the true probability of the predicted class:** {'; '.join(parts)}."


def regret_table(means: Means) -> str:
    """Return the regret of every method on every dataset, as Markdown; methods by their mean rank."""
    datasets, methods = (list(dict.fromkeys(names)) for names in zip(*means.places, strict=True))
    regret = pd.DataFrame(index=methods, columns=datasets, dtype=float)
    for dataset in datasets:
        for method in methods:
            value = means.value(dataset, method, "law_regret")
            value = means.value(dataset, method, "class_regret") if math.isnan(value) else value
            regret.loc[method, dataset] = value
    shown = regret.loc[regret.rank().mean(axis=1).sort_values(kind="stable").index].dropna(how="all")
    rows = [
        [name, *("–" if math.isnan(v) else f"{abs(v):.2f}" for v in row)]
        for name, row in zip(shown.index, shown.to_numpy(), strict=True)
    ]
    return "\n".join(markdown_table(["method", *datasets], rows, range(1, len(datasets) + 1)))


def size(exports: Exports) -> str:
    """Return how many cells there are, and how many seeds."""
    table = values(exports).reset_index()
    counts = table.groupby(["dataset", "method"]).size()
    return (
        f"{len(table):,} cells: {table['dataset'].nunique()} datasets, {table['method'].nunique()} methods, "
        f"{counts.min()} seeds{'' if counts.min() == counts.max() else ' at least'}"
    )


def tested(exports: Exports) -> str:
    """Return the findings."""
    return findings(values(exports))


def regret(exports: Exports) -> str:
    """Return the regret of every method on every dataset."""
    return regret_table(Means(values(exports)))
