"""What a prediction costs in time, memory and energy: measured by the probe "latency", declared here."""

from bench.metrics.metric import PAPER, Metric, Template

_TABLE4 = f"{PAPER}, Table IV"
_time = Template("any", "cost", "ms per 1,000 samples")
_ratio = Template("any", "cost", "ratio")
METRICS: tuple[Metric, ...] = (
    _time("latency_forward", "median time of T forward passes, inputs and outputs on the device", _TABLE4).by_probe(),
    _time("latency_transfer", "median time of forward passes, inputs from and outputs to the host", _TABLE4).by_probe(),
    _time(
        "latency_total",
        "median time from rows in original units to mean predictions: cut into batches, scaled, moved, drawn, averaged",
        _TABLE4,
    ).by_probe(),
    _ratio(
        "latency_ratio", "latency_forward over that of one plain pass of the same network, same rounds", _TABLE4
    ).by_probe(),
    _ratio(
        "latency_scaling", "latency_forward at T over T times that at T = 1; below 1: draws share work", _TABLE4
    ).by_probe(),
    Template("any", "cost", "MiB")(
        "latency_memory", "peak memory of one pass above what was in use before it", "this harness"
    ).by_probe(),
    Template("any", "cost", "J per 1,000 samples")(
        "latency_energy", "mean energy of a pass, from the GPU's counter", "NVML"
    ).by_probe(),
)
