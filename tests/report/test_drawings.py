"""Figures drawn in another process: the same images, and the failure of one is its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from matplotlib.axis import Axis
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure

from bench.report import drawings as module
from bench.report import figures
from bench.report.drawings import Drawings
from bench.report.figures import draw_figure

ROOT = Path(__file__).resolve().parents[2]


class BrokenError(Exception):
    """Raised by a figure that cannot be drawn."""


def panels(number: int) -> Figure:
    figure = Figure(figsize=(5, 2.4), layout="constrained")
    for place, axes in enumerate(figure.subplots(1, 2, sharey=bool(number % 2))):
        axes.plot([1, 2, 3 + number], [1e-4, 20, 3e5 * (place + 1)])
        axes.set_title("a title")
        axes.set_ylabel("a label")
        axes.set_yscale("log" if number % 3 else "linear")
    figure.align_ylabels()
    return figure


def before_drawing(happens: Callable[[], None]) -> Figure:
    figure = panels(0)
    line = figure.axes[0].lines[0]
    usual = line.draw

    def draw(renderer: RendererBase) -> None:
        happens()
        usual(renderer)

    vars(line)["draw"] = draw
    return figure


def draw_in_children() -> None:
    """Be a process of one thread, without torch, that has figures drawn apart."""
    parent, forks, fork = os.getpid(), [], os.fork

    def fail() -> None:
        raise BrokenError

    def end_a_child() -> None:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted_fork() -> int:
        forks.append(1)
        return fork()

    vars(module)["cores"] = lambda: 2
    vars(os)["fork"] = counted_fork
    with Drawings() as drawings:
        fine = [drawings.add(panels(number), f"figure-{number}") for number in range(3)]
        bad, deadly = drawings.add(before_drawing(fail), "bad"), drawings.add(before_drawing(end_a_child), "deadly")
        fine += [drawings.add(panels(number), f"figure-{number}") for number in range(3, 6)]
        for number, drawing in enumerate(fine):
            assert drawing.finish() == draw_figure(panels(number), f"figure-{number}"), number
        with pytest.raises(BrokenError):
            bad.finish()
        assert deadly.finish() == draw_figure(panels(0), "deadly")
    assert os.getpid() == parent
    assert "torch" not in sys.modules
    assert forks
    with pytest.raises(ChildProcessError):  # none is left
        os.waitpid(-1, os.WNOHANG)


def test_a_child_draws_the_same_and_what_fails_in_it_fails_alone() -> None:
    program = "from tests.report.test_drawings import draw_in_children; draw_in_children()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr


def test_a_process_with_one_core_draws_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "cores", lambda: 1)
    monkeypatch.setattr(os, "fork", None)
    with Drawings() as drawings:
        drawing = drawings.add(panels(1), "one")
        assert drawing.done is drawing.finish()


@pytest.mark.parametrize("number", range(3))
def test_ticks_measured_once_change_no_byte(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[Axis] = []
    usual = Axis._update_ticks  # type: ignore[attr-defined]

    def update_ticks(axis: Axis) -> object:
        computed.append(axis)
        return usual(axis)

    monkeypatch.setattr(Axis, "_update_ticks", update_ticks)
    once = draw_figure(panels(number), "one", pdf=True)
    count = len(computed)
    monkeypatch.setattr(figures, "ticks_measured_once", nullcontext)
    assert draw_figure(panels(number), "one", pdf=True) == once
    assert len(computed) - count > 3 * count
