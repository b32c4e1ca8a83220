"""How a Dask worker sends its messages: in order, together where they wait for each other, and never silently lost."""

import threading
from typing import Any

import pytest

pytest.importorskip("distributed")

from bench.run.executors.dask_worker import _Sender


class SlowQueue:
    """A queue whose first message is on its way until the others wait."""

    def __init__(self) -> None:
        self.sent: list[list[Any]] = []
        self.others_wait = threading.Event()

    def put(self, messages: list[Any]) -> None:
        self.sent.append(messages)
        assert self.others_wait.wait(10)


def test_messages_that_wait_go_together_and_in_order() -> None:
    messages = SlowQueue()
    with _Sender(messages) as sender:
        sender.send(0)
        while not messages.sent:
            pass
        for number in range(1, 50):
            sender.send(number)
        messages.others_wait.set()
    assert messages.sent == [[(0,)], [(number,) for number in range(1, 50)]]


class BrokenQueue:
    def put(self, messages: list[Any]) -> None:
        raise OSError("the scheduler is gone")


def send(count: int) -> None:
    with _Sender(BrokenQueue()) as sender:
        for _ in range(count):
            sender.send("message")


@pytest.mark.parametrize("count", [1, 1_000])
def test_a_call_hears_that_its_messages_cannot_be_sent(count: int) -> None:
    """Also where it has more to send than may wait: nobody is left to make room."""
    with pytest.raises(OSError, match="the scheduler is gone"):
        send(count)
