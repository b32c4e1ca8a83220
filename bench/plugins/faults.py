"""The error of a plug-in in one line: hook, file and line of the author's code, what is wrong, what would be right."""

import linecache
import re
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import FrameType

import bench
from bench.errors import UserError
from bench.plugins.building import in_one_line

# Classes whose methods are an author's hooks.
HOOKED = ("BaseMethod", "Method", "Estimator", "Wrapper", "Dataset", "Report")
LONGEST = 300  # characters of another library's message; the traceback has all of it

# torch explains in a paragraph what a hook under `vmap` may not do; its author needs a line.
# Patterns are looked for in the message, followed by the author's line: torch has one message for the first two.
RULES = [
    (
        r"vmap:.*\.item\(\).*\n.*(\.item\(|float\(|int\(|\.tolist\()|out of a tracing tensor|Can't call numpy\(\)"
        r"|Cannot access data pointer",
        "a tensor is turned into a Python number or array (.item(), float(), int(), .tolist(), .numpy())",
        "keep it a tensor: every member of a stack has its own value",
    ),
    (
        r"vmap:.*data-dependent control flow|Boolean value of Tensor with more than one value",
        "a Python condition (if, while, and, min, ...) on a tensor, such as a float option or a loss",
        "write arithmetic or torch.where(condition, this, that), or make the option a bool or int",
    ),
    (
        r"vmap: called random operation",
        "random numbers that do not come from the tape",
        "write tape.normal(shape), tape.uniform(shape) or tape.integer(below)",
    ),
    (
        r"vmap:.*dynamic shape|vmap:.*nonzero|vmap:.*masked_select",
        "the shape of a result depends on the values of a tensor (x[mask], nonzero, unique)",
        "keep all rows, and multiply by a mask or use torch.where",
    ),
    (
        r"vmap:.*(inplace|in-place).*is not possible|vmap:.*_\(self, \*extra_args\) is not possible"
        r"|leaf Variable that requires grad is being used in an in-place operation"
        r"|doesn't match the broadcast shape|modified by an inplace operation|is a view and is being modified inplace",
        "an operation writes into a tensor in place (x += ..., x[i] = ..., add_)",
        "make a new tensor: x = x + ..., torch.where, torch.cat or torch.stack",
    ),
]


@dataclass(frozen=True)
class _Origin:
    """Where an error arose: a hook, and the last line of its author's code."""

    hook: str
    file: str = ""
    line: int = 0
    raised: bool = False  # by that line itself, not by what it called

    @property
    def place(self) -> str:
        return f"{self.hook}, {Path(self.file).name}:{self.line}: " if self.file else f"{self.hook}: "


def explain(error: BaseException) -> str:
    """Return an error of a plug-in in one line, with the hook and the place in the author's code where it has one."""
    origin = _origin(error)
    if origin is None:
        return _meaning(error, "")
    # A UserError that the author raised is meant to be read as it is.
    place = "" if isinstance(error, UserError) and origin.raised else origin.place
    return place + _meaning(error, linecache.getline(origin.file, origin.line))


def has_place(error: BaseException) -> bool:
    """Return whether the error came from a hook of a plug-in."""
    return _origin(error) is not None


def _meaning(error: BaseException, source: str) -> str:
    text = in_one_line(error)
    if isinstance(error, UserError):
        return text
    for pattern, wrong, right in RULES:
        if re.search(pattern, f"{text}\n{source}"):
            return f"{wrong}; {right}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def _origin(error: BaseException) -> _Origin | None:
    found: _Origin | None = None
    home = ""  # the package that the hook is in, where it is in an installed one
    for frame, line in _frames(error):
        file, hook = frame.f_code.co_filename, _hook(frame)
        if found is None and hook:
            found, home = _Origin(hook), _package(file)
        if found is not None:
            own = not _foreign(file) and _package(file) in ("", "bench", home)
            found = replace(found, file=file, line=line, raised=True) if own else replace(found, raised=False)
    return found


def _package(file: str) -> str:
    """Return the name of the installed package that a file belongs to; empty where it is in none."""
    parts = Path(file).parts
    places = [place for place, part in enumerate(parts[:-1]) if part in ("site-packages", "dist-packages")]
    return parts[places[-1] + 1] if places else ""


def _frames(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _hook(frame: FrameType) -> str:
    """Return the name of the hook that a frame runs, if it is one of a method, dataset or report."""
    name, subject = frame.f_code.co_name, frame.f_locals.get("self")
    for kind in type(subject).__mro__ if subject is not None else ():
        if kind.__module__.startswith("bench.api.") and name in vars(kind) and not name.startswith("_"):
            return name if kind.__name__ in HOOKED else ""
    return ""


@cache
def _foreign(file: str) -> bool:
    """Return whether a file is neither a plug-in's nor a network's: the harness, torch, numpy or Python itself."""
    path, core = Path(file), Path(str(bench.__file__)).parent
    if path.is_relative_to(core):
        return path.relative_to(core).parts[0] not in ("methods", "datasets", "reports", "networks")
    loaded = [sys.modules[name].__file__ for name in ("torch", "numpy") if name in sys.modules]
    libraries = [Path(place).parent for place in loaded if place is not None]
    standard = path.is_relative_to(sysconfig.get_path("stdlib")) and "site-packages" not in path.parts
    return file.startswith("<") or standard or any(path.is_relative_to(folder) for folder in libraries)
