"""The promise of the engine: a member's result is its own, whatever runs beside it and however it is carried out."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bench.api import Method, Problem
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.methods.mcni_fixed import MCNIFixed
from bench.networks.mlp import MLPNetwork
from bench.networks.resnet8 import ResNet8Network
from bench.plugins.registry import Registry
from bench.training.compiled_graphs import compiler_found
from bench.training.drawing import Drawing, draw
from bench.training.feed import Feed
from bench.training.flops import measure
from bench.training.limits import Limits, is_large, threads
from bench.training.member import Fitted, Member, Rows, start
from bench.training.stack import Stack
from tests.fixtures.training import NETWORK_METHODS, FitInOrder, MakeMember

pytestmark = pytest.mark.slow


def sine_rows(count: int, held: int, features: int) -> Rows:
    source = torch.Generator().manual_seed(11)
    x = torch.randn(count, features, generator=source)
    return Rows("regression", x, torch.sin(x.sum(1)), torch.arange(count - held), torch.arange(count - held, count))


REGRESSION = Problem("regression", (4,), 1)
METHODS = [name for name, method in sorted(NETWORK_METHODS.items()) if not method.skip(REGRESSION)]
PAPER = ("deterministic", "mc-dropout", "mcni-fixed", "mcni-learned")


def predictions(one: Member, fitted: Fitted, limits: Limits = Limits()) -> np.ndarray[Any, Any]:
    return draw(Drawing(one.method, [fitted], one.problem.task, one.rows.x, one.seed, 20), limits)


@pytest.mark.parametrize("name", PAPER)  # the conformance kit asks the same of all methods, in smaller stacks
def test_alone_in_seven_in_a_hundred_and_twenty_and_plain_are_the_same(
    name: str, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    method = Registry().make("method", name, {})
    alone = predictions(member(method, 3), fit_in_order([member(method, 3)])[0])
    for size in (7, 120):
        members = [
            member(method, seed, learning_rate=0.01 if seed == 3 else 0.001 * (seed + 1)) for seed in range(size)
        ]
        beside = predictions(members[3], fit_in_order(members)[3])
        assert np.array_equal(alone, beside), "a stack changed the bits of a result"
    plain = Limits(path="plain")
    looped = predictions(member(method, 3), fit_in_order([member(method, 3)], plain)[0], plain)
    np.testing.assert_allclose(alone, looped, atol=1e-5)


def test_a_member_alone_goes_through_the_kernels_of_a_stack(member: MakeMember, fit_in_order: FitInOrder) -> None:
    # At these sizes a product of one matrix takes another path than a product of several.
    def one(seed: int) -> Member:
        return member(Deterministic(), seed, network=MLPNetwork((50,)), batch=32, epochs=20)

    alone, beside = fit_in_order([one(0)])[0], fit_in_order([one(seed) for seed in range(3)])[0]
    assert all(torch.equal(alone.params[key], beside.params[key]) for key in alone.params)


@pytest.mark.parametrize(
    ("hidden", "method"), [([50], MCDropout()), ([33, 7], Deterministic()), ([33, 7], MCNIFixed())], ids=str
)
def test_the_place_in_a_stack_changes_no_bit_at_sizes_that_fit_no_vector(
    method: Method, hidden: list[int], member: MakeMember, fit_in_order: FitInOrder
) -> None:
    rows = sine_rows(count=150, held=17, features=13)

    def one(seed: int) -> Member:
        return member(method, seed, rows=rows, network=MLPNetwork(tuple(hidden)), batch=32, epochs=12, patience=12)

    alone = fit_in_order([one(0)])[0]
    stacks = {place: fit_in_order([one((3 - place + k) % 3) for k in range(3)]) for place in range(3)}
    for place, fitted in stacks.items():
        for seed in range(3):  # each at each of three places
            here, first = fitted[(place + seed) % 3], stacks[0][seed]
            assert all(torch.equal(first.params[key], here.params[key]) for key in here.params)
    assert all(torch.equal(alone.params[key], value) for key, value in stacks[0][0].params.items())


@pytest.mark.parametrize("path", ["stack", "plain"])
def test_validation_uses_the_running_statistics_of_batch_norm(
    path: Any, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    one = member(Deterministic(), network=ResNet8Network(), epochs=1, patience=1)
    (fitted,) = fit_in_order([one], Limits(path=path))
    rows = one.rows
    fitted.module.eval()
    outputs = fitted(rows.x[rows.validation])
    assert fitted.validation_loss == pytest.approx(float(F.cross_entropy(outputs, rows.y[rows.validation])), rel=1e-4)


@pytest.mark.parametrize("method", [Deterministic(), MCDropout(), MCNIFixed()], ids=lambda m: type(m).__name__)
def test_convolutions_and_batch_norm_are_the_same_stacked_and_plain(
    method: Method, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    def members(count: int) -> list[Member]:
        return [
            member(method, seed, network=ResNet8Network(), epochs=2, optimizer="sgd", learning_rate=0.001)
            for seed in range(count)
        ]

    stacked = fit_in_order(members(3), Limits(path="stack"))[1]
    plain = fit_in_order(members(3), Limits(path="plain"))[1]
    for key, value in plain.params.items() | plain.buffers.items():
        other = {**stacked.params, **stacked.buffers}[key]
        torch.testing.assert_close(other, value, atol=1e-5, rtol=1e-4)
    one = members(2)[1]
    np.testing.assert_allclose(
        predictions(one, stacked, Limits(path="stack")), predictions(one, plain, Limits(path="plain")), atol=1e-4
    )


def test_plain_equals_an_ordinary_pytorch_loop_with_batch_norm(member: MakeMember, fit_in_order: FitInOrder) -> None:
    one = member(Deterministic(), network=ResNet8Network(), epochs=4, batch=100, optimizer="sgd", momentum=0.9)
    (fitted,) = fit_in_order([one])
    module = start(one).module.requires_grad_(True)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9)
    module.train()
    for _ in range(4):
        optimizer.zero_grad()
        F.cross_entropy(module(one.rows.x[one.rows.train]), one.rows.y[one.rows.train]).backward()
        optimizer.step()
    for key, value in module.state_dict().items():
        torch.testing.assert_close({**fitted.params, **fitted.buffers}[key], value.detach(), atol=1e-5, rtol=1e-4)


def test_fewer_slots_than_members_change_nothing(member: MakeMember, fit_in_order: FitInOrder) -> None:
    members = [member(MCNIFixed(), seed, epochs=2 + seed % 4) for seed in range(11)]
    together = fit_in_order(members)
    queued = fit_in_order(members, Limits(slots=3))
    small = fit_in_order(members, Limits(bytes=1))  # the smallest stack: two
    for a, b, c in zip(together, queued, small, strict=True):
        assert a.epochs == b.epochs == c.epochs
        for key in a.params:
            assert torch.equal(a.params[key], b.params[key])
            assert torch.equal(a.params[key], c.params[key])


def test_compaction_leaves_the_last_member_as_it_would_be_alone(
    member: MakeMember, fit_in_order: FitInOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    train = Stack._train_turn

    def spy(stack: Stack) -> Any:
        sizes.append(len(stack.slots))
        return train(stack)

    monkeypatch.setattr(Stack, "_train_turn", spy)
    members = [member(MCDropout(), seed, epochs=30 if seed == 5 else 2) for seed in range(12)]
    crowd = fit_in_order(members)[5]
    assert sizes[0] == 12
    assert sizes[-1] == 2
    alone = fit_in_order([members[5]])[0]
    assert all(torch.equal(crowd.params[key], alone.params[key]) for key in alone.params)


@pytest.mark.parametrize("path", ["stack", "plain"])
def test_early_stopping_is_each_members_own_and_restores_the_best_weights(
    path: Any, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    rates = [0.3, 0.02, 0.1]
    members = [member(Deterministic(), 1, learning_rate=r, epochs=60, batch=1000, patience=3) for r in rates]
    for one, fitted in zip(members, fit_in_order(members, Limits(path=path)), strict=True):
        module, rows = start(one).module.requires_grad_(True), one.rows
        optimizer = torch.optim.Adam(module.parameters(), lr=one.training.learning_rate)
        best, best_state, since, epochs = math.inf, {}, 0, 0
        while epochs < 60 and since < 3:
            optimizer.zero_grad()
            F.mse_loss(module(rows.x[rows.train])[:, 0], rows.y[rows.train]).backward()
            optimizer.step()
            with torch.no_grad():
                held = float(F.mse_loss(module(rows.x[rows.validation])[:, 0], rows.y[rows.validation]))
            epochs, since = epochs + 1, since + 1
            if held < best:
                best, since = held, 0
                best_state = {k: v.clone() for k, v in module.state_dict().items()}
        assert fitted.epochs == epochs
        assert fitted.validation_loss == pytest.approx(best, rel=1e-4)
        for key, value in best_state.items():
            torch.testing.assert_close(fitted.params[key], value, atol=1e-4, rtol=1e-3)


def test_a_member_that_diverges_says_so_and_harms_no_other(member: MakeMember, fit_in_order: FitInOrder) -> None:
    well = [member(MCNIFixed(), seed) for seed in range(4)]
    wild = member(MCNIFixed(), 9, learning_rate=1e30)
    mixed = fit_in_order([*well[:2], wild, *well[2:]])
    assert [f.status for f in mixed] == ["ok", "ok", "diverged", "ok", "ok"]
    assert mixed[2].epochs < 5
    for a, b in zip(fit_in_order(well), [*mixed[:2], *mixed[3:]], strict=True):
        assert all(torch.equal(a.params[key], b.params[key]) for key in a.params)


def test_data_of_several_splits_share_a_stack(member: MakeMember, fit_in_order: FitInOrder) -> None:
    rows = [
        Rows(
            "regression",
            torch.randn(40, 8, generator=torch.Generator().manual_seed(s)),
            torch.full((40,), float(s)),
            torch.arange(32),
            torch.arange(32, 40),
        )
        for s in range(3)
    ]
    together = fit_in_order([member(Deterministic(), 0, rows=r, epochs=60) for r in rows])
    for s, fitted in enumerate(together):
        assert float(fitted(rows[s].x).mean()) == pytest.approx(s, abs=0.3)  # each learned its own constant
        alone = fit_in_order([member(Deterministic(), 0, rows=rows[s], epochs=60)])[0]
        assert all(torch.equal(alone.params[key], fitted.params[key]) for key in alone.params)


def test_members_end_in_the_order_of_their_lengths_and_are_told_at_once(member: MakeMember) -> None:
    from bench.training.fit import fit

    members = [member(Deterministic(), 0, epochs=e) for e in (5, 1, 3)]
    assert [number for number, _ in fit(members)] == [1, 2, 0]


def test_fitting_touches_no_global_generator_and_no_thread_count(member: MakeMember, fit_in_order: FitInOrder) -> None:
    torch.manual_seed(5)
    before, count = torch.random.get_rng_state(), torch.get_num_threads()
    fit_in_order([member(MCDropout(), 0, epochs=1)])
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.get_num_threads() == count


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler meets its own deprecations
@pytest.mark.skipif(not compiler_found(), reason="no C++ compiler: compiled graphs cannot be tried here")
def test_compiled_and_traced_steps_agree_and_compiled_ones_are_invariant_too(
    member: MakeMember, fit_in_order: FitInOrder
) -> None:
    members = [member(MCNIFixed(alpha=0.01 * (s + 1)), s, epochs=3) for s in range(5)]
    traced, compiled = fit_in_order(members), fit_in_order(members, Limits(compiling=True))
    fewer = fit_in_order(members[:2], Limits(compiling=True))
    for number in range(5):
        for key, value in traced[number].params.items():
            torch.testing.assert_close(compiled[number].params[key], value, atol=1e-5, rtol=1e-4)
    for a, b in zip(fewer, compiled, strict=False):
        assert all(torch.equal(a.params[key], b.params[key]) for key in a.params)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler meets its own deprecations
@pytest.mark.skipif(not compiler_found(), reason="no C++ compiler: compiled graphs cannot be tried here")
def test_a_large_network_compiled_is_the_same_up_to_rounding(member: MakeMember, fit_in_order: FitInOrder) -> None:
    members = [member(MCNIFixed(), seed, epochs=3) for seed in range(2)]
    eager = fit_in_order(members, Limits(path="plain"))
    compiled = fit_in_order(members, Limits(path="plain", compiling=True))
    for one, other in zip(eager, compiled, strict=True):
        assert any(not torch.equal(one.params[key], other.params[key]) for key in one.params), "nothing was compiled"
        for key, value in one.params.items():
            torch.testing.assert_close(other.params[key], value, atol=1e-4, rtol=1e-3)


def test_only_large_networks_leave_the_stack(member: MakeMember) -> None:
    assert not is_large(measure(member(Deterministic())).flops_per_row, Limits())
    images = Rows(
        "classification", torch.zeros(4, 3, 32, 32), torch.tensor([0, 1, 0, 1]), torch.arange(4), torch.arange(0)
    )
    large = member(Deterministic(), rows=images, network=ResNet8Network(), batch=2)
    assert is_large(measure(large).flops_per_row, Limits())
    assert not is_large(measure(large).flops_per_row, Limits(path="stack"))


def test_thread_count_is_given_back_after_an_error() -> None:
    count = torch.get_num_threads()
    with pytest.raises(ValueError, match="x"), threads(1):
        raise ValueError("x")
    assert torch.get_num_threads() == count


@dataclass(frozen=True)
class Level(Deterministic):
    """A method whose float option enters the loss, its whole option does not."""

    pull: float = 0.0
    power: int = 2

    def loss(self, net: Any, batch: Any, tape: Any) -> torch.Tensor:
        size = sum(w.abs().pow(self.power).sum() for w in net.weights.values())
        penalised: torch.Tensor = super().loss(net, batch, tape) + self.pull * size
        return penalised


def test_float_options_differ_inside_a_stack_and_others_split_it(member: MakeMember, fit_in_order: FitInOrder) -> None:
    members = [member(Level(pull=p, power=k), 0) for p in (0.0, 0.1, 1.0) for k in (1, 2)]
    assert len({m.stack_key() for m in members}) == 2
    together = fit_in_order(members)
    for one, fitted in zip(members, together, strict=True):
        alone = fit_in_order([one])[0]
        assert all(torch.equal(alone.params[key], fitted.params[key]) for key in alone.params)
    sizes = [float(sum(w.abs().sum() for w in f.weights.values())) for f in together]
    assert sizes[0] > sizes[2] > sizes[4]


def test_a_batch_larger_than_the_data_is_all_of_it_and_one_row_trains(
    member: MakeMember, fit_in_order: FitInOrder
) -> None:
    row = Rows("regression", torch.ones(1, 8), torch.tensor([2.0]), torch.arange(1), torch.arange(0))
    one = member(Deterministic(), rows=row, batch=64, epochs=200)
    assert (one.batch_rows, one.steps_per_epoch) == (1, 1)
    (fitted,) = fit_in_order([one])
    assert float(fitted(row.x)) == pytest.approx(2.0, abs=0.05)


def test_rows_left_over_by_whole_batches_are_others_in_every_epoch(member: MakeMember) -> None:
    from bench.training.slot import Slot

    one = member(Deterministic(), batch=32)  # 100 rows: 3 batches, 4 rows left over
    feed, slot = Feed([one]), Slot(0, one, 0, start(one).module)
    epochs = [feed.orders([slot, None], 96)[0] for _ in range(30)]
    assert all(len(order.unique()) == 96 for order in epochs)
    assert len(torch.cat(epochs).unique()) == 100


def test_problem_is_what_the_network_is_built_for(member: MakeMember) -> None:
    assert member(Deterministic()).problem == Problem("regression", (8,), 1)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
@pytest.mark.parametrize("name", METHODS)
def test_a_cuda_device_gives_what_the_cpu_gives(name: str, member: MakeMember, fit_in_order: FitInOrder) -> None:
    method = Registry().make("method", name, {})
    host = member(method, 3)
    rows = host.rows
    device = member(method, 3, rows=Rows(rows.task, rows.x.cuda(), rows.y.cuda(), rows.train, rows.validation))
    here, there = fit_in_order([host])[0], fit_in_order([device])[0]
    np.testing.assert_allclose(predictions(device, there), predictions(host, here), atol=1e-3)
