"""Orders and messages on the wire: what was sent arrives, and nothing but data is read."""

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.run.wire import WireError, from_parcel, order_from_text, order_to_text, to_parcel
from bench.run.worker import Message, PluginFile, WorkItem, WorkOrder
from bench.spec.cell import Outcome
from bench.training.limits import Limits
from bench.training.progress import Progress
from bench.training.search import Configuration, Selection


class Evil:
    """Creates a file where it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.file,)


def test_orders_and_messages_arrive_as_they_were_sent() -> None:
    item = WorkItem("key", '{"a": "\u00fc"}', "{}", "traced 128")
    plugin = PluginFile("/a/b.py", b"\x00\xff# content\n")
    order = WorkOrder(7, (item, item), (plugin,), "cuda", Limits(slots=3, checkpoints="/c", compiling=False), 2.5)
    assert order_from_text(order_to_text(order)) == order
    assert order_from_text(order_to_text(WorkOrder(1, ()))) == WorkOrder(1, ())

    selection = Selection([Configuration({"learning_rate": 0.1}, {})], [[1.0, 2.0]], [[3, 4]], [[2, 4]])
    assert from_parcel(to_parcel(Message(1, "k", selection))) == Message(1, "k", selection)
    progress = Message(2, "", Progress(1, 2, 3, 4))
    assert from_parcel(to_parcel(progress)) == progress
    arrays = {"mean": np.arange(6.0).reshape(2, 3)}
    outcome = Outcome("ok", "", {"nll": -np.inf, "rmse": 0.1}, {"epochs": [1]}, {"seconds": 1.0}, {"os": "x"}, arrays)
    arrived = from_parcel(to_parcel(Message(3, "k", outcome))).content
    assert isinstance(arrived, Outcome)
    assert (arrived.status, arrived.metrics, arrived.environment) == ("ok", outcome.metrics, outcome.environment)
    np.testing.assert_array_equal(arrived.arrays["mean"], arrays["mean"])


def with_objects(file: Path) -> bytes:
    content = io.BytesIO()
    np.savez(content, about=np.array([Evil(file)], dtype=object))
    return content.getvalue()


def test_what_is_no_message_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    file = tmp_path / "evil"
    evil = pickle.dumps(Evil(file))
    good = to_parcel(Message(3, "k", Outcome("ok")))
    strange: list[Any] = [
        evil,
        None,
        (),
        "abcd",
        (1, "k", "outcome", evil),
        (1, "k", "search", evil),
        (1, "k", "progress", evil),
        (1, "k", "outcome", with_objects(file)),
        (1, "k", "outcome", good[3][:-30]),
        (1, "k", "outcome", "text"),
        (1, ["k"], "outcome", good[3]),
        (1, "k", "pickle", evil),
        (1, "k", ["outcome"], good[3]),
        (1, "k", "progress", b'{"training": "many"}'),
        (1, "k", "progress", b"[" * 100_000),
        (1, "k", "search", b'{"tried": 3}'),
    ]
    for parcel in strange:
        with pytest.raises(WireError):
            from_parcel(parcel)
    for text in ("", "[]", "{}", "[" * 100_000, '{"items": 3}', order_to_text(WorkOrder(1, ()))[:-1] + ', "more": 1}'):
        with pytest.raises(WireError):
            order_from_text(text)
    assert not file.exists()
    pickle.loads(evil)
    assert file.exists()
