"""One network to be trained: its definition, its initial tensors, and the pure functions that train it.

The functions here work on *one* network; `bench.training.stack` runs them on many at once or one by one.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import grad_and_value

from bench.api import Batch, Method, Net, NewNetwork, Problem, Task, float_options, options
from bench.api.optim import Optimizer, Step, make_optimizer
from bench.api.tape import LiveTape, Tape, generator, no_other_randomness, stream
from bench.errors import UserError
from bench.spec.protocol import Training
from bench.training.augmentation import crop_and_flip
from bench.training.forms import TRACED, Form, form_that_pays
from bench.training.guards import place_of
from bench.training.precision import forward_precision
from bench.training.transfers import to_device

Tensors = dict[str, Tensor]
Parts = Mapping[str, Tensors]  # the tensors of `Start` by field: params, buffers, memory, state, values
Pair = tuple[Tensor, Tensor]

ROWS_AT_ONCE = 500  # of a large network outside training, whose activations are large too


@dataclass(frozen=True, eq=False)
class Rows:
    """Data in training units, with the indices of its training, validation and calibration rows."""

    task: Task
    x: Tensor
    y: Tensor
    train: Tensor
    validation: Tensor
    calibration: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))
    black: tuple[float, ...] = ()  # what pixels of 0 are in training units, for each channel of images; empty: 0

    @property
    def calibrating(self) -> Tensor:
        """The rows for what is fitted after the training: the calibration rows, or the validation rows without any."""
        return self.calibration if len(self.calibration) else self.validation

    def batch(self, rows: Tensor) -> Batch:
        """Return some rows as a batch."""
        device = self.x.device
        chosen = to_device(rows, device)
        return Batch(self.task, self.x[chosen], self.y[chosen], torch.full((), float(len(self.train)), device=device))


@dataclass(frozen=True)
class Team:
    """Members that stop in the same epoch, by the mean of their validation losses."""

    key: Hashable
    size: int


@dataclass(frozen=True, eq=False)
class Member:
    """One network to be trained. Its result depends on nothing but these fields."""

    method: Method
    problem: Problem
    new_network: NewNetwork
    architecture: str  # what `new_network` builds; members of one stack share it
    training: Training
    rows: Rows
    seed: int
    form: Form | None = None  # that of its cell; None: the one that pays for this member alone
    checkpoint: str = ""  # file of a large network in the folder of checkpoints; empty: none
    kept_as: str = ""  # file in the folder of kept networks; empty: none
    team: Team | None = None  # with which it stops; None: by itself

    @property
    def batch_rows(self) -> int:
        """Rows in one step."""
        return min(self.training.batch, len(self.rows.train))

    @property
    def steps_per_epoch(self) -> int:
        """Steps in one epoch: the full batches, and the smaller last one where that is kept."""
        return self.full_batches + (self.partial_rows > 0)

    @property
    def full_batches(self) -> int:
        """Full batches in one epoch."""
        return len(self.rows.train) // self.batch_rows

    @property
    def partial_rows(self) -> int:
        """Rows of the smaller last batch of an epoch; 0: there is none, and the rows left over differ every time."""
        return len(self.rows.train) % self.batch_rows if self.training.partial_batch else 0

    @property
    def own_form(self) -> Form:
        """The form in which it is trained."""
        return self.form or form_that_pays(self.training, self.steps_per_epoch, self.method.early_stopping)

    def stack_key(self) -> tuple[Any, ...]:
        """Return a key; members with equal keys can share a graph."""
        shapes = (self.batch_rows, self.full_batches, self.partial_rows, len(self.rows.validation))
        team = None if self.team is None else self.team.size
        schedule = (self.training.schedule, self.training.patience > 0, self.training.shuffle, team)
        return (*self.graph_key(), *schedule, shapes, self.own_form, str(self.rows.x.device))

    def graph_key(self) -> tuple[Any, ...]:
        """Return a key of the functions below; for members with equal keys they differ in their arguments alone."""
        kind, training = type(self.method), self.training
        hooks = tuple(getattr(kind, name) for name in (*_TRAINING_HOOKS, "draw", "predict"))
        fixed = tuple((k, repr(v)) for k, v in options(self.method).items() if not isinstance(v, float))
        rule = (training.optimizer, training.momentum, training.nesterov, training.augmentation, training.precision)
        return (kind, hooks, fixed, self.problem, self.architecture, rule, training.validate, self.border)

    @property
    def border(self) -> tuple[float, ...]:
        """The colour of the border of augmented images; empty: 0."""
        return self.rows.black if self.training.augmentation == "crop-flip-black" else ()


_TRAINING_HOOKS = ("build", "init", "memory", "loss", "update", "remember", "validate")


@dataclass(frozen=True)
class _Plain(Method):
    """The method with the default training."""


def training_form(method: Method) -> tuple[Hashable, Method]:
    """Return a key of a method's training, and the method to train in its place.

    Methods that override no training hook train the same networks, whatever their options: these need to be trained
    only once. The key of any other is its class with all its options, because its hooks may use them.
    """
    own = any(getattr(type(method), name) is not getattr(Method, name) for name in _TRAINING_HOOKS)
    if not own and not watches_draws(method) and method.early_stopping == Method.early_stopping:
        return _Plain, _Plain()
    return (type(method), tuple((name, repr(value)) for name, value in options(method).items())), method


@dataclass(frozen=True)
class Start(Net):
    """A network before its first step."""

    state: Tensors = field(default_factory=dict)  # of the optimiser
    values: Tensors = field(default_factory=dict)  # the method's float options as scalars


@dataclass(frozen=True)
class Fitted(Net):
    """A trained network."""

    status: Literal["ok", "diverged"] = "ok"
    form: Form = TRACED
    epochs: int = 0
    train_loss: float = math.nan
    validation_loss: float | None = None
    history: Sequence[tuple[float, float]] = ()  # training and validation loss of each epoch; NaN: not validated
    stored: bool = False  # it was not trained now: an earlier run kept it

    @property
    def best_epoch(self) -> int:
        """The epoch whose weights were kept, from 1: the best of early stopping, or the last one."""
        if self.validation_loss is None:
            return self.epochs
        held = [math.inf if math.isnan(loss) else loss for _, loss in self.history]
        return 1 + held.index(min(held))


def bind_options(method: Method, values: Mapping[str, Tensor]) -> Method:
    """Return the method with its float options replaced by one member's tensors."""
    # Only the fields are copied: an attribute that was derived from the options would belong to another member.
    clone: Method = object.__new__(type(method))
    for name, value in {**options(method), **values}.items():
        object.__setattr__(clone, name, value)
    return clone


def float_tensors(method: Method, device: torch.device) -> Tensors:
    """Return the float options as scalar tensors."""
    return {name: torch.tensor(value, device=device) for name, value in float_options(method).items()}


def optimizer_of(training: Training) -> Optimizer:
    """Return the optimiser that a training names."""
    return make_optimizer(training.optimizer, training.momentum, training.nesterov)


def start(member: Member) -> Start:
    """Build one network. The module's initialisers use the global generator, which is restored afterwards."""
    method, device = member.method, member.rows.x.device
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed: it notes the seed for devices that are not in use, with a stack trace for each.
        torch.default_generator.manual_seed(stream(member.seed, "weights"))
        module = method.build(member.problem, member.new_network).to(device)
    _refuse_plain_tensors(method, module)
    # Frozen parameters are treated as buffers.
    params = {name: p.detach().clone() for name, p in module.named_parameters() if p.requires_grad}
    frozen = {name: p.detach().clone() for name, p in module.named_parameters() if not p.requires_grad}
    buffers = frozen | {name: b.detach().clone() for name, b in module.named_buffers()}
    module.requires_grad_(False)
    module.eval()
    tape = LiveTape(generator(member.seed, "start", device=device), device)
    with no_other_randomness(f"{place_of(method, 'init')} or {place_of(method, 'memory')}", device):
        own = {name: p.detach() for name, p in method.init(Net(module, params, buffers), tape).items()}
        if wrong := [name for name in own if ":" not in name]:
            place = place_of(method, "init")
            raise UserError(
                f"{place}: init returned {', '.join(wrong)}; a method's own parameters need a colon in their name"
            )
        params = params | own
        memory = method.memory(Net(module, params, buffers), tape)
    optimizer = optimizer_of(member.training)
    return Start(module, params, buffers, memory, optimizer.init(params), float_tensors(method, device))


def _refuse_plain_tensors(method: Method, module: nn.Module) -> None:
    """Raise for a tensor that is neither parameter nor buffer: all networks of a stack would share the first one's."""
    for part in module.modules():
        for name, value in vars(part).items():
            if isinstance(value, Tensor):
                found = f"{place_of(method, 'build')}: {type(part).__name__}.{name} is a plain tensor"
                raise UserError(f"{found}; register it with register_buffer")


def advance(
    member: Member, module: nn.Module, tensors: Parts, rows: Pair, clock: Tensor, numbers: Pair, *, alone: bool = False
) -> tuple[Tensors, Tensors, Tensors, Tensor]:
    """Advance one network by one step; return params, buffers, optimiser state and the loss.

    `rows` are the inputs and targets of this batch, `numbers` the normal and uniform numbers of the tape. `alone`: not
    inside `vmap`, so that the faster ordinary autograd can take the gradient and images can have the memory format
    channels last, in which convolutions are faster.
    """
    method, memory = bind_options(member.method, tensors["values"]), tensors["memory"]
    step = Step(*clock.unbind(-1))
    tape = Tape(*numbers)
    x = augment(member, rows[0], tape)
    batch = Batch(member.problem.task, channels_last(x) if alone else x, rows[1], step.rows)
    optimizer = optimizer_of(member.training)

    def objective(params: Tensors) -> tuple[Tensor, Tensors]:
        # Batch norm updates its running statistics in place: it gets copies, which are returned.
        running = {name: b.clone() for name, b in tensors["buffers"].items()}
        with forward_precision(member.training.precision, x.device):
            return method.loss(Net(module, params, running, memory), batch, tape), running

    module.train()
    differentiate = _by_autograd if alone else partial(grad_and_value, has_aux=True)
    gradient, (loss, written) = differentiate(objective)(tensors["params"])
    net = Net(module, tensors["params"], written, memory)
    params, state = method.update(net, gradient, optimizer, tensors["state"], step, tape)
    return _in_order(params, tensors["params"]), written, _in_order(state, tensors["state"]), loss


def _in_order(new: Tensors, old: Tensors) -> Tensors:
    """Return tensors in the order of the old ones, in which the next step takes them."""
    return {name: new[name] for name in old if name in new} | new


Objective = Callable[[Tensors], tuple[Tensor, Tensors]]


def _by_autograd(objective: Objective) -> Callable[[Tensors], tuple[Tensors, tuple[Tensor, Tensors]]]:
    """Return what `grad_and_value(objective, has_aux=True)` does, without its overhead per operation."""

    def differentiated(params: Tensors) -> tuple[Tensors, tuple[Tensor, Tensors]]:
        with torch.enable_grad():
            leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
            loss, written = objective(leaves)
            gradients = torch.autograd.grad(loss, list(leaves.values()), materialize_grads=True)
        # Gradients of kernels are channels last, and weights would become so too. A resumed training starts with
        # contiguous weights, and sums over them must run in the same order to give the same bits.
        plain = {name: gradient.contiguous() for name, gradient in zip(leaves, gradients, strict=True)}
        return plain, (loss.detach(), {name: b.detach() for name, b in written.items()})

    return differentiated


def channels_last(x: Tensor) -> Tensor:
    """Return images in the memory format channels last; other rows unchanged."""
    return x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x


def augment(member: Member, x: Tensor, tape: Tape) -> Tensor:
    """Return the inputs of a training batch, augmented if the protocol says so."""
    if member.training.augmentation == "none":
        return x
    return crop_and_flip(x, tape.uniform((len(x), 3)), border=member.border)


def net_of(module: nn.Module, tensors: Parts) -> Net:
    """Return the network that has these tensors."""
    return Net(module, tensors["params"], tensors["buffers"], tensors["memory"])


def states_itself(method: Method) -> bool:
    """Return whether the method says itself what the columns of its draws are."""
    return type(method).predict is not Method.predict


def watches_draws(method: Method) -> bool:
    """Return whether the validation loss is that of the method's draws: `net(x)` need not be what its `loss` trains."""
    kind = type(method)
    if kind.validate is not Method.validate:
        return False
    return kind.loss is not Method.loss if method.watched is None else method.watched == "draw"


def remember(member: Member, module: nn.Module, tensors: Parts, progress: Tensor, numbers: Pair) -> Tensors:
    """Return the memory of one network after an epoch."""
    module.eval()
    method = bind_options(member.method, tensors["values"])
    return _in_order(method.remember(net_of(module, tensors), progress, Tape(*numbers)), tensors["memory"])


def remembers(method: Method) -> bool:
    """Return whether the method keeps tensors from epoch to epoch."""
    return type(method).remember is not Method.remember


def finish(member: Member, fitted: Fitted) -> Fitted:
    """Return the trained network after the method's `finish` hook."""
    method, rows = member.method, member.rows
    if type(method).finish is Method.finish or fitted.status != "ok":
        return fitted
    fitted.module.eval()
    held_out = rows.batch(rows.calibrating) if len(rows.calibrating) else None
    device = rows.x.device
    tape = LiveTape(generator(member.seed, "finish", device=device), device)
    with torch.enable_grad(), no_other_randomness(place_of(method, "finish"), device):
        memory = method.finish(fitted, rows.batch(rows.train), held_out, tape)
    return replace(fitted, memory={name: t.detach() for name, t in memory.items()})
