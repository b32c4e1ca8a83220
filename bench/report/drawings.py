"""Figures drawn on a second core, where there is one, while the next sections are computed."""

import contextlib
import gc
import os
import pickle
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from bench.errors import raise_if_stop
from bench.machine.environment import cores
from bench.report.figures import Image, draw_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BATCH = 3  # figures of one child process: several, because a start costs time, and few, because the last is waited for


@dataclass(eq=False)
class Drawing:
    """A figure that is drawn, or will be when its image is asked for."""

    name: str  # of its files, without the suffix
    pdf: bool
    figure: "Figure | None"  # until it is drawn: it holds its data
    drawings: "Drawings"
    done: Image | None = None

    def finish(self) -> Image:
        """Return the image when it is drawn; raises what went wrong with it."""
        while self.done is None:
            self.drawings.advance(self)
        return self.done

    def draw(self) -> None:
        """Draw the figure in this process."""
        assert self.figure is not None
        self.put(draw_figure(self.figure, self.name, self.pdf))

    def put(self, image: Image) -> None:
        """Keep the image and let go of the figure."""
        self.done, self.figure = image, None


@dataclass(frozen=True)
class _Child:
    process: int
    drawings: Sequence[Drawing]
    images: IO[bytes]


class Drawings:
    """Draws figures in a child process while this one goes on; what a child cannot draw, this process draws.

    A child is a fork: figures of plug-ins hold functions, which cannot be sent to another process. Nothing is forked
    where that is not safe (other threads, torch's among them) or not supported, or where there is one core.
    """

    def __init__(self) -> None:
        self._waiting: list[Drawing] = []
        self._child: _Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child is not None:  # only if the report has failed
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.process, signal.SIGKILL)
            self._collect()

    def add(self, figure: "Figure", name: str, pdf: bool = False) -> Drawing:
        """Return the drawing of a figure, which must not be changed from now on."""
        drawing = Drawing(name, pdf, figure, self)
        if _can_fork():
            self._waiting.append(drawing)
            self._hand_out(len(self._waiting))
        else:
            drawing.draw()
        return drawing

    def advance(self, wanted: Drawing) -> None:
        """Draw a figure, or, while the child draws it, another one; raises what goes wrong with this figure only."""
        self._hand_out(len(self._waiting) // 2)
        if wanted.done is not None:  # the child had just ended
            return
        if self._child is None or wanted not in self._child.drawings:
            self._waiting = [one for one in self._waiting if one is not wanted]
            wanted.draw()
        elif self._waiting:
            try:
                self._waiting.pop().draw()
            except BaseException as error:  # of any type, and raised again when that figure is asked for
                raise_if_stop(error)
        else:
            self._collect()

    def _hand_out(self, most: int) -> None:
        """Give the first of what waits to a child, unless one is at work."""
        if self._child is not None and not self._collect(os.WNOHANG):
            return
        if count := min(most, BATCH):
            batch, self._waiting = self._waiting[:count], self._waiting[count:]
            self._child = _fork(batch)

    def _collect(self, how: int = 0) -> bool:
        """Take the images of the child if it has ended; wait for its end unless told otherwise."""
        assert self._child is not None
        ended, status = os.waitpid(self._child.process, how)
        if not ended:
            return False
        child, self._child = self._child, None
        with child.images as file:
            file.seek(0)
            # What has no image is drawn in this process when it is asked for.
            for drawing, image in zip(child.drawings, pickle.load(file) if status == 0 else (), strict=False):
                if image is not None:
                    drawing.put(image)
        return True


def _can_fork() -> bool:
    alone = threading.active_count() == 1 and "torch" not in sys.modules
    return alone and sys.platform == "linux" and cores() > 1


def _fork(drawings: Sequence[Drawing]) -> _Child:
    file = tempfile.TemporaryFile()  # noqa: SIM115 (closed when the child has ended)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later count the idle threads of NumPy
        process = os.fork()
    if process == 0:
        try:
            gc.disable()  # it would visit, and so copy, all memory of this process
            pickle.dump([_image_or_none(drawing) for drawing in drawings], file)
            file.flush()
            os._exit(0)
        finally:
            os._exit(1)
    return _Child(process, drawings, file)


def _image_or_none(drawing: Drawing) -> Image | None:
    try:
        drawing.draw()
    except Exception:  # raised again, for its section, by the process that has the section
        return None
    return drawing.done
