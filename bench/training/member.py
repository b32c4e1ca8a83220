"""One network to be trained: what it is made of, its first tensors, and the pure functions that advance it.

The functions here are about *one* network; `bench.training.stack` runs them over many at once or one by one.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import grad_and_value

from bench.api import Batch, Method, Net, NewNetwork, Problem, Task, float_options, options
from bench.api.optim import Step, make_optimizer
from bench.api.tape import BlankTape, LiveTape, Tape, TapeLength, generator, no_other_randomness, stream
from bench.spec.protocol import Training
from bench.training.augmentation import crop_and_flip
from bench.training.limits import SLOTS
from bench.training.precision import forward_precision
from bench.training.tracing import STEPS_THAT_PAY_FOR_COMPILING

Tensors = dict[str, Tensor]
Parts = Mapping[str, Tensors]  # the fields of `Start` that are tensors: params, buffers, memory, state, values
Pair = tuple[Tensor, Tensor]

ROWS_AT_ONCE = 500  # of a large network outside training: its activations are large, too


def expected_steps(training: Training, steps_per_epoch: int, stops_early: bool = True) -> int:
    """Guess how many steps a training takes: early stopping was seen to stop after 50 epochs or 2000 steps."""
    planned = training.epochs * steps_per_epoch
    return min(planned, max(2000, 50 * steps_per_epoch)) if training.patience and stops_early else planned


@dataclass(frozen=True, eq=False)
class Rows:
    """Data in training units, and which rows of it train, validate and scale nothing else."""

    task: Task
    x: Tensor
    y: Tensor
    train: Tensor
    validation: Tensor

    def batch(self, rows: Tensor) -> Batch:
        """Return some rows as a batch."""
        return Batch(self.task, self.x[rows], self.y[rows], torch.tensor(float(len(self.train))))


@dataclass(frozen=True, eq=False)
class Member:
    """One network to be trained. Its result depends on nothing but what stands here."""

    method: Method
    problem: Problem
    new_network: NewNetwork
    architecture: str  # what `new_network` makes; members of one stack share it
    training: Training
    rows: Rows
    seed: int
    siblings: int = 1  # members that its own cell trains in the same way: the configurations and folds of a search
    checkpoint: str = ""  # the file below a folder of checkpoints where a large network is kept; none: nowhere

    @property
    def batch_rows(self) -> int:
        """Rows in one step."""
        return min(self.training.batch, len(self.rows.train))

    @property
    def steps_per_epoch(self) -> int:
        """Steps in one epoch: whole batches only; the rows left over change with every epoch's shuffle."""
        return len(self.rows.train) // self.batch_rows

    @property
    def is_long(self) -> bool:
        """Does compiling pay? Decided by the member alone, so that its numbers do not depend on its neighbours."""
        rounds = max(1.0, self.siblings / SLOTS)
        steps = expected_steps(self.training, self.steps_per_epoch, self.method.early_stopping)
        return steps * rounds >= STEPS_THAT_PAY_FOR_COMPILING

    def stack_key(self) -> tuple[Any, ...]:
        """Members with equal keys run through the same graph."""
        fixed = tuple((k, repr(v)) for k, v in options(self.method).items() if not isinstance(v, float))
        training = self.training
        shapes = (self.batch_rows, self.steps_per_epoch, len(self.rows.validation))
        watching = (training.patience > 0, training.validate)
        forward = (training.augmentation, training.precision)
        rule = (training.optimizer, training.momentum, training.schedule, *forward, *watching)
        place = (self.is_long, str(self.rows.x.device))
        return (type(self.method), fixed, self.problem, self.architecture, rule, shapes, *place)


_TRAINING_HOOKS = ("build", "init", "memory", "loss", "update", "remember", "validate")


@dataclass(frozen=True)
class _Plain(Method):
    """Whatever is trained as usual."""


def training_form(method: Method) -> tuple[Hashable, Method]:
    """Return what a method's training is known by, and the method to train in its place.

    Methods none of whose hooks for the training is their own train the same networks, whatever their options: these
    need to be trained once only. Any other is known by its class and all its options, because its hooks may use them.
    """
    own = any(getattr(type(method), name) is not getattr(Method, name) for name in _TRAINING_HOOKS)
    if not own and method.early_stopping == Method.early_stopping:
        return _Plain, _Plain()
    return (type(method), tuple((name, repr(value)) for name, value in options(method).items())), method


@dataclass(frozen=True)
class Start:
    """The tensors of a network before its first step."""

    module: nn.Module
    params: Tensors
    buffers: Tensors
    memory: Tensors
    state: Tensors
    values: Tensors  # the method's float options as scalars


@dataclass(frozen=True)
class Fitted:
    """A trained network."""

    module: nn.Module
    params: Tensors
    buffers: Tensors
    memory: Tensors
    status: Literal["ok", "diverged"]
    epochs: int
    train_loss: float
    validation_loss: float | None
    history: Sequence[tuple[float, float]]  # of each epoch: training and validation loss, NaN where none is watched

    @property
    def net(self) -> Net:
        """The trained network as a pure function."""
        return Net(self.module, self.params, self.buffers, self.memory)


def bound(method: Method, values: Mapping[str, Tensor]) -> Method:
    """Return the method with its float options replaced by one member's tensors."""
    # Only the fields: what a method derived from its own options and kept must not follow another member's.
    clone: Method = object.__new__(type(method))
    for name, value in {**options(method), **values}.items():
        object.__setattr__(clone, name, value)
    return clone


def float_tensors(method: Method, device: torch.device) -> Tensors:
    """Return the float options as scalar tensors."""
    return {name: torch.tensor(value, device=device) for name, value in float_options(method).items()}


def start(member: Member) -> Start:
    """Build one network. The global generator is lent to the module's own initialisers and given back."""
    method, device = member.method, member.rows.x.device
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream(member.seed, "weights"))
        module = method.build(member.problem, member.new_network).to(device)
    _refuse_loose_tensors(module)
    # What the author froze is not trained, only carried along.
    params = {name: p.detach().clone() for name, p in module.named_parameters() if p.requires_grad}
    frozen = {name: p.detach().clone() for name, p in module.named_parameters() if not p.requires_grad}
    buffers = frozen | {name: b.detach().clone() for name, b in module.named_buffers()}
    module.requires_grad_(False)
    module.eval()
    tape = LiveTape(generator(member.seed, "start"), device)
    with no_other_randomness("init or memory"):
        beside = {name: p.detach() for name, p in method.init(Net(module, params, buffers), tape).items()}
        if wrong := [name for name in beside if ":" not in name]:
            raise ValueError(
                f"init returned {', '.join(wrong)}: what is trained beside the module has a colon in its name"
            )
        params = params | beside
        memory = method.memory(Net(module, params, buffers), tape)
    optimizer = make_optimizer(member.training.optimizer, member.training.momentum)
    return Start(module, params, buffers, memory, optimizer.init(params), float_tensors(method, device))


def _refuse_loose_tensors(module: nn.Module) -> None:
    """A tensor that is neither parameter nor buffer would be the first network's for all networks of a stack."""
    for part in module.modules():
        for name, value in vars(part).items():
            if isinstance(value, Tensor):
                raise ValueError(f"{type(part).__name__}.{name} is a plain tensor; make it known with register_buffer")


def advance(
    member: Member,
    module: nn.Module,
    table: Pair,
    tensors: Parts,
    chosen: Tensor,
    clock: Tensor,
    numbers: Pair,
    *,
    alone: bool = False,
) -> tuple[Tensors, Tensors, Tensors, Tensor]:
    """Advance one network by one step; return params, buffers, optimiser state and the loss.

    `table` holds the inputs and targets of all rows, `chosen` the rows of this batch, `numbers` the normal and uniform
    numbers of the tape. `alone`: not inside `vmap`. Then ordinary autograd takes the gradient, which is quicker, and
    images are laid out channels last, the quicker layout for convolutions.
    """
    method, memory = bound(member.method, tensors["values"]), tensors["memory"]
    learning_rate, weight_decay, correction1, correction2, progress, rows = clock.unbind(-1)
    tape = Tape(*numbers)
    x = augmented(member, table[0][chosen], tape)
    batch = Batch(member.problem.task, channels_last(x) if alone else x, table[1][chosen], rows)
    optimizer = make_optimizer(member.training.optimizer, member.training.momentum)
    step = Step(learning_rate, weight_decay, correction1, correction2, progress, rows)

    def objective(params: Tensors) -> tuple[Tensor, Tensors]:
        # Batch norm writes its running statistics in place: let it write into copies, and return those.
        running = {name: b.clone() for name, b in tensors["buffers"].items()}
        with forward_precision(member.training.precision, x.device):
            return method.loss(Net(module, params, running, memory), batch, tape), running

    module.train()
    differentiate = _by_autograd if alone else partial(grad_and_value, has_aux=True)
    gradient, (loss, written) = differentiate(objective)(tensors["params"])
    net = Net(module, tensors["params"], written, memory)
    params, state = method.update(net, gradient, optimizer, tensors["state"], step, tape)
    return params, written, state, loss


Objective = Callable[[Tensors], tuple[Tensor, Tensors]]


def _by_autograd(objective: Objective) -> Callable[[Tensors], tuple[Tensors, tuple[Tensor, Tensors]]]:
    """Do what `grad_and_value(objective, has_aux=True)` does, without its layer between the network and the kernels."""

    def differentiated(params: Tensors) -> tuple[Tensors, tuple[Tensor, Tensors]]:
        with torch.enable_grad():
            leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
            loss, written = objective(leaves)
            gradients = torch.autograd.grad(loss, list(leaves.values()), materialize_grads=True)
        # Kernels' gradients come channels last, and weights would follow. A training that is taken up again begins with
        # ordinary weights, and sums over them must run in the same order to end in the same bits.
        plain = {name: gradient.contiguous() for name, gradient in zip(leaves, gradients, strict=True)}
        return plain, (loss.detach(), {name: b.detach() for name, b in written.items()})

    return differentiated


def channels_last(x: Tensor) -> Tensor:
    """Return images laid out as convolutions like them; other rows as they are."""
    return x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x


def augmented(member: Member, x: Tensor, tape: Tape) -> Tensor:
    """Return the inputs of a training batch as the network sees them."""
    return crop_and_flip(x, tape.uniform((len(x), 3))) if member.training.augmentation == "crop-flip" else x


def validation_loss(
    member: Member, module: nn.Module, table: Pair, tensors: Parts, chosen: Tensor, rows: Tensor, numbers: Pair
) -> Tensor:
    """Return the validation loss of one network."""
    module.eval()
    batch = Batch(member.problem.task, table[0][chosen], table[1][chosen], rows)
    return _watched(member, bound(member.method, tensors["values"]), _net(module, tensors), batch, Tape(*numbers))


def _net(module: nn.Module, tensors: Parts) -> Net:
    return Net(module, tensors["params"], tensors["buffers"], tensors["memory"])


def _watched(member: Member, method: Method, net: Net, batch: Batch, tape: Tape) -> Tensor:
    return method.loss(net, batch, tape) if member.training.validate == "noisy" else method.validate(net, batch)


def validation_tape(member: Member, rows: int) -> TapeLength:
    """Return what one validation pass over so many rows reads."""
    tape = BlankTape(member.rows.x.device)
    if member.training.validate == "noisy" and rows:
        first = start(member)
        first.module.eval()
        net = Net(first.module, first.params, first.buffers, first.memory)
        method = bound(member.method, first.values)
        with torch.no_grad():
            _watched(member, method, net, member.rows.batch(member.rows.validation[:rows]), tape)
    return tape.length


def held_out_loss(member: Member, fitted: Fitted) -> float:
    """Return the validation loss of a trained network, where early stopping did not watch it."""
    if fitted.validation_loss is not None or fitted.status == "diverged":
        return math.inf if fitted.validation_loss is None else fitted.validation_loss
    fitted.module.eval()
    device = member.rows.x.device
    method = bound(member.method, float_tensors(member.method, device))
    total, rows = 0.0, member.rows.validation
    for number, part in enumerate(rows.split(ROWS_AT_ONCE)):
        tape = LiveTape(generator(member.seed, "held out", number), device)
        with torch.no_grad():
            loss = _watched(member, method, fitted.net, member.rows.batch(part), tape)
        total += float(loss) * len(part) / len(rows)
    return total if math.isfinite(total) else math.inf


def remembered(
    member: Member, module: nn.Module, table: Pair, tensors: Parts, progress: Tensor, numbers: Pair
) -> Tensors:
    """Return the memory of one network after an epoch."""
    module.eval()
    return bound(member.method, tensors["values"]).remember(_net(module, tensors), progress, Tape(*numbers))


def remembers(method: Method) -> bool:
    """Does the method keep anything from epoch to epoch?"""
    return type(method).remember is not Method.remember


def finished(member: Member, fitted: Fitted) -> Fitted:
    """Let the method do what it does after the fit."""
    method, rows = member.method, member.rows
    if type(method).finish is Method.finish or fitted.status != "ok":
        return fitted
    fitted.module.eval()
    validation = rows.batch(rows.validation) if len(rows.validation) else None
    tape = LiveTape(generator(member.seed, "finish"), rows.x.device)
    with torch.enable_grad(), no_other_randomness("finish"):
        memory = method.finish(fitted.net, rows.batch(rows.train), validation, tape)
    return replace(fitted, memory={name: t.detach() for name, t in memory.items()})
