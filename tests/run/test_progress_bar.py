import re
import threading

import pytest

from bench.run import progress_bar as module
from bench.run.progress import Kind, Progress
from bench.training.progress import Progress as StackProgress

NETS, OTHER_NETS, FOREST = Kind("a"), Kind("b"), Kind("forest", apart=True)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def begun(*kinds: tuple[Kind, float]) -> tuple[Progress, Clock]:
    """Return a run of these kinds of work, with their planned seconds, at time 0."""
    clock = Clock()
    progress = Progress({"toy": 2}, clock)
    for kind, seconds in kinds:
        progress.plan(kind, seconds)
    return progress, clock


def time_left(progress: Progress) -> str:
    found = re.search(r"about (.*) left", str(progress))
    return found[1] if found else ""


def test_it_says_what_is_done_before_anything_is_reported() -> None:
    progress, _ = begun((NETS, 10.0))
    progress.hand_out(1, NETS, 10.0, "toy", 1)
    assert str(progress) == "0/1 datasets, working on toy a"
    progress.update(1, StackProgress(1, 0, 0, 7))
    assert str(progress) == "0/1 datasets, 1 network training, 0 waiting, epoch 7"
    progress.close(1)
    assert "working" not in str(progress)


def test_the_time_left_goes_on_between_the_ends_of_orders() -> None:
    """Two orders of the same size, of which the first took 100 s: the second has 60 s left after 40 s, and so on."""
    progress, clock = begun((NETS, 10.0), (OTHER_NETS, 10.0))
    progress.hand_out(1, NETS, 10.0, "toy", 1)
    clock.now = 100.0
    progress.close(1)
    progress.hand_out(2, OTHER_NETS, 10.0, "toy", 1)
    shown = []
    for clock.now in (100.0, 140.0, 180.0, 200.0, 240.0):
        shown.append(time_left(progress))
    assert shown[:3] == ["2 min", "60 s", "20 s"]
    seconds = [int(text.removesuffix(" s")) for text in shown[1:]]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[-1] >= 1  # an order that takes longer than expected is never done by its time alone


def test_networks_that_wait_are_not_done_by_the_time_that_others_take() -> None:
    """5 of 100 networks ended after 50 s; the next 5 take ever longer, and 90 others wait behind them."""
    progress, clock = begun((NETS, 10.0))
    progress.hand_out(1, NETS, 10.0, "toy", 1)
    progress.update(1, StackProgress(10, 90, 0, 3))
    clock.now = 50.0
    progress.update(1, StackProgress(5, 90, 5, 5))
    assert time_left(progress) == "16 min"  # 96 of 101 networks and cells at 10 s each
    for clock.now in (200.0, 500.0, 1000.0, 4000.0):
        minutes = {"min": 1.0, "h": 60.0}
        number, unit = time_left(progress).split()
        assert float(number) * minutes[unit] * 60 >= 0.98 * 91 / 10 * clock.now
    progress.update(1, StackProgress(0, 0, 100, 5))
    assert progress._orders[1].begun == 1.0


def test_networks_that_ended_say_the_pace_of_the_first_order() -> None:
    progress, clock = begun((NETS, 10.0))
    progress.hand_out(1, NETS, 10.0, "toy", 1)
    clock.now = 60.0
    assert not time_left(progress)  # nothing is known yet
    progress.update(1, StackProgress(2, 0, 1, 7))  # one of three networks and a cell, in a minute
    assert time_left(progress) == "3 min"
    clock.now = 120.0
    assert time_left(progress) == "2 min"


def test_cells_that_ended_count_beside_networks_where_scoring_is_the_work() -> None:
    """All four networks end at once, then a cell every 60 s: two of four cells are half of what is left."""
    progress, clock = begun((NETS, 10.0))
    progress.hand_out(1, NETS, 10.0, "toy", 4)
    clock.now = 1.0
    progress.update(1, StackProgress(0, 0, 4, 7))
    for clock.now in (61.0, 121.0):
        progress.update(1)
    assert time_left(progress) == "40 s"  # six of eight took 121 s


def test_each_kind_of_work_has_its_own_pace() -> None:
    """Forests take a tenth of what was planned for them, networks ten times as much; two workers."""
    progress, clock = begun((FOREST, 100.0), (NETS, 10.0), (OTHER_NETS, 20.0))
    for order in (1, 2):
        progress.hand_out(order, FOREST, 50.0, "toy", 1)
    clock.now = 5.0
    progress.close(1)
    progress.close(2)
    assert not time_left(progress)  # nine tenths of the plan are done, but no network has begun
    progress.hand_out(3, NETS, 10.0, "toy", 1)
    progress.hand_out(4, OTHER_NETS, 10.0, "toy", 1)
    clock.now = 105.0
    progress.close(3)
    progress.close(4)
    assert time_left(progress) == "50 s"  # 10 s of the plan at a pace of 10, by two at a time


def test_an_order_that_is_taken_back_was_not_done() -> None:
    progress, clock = begun((NETS, 20.0))
    progress.hand_out(1, NETS, 10.0, "toy", 1)
    progress.hand_out(2, NETS, 10.0, "toy", 1)
    clock.now = 10.0
    progress.close(2, done=False)
    progress.close(1)
    assert time_left(progress) == "10 s"


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
