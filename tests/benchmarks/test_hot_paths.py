"""The hot paths, each timed by itself, so that a run can be compared with the one saved before.

    make bench-compare

tells which of them got slower and by which ratio, and saves the new times. Ratios to other ways of doing the same are
printed by the other files here; how much faster the engine draws than a loop, by the last two cases.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bench.api import Method, Network, Problem
from bench.api.tape import TapeLength, generator, numbers
from bench.methods.deep_ensemble import DeepEnsemble
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.methods.mcni_fixed import MCNIFixed
from bench.metrics import Forecast, score
from bench.networks.mlp import MLPNetwork
from bench.networks.resnet8 import ResNet8Network
from bench.probes.latency.modes import MODES
from bench.spec.cell import Cell, Outcome
from bench.spec.protocol import Training
from bench.store.store import Store
from bench.training.drawing import Drawing, Functions
from bench.training.fit import fit
from bench.training.limits import Limits, threads
from bench.training.member import Fitted, Member, Rows, start
from bench.training.network_factory import network_factory

FEATURES, DRAWS = 8, 100
MLP = MLPNetwork((50,))
RESNET = ResNet8Network()


def rows_of(network: Network, count: int) -> Rows:
    source = torch.Generator().manual_seed(0)
    if isinstance(network, MLPNetwork):
        x = torch.randn(count, FEATURES, generator=source)
        return Rows("regression", x, x.sum(1).sin(), torch.arange(count), torch.arange(0))
    x = torch.randn(count, 3, 32, 32, generator=source)
    return Rows("classification", x, torch.arange(count) % 10, torch.arange(count), torch.arange(0))


def member(method: Method, network: Network, rows: Rows, seed: int = 0, **training: Any) -> Member:
    problem = Problem(rows.task, tuple(rows.x.shape[1:]), 1 if rows.task == "regression" else 10)
    return Member(method, problem, network_factory(network, problem), repr(network), Training(**training), rows, seed)


def drawing(method: Method, network: Network, count: int, draws: int, networks: int = 1) -> Drawing:
    rows = rows_of(network, count)
    firsts = [start(member(method, network, rows, seed)) for seed in range(networks)]
    made = [Fitted(f.module, f.params, f.buffers, f.memory) for f in firsts]
    return Drawing(method, made, rows.task, rows.x, 7, draws)


def timed(benchmark: Any, call: Any, rounds: int = 10) -> None:
    """Time a call on one thread: the result should not depend on how many cores a machine has free."""
    with threads(1), torch.no_grad():
        benchmark.pedantic(call, rounds=rounds, warmup_rounds=2)


@pytest.mark.parametrize("method", [Deterministic(), MCDropout(), MCNIFixed()], ids=lambda m: type(m).__name__)
def test_train_a_stack_of_mlps(benchmark: Any, method: Method) -> None:
    rows = rows_of(MLP, 2000)
    members = [member(method, MLP, rows, seed, epochs=1, batch=32) for seed in range(120)]
    benchmark.pedantic(lambda: list(fit(members, Limits(compiling=False))), rounds=3, warmup_rounds=1)


@pytest.mark.parametrize(
    ("method", "networks"),
    [(MCDropout(), 1), (MCNIFixed(), 1), (DeepEnsemble(), DRAWS)],
    ids=["dropout", "mcni", "deep"],
)
@pytest.mark.parametrize("count", [500, 2000])
def test_draw_from_mlps(benchmark: Any, method: Method, networks: int, count: int) -> None:
    functions = Functions(drawing(method, MLP, count, DRAWS, networks))
    timed(benchmark, lambda: list(functions.at(functions.job.x)))


@pytest.mark.parametrize("method", [Deterministic(), MCDropout(), MCNIFixed()], ids=lambda m: type(m).__name__)
def test_draw_from_a_resnet(benchmark: Any, method: Method) -> None:
    functions = Functions(drawing(method, RESNET, 100, 3))
    timed(benchmark, lambda: list(functions.at(functions.job.x)), rounds=5)


def test_examine_a_drawing(benchmark: Any) -> None:
    job = drawing(MCNIFixed(), MLP, 500, DRAWS)
    timed(benchmark, lambda: Functions(job))


def test_random_numbers_of_draws(benchmark: Any) -> None:
    length = TapeLength(450, 0)
    timed(benchmark, lambda: [numbers(generator(7, "draw", t), 1, length) for t in range(DRAWS)])


def test_score_regression(benchmark: Any) -> None:
    random = np.random.default_rng(0)
    observed, draws = random.normal(size=2000), random.normal(size=(DRAWS, 2000))
    benchmark.pedantic(lambda: score(Forecast("regression", observed, draws, None, 1.0)), rounds=5, warmup_rounds=1)


def test_score_classification(benchmark: Any) -> None:
    random = np.random.default_rng(0)
    draws, labels = random.dirichlet(np.ones(10), (20, 2000)), random.integers(0, 10, 2000)
    benchmark.pedantic(lambda: score(Forecast("classification", labels, draws)), rounds=5, warmup_rounds=1)


def test_store_cells(benchmark: Any, tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store.db"))
    number = iter(range(10**6))

    def save() -> None:
        outcome = Outcome("ok", metrics={f"m{k}": float(k) for k in range(40)})
        keys = [str(next(number)) for _ in range(20)]
        store.save([(Cell(key, "d", 0, "m", 0, "{}"), outcome) for key in keys])

    benchmark.pedantic(save, rounds=10, warmup_rounds=1)


def ordinary_loop(rate: float, hidden: list[int]) -> nn.Module:
    """The MLP as anyone would write it, with dropout as torch has it: another mask for every row."""
    sizes = [FEATURES, *hidden]
    layers = [
        part
        for a, b in zip(sizes, hidden, strict=False)
        for part in (nn.Linear(a, b), nn.ReLU(), nn.Dropout(rate) if rate else nn.Identity())
    ]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], 1)).train()


@pytest.mark.parametrize("hidden", [[50], [50, 50]], ids=str)
@pytest.mark.parametrize("count", [500, 2000])
@pytest.mark.parametrize("method", [MCDropout(), MCNIFixed()], ids=lambda m: type(m).__name__)
def test_the_engine_against_a_loop(benchmark: Any, method: Method, count: int, hidden: list[int]) -> None:
    """Both sides in every round; CPU time, which other processes disturb less."""
    import time

    job = drawing(method, MLPNetwork(tuple(hidden)), count, DRAWS)
    ways = {name: MODES[name](job, Limits()).evaluate for name in ("engine", "naive")}
    module = ordinary_loop(0.1 if isinstance(method, MCDropout) else 0.0, hidden)
    ways["ordinary"] = lambda x: torch.stack([module(x) for _ in range(DRAWS)])
    times: dict[str, list[float]] = {name: [] for name in ways}

    def one_round() -> None:
        for name, way in ways.items():
            begin = time.process_time()
            way(job.x)
            times[name].append(time.process_time() - begin)

    timed(benchmark, one_round, rounds=15)
    engine, naive, ordinary = (float(np.median(times[name])) * 1e3 for name in ways)
    other = "an ordinary loop with nn.Dropout" if isinstance(method, MCDropout) else "a loop without noise"
    benchmark.extra_info.update(naive_over_engine=naive / engine, ordinary_over_engine=ordinary / engine)
    print(
        f"\n{type(method).__name__} {FEATURES}-{'-'.join(map(str, hidden))}-1, {count} rows, T = {DRAWS}: engine "
        f"{engine:.1f} ms, naive loop {naive:.1f} ms ({naive / engine:.1f}x), {other} {ordinary:.1f} ms "
        f"({ordinary / engine:.1f}x)"
    )
