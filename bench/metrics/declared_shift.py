"""Declarations: what probes of shifted and noisy images measure (`bench.probes`)."""

from bench.metrics.metric import Metric

PROBE = frozenset({"probe"})

METRICS: tuple[Metric, ...] = (
    Metric(
        name="ood_auroc",
        task="classification",
        family="detection",
        direction="higher",
        target=None,
        unit="probability",
        needs=PROBE,
        formula="P(predictive entropy of a foreign or shifted row > that of a clean test row), ties one half",
        source="Hendrycks and Gimpel, ICLR 2017; entropy: Ovadia et al., NeurIPS 2019",
        compute=None,
    ),
    Metric(
        name="ood_auroc_mutual_information",
        task="classification",
        family="detection",
        direction="higher",
        target=None,
        unit="probability",
        needs=PROBE,
        formula="as ood_auroc, by the mutual information between draws and class; with at least two draws",
        source="Smith and Gal, UAI 2018",
        compute=None,
    ),
    Metric(
        name="flip_level",
        task="classification",
        family="predictive",
        direction="higher",
        target=None,
        unit="input unit",
        needs=PROBE,
        formula="noise std at which mean p of the true class falls below another, interpolated; none if it never does",
        source="Yuan, Li and Kuruoglu, MCNI, section V-C",
        compute=None,
    ),
)
