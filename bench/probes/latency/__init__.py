"""The latency probe."""
