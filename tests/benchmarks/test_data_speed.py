"""What an epoch of augmented batches costs beside the training that uses them.

    make bench

Prints seconds an epoch over 50,000 images of CIFAR-10's shape: cutting batches of 128 out of memory with crop and flip,
and training a ResNet8 on such batches. The first is timed over a whole epoch; the second over some steps between
rounds of the first, and scaled to an epoch, so that a busy machine disturbs both alike. The pixels are random: the
cost does not depend on them.
"""

import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from bench.networks._residual import ResidualNetwork
from bench.training.augmentation import crop_and_flip

ROWS, BATCH, STEPS, ROUNDS = 50_000, 128, 12, 3
MOST = 0.05  # of a training epoch


def batches(x: Tensor, y: Tensor, source: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """Cut an epoch's batches out of memory, shuffled and augmented."""
    for chosen in torch.randperm(len(x), generator=source).split(BATCH):
        yield crop_and_flip(x[chosen], torch.rand(len(chosen), 3, generator=source)), y[chosen]


@pytest.mark.filterwarnings("ignore")
def test_augmented_batches_cost_little_beside_training(benchmark: Any) -> None:
    source = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, 3, 32, 32, generator=source)
    y = torch.randint(0, 10, (ROWS,), generator=source)
    network = ResidualNetwork(3, 10, (16, 32, 64))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=3e-4)
    steps_per_epoch = -(-ROWS // BATCH)

    def train(steps: int) -> float:
        batch = x[:BATCH], y[:BATCH]
        began = time.perf_counter()
        for _ in range(steps):
            optimizer.zero_grad()
            F.cross_entropy(network(batch[0]), batch[1]).backward()
            optimizer.step()
        return (time.perf_counter() - began) / steps * steps_per_epoch

    def cut() -> float:
        began = time.perf_counter()
        assert sum(len(labels) for _, labels in batches(x, y, source)) == ROWS
        return time.perf_counter() - began

    train(3)  # warm-up
    cutting: list[float] = []
    training: list[float] = []

    def one_round() -> None:
        training.append(train(STEPS))
        cutting.append(cut())
        training.append(train(STEPS))

    benchmark.pedantic(one_round, rounds=ROUNDS, iterations=1)
    share = median(cutting) / median(training)
    benchmark.extra_info.update(batches_s=median(cutting), training_s=median(training), share=share)
    print(
        f"\nan epoch of {ROWS:,} images in batches of {BATCH}, {torch.get_num_threads()} threads: batches with crop "
        f"and flip {median(cutting):.2f} s, ResNet8 training {median(training):.1f} s: {share:.1%} of it"
    )
    assert share < MOST
