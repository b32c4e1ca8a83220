"""The validation loss of one network: what early stopping and searches judge by.

The functions of the first half work inside a stack, on tapes of numbers; `held_out_loss` works on a trained network.
"""

import math

import torch
from torch import Tensor, nn

from bench.api import Batch, Method, Net
from bench.api.tape import BlankTape, LiveTape, Tape, TapeLength, generator
from bench.errors import UserError
from bench.spec.protocol import Training
from bench.training.guards import check_draw_shape
from bench.training.member import (
    ROWS_AT_ONCE,
    Fitted,
    Member,
    Pair,
    Parts,
    bind_options,
    float_tensors,
    net_of,
    start,
    states_itself,
    watches_draws,
)

WATCHED_DRAWS = 4  # one draw alone would make the best epoch a matter of luck


def validation_loss(
    member: Member, module: nn.Module, tensors: Parts, rows: Pair, trained: Tensor, numbers: Pair
) -> Tensor:
    """Return the validation loss of one network on these rows; `trained` is the number of its training rows."""
    module.eval()
    batch = Batch(member.problem.task, *rows, trained)
    method = bind_options(member.method, tensors["values"])
    return _monitored_loss(member, method, net_of(module, tensors), batch, Tape(*numbers))


def validation_draw(member: Member, module: nn.Module, tensors: Parts, x: Tensor, numbers: Pair) -> Tensor:
    """Return one draw of one network at these inputs, for the mean of several: outputs, or class probabilities."""
    module.eval()
    method = bind_options(member.method, tensors["values"])
    return _draw(member, method, net_of(module, tensors), x, Tape(*numbers))


def loss_of_mean(member: Member, module: nn.Module, rows: Pair, trained: Tensor, mean: Tensor) -> Tensor:
    """Return the loss of the mean of draws; of classes the log score of the mean probabilities."""
    batch = Batch(member.problem.task, *rows, trained)
    return batch.loss(mean.log() if batch.task == "classification" else mean)


def _draw(member: Member, method: Method, net: Net, x: Tensor, tape: Tape) -> Tensor:
    outputs = method.draw(net, x, tape)
    if states_itself(method) or (member.problem.task == "regression" and outputs.shape[-1] != 1):
        raise UserError(
            f"training.validate = {member.training.validate!r} is for methods whose draws are points: those of "
            f"{type(method).__name__} are distributions, which validate = 'clean' judges by their own loss"
        )
    return outputs.softmax(-1) if member.problem.task == "classification" else outputs


def _monitored_loss(member: Member, method: Method, net: Net, batch: Batch, tape: Tape) -> Tensor:
    """Return the validation loss where it is not that of a mean of draws."""
    if not watches_draws(method) and member.training.validate != "noisy":
        return method.validate(net, batch)
    if member.training.validate == "noisy" or states_itself(method):
        return method.loss(net, batch, tape)
    try:
        return torch.stack([_draw_loss(method, net, batch, tape) for _ in range(WATCHED_DRAWS)]).mean()
    except KeyError as error:
        if type(method).finish is Method.finish:
            raise
        raise UserError(
            f"{type(method).__name__} overrides loss but not validate, so early stopping and search watch its draws, "
            f"which need {error} of finish; write validate, or watched = 'network' to watch net(x) without noise"
        ) from error


def _draw_loss(method: Method, net: Net, batch: Batch, tape: Tape) -> Tensor:
    """Return the loss of one draw: negative log-likelihood where it states variances, else the data loss."""
    outputs = method.draw(net, batch.x, tape)
    check_draw_shape(method, batch.task, outputs)
    if batch.task == "classification" or outputs.shape[-1] == 1:
        return batch.loss(outputs)
    mean, variance = outputs.unbind(-1)
    return (variance.log() / 2 + (batch.y - mean).square() / (2 * variance)).mean()


def validation_tape(member: Member, rows: int) -> TapeLength:
    """Return how many random numbers one validation pass, or one of its draws, reads for this many rows."""
    tape, training = BlankTape(member.rows.x.device), member.training
    if rows and (training.validate != "clean" or watches_draws(member.method)):
        first = start(member)
        first.module.eval()
        method, batch = bind_options(member.method, first.values), member.rows.batch(member.rows.validation[:rows])
        with torch.no_grad():
            if training.validation_draws:
                _draw(member, method, first, batch.x, tape)
            else:
                _monitored_loss(member, method, first, batch, tape)
    return tape.length


def validates_squared_error(method: Method, training: Training) -> bool:
    """Return whether the validation loss of a regression is the mean squared error of a prediction."""
    if training.validation_draws:
        return True
    return training.validate == "clean" and type(method).validate is Method.validate and not watches_draws(method)


def draws_to_average(member: Member, length: TapeLength) -> int:
    """Return how many draws are averaged for the validation loss; 1 where all would be the same; 0: none are drawn."""
    asked = member.training.validation_draws
    return asked if length.total else min(1, asked)


def held_out_loss(member: Member, fitted: Fitted) -> float:
    """Return the validation loss of a trained network, also if early stopping did not use it."""
    if fitted.validation_loss is not None or fitted.status == "diverged":
        return math.inf if fitted.validation_loss is None else fitted.validation_loss
    fitted.module.eval()
    device = member.rows.x.device
    method = bind_options(member.method, float_tensors(member.method, device))
    total, rows = 0.0, member.rows.validation
    for number, part in enumerate(rows.split(ROWS_AT_ONCE)):
        tape = LiveTape(generator(member.seed, "held out", number, device=device), device)
        batch = member.rows.batch(part)
        with torch.no_grad():
            if member.training.validation_draws:
                draws = draws_to_average(member, validation_tape(member, len(part)))
                drawn = [_draw(member, method, fitted, batch.x, tape) for _ in range(draws)]
                loss = loss_of_mean(member, fitted.module, (batch.x, batch.y), batch.rows, torch.stack(drawn).mean(0))
            else:
                loss = _monitored_loss(member, method, fitted, batch, tape)
        total += float(loss) * len(part) / len(rows)
    return total if math.isfinite(total) else math.inf
