"""Checks of a method's training: what it learns, what it depends on, what it survives, what it costs."""

from dataclasses import dataclass, replace

import numpy as np

from bench.api import Method, Split, Task
from bench.api.tape import BlankTape
from bench.spec.protocol import Architecture, Protocol, Training
from bench.testing.check import NotApplicable, require
from bench.testing.comparison import against_plain
from bench.testing.problems import PLAIN, PROBLEMS, SHORT, STACK, Cell, Plain, split_of, train, train_all
from bench.testing.subject import MethodSubject
from bench.training.flops import work
from bench.training.member import start

ROUNDING = 1e-4  # of draws in training units, after a short training
LARGEST_COST = 100.0  # times what a network without noise needs


def check_learns(subject: MethodSubject) -> None:
    """The mean of the draws is clearly better than a constant."""
    for cell in subject.cells:
        mean = cell.draws(100).mean(0)
        y = cell.split.test_y
        if cell.split.task == "regression":
            predicted = mean[:, 0] * cell.data.target_std + cell.data.target_mean
            share = float(np.sqrt(np.mean((predicted - y) ** 2)) / y.std())
            require(
                share < 0.6,
                f"its RMSE on a smooth function is {share:.2f} of the targets' standard deviation after 240 steps of "
                "Adam (0.6 is asked for, the mean has 1); see whether loss follows the data, its other terms in scale",
            )
        else:
            accuracy = float((mean.argmax(-1) == y).mean())
            require(
                accuracy > 0.7,
                f"it names the class of {accuracy:.0%} of the points of three separate heaps after 240 steps of Adam "
                "(70% is asked for, guessing has 33%); see whether loss follows the data",
            )


def check_stack_invariance(subject: MethodSubject) -> None:
    """A network among others, with other options, becomes what it becomes alone, up to rounding."""
    gap = subject.among_others.largest
    require(
        gap < ROUNDING,
        f"trained among others its draws differ by {gap:.2g} from those alone; keep nothing on the class, the module "
        "or in globals, and use options only as self.option inside the hooks",
    )


def check_last_bit(subject: MethodSubject) -> None:
    """The same, to the last bit."""
    pair = subject.among_others
    if pair.largest >= ROUNDING:
        raise NotApplicable("it differs by more than rounding: see stack-invariance")
    require(
        pair.equal,
        "trained among others its tensors differ in the last bits from those alone; some kernels round by their place "
        "in memory (batch norm, softplus): write them from plain operations, or state it as expected",
    )


def check_plain_path(subject: MethodSubject) -> None:
    """The way of large networks, without vmap, gives the same draws up to rounding."""
    gap = against_plain(subject.alone).largest
    require(
        gap < ROUNDING,
        f"without vmap its draws differ by {gap:.2g} from the stack's; a hook must not look at how it is called (no "
        "counters, no Python numbers from tensors)",
    )


def _survives(subject: MethodSubject, split: Split, what: str) -> None:
    cell = train(subject.method, split, SHORT, PLAIN)
    bad = int((~np.isfinite(cell.draws(4))).sum())
    require(not bad, f"{what}: {bad} drawn values are not finite; look for / and log of counts and variances in finish")


def check_tiny_data(subject: MethodSubject) -> None:
    """One, two and three rows of data are enough to train and draw without a NaN."""
    for task in subject.tasks:
        whole = split_of(task)
        for rows in (1, 2, 3):
            few = replace(whole, train_x=whole.train_x[:rows], train_y=whole.train_y[:rows])
            _survives(subject, few, f"{task} with {rows} rows of data")


def check_constant_targets(subject: MethodSubject) -> None:
    """Targets that are all the same are learned without a NaN."""
    subject.need("regression")
    whole = split_of("regression")
    _survives(subject, replace(whole, train_y=np.full_like(whole.train_y, 5.0)), "constant targets")


def check_missing_class(subject: MethodSubject) -> None:
    """A class without training rows has a probability all the same."""
    subject.need("classification")
    whole = split_of("classification")
    seen = whole.train_y < 2
    less = replace(whole, train_x=whole.train_x[seen], train_y=whole.train_y[seen])
    _survives(subject, less, "a class without training rows")


LINEAR = Architecture(hidden=[])
NOISE = 0.5  # standard deviation of the observations of the linear problem
FEW, MANY, SAMPLES = 32, 512, 5


def linear_split(rows: int, number: int) -> Split:
    """Return a linear function of four inputs with Gaussian noise: Bayesian linear regression, solved on paper."""
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
    """On a linear problem its variance falls with the number of rows, as the exact posterior's does."""
    subject.need("regression")
    found, exact = [], []
    for rows, epochs in ((FEW, 320), (MANY, 20)):  # as many steps for both
        training = Training(learning_rate=0.02, epochs=epochs, batch=24, schedule="cosine")
        # Several samples: a level that is tuned on a few validation rows is small or large by chance in one of them.
        splits = [linear_split(rows, number) for number in range(SAMPLES)]
        cells = train_all(subject.method, splits, Protocol(training, LINEAR, validation=0.25), STACK)
        draws = [cell.draws(100)[..., 0] for cell in cells]
        require(len(draws[0]) > 1, "it has one function, so no variance of its draws")
        found.append(float(np.mean([part.var(0, ddof=1).mean() for part in draws])))
        exact.append(float(np.mean([exact_variance(cell) for cell in cells])))
    ratio, due = found[1] / max(found[0], 1e-30), exact[1] / exact[0]
    require(
        found[0] > 1e-3 * exact[0],
        f"with {FEW} rows its variance is {found[0]:.2g} where the exact posterior has {exact[0]:.2g}: next to nothing",
    )
    require(
        ratio < np.sqrt(due),
        f"from {FEW} to {MANY} rows its variance becomes {ratio:.2g} of what it was, the exact posterior's {due:.2g} "
        f"({np.sqrt(due):.2f} is asked for); scale the prior's term with 1 / batch.rows",
    )


@dataclass(frozen=True)
class Work:
    """What one network needs, counted: a training step, a draw, what is kept."""

    step_bytes: float  # written by one evaluation of the loss
    step_operations: float
    draw_bytes: float
    draw_operations: float
    kept: float  # numbers in parameters, buffers and memory
    random_numbers: int  # read by one draw


def counted(method: Method, task: Task) -> Work:
    """Count what a method's network needs on a small problem of the task."""
    cell = train(method, split_of(task), replace(SHORT, training=replace(SHORT.training, epochs=1)), PLAIN)
    member, x = cell.members[0], cell.data.test_x
    first = start(member)
    net = replace(cell.networks[0].net, memory=first.memory)
    batch = member.rows.batch(member.rows.train[: member.batch_rows])
    tape = BlankTape()
    step = work(lambda: method.loss(net, batch, BlankTape()))
    one = work(lambda: method.draw(cell.networks[0].net, x, tape))
    trained = cell.networks[0]
    kept = sum(t.numel() for part in (trained.params, trained.buffers, trained.memory) for t in part.values())
    return Work(float(step[0]), step[1], float(one[0]), one[1], float(kept), tape.length.total)


def check_cost(subject: MethodSubject) -> None:
    """A step, a draw and what is kept are of the order of a network without noise; counted, not timed."""
    task = subject.tasks[0] if subject.tasks else PROBLEMS["regression"].task
    own, plain = counted(subject.method, task), counted(Plain(), task)
    for what, mine, least, advice in (
        ("bytes written by a loss", own.step_bytes, plain.step_bytes, "compute once what does not change"),
        ("operations of a loss", own.step_operations, plain.step_operations, "one or a few forward passes are enough"),
        ("bytes written by a draw", own.draw_bytes, plain.draw_bytes, "prepare in finish what all draws share"),
        ("operations of a draw", own.draw_operations, plain.draw_operations, "a draw is one function, not an average"),
        ("numbers kept by a network", own.kept, plain.kept, "keep moments or a few samples, not all of them"),
    ):
        times = mine / max(least, 1.0)
        require(times < LARGEST_COST, f"{what}: {times:.0f} times a network without noise; {advice}")
