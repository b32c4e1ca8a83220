"""Random numbers by the kernels of `bench.machine.random_numbers` beside torch's own, in turn.

    python -m pytest tests/benchmarks/test_random_number_speed.py -s -o addopts=--import-mode=importlib

Nanoseconds of processor time per number, medians. A block of 65,536 is what training draws ahead; 1,000 is the fewest
for which the kernels are used.
"""

import numpy as np
import pytest
import torch

from bench.machine.kernels import load_kernels
from bench.machine.random_numbers import FEWEST, FLAGS, SOURCE, TORCH, _draw, _same_as_torch
from tests.benchmarks.paired_times import faster, in_turns

SECONDS = 3.0  # of processor time per case
NUMBERS = 2**20  # drawn by each way in a round


@pytest.mark.parametrize("law", TORCH)
@pytest.mark.parametrize("count", [FEWEST, 10_000, 65_536])
def test_kernels_against_torch(law: str, count: int) -> None:
    kernels = load_kernels(SOURCE, *FLAGS)
    if kernels is None or not _same_as_torch(kernels):
        pytest.skip("no kernels with torch's bits on this machine")
    target, source, times = torch.empty(count), torch.Generator(), NUMBERS // count

    def ours_many() -> None:
        for _ in range(times):
            _draw(kernels, law, source, target)

    def torchs_many() -> None:
        for _ in range(times):
            TORCH[law](source, target)

    found = in_turns({"torch": torchs_many, "kernels": ours_many}, "torch", SECONDS)
    ours, torchs = (float(np.median(found[way])) * 1e6 / (times * count) for way in ("kernels", "torch"))
    print(f"\n{count:,} {law}: {ours:.2f} ns each, torch {torchs:.2f} ns: {faster(found, 'kernels', 'torch')[1]}")
