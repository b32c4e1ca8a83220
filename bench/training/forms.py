"""The form of a training: traced or compiled. Two forms agree up to rounding only.

So the form depends on a cell alone, never on its neighbours or on what is in a cache. It is recorded with the cell, and
whoever computes the cell again can ask for the recorded one.
"""

from dataclasses import dataclass

from bench.spec.protocol import Training

# A traced step of any stack takes 1 to 2 ms, a compiled one a tenth of that. Compiling takes about 2 s (the first graph
# of an empty cache 6 s), loading less than one. With 1.5 / learning rate below, no search of the eight UCI sets comes
# near this number.
STEPS_THAT_PAY_FOR_COMPILING = 5_000
COMPILED_SLOTS = 32  # with a call of 50 us and 3 us for each network, a stack of few idle slots has a short tail
# While a queue keeps it full, a wider stack takes a sixth less time for each network, with the same bits. Five folds of
# 24 configurations, or of any multiple of them, fill it.
WIDE_SLOTS = 120
WIDE_BYTES = 2**24  # written by a step of a wide stack: more leaves the processor's cache, and nothing is gained


@dataclass(frozen=True)
class Form:
    """How steps are computed."""

    compiled: bool
    slots: int = COMPILED_SLOTS  # of a compiled stack when no member waits; a traced one may have any number

    def __str__(self) -> str:
        return f"compiled, {self.slots} slots" if self.compiled else "traced"


TRACED = Form(compiled=False)


def read_form(text: str) -> Form | None:
    """Return the form that a record names; None if it names none, as records of earlier versions."""
    kind, _, slots = text.partition(", ")
    if kind == "traced":
        return TRACED
    count = slots.removesuffix(" slots")
    return Form(compiled=True, slots=int(count)) if kind == "compiled" and count.isdigit() else None


def expected_steps(training: Training, steps_per_epoch: int, stops_early: bool = True) -> int:
    """Estimate the number of training steps; early stopping usually ends after 50 epochs or 2000 steps.

    Adam moves a weight by about the learning rate in one step, and weights are of the order of 1: slow learners need
    longer.
    """
    planned = training.epochs * steps_per_epoch
    if not training.patience or not stops_early:
        return planned
    to_learn = 1.5 / training.learning_rate if training.optimizer == "adam" else 0.0
    return min(planned, max(2000, 50 * steps_per_epoch, round(to_learn)))


def form_that_pays(training: Training, steps_per_epoch: int, stops_early: bool = True) -> Form:
    """Return the form in which a training is expected to end first."""
    steps = expected_steps(training, steps_per_epoch, stops_early)
    return Form(compiled=steps >= STEPS_THAT_PAY_FOR_COMPILING)


def compiled_slots(form: Form, fits: int, members: int, step_bytes: int, lengths_known: bool) -> int:
    """Return with how many slots a compiled stack begins, of which `fits` fit into memory.

    `lengths_known`: all train equally long, so that a stack for which nobody waits is full until they end together.
    """
    narrow = min(fits, form.slots)
    if fits < WIDE_SLOTS or form.slots != COMPILED_SLOTS or WIDE_SLOTS * step_bytes > WIDE_BYTES:
        return narrow
    in_the_last = (members - 1) % WIDE_SLOTS + 1
    stays_full = members >= 4 * WIDE_SLOTS or (lengths_known and in_the_last > WIDE_SLOTS * 0.9)
    return WIDE_SLOTS if stays_full else narrow
