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
