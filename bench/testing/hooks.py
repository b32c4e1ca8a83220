"""Calls the hooks of a method one by one, on the CPU and on another device, with the same random numbers.

Every hook gets on both devices what the hooks before it returned on the CPU. So a difference belongs to the hook that
shows it, and rounding does not add up.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from bench.api import Net
from bench.api.tape import BlankTape, Tape, TapeLength, generator, numbers
from bench.training.flops import measure
from bench.training.member import Member, Rows, advance, bind_options, float_tensors, remember, start
from bench.training.validation import validation_loss, validation_tape

Tensors = dict[str, Tensor]
Watch = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, eq=False)
class HookResult:
    """What one hook returned on the CPU and on the device, by name."""

    hook: str
    expected: Mapping[str, Tensor]
    found: Mapping[str, Tensor]

    def elsewhere(self, device: str) -> list[str]:
        """Return the names of tensors that the hook left on another device."""
        kind = torch.device(device).type
        return [f"{name} on {t.device}" for name, t in self.found.items() if t.device.type != kind]

    def gap(self) -> float:
        """Return the largest difference from the CPU, relative to the largest number of each tensor."""
        largest = 0.0
        for name, tensor in self.expected.items():
            one, other = tensor.double(), self.found[name].cpu().double()
            if not torch.equal(one.isfinite(), other.isfinite()):
                return math.inf
            if tensor.numel():
                one, other = one.nan_to_num(), other.nan_to_num()
                largest = max(largest, float((one - other).abs().max() / one.abs().max().clamp(min=1e-3)))
        return largest


class HostTape(Tape):
    """A tape whose numbers are drawn on the host, whatever the device: the same for all of them."""

    def __init__(self, seed: int, name: str, device: str) -> None:
        super().__init__(torch.empty(0), torch.empty(0))
        self._source, self._device = generator(seed, name), device

    def _next(self, numbers: Tensor, law: int, shape: Sequence[int]) -> Tensor:
        draw = torch.randn if law == 0 else torch.rand
        return draw(tuple(shape), generator=self._source).to(self._device)


def hook_results(member: Member, device: str, watch: Watch = nullcontext) -> Iterator[HookResult]:
    """Yield what each hook of a member on the CPU returns there and on the device.

    Draws on the device are made inside `watch()`, with all that they read on the device beforehand.
    """
    cost, first = measure(member), start(member)
    at_cpu, there = _Place(member, "cpu"), _Place(member, device)
    parts = {name: dict(getattr(first, name)) for name in ("params", "buffers", "state", "values")} | {"memory": {}}

    def both(hook: str, *arguments: Any) -> HookResult:
        expected = getattr(at_cpu, hook)(*arguments)
        moved = pytree.tree_map_only(Tensor, lambda t: t.to(device), arguments)
        return HookResult(hook, expected, getattr(there, hook)(*moved))

    own = dict(first.module.named_parameters())
    parts["params"] = {name: t for name, t in parts["params"].items() if name in own}  # `init` returns the others
    yield (result := both("init", parts))
    parts["params"] |= result.expected
    yield (result := both("memory", parts))
    parts["memory"] = dict(result.expected)

    source = generator(member.seed, "hooks")
    yield (result := both("step", parts, _one_call(source, cost.step)))
    for name, tensor in result.expected.items():
        part, _, rest = name.partition("/")
        if part in ("params", "buffers", "state"):
            parts[part][rest] = tensor
    yield (result := both("remember", parts, _one_call(source, cost.epoch)))
    parts["memory"] = dict(result.expected)
    held = len(member.rows.validation)
    yield both("validate", parts, _one_call(source, validation_tape(member, held)))
    yield (result := both("finish", parts))
    parts["memory"] = dict(result.expected)

    x = member.rows.x[member.rows.validation]
    length = at_cpu.draw_length(parts, x)
    drawn = _one_call(source, length)
    expected = at_cpu.draw(parts, x, drawn)
    moved = pytree.tree_map_only(Tensor, lambda t: t.to(device), (parts, x, drawn))
    with watch():
        outputs = there.draw(*moved)
    yield HookResult("draw", expected, outputs)


def _one_call(source: torch.Generator, length: TapeLength) -> tuple[Tensor, Tensor]:
    normals, uniforms = numbers(source, 1, length)
    return normals[0], uniforms[0]


class _Place:
    """The hooks of one member on one device."""

    def __init__(self, member: Member, device: str) -> None:
        rows, self.device = member.rows, device
        moved: Rows = replace(rows, x=rows.x.to(device), y=rows.y.to(device))
        self.member = replace(member, rows=moved)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            self.module = member.method.build(member.problem, member.new_network).to(device)
        self.module.requires_grad_(False).eval()
        self.method = bind_options(member.method, float_tensors(member.method, torch.device(device)))

    def net(self, parts: Mapping[str, Tensors]) -> Net:
        return Net(self.module, parts["params"], parts["buffers"], parts["memory"])

    def init(self, parts: Mapping[str, Tensors]) -> Tensors:
        tape = HostTape(self.member.seed, "init", self.device)
        return {name: t.detach() for name, t in self.member.method.init(self.net(parts), tape).items()}

    def memory(self, parts: Mapping[str, Tensors]) -> Tensors:
        return dict(self.member.method.memory(self.net(parts), HostTape(self.member.seed, "memory", self.device)))

    def step(self, parts: Mapping[str, Tensors], drawn: tuple[Tensor, Tensor]) -> Tensors:
        chosen = self.member.rows.train[: self.member.batch_rows]
        batch = (self.member.rows.x[chosen], self.member.rows.y[chosen])
        clock = torch.tensor([0.01, 0.0, 0.1, 0.001, 0.9, float(len(self.member.rows.train))], device=self.device)
        params, buffers, state, loss = advance(self.member, self.module, parts, batch, clock, drawn, alone=True)
        results = {"params": params, "buffers": buffers, "state": state, "loss": {"": loss}}
        return {f"{part}/{name}": t for part, tensors in results.items() for name, t in tensors.items()}

    def remember(self, parts: Mapping[str, Tensors], drawn: tuple[Tensor, Tensor]) -> Tensors:
        return remember(self.member, self.module, parts, torch.tensor(0.9, device=self.device), drawn)

    def validate(self, parts: Mapping[str, Tensors], drawn: tuple[Tensor, Tensor]) -> Tensors:
        rows = self.member.rows
        held, trained = rows.validation, torch.tensor(float(len(rows.train)), device=self.device)
        with torch.no_grad():
            pair = (rows.x[held], rows.y[held])
            return {"loss": validation_loss(self.member, self.module, parts, pair, trained, drawn)}

    def finish(self, parts: Mapping[str, Tensors]) -> Tensors:
        self.module.eval()
        rows, tape = self.member.rows, HostTape(self.member.seed, "finish", self.device)
        with torch.enable_grad():
            held_out = rows.batch(rows.calibrating)
            memory = self.member.method.finish(self.net(parts), rows.batch(rows.train), held_out, tape)
        return {name: t.detach() for name, t in memory.items()}

    def draw_length(self, parts: Mapping[str, Tensors], x: Tensor) -> TapeLength:
        tape = BlankTape(self.device)
        with torch.no_grad():
            self.method.draw(self.net(parts), x, tape)
        return tape.length

    def draw(self, parts: Mapping[str, Tensors], x: Tensor, drawn: tuple[Tensor, Tensor]) -> Tensors:
        self.module.eval()
        with torch.no_grad():
            return {"outputs": self.method.draw(self.net(parts), x, Tape(*drawn))}
