"""Checks of a method's training: what it learns, what it depends on, difficult data, and its cost."""

from dataclasses import dataclass, replace

import numpy as np

from bench.api import Forecast, Method, Split, Task, options
from bench.api.tape import BlankTape
from bench.spec.plugin import PluginSpec
from bench.spec.protocol import DEFAULT_NETWORK, Protocol, Training
from bench.testing.check import NotApplicable, require
from bench.testing.comparison import against_plain, identical
from bench.testing.problems import (
    PLAIN,
    PROBLEMS,
    SHORT,
    STACK,
    Cell,
    Plain,
    constant_split,
    missing_class_split,
    require_learned,
    split_of,
    tiny_splits,
    train,
    train_all,
)
from bench.testing.subject import MethodSubject
from bench.training.flops import count_work
from bench.training.member import start
from bench.training.validation import held_out_loss

ROUNDING = 1e-4  # of draws in training units, after a few epochs of training
LARGEST_COST = 100.0  # times what a network without noise needs


def check_learns(subject: MethodSubject) -> None:
    """The mean of the draws is clearly better than a constant."""
    for cell in subject.cells:
        mean = Forecast.of(cell.data.original(cell.predict(100)), cell.split.test_y).mean
        see = "whether loss follows the data" + ", and the scale of its other terms" * (cell.split.task == "regression")
        require_learned(cell.split, mean, f" after 240 steps of Adam; see {see}")


def check_watched(subject: MethodSubject) -> None:
    """There is a finite validation loss for early stopping and search to watch."""
    for cell in subject.cells:
        member, network = cell.members[0], cell.networks[0]
        before = {name: network.memory.get(name, tensor) for name, tensor in start(member).memory.items()}
        loss = held_out_loss(member, replace(network, memory=before))  # a search does not wait for finish
        advice = "look at validate, or at draw if validate is not written"
        require(np.isfinite(loss), f"the validation loss of a trained network is {loss}; {advice}")


def check_stack_invariance(subject: MethodSubject) -> None:
    """A network trained among others, with other options, is the same as trained alone, up to rounding."""
    gap = subject.among_others.largest
    advice = "keep nothing on the class, the module or in globals, and use options only as self.option inside hooks"
    require(gap < ROUNDING, f"trained among others its draws differ by {gap:.2g} from those alone; {advice}")


def check_last_bit(subject: MethodSubject) -> None:
    """A network trained among others is the same as trained alone, to the last bit."""
    difference = subject.among_others
    if difference.largest >= ROUNDING:
        raise NotApplicable("it differs by more than rounding: see stack-invariance")
    found = "trained among others its tensors differ in the last bits from those alone"
    cause = "the rounding of some kernels (batch norm, softplus) depends on the place in memory"
    advice = "write them from plain operations, or list the check in expected_failures"
    require(difference.equal, f"{found}; {cause}: {advice}")


def check_plain_path(subject: MethodSubject) -> None:
    """The path of large networks, without vmap, gives the same draws up to rounding."""
    gap = against_plain(subject.alone).largest
    advice = "a hook must not depend on how it is called (no counters, no Python numbers from tensors)"
    require(gap < ROUNDING, f"without vmap its draws differ by {gap:.2g} from the stack's; {advice}")


def check_second_device(subject: MethodSubject) -> None:
    """Every hook works on a second device, leaves its tensors there and computes the same as on the CPU."""
    _ = subject.draw_crossings  # fails where they do not


def check_ensemble_of_one(subject: MethodSubject) -> None:
    """An ensemble of one network is the first network of the ensemble, to the last bit."""
    method, ensemble = subject.plugin, subject.alone
    if method.networks == 1 or "networks" not in options(method):
        raise NotApplicable("it trains one network")
    one = train(replace(method, networks=1), ensemble.split, SHORT, STACK)  # type: ignore[type-var]  # a dataclass
    first = replace(ensemble, networks=ensemble.networks[:1])
    found = f"with networks = 1 it is not the first of its {method.networks} networks"
    advice = "a network must not depend on how many there are: look for self.networks in build, init, memory and loss"
    require(identical(one, first), f"{found}; {advice}")
    # Up to rounding: several networks are evaluated by other kernels than one.
    same = np.allclose(one.draws(1), ensemble.draws(method.networks)[:1], rtol=1e-4, atol=1e-5)
    require(same, f"with networks = 1 its draw is not the first draw of {method.networks} networks; {advice}")


def _require_finite(subject: MethodSubject, split: Split, what: str) -> None:
    cell = train(subject.plugin, split, SHORT, PLAIN)
    bad = int((~np.isfinite(cell.draws(4))).sum())
    require(not bad, f"{what}: {bad} drawn values are not finite; look for / and log of counts and variances in finish")


def check_tiny_data(subject: MethodSubject) -> None:
    """Training on one, two or three rows gives finite draws."""
    for task in subject.tasks:
        for what, few in tiny_splits(task):
            _require_finite(subject, few, what)


def check_constant_targets(subject: MethodSubject) -> None:
    """Training on constant targets gives finite draws."""
    subject.need("regression")
    _require_finite(subject, constant_split(), "constant targets")


def check_missing_class(subject: MethodSubject) -> None:
    """Training without rows of one class gives finite draws."""
    subject.need("classification")
    _require_finite(subject, missing_class_split(), "a class without training rows")


LINEAR = PluginSpec(DEFAULT_NETWORK, options={"hidden": []})
NOISE = 0.5  # standard deviation of the observations of the linear problem
FEW, MANY, SAMPLES = 32, 512, 5
WAYS_OUT = (
    "if the loss has a prior's term, scale it with 1 / batch.rows; if the draws differ by noise of a level that is an "
    "option, tuned or trained, declare spread = 'level', or 'aleatoric' for the noise of the data; if they are meant "
    "as a posterior that this linear problem cannot show (members or heads without a prior find the same minimum), "
    "list variance-shrinks in expected_failures, with that reason"
)


def linear_split(rows: int, number: int) -> Split:
    """Return a linear function of four inputs with Gaussian noise, whose exact posterior is known."""
    random = np.random.default_rng([57, rows, number])
    slope = np.array([1.0, -0.5, 0.25, 0.75])
    x, test_x = random.normal(size=(rows, 4)), np.random.default_rng(58).normal(size=(40, 4))
    return Split("regression", x, x @ slope + NOISE * random.normal(size=rows), test_x, test_x @ slope)


def exact_variance(cell: Cell) -> float:
    """Return the mean variance of the exact posterior's function values, for weights ~ N(0, 1) and the true noise.

    x^T (X^T X / s^2 + I)^-1 x, with a column of ones for the bias, in training units.
    """
    rows = cell.data.rows
    inputs = rows.x[rows.train].double().numpy()
    design = np.column_stack([inputs, np.ones(len(inputs))])
    noise = (NOISE / cell.data.target_std) ** 2
    covariance = np.linalg.inv(design.T @ design / noise + np.eye(design.shape[1]))
    test = np.column_stack([cell.data.test_x.double().numpy(), np.ones(len(cell.data.test_x))])
    return float(np.einsum("ni,ij,nj->n", test, covariance, test).mean())


def check_variance_shrinks(subject: MethodSubject) -> None:
    """On a linear problem the variance falls with the number of rows, as that of the exact posterior does."""
    subject.need("regression")
    about = {
        "level": "noise of a level that is an option, tuned or trained",
        "aleatoric": "the noise of the data, or nothing",
    }
    if subject.plugin.spread != "posterior":
        raise NotApplicable(
            f"it declares its spread as {about[subject.plugin.spread]} (spread = {subject.plugin.spread!r})"
        )
    found, exact = [], []
    for rows, epochs in ((FEW, 320), (MANY, 20)):  # as many steps for both
        training = Training(learning_rate=0.02, epochs=epochs, batch=24, schedule="cosine")
        # Several samples: a noise level that is tuned on few validation rows may be small or large by chance in one.
        splits = [linear_split(rows, number) for number in range(SAMPLES)]
        cells = train_all(subject.plugin, splits, Protocol(training, LINEAR, validation=0.25), STACK)
        draws = [cell.draws(100)[..., 0] for cell in cells]
        require(len(draws[0]) > 1, "it has one function, so no variance of its draws")
        found.append(float(np.mean([part.var(0, ddof=1).mean() for part in draws])))
        exact.append(float(np.mean([exact_variance(cell) for cell in cells])))
    ratio, due = found[1] / max(found[0], 1e-30), exact[1] / exact[0]
    small = f"with {FEW} rows its variance is {found[0]:.2g}, the exact posterior's {exact[0]:.2g}: almost none"
    require(found[0] > 1e-3 * exact[0], f"{small}; {WAYS_OUT}")
    large = (
        f"from {FEW} to {MANY} rows its variance falls to {ratio:.2g} of its value, the exact posterior's to {due:.2g}"
    )
    require(ratio < np.sqrt(due), f"{large} (required: {np.sqrt(due):.2f}); {WAYS_OUT}")


@dataclass(frozen=True)
class Cost:
    """The cost of one network, counted: of a training step, a draw, and storage."""

    step_bytes: float  # written by one evaluation of the loss
    step_operations: float
    draw_bytes: float
    draw_operations: float
    kept: float  # numbers stored in parameters, buffers and memory
    random_numbers: int  # read by one draw


def count_cost(method: Method, task: Task) -> Cost:
    """Count the cost of a method's network on a small problem of the task."""
    cell = train(method, split_of(task), replace(SHORT, training=replace(SHORT.training, epochs=1)), PLAIN)
    member, x = cell.members[0], cell.data.test_x
    first = start(member)
    net = replace(cell.networks[0], memory=first.memory)
    batch = member.rows.batch(member.rows.train[: member.batch_rows])
    tape = BlankTape()
    step = count_work(lambda: method.loss(net, batch, BlankTape()))
    one = count_work(lambda: method.draw(cell.networks[0], x, tape))
    trained = cell.networks[0]
    kept = sum(t.numel() for part in (trained.params, trained.buffers, trained.memory) for t in part.values())
    return Cost(float(step[0]), step[1], float(one[0]), one[1], float(kept), tape.length.total)


def check_cost(subject: MethodSubject) -> None:
    """A step, a draw and storage cost about as much as for a network without noise; counted, not timed."""
    task = subject.tasks[0] if subject.tasks else PROBLEMS["regression"].task
    own, plain = count_cost(subject.plugin, task), count_cost(Plain(), task)
    for what, mine, least, advice in (
        ("bytes written by a loss", own.step_bytes, plain.step_bytes, "compute once what does not change"),
        ("operations of a loss", own.step_operations, plain.step_operations, "use one or a few forward passes"),
        ("bytes written by a draw", own.draw_bytes, plain.draw_bytes, "prepare in finish what all draws share"),
        ("operations of a draw", own.draw_operations, plain.draw_operations, "a draw is one function, not an average"),
        ("numbers stored for a network", own.kept, plain.kept, "keep moments or a few samples, not all of them"),
    ):
        times = mine / max(least, 1.0)
        require(times < LARGEST_COST, f"{what}: {times:.0f} times a network without noise; {advice}")
