"""Random numbers are made on the device that uses them, and a draw copies nothing there and waits for nothing.

Tensors of the device "meta" have shapes alone: reading a value of one raises, as waiting for it would show on a GPU.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from bench.api import Method, Problem, choose
from bench.api import tape as tapes
from bench.api.tape import LiveTape, TapeLength, generator, numbers
from bench.errors import UserError
from bench.training import drawing
from bench.training.drawing import Drawing, Functions
from bench.training.feed import Feed
from bench.training.limits import Limits
from bench.training.member import Fitted, Rows
from bench.training.slot import Slot
from tests.fixtures.training import NETWORK_METHODS, FitInOrder, MakeMember

REGRESSION = [name for name, method in NETWORK_METHODS.items() if not method.skip(Problem("regression", (8,), 1))]
META = torch.device("meta")


class OneDevice(TorchDispatchMode):
    """Refuses tensors of another device; a number of Python's is one without axes there, and is not copied."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch does not type it

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        tensors = [value for value in (*args, result) if isinstance(value, Tensor)]
        for value in tensors:
            assert value.device == META or value.ndim == 0, func
        if func is torch.ops.aten._to_copy.default:
            assert len({value.device for value in tensors}) == 1, func
        return result


@pytest.fixture
def meta_generators(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Count the generators of the device, which has none of its own: those of the host write shapes there, too."""
    asked: list[str] = []

    def new_generator(device: torch.device | str = "cpu") -> torch.Generator:
        asked.append(str(device))
        return torch.Generator()

    monkeypatch.setattr(tapes, "new_generator", new_generator)
    monkeypatch.setattr(drawing, "new_generator", new_generator)
    return asked


def there(networks: list[Fitted]) -> list[Fitted]:
    moved = []
    for net in networks:
        parts = ({name: t.to(META) for name, t in part.items()} for part in (net.params, net.buffers, net.memory))
        params, buffers, memory = parts
        moved.append(replace(net, module=net.module.to(META), params=params, buffers=buffers, memory=memory))
    return moved


def functions_there(
    method: Method, member: MakeMember, fit_in_order: FitInOrder, path: str = "auto"
) -> tuple[Functions, Tensor]:
    one = member(method, epochs=1)
    networks = there(fit_in_order([one] * one.method.networks, Limits(path="plain")))
    x = one.rows.x.to(META)
    return Functions(Drawing(one.method, networks, "regression", x, 7, 6), Limits(path=path)), x  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["stack", "plain"])
@pytest.mark.parametrize("name", REGRESSION)
def test_a_draw_stays_on_its_device_and_waits_for_nothing(
    name: str, path: str, member: MakeMember, fit_in_order: FitInOrder, meta_generators: list[str]
) -> None:
    functions, x = functions_there(NETWORK_METHODS[name], member, fit_in_order, path)
    meta_generators.clear()
    with torch.no_grad(), OneDevice():
        parts = list(functions.at(x))
    assert all(part.device == META for part in parts)
    assert set(meta_generators) == {"meta"}


def test_a_number_of_the_host_in_a_draw_is_caught(member: MakeMember, fit_in_order: FitInOrder) -> None:
    """The check above fails where it should: without a generator of the device the numbers would be copied there."""
    functions, x = functions_there(NETWORK_METHODS["mc-dropout"], member, fit_in_order)
    with pytest.raises(RuntimeError, match=r"(?i)meta"), torch.no_grad():
        list(functions.at(x))


def test_training_draws_shuffles_and_tapes_on_its_device(meta_generators: list[str], member: MakeMember) -> None:
    one = member(NETWORK_METHODS["mc-dropout"], batch=16)
    host = one.rows
    rows = Rows("regression", host.x.to(META), host.y.to(META), host.train, host.validation)
    one = replace(one, rows=rows)
    feed = Feed([one, replace(one, seed=1)])
    slots = [Slot(k, replace(one, seed=k), 0, torch.nn.Identity()) for k in range(2)]
    with OneDevice():
        normals, uniforms = feed.numbers(slots, 3, TapeLength(5, 7), room=4)
    assert (normals.shape, uniforms.shape) == ((3, 2, 5), (3, 2, 7))
    orders = feed.orders(slots, 32, 2)
    assert orders.shape == (2, 2, 32)
    assert {normals.device, uniforms.device, orders.device} == {META}
    assert set(meta_generators) == {"meta"}


def test_shuffles_by_keys_are_permutations_of_the_rows_of_each_slot() -> None:
    """What another device does in place of `randperm`: the order of random keys, which is uniform."""
    from bench.training.feed import _write_keys

    keys = torch.zeros(2000, 1, 4, dtype=torch.int32)
    for slot, own in enumerate(keys):
        _write_keys(generator(slot, "shuffle"), own)
    places = keys.argsort(dim=2)[:, 0]
    assert (places.sort(dim=1).values == torch.arange(4)).all()
    counts = torch.bincount(places @ torch.tensor([64, 16, 4, 1]))
    assert (counts[counts > 0] > 40).all()  # about 83 of each of the 24 orders
    assert int((counts > 0).sum()) == 24


def test_choosing_is_indexing(member: MakeMember) -> None:
    values = torch.randn(5, 3, 2, generator=generator(0, "values"))
    every = torch.arange(5)
    assert all(torch.equal(choose(values, number), values[int(number)]) for number in every)
    together = torch.func.vmap(choose, in_dims=(None, 0))(values, every)
    assert torch.equal(together, values)


def test_live_tapes_and_numbers_are_made_on_the_device(meta_generators: list[str]) -> None:
    tape = LiveTape(generator(0, "x", device="meta"), "meta")
    assert tape.normal((2, 3)).device == META
    assert {law.device for law in numbers(generator(0, "x", device="meta"), 2, TapeLength(3, 4), META)} == {META}
    assert meta_generators == ["meta", "meta"]


def test_numbers_of_a_device_s_global_generator_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    states = iter([torch.zeros(16), torch.ones(16)])

    class Module:
        get_rng_state = staticmethod(lambda: next(states))

    monkeypatch.setattr(torch, "get_device_module", lambda kind: Module)
    with pytest.raises(UserError, match="take random numbers from the tape"), tapes.no_other_randomness("draw", "meta"):
        pass
