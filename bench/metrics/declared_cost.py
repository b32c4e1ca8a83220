"""Declarations: what a prediction costs, measured by the probe "latency"."""

from bench.metrics.metric import Metric

PAPER = "Yuan, Li and Kuruoglu, MCNI, Table IV"


def _cost(name: str, unit: str, formula: str, source: str = PAPER) -> Metric:
    return Metric(
        name=name,
        task="any",
        family="cost",
        direction="lower",
        target=None,
        unit=unit,
        needs=frozenset({"probe"}),
        formula=formula,
        source=source,
        compute=None,
    )


A_THOUSAND = "ms per 1,000 samples"

METRICS = (
    _cost("latency_forward", A_THOUSAND, "median time of T forward passes, inputs and outputs on the device"),
    _cost("latency_transfer", A_THOUSAND, "median time of forward passes, inputs from and outputs to the host"),
    _cost(
        "latency_total",
        A_THOUSAND,
        "median time from rows in original units to mean predictions: cut into batches, scaled, moved, drawn, averaged",
    ),
    _cost("latency_ratio", "ratio", "latency_forward over that of one plain pass of the same network, same rounds"),
    _cost("latency_scaling", "ratio", "latency_forward at T over T times that at T = 1; below 1: draws share work"),
    _cost("latency_memory", "MiB", "peak memory of one pass above what was in use before it", "this harness"),
    _cost("latency_energy", "J per 1,000 samples", "mean energy of a pass, from the GPU's counter", "NVML"),
)
