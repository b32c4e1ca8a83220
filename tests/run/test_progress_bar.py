import re
import threading

import pytest

from bench.run import progress_bar as module
from bench.run.progress import Progress
from bench.training.stack import Progress as StackProgress


def test_it_says_what_is_done_before_anything_is_reported() -> None:
    progress = Progress(seconds=10.0, datasets={"toy": 2})
    progress.hand_out(1, 10.0, "toy mc-dropout")
    assert str(progress) == "0/1 datasets, working on toy mc-dropout"
    progress.update(1, StackProgress(1, 0, 0, 7))
    assert str(progress) == "0/1 datasets, 1 network training, 0 waiting, epoch 7"
    progress.close(1)
    assert "working" not in str(progress)


def test_the_time_left_goes_on_between_the_ends_of_orders() -> None:
    """Two orders of the same size, of which the first took 100 s: the second has 60 s left after 40 s, and so on."""
    now = 0.0
    progress = Progress(seconds=20.0, datasets={"toy": 2}, clock=lambda: now)
    progress.hand_out(1, 10.0, "toy a")
    now = 100.0
    progress.close(1)
    progress.hand_out(2, 10.0, "toy b")
    shown = []
    for now in (100.0, 140.0, 180.0, 200.0, 240.0):  # noqa: B007  # the clock reads it
        shown.append(re.search(r"about (.*) left", str(progress))[1])  # type: ignore[index]  # there is a time
    assert shown[:3] == ["2 min", "60 s", "20 s"]
    seconds = [int(text.removesuffix(" s")) for text in shown[1:]]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[-1] >= 1  # an order that takes longer than expected is never done by its time alone


def test_networks_that_ended_say_the_pace_of_the_first_order() -> None:
    now = 0.0
    progress = Progress(seconds=10.0, datasets={"toy": 2}, clock=lambda: now)
    progress.hand_out(1, 10.0, "toy a")
    now = 60.0
    assert "left" not in str(progress)  # nothing is known yet
    progress.update(1, StackProgress(3, 0, 1, 7))  # a quarter in a minute
    assert "about 3 min left" in str(progress)
    now = 120.0
    assert "about 2 min left" in str(progress)


def test_a_bar_asks_for_the_state_while_nothing_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class State:
        asked = threading.Semaphore(0)

        def __str__(self) -> str:
            self.asked.release()
            return "a state"

    monkeypatch.setattr(module, "SECONDS_BETWEEN_TICKS", 0.01)
    state = State()
    with module.progress_bar("suite", 3, progress=True) as monitor:
        monitor.progress(state)
        assert all(state.asked.acquire(timeout=5) for _ in range(3))
    assert "a state" in capsys.readouterr().err


def test_lines_at_intervals_without_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with module.progress_bar("suite", 3) as monitor:
        monitor.progress("too early")
        monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.0)
        monitor.progress("working on toy")
    with module.progress_bar("suite", 3, progress=False) as silent:
        silent.progress("nobody wants this")
    assert capsys.readouterr().err == "uqbench: 0/3 cells, working on toy\n"


def test_a_bar_shows_one_time_left_the_run_s_own(capsys: pytest.CaptureFixture[str]) -> None:
    with module.progress_bar("suite", 3, progress=True) as monitor:
        monitor.progress("about 5 min left")
    shown = capsys.readouterr().err.split("\r")[-1]
    assert "0/3 cells [00:00, about 5 min left]" in shown
    assert "cell/s" not in shown
