"""Garbage collection while jobs run."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from bench.training.allocator import only_new_objects_collected


@pytest.fixture(autouse=True)
def collected_on_request() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    gc.unfreeze()  # plug-ins of pytest may have frozen their own objects
    yield
    if was_enabled:
        gc.enable()


class Cycle:
    """Memory that only garbage collection gives back."""

    def __init__(self) -> None:
        self.itself = self


def test_new_cycles_are_collected_and_old_ones_afterwards() -> None:
    old = weakref.ref(Cycle())
    with only_new_objects_collected():
        with only_new_objects_collected():
            new = weakref.ref(Cycle())
        assert gc.get_freeze_count()  # the inner block has not ended the outer one
        gc.collect()
        assert new() is None
        assert old() is not None
    gc.collect()
    assert old() is None


def test_an_arrangement_of_the_program_is_kept() -> None:
    gc.freeze()
    try:
        with only_new_objects_collected():
            pass
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()
