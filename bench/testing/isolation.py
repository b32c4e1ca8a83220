"""A check that a plug-in leaves the global random generators alone."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from bench.testing.check import require


@contextmanager
def global_generators_untouched(advice: str) -> Iterator[None]:
    """Fail the check if the block draws from a global random generator, or seeds it."""
    before = _states()
    yield
    touched = [name for name, state in _states().items() if state != before[name]]
    require(not touched, f"the global generator of {' and '.join(touched)} was used or seeded; {advice}")


def _states() -> dict[str, object]:
    kind, keys, *rest = np.random.get_state(legacy=True)  # noqa: NPY002  # read, not used
    return {
        "torch": torch.random.get_rng_state().numpy().tobytes(),
        "numpy": (kind, np.asarray(keys).tobytes(), tuple(rest)),
        "random": random.getstate(),
    }
