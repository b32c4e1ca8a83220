"""Compares the times of draws with those of another checkout, both measured in turn in one run.

    python -m tests.benchmarks.latency_against OTHER_CHECKOUT [--rows 100] [--rounds 10] [--draws 1 10 50 100]

One process per checkout makes the networks of suite `latency` (ResNet8) and of `latency-tabular` (an MLP). A round has
one pass of every method and T of both, in random order, and its processor time; `--clock wall` takes the wall clock,
for an idle machine. The ratio of medians has a 95 % interval from a bootstrap over rounds. The exit code is 1 where the
upper end of the interval over all series, their geometric mean, is above 1.10.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

MOST = 1.10
RESAMPLES = 2000
OWN = Path(__file__).resolve().parents[2]


def child(rows: int, clock: str) -> None:
    """Make the networks, then time what standard input asks for: 'network method T' a line."""
    import torch

    import bench  # noqa: F401  # sets what torch reads when it is imported
    from bench.api import Problem
    from bench.methods.deep_ensemble import DeepEnsemble
    from bench.methods.deterministic import Deterministic
    from bench.methods.mc_dropout import MCDropout
    from bench.methods.mcni_fixed import MCNIFixed
    from bench.methods.mcni_learned import MCNILearned
    from bench.networks.mlp import MLPNetwork
    from bench.networks.resnet8 import ResNet8Network
    from bench.spec.protocol import Training
    from bench.training.drawing import Drawing, Functions
    from bench.training.member import Fitted, Member, Rows, finish, start
    from bench.training.network_factory import network_factory

    source = torch.Generator().manual_seed(0)
    methods = {
        "deterministic": Deterministic(),
        "mc-dropout": MCDropout(rate=0.3),
        "mcni-fixed": MCNIFixed(alpha=0.02),
        "mcni-learned": MCNILearned(alpha=0.02),
        "deep-ensemble": DeepEnsemble(),
    }
    places: dict[str, tuple[Any, Any, Any, Any]] = {
        "resnet8": (
            Problem("classification", (3, 32, 32), 10),
            ResNet8Network(),
            torch.randn(rows, 3, 32, 32, generator=source),
            torch.arange(rows) % 10,
        ),
        "mlp": (
            Problem("regression", (8,), 1),
            MLPNetwork((50,)),
            torch.randn(500, 8, generator=source),
            torch.randn(500, generator=source),
        ),
    }
    made: dict[tuple[str, str, int], Functions] = {}
    read_clock = time.process_time if clock == "processor" else time.perf_counter

    def functions(place: str, name: str, draws: int) -> Functions:
        if (place, name, draws) not in made:
            problem, network, x, y = places[place]
            data = Rows(problem.task, x, y, torch.arange(len(x)), torch.arange(0))
            networks = []
            for seed in range(draws if name == "deep-ensemble" else 1):
                new = network_factory(network, problem)
                member = Member(methods[name], problem, new, repr(network), Training(), data, seed)
                first = start(member)
                networks.append(finish(member, Fitted(first.module, first.params, first.buffers, first.memory)))
            made[place, name, draws] = Functions(Drawing(methods[name], networks, problem.task, x, 7, draws))
        return made[place, name, draws]

    for line in sys.stdin:
        place, name, count = line.split()
        own = functions(place, name, int(count))
        with torch.no_grad():
            began = read_clock()
            for _ in own.at(own.job.x):
                pass
            print(read_clock() - began, flush=True)


class Side:
    """One checkout, measured in a process of its own."""

    def __init__(self, checkout: Path, rows: int, clock: str) -> None:
        command = [sys.executable, str(Path(__file__).resolve()), "--child", "--rows", str(rows), "--clock", clock]
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=checkout, env=environment
        )

    def seconds(self, series: tuple[str, str, int]) -> float:
        """Return what one pass takes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(map(str, series)) + "\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def main() -> int:
    """Measure, print the ratios, and say whether the bar was met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", nargs="?", type=Path)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--draws", type=int, nargs="+", default=[1, 10, 50, 100])
    parser.add_argument("--clock", choices=["processor", "wall"], default="processor")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", action="store_true")
    given = parser.parse_args()
    if given.child:
        child(given.rows, given.clock)
        return 0
    if given.other is None:
        parser.error("name the checkout to compare with")
    methods = ("mc-dropout", "mcni-fixed", "mcni-learned", "deep-ensemble")
    plain = [(place, "deterministic", 1) for place in ("resnet8", "mlp")]
    series = [*plain, *((place, name, t) for place in ("resnet8", "mlp") for name in methods for t in given.draws)]
    sides = [Side(OWN, given.rows, given.clock), Side(given.other.resolve(), given.rows, given.clock)]
    random = np.random.default_rng(0)
    times = np.zeros((2, len(series), given.rounds))
    for one in series:  # warm-up
        for side in sides:
            side.seconds(one)
    for turn in range(given.rounds):
        for place in random.permutation(len(series)):
            for which in random.permutation(2):
                times[which, place, turn] = sides[which].seconds(series[place])
        print(f"round {turn + 1} of {given.rounds}", file=sys.stderr, flush=True)
    for side in sides:
        side.close()
    chosen = random.integers(0, given.rounds, (RESAMPLES, given.rounds))
    medians = np.median(times[:, :, chosen], axis=-1)  # [sides, series, resamples]
    drawn = np.log(medians[0] / medians[1])
    ratios = np.median(times[0], axis=-1) / np.median(times[1], axis=-1)
    found = []
    for name, ratio, own in zip(series, ratios, drawn, strict=True):
        low, high = np.exp(np.quantile(own, [0.025, 0.975]))
        found.append((" ".join(map(str, name)), float(ratio), float(low), float(high)))
        print(f"{found[-1][0]:28s} {ratio:6.3f} ({low:.3f} to {high:.3f})")
    low, high = np.exp(np.quantile(drawn.mean(0), [0.025, 0.975]))
    print(f"{'all, geometric mean':28s} {np.exp(np.log(ratios).mean()):6.3f} ({low:.3f} to {high:.3f}), at most {MOST}")
    if given.json is not None:
        given.json.write_text(json.dumps(found), "utf-8")
    return int(high > MOST)


if __name__ == "__main__":
    sys.exit(main())
