"""Dask's protocol in the driver's process: no pickle runs code while a driver is connected."""

import contextlib
import importlib
import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")

from bench.errors import UserError
from bench.run.executors import dask_guard
from bench.run.executors.dask_guard import PickleRefusedError, plain_protocol
from tests.run.test_wire import Evil

distributed: Any = importlib.import_module("distributed")

WAYS: dict[str, Callable[[Any], Any]] = {
    "a message": lambda evil: distributed.protocol.loads(
        distributed.protocol.dumps({"op": distributed.protocol.ToPickle(evil)})
    ),
    "a value": lambda evil: distributed.protocol.loads(
        distributed.protocol.dumps({"data": distributed.protocol.to_serialize(evil)})
    ),
    "bytes": lambda evil: distributed.protocol.deserialize_bytes(distributed.protocol.serialize_bytes(evil)),
    "a type": lambda evil: distributed.protocol.deserialize(
        {"serializer": "dask", "type-serialized": pickle.dumps(evil)}, [b""]
    ),
    "a warning": lambda evil: distributed.client._handle_warn(("warn", {"message": pickle.dumps(evil)})),
    "the kind of a warning": lambda evil: distributed.client._handle_warn(
        ("warn", {"message": b"", "category": pickle.dumps(evil)})
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_way_into_the_driver_runs_a_pickle(way: str, tmp_path: Path) -> None:
    file = tmp_path / "evil"
    with plain_protocol(), plain_protocol():
        pass
    with plain_protocol():
        with plain_protocol():
            pass
        with pytest.raises(PickleRefusedError, match="nothing is unpickled here"):
            WAYS[way](Evil(file))
        assert not file.exists()
    with contextlib.suppress(Exception):  # Dask cannot do anything with it
        WAYS[way](Evil(file))
    assert file.exists(), "the way is no way"


def test_the_error_of_a_task_is_not_unpickled_but_known(tmp_path: Path) -> None:
    file = tmp_path / "evil"
    with plain_protocol():
        kind, error, traceback = distributed.core.clean_exception(pickle.dumps(Evil(file)), pickle.dumps(Evil(file)))
    assert (kind, type(error), traceback) == (Exception, Exception, None)
    assert not file.exists()


def test_plain_data_of_dask_itself_passes() -> None:
    content = {"op": "x", "data": distributed.protocol.to_serialize(b"bytes"), "pickled": {1, 2}}
    sent = distributed.protocol.dumps(content)
    with plain_protocol():
        assert distributed.protocol.loads(sent) == {"op": "x", "data": b"bytes", "pickled": {1, 2}}


def test_logs_are_quiet_inside_and_as_before_outside() -> None:
    logger = logging.getLogger("distributed.core")
    before = logger.level
    with plain_protocol():
        assert not logger.isEnabledFor(logging.CRITICAL)
    assert logger.level == before


def test_a_dask_that_cannot_be_restricted_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_guard, "_loads", pickle.loads)
    monkeypatch.setitem(vars(dask_guard._plain_pickle), "loads", pickle.loads)
    with pytest.raises(UserError, match=r"cannot keep Dask .* from unpickling messages"), plain_protocol():
        pass
    assert vars(distributed.client)["pickle"] is pickle
