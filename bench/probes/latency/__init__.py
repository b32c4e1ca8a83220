"""The latency probe."""

from bench.probes.latency.probe import Latency

__all__ = ["Latency"]
