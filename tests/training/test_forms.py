"""The form of a training: which one pays, and that it is a property of the cell."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from bench.api import Split
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.run.job import Job
from bench.spec.protocol import Protocol, Training
from bench.training.forms import (
    COMPILED_SLOTS,
    TRACED,
    WIDE_SLOTS,
    Form,
    compiled_slots,
    expected_steps,
    form_that_pays,
    read_form,
)

SEARCH = Training(epochs=2000, patience=3, batch=32)


@pytest.mark.parametrize("form", [TRACED, Form(compiled=True), Form(compiled=True, slots=8)])
def test_a_recorded_form_is_read_as_it_was_written(form: Form) -> None:
    assert read_form(str(form)) == form


@pytest.mark.parametrize("text", ["", "compiled", "compiled, many slots", "eager"])
def test_what_names_no_form_is_none(text: str) -> None:
    assert read_form(text) is None


def test_slow_learners_are_compiled_even_with_few_steps_an_epoch() -> None:
    """On the UCI sets Adam with a rate of 0.0001 took 8,000 to 15,000 steps, also where an epoch has seven."""
    assert form_that_pays(replace(SEARCH, learning_rate=1e-4), 7).compiled
    assert not form_that_pays(replace(SEARCH, learning_rate=2e-3), 7).compiled
    assert form_that_pays(replace(SEARCH, learning_rate=2e-3), 200).compiled


def test_no_more_steps_are_expected_than_planned() -> None:
    assert expected_steps(replace(SEARCH, learning_rate=1e-4, epochs=3), 7) == 21
    assert expected_steps(replace(SEARCH, patience=0), 7) == 14_000
    assert expected_steps(SEARCH, 7, stops_early=False) == 14_000


def test_all_networks_of_a_cell_have_the_form_of_its_slowest_learner() -> None:
    """Whatever else a method searches: cells that share trainings must agree."""
    x = np.zeros((320, 2))
    split = Split("regression", x, x[:, 0], x[:2], x[:2, 0])
    grid: Any = {"learning_rate": [0.01, 1e-4]}
    slow = Protocol(training=replace(SEARCH, learning_rate=0.01), search="grid", grid=grid)
    for method, space in ((Deterministic(), {}), (MCDropout(), {"rate": [0.1, 0.2]})):
        assert Job(method, slow, split, 0, space=space).form == Form(compiled=True)
        assert Job(method, replace(slow, search="none", grid={}), split, 0).form == TRACED
        assert Job(method, slow, split, 0, form=TRACED).form == TRACED, "a recorded form is repeated"


def test_a_compiled_stack_is_wide_where_a_queue_keeps_it_full() -> None:
    form = Form(compiled=True)
    wide = partial(compiled_slots, form, 128, step_bytes=60_000)
    assert wide(members=600, lengths_known=False) == WIDE_SLOTS
    assert wide(members=120, lengths_known=False) == COMPILED_SLOTS  # slow learners would have it for themselves
    assert wide(members=120, lengths_known=True) == WIDE_SLOTS
    assert wide(members=130, lengths_known=True) == COMPILED_SLOTS  # ten of them would have it for themselves
    assert compiled_slots(form, 128, 600, 10**6, lengths_known=False) == COMPILED_SLOTS  # leaves the cache
    assert compiled_slots(form, 60, 600, 60_000, lengths_known=False) == COMPILED_SLOTS  # after running out of memory
    assert compiled_slots(Form(compiled=True, slots=8), 128, 600, 60_000, lengths_known=False) == 8  # as recorded
