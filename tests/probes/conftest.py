"""Cells of probes that train in a moment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bench.api import Split
from bench.plugins.registry import Registry
from bench.run.jobs import Job, outcomes
from bench.spec.cell import Outcome
from bench.spec.protocol import Architecture, Protocol, Training

# Enough training to be right about most digits.
PROTOCOL = Protocol(
    training=Training(epochs=8, batch=32, learning_rate=0.01), network=Architecture(hidden=[16]), draws=4
)
NUMBER = 3  # of the split, and the seed


@pytest.fixture(scope="session")
def load() -> Callable[..., Split]:
    """Load a split of a dataset."""

    def loaded(name: str = "digits", number: int = NUMBER, **options: Any) -> Split:
        split: Split = Registry().make("dataset", name, options).load(number)
        return split

    return loaded


@pytest.fixture(scope="session")
def ask() -> Callable[..., list[Outcome]]:
    """Run cells of one method, each asked by a probe about a split; trained in one stack, which is quick."""

    def asked(
        method: str, options: Mapping[str, Any], questions: Sequence[tuple[Any, Split]], seed: int = NUMBER
    ) -> list[Outcome]:
        plugin = Registry().make("method", method, options)
        found = dict(outcomes([Job(plugin, replace(PROTOCOL, probe=p), split, seed) for p, split in questions]))
        assert all(outcome.status == "ok" for outcome in found.values()), [o.message for o in found.values()]
        return [found[number] for number in range(len(questions))]

    return asked
