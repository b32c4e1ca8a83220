"""All checks of a network."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from bench.api import Network, Problem, Split, as_float32, unchanged
from bench.spec.protocol import Protocol, Training
from bench.testing import declarations
from bench.testing.check import Check, NotApplicable, require
from bench.testing.isolation import global_generators_untouched
from bench.testing.problems import ONE_STEP, PLAIN, STACK, Plain, members_of, split_of
from bench.testing.second_device import require_same_hooks, second_device
from bench.training.fit import fit
from bench.training.limits import FLOPS_PER_ROW_OF_A_LARGE_NETWORK, Limits
from bench.training.member import Fitted, start
from bench.training.network_factory import WithHidden, network_factory

PROBLEMS = {
    "two features": Problem("regression", (2,), 1),
    "two features, three classes": Problem("classification", (2,), 3),
    "thirteen features": Problem("regression", (13,), 1),
    "small images": Problem("classification", (1, 8, 8), 3),
    "images": Problem("classification", (3, 32, 32), 10),
}
FEW = Protocol(Training(learning_rate=0.001, epochs=6, batch=24), validation=0.2)
ROWS = 5


@dataclass(frozen=True)
class Built:
    """A module for a problem, in evaluation mode, with rows to call it on."""

    name: str
    module: nn.Module
    x: Tensor

    def __call__(self, x: Tensor | None = None) -> Tensor:
        """Return the outputs without gradients."""
        with torch.no_grad():
            outputs: Tensor = self.module(self.x if x is None else x)
        return outputs


class NetworkSubject:
    """A network under test; modules that several checks need are built once."""

    def __init__(self, plugin: Network) -> None:
        self.plugin = plugin

    @cached_property
    def accepted(self) -> dict[str, Problem]:
        """The problems that the network does not skip."""
        found = {name: problem for name, problem in PROBLEMS.items() if self.plugin.skip(problem) is None}
        require(found, f"skip refuses all of: {', '.join(PROBLEMS)}; nothing can be checked")
        return found

    def build(self, name: str, outputs: int | None = None, seed: int = 0) -> Built:
        """Return a new module for a problem, as a run creates it."""
        problem = PROBLEMS[name]
        x = torch.randn(ROWS, *problem.inputs, generator=torch.Generator().manual_seed(1))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module = network_factory(self.plugin, problem)(outputs or problem.outputs)
        require(isinstance(module, nn.Module), f"build returned a {type(module).__name__}; return a torch.nn.Module")
        return Built(name, module.eval(), x)

    @cached_property
    def built(self) -> list[Built]:
        """A module for every problem that the network does not skip."""
        return [self.build(name) for name in self.accepted]

    @cached_property
    def split(self) -> Split:
        """A small training problem with rows that the network takes."""
        problem = next(iter(self.accepted.values()))
        if problem.inputs == (2,):
            return split_of(problem.task)
        random = np.random.default_rng([32, *problem.inputs])
        y = np.arange(60) % 3 if problem.task == "classification" else random.normal(size=60)
        x = random.normal(size=(60, *problem.inputs)) + y.reshape(-1, *[1] * len(problem.inputs))
        return Split(
            problem.task, x, y, x[:12], y[:12], classes=problem.outputs if problem.task == "classification" else 0
        )

    def train(self, limits: Limits) -> Fitted:
        """Return the network after a few steps without noise."""
        _, members = members_of(Plain(), self.split, FEW, network=self.plugin)
        return dict(fit(members, limits))[0]

    @cached_property
    def trained(self) -> Fitted:
        """The network after a few steps on its own."""
        return self.train(PLAIN)

    @cached_property
    def operations(self) -> float:
        """Operations of one row of the training problem."""
        from bench.training.flops import count_work

        problem = self.split.problem
        module = network_factory(self.plugin, problem)(problem.outputs).eval()
        return count_work(lambda: module(torch.zeros(1, *problem.inputs)))[1]


def network_checks() -> Iterator[Check[NetworkSubject]]:
    """Yield every check that a network has to pass, the fast ones first."""
    yield declarations.OPTIONS
    yield declarations.VERSION
    yield Check("docstring", "the first line of its documentation says what it is", declarations.check_first_line)
    yield declarations.expected_failures_check(network_checks)
    yield Check("skip", "skip returns None or a reason, and not a reason for every problem", _skip)
    yield Check("shapes", "outputs are finite float32 numbers [rows, outputs] for any number of outputs", _shapes)
    yield Check("tensors", "every tensor is a parameter or a buffer, and some are trained", _tensors)
    yield Check("seeded", "the same seed gives the same initial tensors, another seed others", _seeded)
    yield Check("global-randomness", "the generators of Python and numpy are untouched", _global_randomness)
    yield Check("pure", "in evaluation the same rows give the same outputs, and nothing changes", _pure)
    yield Check("rows-apart", "in evaluation the outputs of a row do not depend on the other rows", _rows_apart)
    yield Check("hidden", "methods reach its hidden activations", _hidden)
    yield Check("learns", "a few steps change every parameter and lower the loss", _learns)
    elsewhere = "on a second device it leaves its tensors there and computes the same"
    yield Check("second-device", elsewhere, _second_device)
    yield Check("stack", "in a stack it trains as alone, up to rounding", _stack)


def _skip(subject: NetworkSubject) -> None:
    for problem in PROBLEMS.values():
        declarations.check_reason(subject.plugin.skip(problem))
    require(subject.accepted, "skip refuses every problem")


def _shapes(subject: NetworkSubject) -> None:
    for name, problem in subject.accepted.items():
        for outputs in (problem.outputs, problem.outputs + 1):  # one more: a method may ask for a variance
            found = subject.build(name, outputs)()
            good = found.shape == (ROWS, outputs)
            advice = "use the argument `outputs` of build for the last layer"
            require(good, f"for {name} the outputs have shape {list(found.shape)}, not {[ROWS, outputs]}; {advice}")
            require(found.dtype == torch.float32, f"for {name} the outputs are {found.dtype}; return float32")
            require(torch.isfinite(found).all(), f"for {name} the outputs are not finite")


def _tensors(subject: NetworkSubject) -> None:
    _, members = members_of(Plain(), subject.split, FEW, network=subject.plugin)
    require(start(members[0]).params, "the module has no parameters that are trained")


def _seeded(subject: NetworkSubject) -> None:
    name = next(iter(subject.accepted))
    one, same, other = (list(subject.build(name, seed=seed).module.parameters()) for seed in (0, 0, 1))
    equal = all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
    require(equal, "two modules of the same seed differ; initialise with torch's global generator, which is seeded")
    differ = any(not torch.equal(a, b) for a, b in zip(one, other, strict=True))
    require(differ, "modules of two seeds are the same; do not set a seed in build")


def _global_randomness(subject: NetworkSubject) -> None:
    with global_generators_untouched("initialise with torch's functions, which the harness seeds"):
        subject.build(next(iter(subject.accepted)))()


def _pure(subject: NetworkSubject) -> None:
    for built in subject.built:
        before = {name: tensor.clone() for name, tensor in built.module.state_dict().items()}
        same = torch.equal(built(), built())
        require(same, f"for {built.name} two calls gave different outputs; use noise only through `hidden`")
        after = built.module.state_dict()
        changed = [name for name, tensor in before.items() if not torch.equal(tensor, after[name])]
        require(not changed, f"for {built.name} a call in evaluation mode changed {', '.join(changed)}")


def _rows_apart(subject: NetworkSubject) -> None:
    for built in subject.built:
        alone = torch.cat([built(row[None]) for row in built.x])
        close = torch.allclose(alone, built(), rtol=1e-3, atol=1e-4)
        require(close, f"for {built.name} a row alone gives other outputs than among others; flatten from dimension 1")


def _hidden(subject: NetworkSubject) -> None:
    for built in subject.built:
        if isinstance(built.module, WithHidden) and not built.module.places:
            raise NotApplicable(
                "its forward has no argument 'hidden' and no nn.Dropout layer; methods with noise on activations fail"
            )
        seen: list[tuple[int, ...]] = []

        def look(h: Tensor, seen: list[tuple[int, ...]] = seen) -> Tensor:
            seen.append(tuple(h.shape))
            return h

        with torch.no_grad():
            same = torch.equal(built.module(built.x, hidden=look), built())
            usual = torch.equal(built.module(built.x, hidden=unchanged), built())
            without = built.module(built.x, hidden=torch.zeros_like)
        require(seen, f"for {built.name} `hidden` is never called; pass every hidden activation through it")
        require(same and usual, f"for {built.name} a `hidden` that changes nothing changes the outputs")
        rows = all(len(shape) >= 2 and shape[0] == ROWS for shape in seen)
        require(rows, f"for {built.name} `hidden` gets shapes {seen}; their first dimension must be the rows")
        reached = not torch.equal(without, built())
        require(reached, f"for {built.name} the outputs do not depend on what `hidden` returns; use its value")


def _learns(subject: NetworkSubject) -> None:
    _, members = members_of(Plain(), subject.split, FEW, network=subject.plugin)
    fresh, trained = start(members[0]), subject.trained
    require(trained.status == "ok", "the loss was not finite")
    fixed = [name for name, tensor in fresh.params.items() if torch.equal(tensor, trained.params[name])]
    advice = "remove them, or set requires_grad_(False)"
    require(not fixed, f"training changes nothing in {', '.join(fixed)}: the outputs do not depend on them; {advice}")
    losses = [loss for loss, _ in trained.history]
    require(min(losses[1:]) < losses[0], f"the training loss did not fall: {losses[0]:.3g}, then {losses[-1]:.3g}")


def _second_device(subject: NetworkSubject) -> None:
    split = replace(subject.split, train_x=subject.split.train_x[:ROWS], train_y=subject.split.train_y[:ROWS])
    device = second_device()
    _, members = members_of(Plain(), split, ONE_STEP, network=subject.plugin)
    found = require_same_hooks(members[0], device)
    if found and subject.plugin.stackable:  # one that declares that it trains alone may look at its values
        require(False, f"on an accelerator a forward pass would stop here: {found[0]}; write no .item() and no if")


def _stack(subject: NetworkSubject) -> None:
    if not subject.plugin.stackable:
        raise NotApplicable("it declares that it trains alone (stackable = False)")
    if subject.operations > FLOPS_PER_ROW_OF_A_LARGE_NETWORK:
        raise NotApplicable("it is large: it trains alone")
    try:
        stacked = subject.train(STACK)
    except Exception as error:
        first = " ".join(str(error).split())[:200]
        advice = "avoid branches on values and .item(), or declare stackable = False"
        require(False, f"it cannot be part of a stack ({type(error).__name__}: {first}); {advice}")
    # Outputs, not parameters: Adam moves those whose gradient is nothing but rounding, too.
    x = as_float32(subject.split.test_x)
    with torch.no_grad():
        gap = float((stacked(x) - subject.trained(x)).abs().max())
    require(gap < 1e-2, f"trained in a stack its outputs differ by {gap:.2g} from those of one trained alone")
