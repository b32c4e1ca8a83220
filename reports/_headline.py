"""The metrics of a page's first table: of prediction, likelihood, calibration, intervals and selection."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.api import Metric, Results, catalogue
from bench.reports._words import lead_metrics, metrics_of

# Groups of metrics, each with those that stand for it: the first that the suite names, else the first that is stored.
LIKELIHOOD = ("nll", "nll_mixture", "nll_mc", "nll_categorical")
CALIBRATION = ("picp95", "picp95_noise", "coverage95", "picp", "ece", "ece_debiased", "quantile_error", "mace")
INTERVALS = ("winkler95", "winkler95_noise", "interval_score95", "crps", "crps_noise", "crps_mixture", "winkler", "wis")
SELECTION = ("aurc_rmse", "aurc", "augrc_mse", "augrc", "error_auroc")
PREDICTION = ("accuracy", "rmse", "mae")
GROUPS = {"likelihood": LIKELIHOOD, "calibration": CALIBRATION, "intervals": INTERVALS, "selection": SELECTION}
FAMILIES = {"calibration": "calibration", "selection": "selective"}  # where none of these is stored
LISTED = {name for names in GROUPS.values() for name in names}


@dataclass(frozen=True)
class Headline:
    """A metric of the first table and the group that it stands for."""

    group: str
    metric: Metric


def headlines(results: Results) -> dict[str, list[Headline]]:
    """Return the metrics of the first table by task; {} where a suite has nothing but costs."""
    named, stored = metrics_of(results), set(results.frame["metric"].unique())
    every = [*named, *(metric for name, metric in catalogue().items() if name in stored)]
    found: dict[str, list[Headline]] = {}
    for lead in lead_metrics(results):
        own = [m for m in dict.fromkeys(every) if m.task in (lead.task, "any") and m.has_better and not m.relative_to]
        chosen = [Headline(next((group for group, names in GROUPS.items() if lead.name in names), "prediction"), lead)]
        groups = GROUPS if chosen[0].group == "prediction" else {"prediction": PREDICTION, **GROUPS}
        for group, candidates in groups.items():
            left = [metric for metric in own if metric not in [one.metric for one in chosen]]
            best = _choose(left, set(named), candidates, FAMILIES.get(group, ""))
            chosen += [Headline(group, best)] if best is not None else []
        found[lead.task] = chosen
    return found


def _choose(metrics: Sequence[Metric], named: set[Metric], candidates: Sequence[str], family: str) -> Metric | None:
    """Return the metric of a group: one that the suite names before one that is stored only."""
    known = {metric.name: metric for metric in metrics}
    listed = [known[name] for name in candidates if name in known]
    others = [m for m in metrics if m.name not in LISTED and not m.only_with and "@" not in m.name]
    of_family = [m for m in others if family and m.family == family]
    order = [*(m for m in listed if m in named), *listed, *(m for m in of_family if m in named)]
    return order[0] if order else None


def headline_metrics(results: Results) -> list[Metric]:
    """Return all metrics of the first table."""
    return [one.metric for own in headlines(results).values() for one in own]
