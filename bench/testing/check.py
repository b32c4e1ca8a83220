"""A check, the result of running it on a plug-in, and how a test runner sees that result.

A check is a function that returns if the plug-in is right and raises if it is not. A plug-in that fails a check for a
good reason lists it in `expected_failures`, with the reason. A check that is listed there and passes counts as failed,
so that no entry outlives its fault.
"""

import re
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar
from unittest import SkipTest

from bench.errors import UserError, raise_if_stop, unknown_name
from bench.plugins.faults import explain, has_place

State = Literal["ok", "failed", "expected failure", "not applicable"]
Subject_contra = TypeVar("Subject_contra", contravariant=True)


class CheckFailure(AssertionError):  # noqa: N818  # a failed assertion, as test runners call it
    """A check that did not pass; the message says what is wrong and what to do."""


class NotApplicable(Exception):  # noqa: N818  # no error: the plug-in has nothing that the check could test
    """A check that has nothing to test in this plug-in; the message says why."""


@dataclass(frozen=True)
class Check(Generic[Subject_contra]):
    """A named check of a plug-in."""

    name: str
    proves: str  # what passing it means
    function: Callable[[Subject_contra], None]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Verdict:
    """The result of one check of one plug-in."""

    check: str
    proves: str
    state: State
    message: str = ""  # why it failed, was expected to fail, or does not apply

    def __str__(self) -> str:
        state = "FAILED" if self.state == "failed" else self.state
        return f"{self.check}: {state}" + (f": {self.message}" if self.message else "")


def require(condition: object, message: str) -> None:
    """Fail the check with this message unless the condition holds."""
    if not condition:
        raise CheckFailure(message)


def chosen_checks(checks: Iterable[Check[Any]], only: Collection[str]) -> list[Check[Any]]:
    """Return the checks that are named, or all if none is."""
    known = {check.name: check for check in checks}
    for name in only:
        if name not in known:
            raise unknown_name("check", name, known, "--only")
    return [check for name, check in known.items() if not only or name in only]


def judge(check: Check[Any], subject: Any, expected_failures: Mapping[str, str]) -> Verdict:
    """Run one check on a subject and return its verdict."""
    reason = expected_failures.get(check.name, "")
    state: State = "ok"
    message = ""
    try:
        check.function(subject)
        if reason:
            state, message = (
                "failed",
                f"it passes, but is expected to fail ({reason}); remove it from expected_failures",
            )
    except NotApplicable as error:
        state, message = "not applicable", str(error)
    except BaseException as error:  # of any type: a plug-in's own errors are what checks are there to find
        raise_if_stop(error)
        state, message = ("expected failure", reason) if reason else ("failed", _one_line(error))
    return Verdict(check.name, check.proves, state, message)


def settle(verdict: Verdict) -> Verdict:
    """Raise what a test runner understands: CheckFailure for a failure, SkipTest where the check does not count."""
    if verdict.state == "failed":
        raise CheckFailure(f"{verdict.check} ({verdict.proves}): {verdict.message}")
    if verdict.state != "ok":
        raise SkipTest(f"{verdict.check}: {verdict.state}: {verdict.message}")
    return verdict


def _one_line(error: BaseException) -> str:
    """Return an error in one line, with its place if the plug-in raised it."""
    text = " ".join(str(error).split())
    if isinstance(error, CheckFailure):
        return text
    if isinstance(error, UserError) or has_place(error):
        return explain(error)
    frames = traceback.extract_tb(error.__traceback__)
    # The author looks first at the last line that belongs neither to this kit nor to an installed package.
    foreign = re.compile(r"/bench/testing/|/site-packages/(?!bench/)")
    own = [frame for frame in frames if not foreign.search(Path(frame.filename).as_posix())]
    place = f" ({Path(own[-1].filename).name}, line {own[-1].lineno}, in {own[-1].name})" if own else ""
    return f"it raised {type(error).__name__}: {text}{place}"
