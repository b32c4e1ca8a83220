"""One named check at a time, and what becomes of it.

A check is a function that returns when all is well and raises otherwise. A plug-in that is right to fail one says so
itself, with a reason, in `expected_failures`; a check that it says to fail and passes is a failure, too, so that no
excuse outlives its fault.
"""

import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar
from unittest import SkipTest

State = Literal["ok", "failed", "expected failure", "not applicable"]
Subject = TypeVar("Subject")


class CheckFailure(AssertionError):  # noqa: N818  # a failed assertion, as test runners call it
    """A check that did not pass; the message says what is wrong and what to do."""


class NotApplicable(Exception):  # noqa: N818  # no error: the plug-in has nothing that the check could look at
    """A check that has nothing to look at in this plug-in; the message says why."""


@dataclass(frozen=True)
class Check(Generic[Subject]):
    """A name, what passing it proves, and the function that finds out."""

    name: str
    proves: str
    function: Callable[[Subject], None]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Verdict:
    """What became of one check of one plug-in."""

    check: str
    proves: str
    state: State
    message: str = ""  # why it failed, or why that is right

    def __str__(self) -> str:
        state = "FAILED" if self.state == "failed" else self.state
        return f"{self.check}: {state}" + (f": {self.message}" if self.message else "")


def require(condition: object, message: str) -> None:
    """Fail the check with this message unless the condition holds."""
    if not condition:
        raise CheckFailure(message)


def judge(check: Check[Any], subject: Any, excuses: Mapping[str, str]) -> Verdict:
    """Carry out one check; `excuses` are the plug-in's expected failures."""
    reason = excuses.get(check.name)
    try:
        check.function(subject)
    except NotApplicable as error:
        return Verdict(check.name, check.proves, "not applicable", str(error))
    except Exception as error:  # a plug-in's own mistake, of any type, is what checks are there to find
        if reason:
            return Verdict(check.name, check.proves, "expected failure", reason)
        return Verdict(check.name, check.proves, "failed", _told(error))
    if reason:
        stale = f"it passes, but is said to fail ({reason}); remove it from expected_failures"
        return Verdict(check.name, check.proves, "failed", stale)
    return Verdict(check.name, check.proves, "ok")


def settle(verdict: Verdict) -> Verdict:
    """Turn a verdict into what a test runner understands: an assertion that fails, a test skipped, or nothing."""
    if verdict.state == "failed":
        raise CheckFailure(f"{verdict.check} ({verdict.proves}): {verdict.message}")
    if verdict.state != "ok":
        raise SkipTest(f"{verdict.check}: {verdict.state}: {verdict.message}")
    return verdict


def _told(error: Exception) -> str:
    """Return a failure in one line; where the plug-in raised by itself, with the place."""
    text = " ".join(str(error).split())
    if isinstance(error, CheckFailure):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    # The last line that is neither this kit's nor torch's is where an author looks first.
    own = [
        f for f in frames if not re.search(r"/bench/testing/|/site-packages/(?!bench/)", Path(f.filename).as_posix())
    ]
    place = f" ({Path(own[-1].filename).name}, line {own[-1].lineno}, in {own[-1].name})" if own else ""
    return f"it raised {type(error).__name__}: {text}{place}"
