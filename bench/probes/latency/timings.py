"""Which rows of timings the store takes: only those that say how and where they were measured."""

from collections.abc import Iterable

from bench.errors import UserError
from bench.spec.cell import Outcome

FACTS = ("modes", "batch", "dtype", "threads", "wait_policy", "cpu", "device_name", "driver", "torch", "load_average")
OF_A_SERIES = ("chunks", "threads")


def refuse_bare_timings(outcomes: Iterable[Outcome]) -> None:
    """Raise where a row has times and not the facts without which they mean nothing."""
    for outcome in outcomes:
        timed = {name.partition("@")[2] for name in outcome.metrics if name.startswith("latency_")}
        if not timed:
            continue
        about = outcome.training.get("latency", {})
        lacking = [fact for fact in FACTS if fact not in about.get("facts", {})]
        series = about.get("series", {})
        lacking += [f"{fact} of {c}" for c in sorted(timed) for fact in OF_A_SERIES if fact not in series.get(c, {})]
        if lacking:
            raise UserError(f"a row of latencies must say how it was measured; it lacks {', '.join(lacking)}")
