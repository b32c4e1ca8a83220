"""Checks of a method's draws: their shape, what they depend on, and that drawing changes nothing."""

import io
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bench.api import Array, Forecast
from bench.testing.check import CheckFailure, NotApplicable, require
from bench.testing.isolation import global_generators_untouched
from bench.testing.predictions import prediction_gap
from bench.testing.problems import PLAIN, SHORT, STACK, Cell, split_of, train
from bench.testing.subject import MethodSubject
from bench.training.member import Fitted, states_itself

FAR = 50.0  # standard deviations of the inputs
ENOUGH = 100  # draws, among which two must differ
# For statistics that are standard normal if the draws are exchangeable: about one false alarm in a million.
ALARM = 5.0


def check_shapes(subject: MethodSubject) -> None:
    """Draws have one value or row of values per input row, in single precision."""
    for cell in subject.cells:
        draws = cell.draws(6)
        count = 6 if cell.random else len(cell.networks)
        rows = len(cell.data.test_x)
        found = f"{count} draws at {rows} rows have shape {list(draws.shape)}"
        require(draws.shape[:2] == (count, rows), f"{found}; draw must return one line for each row of x")
        advice = "keep the dtype of x (float32), and create tensors with x.new_tensor(...)"
        require(draws.dtype == np.float32, f"draws are {draws.dtype}; {advice}")
        if cell.split.task == "regression" and not states_itself(cell.method):
            found = f"{draws.shape[2]} columns; return means, or means and variances, or write predict"
            require(draws.shape[2] in (1, 2), found)
            stated = draws[..., 1:]
            require((stated > 0).all(), "a stated variance is not positive; pass it through softplus or exp")
        one = cell.draws(1, x=cell.data.test_x[:1])
        require(one.shape[1] == 1, f"at one row draws have shape {list(one.shape)}; keep the axis of the rows")


def check_finite(subject: MethodSubject) -> None:
    """Draws are finite near the data, far from it and at zero."""
    for cell in subject.cells:
        near = cell.data.test_x
        for where, x in (("near the data", near), ("far from it", FAR * near), ("at zero", torch.zeros_like(near[:1]))):
            bad = int((~np.isfinite(cell.draws(20, x=x))).sum())
            require(not bad, f"{bad} drawn values {where} are NaN or infinite; look for log, sqrt or / of zero in draw")


def check_probabilities(subject: MethodSubject) -> None:
    """Every draw has one probability per class, and they sum to 1."""
    cell = subject.only("classification")
    probabilities = Forecast.of(cell.predict(6), cell.split.test_y).draws
    classes = cell.split.classes
    columns = probabilities.shape[2]
    require(columns == classes, f"{columns} columns for {classes} classes; return one logit for each class")
    off = float(np.abs(probabilities.sum(-1, dtype=np.float64) - 1).max())
    require(
        off < 1e-5 and (probabilities >= 0).all(),
        f"sums of probabilities differ from 1 by up to {off:.2g}; draw must return logits",
    )


def check_prediction(subject: MethodSubject) -> None:
    """What the draws state about a row does not depend on the other rows, nor on the draws after it."""
    for cell in subject.cells:
        if not states_itself(cell.method):
            continue
        x, stated = cell.data.test_x, cell.predict(6)
        part = cell.predict(6, x=x[:7]) if cell.random else stated.rows(slice(0, 7))
        drawn = cell.method.predict(cell.draws(6)[:, :7], cell.split.task)
        for other in (part, drawn):
            found = prediction_gap(stated.rows(slice(0, 7)), other)
            require(found < 1e-4, f"a row's prediction changes by {found:.2g} with the other rows; see predict")
        first = cell.method.predict(cell.draws(6)[:1], cell.split.task)
        found = prediction_gap(stated.draws(1), first)
        require(found < 1e-4, f"the first draw's prediction changes by {found:.2g} with later draws; see predict")


def check_seeded(subject: MethodSubject) -> None:
    """The same seed gives the same draws, to the last bit."""
    for cell in subject.cells:
        same = np.array_equal(cell.draws(8, seed=5), cell.draws(8, seed=5))
        advice = "take every random number in draw from the tape, and keep no state"
        require(same, f"the same seed gave other draws; {advice}")


def check_draws_differ(subject: MethodSubject) -> None:
    """Draws that read the tape differ from each other and between seeds; so do the networks of a cell."""
    for cell in subject.cells:
        draws = cell.draws(ENOUGH, seed=5)  # a rare mask on few inputs leaves a dozen draws alike by chance
        if len(draws) == 1:
            continue  # one network whose draw reads no tape is one function
        advice = "use what draw reads from the tape, or make its noise less rare by default"
        advice = advice if cell.random else "start each from weights of its own"
        what = f"all {len(draws)} {'draws' if cell.random else 'networks'} are the same function"
        require(len({draw.tobytes() for draw in draws}) > 1, f"{what}; {advice}")
        if cell.random:
            same = np.array_equal(draws, cell.draws(ENOUGH, seed=6))
            require(not same, "another seed gave the same draws; use what is read from the tape")


def check_many_draws(subject: MethodSubject) -> None:
    """T = 1 and T = 1000 work, and draw t is the same function in both."""
    for cell in subject.cells:
        x = cell.data.test_x[:4]
        one, many = cell.draws(1, x=x, seed=7), cell.draws(1000, x=x, seed=7)
        require(len(many) == (1000 if cell.random else len(cell.networks)), f"T = 1000 gave {len(many)} draws")
        bad = int((~np.isfinite(many)).any((1, 2)).sum())
        require(not bad, f"{bad} of {len(many)} draws are not finite; see what rare random numbers do in draw")
        message = "the first of 1000 draws is not the draw of T = 1; draw must depend on nothing but its arguments"
        require(np.allclose(one[0], many[0], rtol=1e-4, atol=1e-5), message)


def check_exchangeable(subject: MethodSubject) -> None:
    """The order of a network's draws has no trend and no autocorrelation, in value and in spread."""
    cell = subject.cell
    if not cell.random:
        raise NotApplicable("a draw reads no random numbers: every network is one function")
    networks = len(cell.networks)
    # On the plain path, one call per draw, so that a counter or a memory inside draw becomes visible.
    draws = cell.draws(200 * networks, x=cell.data.test_x[:3], seed=9, limits=PLAIN)
    for network in range(networks):
        for series in draws[network::networks].reshape(200, -1).T:
            for what, numbers in (("values", series), ("spread", np.abs(series - np.median(series)))):
                for how, statistic in order_statistics(numbers).items():
                    found = f"the {what} of successive draws show a {how} ({statistic:.1f} standard errors)"
                    require(abs(statistic) < ALARM, f"{found}; keep nothing from one draw to the next")


def order_statistics(series: Array) -> dict[str, float]:
    """Return three statistics of a series' ranks, about standard normal if its order carries no information."""
    from scipy.stats import rankdata

    ranks = rankdata(series)
    spread = ranks.std()
    if spread == 0:
        return {}
    z, count = (ranks - ranks.mean()) / spread, len(series)
    time = np.arange(count) - (count - 1) / 2
    halves = np.sign(time)
    return {
        "trend": float(z @ time / np.sqrt(time @ time)),
        "difference between the halves": float(z @ halves / np.sqrt(count)),
        "dependence on the previous draw": float((z[1:] @ z[:-1] + 1) / np.sqrt(count)),
    }


def check_global_randomness(subject: MethodSubject) -> None:
    """Training and drawing leave the global generators of torch, numpy and random untouched."""
    with global_generators_untouched("in hooks, take random numbers from the tape"):
        for task in subject.tasks:
            train(subject.plugin, split_of(task), SHORT, PLAIN).draws(3)


def check_no_state(subject: MethodSubject) -> None:
    """Drawing changes neither the network nor the module nor the inputs."""
    for cell in subject.cells:
        x = cell.data.test_x.clone()
        for limits in (STACK, PLAIN):
            cell.draws(1, limits=limits)  # the harness itself puts modules into evaluation mode
            before = [_state(network) for network in cell.networks]
            cell.draws(4, x=x, limits=limits)
            for old, new in zip(before, map(_state, cell.networks), strict=True):
                changed = sorted(name for name in old.keys() | new.keys() if not _same(old.get(name), new.get(name)))
                advice = "draw must return new tensors and keep nothing"
                require(not changed, f"drawing changed {', '.join(changed)}; {advice}")
        require(torch.equal(x, cell.data.test_x), "drawing changed the inputs in place; write x + ..., not x += ...")


def _state(network: Fitted) -> dict[str, object]:
    found: dict[str, object] = {}
    for part in ("params", "buffers", "memory"):
        found |= {f"{part}[{name!r}]": tensor.clone() for name, tensor in getattr(network, part).items()}
    for path, module in network.module.named_modules():
        own = {name: repr(value) for name, value in vars(module).items() if not name.startswith("_")}
        found |= {f"module.{path}{'.' * bool(path)}{name}": text for name, text in own.items()}
    return found | {f"module[{name!r}]": tensor.clone() for name, tensor in network.module.state_dict().items()}


def _same(one: object, other: object) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return torch.equal(one.nan_to_num(), other.nan_to_num())
    return type(one) is type(other) and one == other


def check_round_trip(subject: MethodSubject) -> None:
    """A network written to a file without pickle and read into a new module draws the same values."""
    for cell in subject.cells:
        copies = [_reloaded(cell, number) for number in range(len(cell.networks))]
        expected = cell.draws(6)
        found = replace(cell, networks=copies).draws(6)
        same = expected.shape == found.shape and np.allclose(expected, found, rtol=1e-4, atol=1e-5)
        advice = "what draw needs must be in params, buffers or memory, not on the module or the method"
        require(same, f"a network read back from a file draws other values; {advice}")


def _reloaded(cell: Cell, number: int) -> Fitted:
    fitted, member = cell.networks[number], cell.members[number]
    parts: dict[str, Any] = {}
    for part in ("params", "buffers", "memory"):
        for name, tensor in getattr(fitted, part).items():
            require(isinstance(tensor, Tensor), f"{part}[{name!r}] is a {type(tensor).__name__}; keep tensors only")
        content = io.BytesIO()
        # Numbered, because a tensor's name may be one of savez's own arguments.
        arrays = [tensor.numpy() for tensor in getattr(fitted, part).values()]
        np.savez(content, *arrays, allow_pickle=False)
        content.seek(0)
        with np.load(content, allow_pickle=False) as file:
            loaded = [torch.from_numpy(file[f"arr_{place}"]) for place in range(len(arrays))]
        parts[part] = dict(zip(getattr(fitted, part), loaded, strict=True))
    with torch.random.fork_rng(devices=[]):
        module = type(member.method)(**_options(member.method)).build(member.problem, member.new_network)
    return replace(fitted, module=module.requires_grad_(False).eval(), **parts)


def _options(method: object) -> dict[str, object]:
    return {field.name: getattr(method, field.name) for field in fields(method) if field.init}  # type: ignore[arg-type]


def check_draws_stay(subject: MethodSubject) -> None:
    """On a second device a draw neither copies anything from or to the host nor waits for a number."""
    try:
        found = subject.draw_crossings
    except (CheckFailure, RuntimeError) as error:
        raise NotApplicable("its hooks do not work on a second device: see second-device") from error
    if found:
        advice = "keep constants in memory, choose with choose(values, number), and write no .item() and no if"
        require(False, f"on an accelerator a draw would stop here: {found[0]}; {advice}")
