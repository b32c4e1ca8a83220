"""Which device a worker has."""

import pytest

from bench.errors import UserError
from bench.run.executors import choice
from bench.run.executors.choice import choose, worker_devices


@pytest.mark.parametrize(
    ("workers", "visible", "found", "expected"),
    [
        (2, None, 2, ["0", "1"]),
        (5, None, 2, ["0", "1", "0", "1", "0"]),
        (2, "3, GPU-8f6e", 2, ["3", "GPU-8f6e"]),
        (3, "MIG-1", 1, ["MIG-1"] * 3),
        (2, "2,9,3", 1, ["2", "2"]),  # the driver stops at the first that does not exist
        (2, "", 2, ["0", "1"]),
    ],
)
def test_workers_take_the_devices_in_turn(workers: int, visible: str | None, found: int, expected: list[str]) -> None:
    assert worker_devices(workers, visible, found) == expected


def test_every_local_worker_sees_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_devices", lambda device: 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    made: list[list[str]] = []
    monkeypatch.setattr(
        choice, "LocalExecutor", lambda settings: made.append([s.environment["CUDA_VISIBLE_DEVICES"] for s in settings])
    )
    choose("local", None, None, "cuda", None)(1e6)
    choose("local", 3, None, "cuda", None)(1e6)
    assert made == [["4", "6"], ["4", "6", "4"]]


def test_workers_of_a_cluster_of_ours_would_share_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_devices", lambda device: 2)
    with pytest.raises(UserError, match="use --engine local"):
        choose("dask", None, None, "cuda", None)
