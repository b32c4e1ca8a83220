"""What becomes of a check: passed, failed, expected to fail, not applicable."""

from unittest import SkipTest

import pytest

from bench.errors import UserError
from bench.testing import Check, CheckFailure, NotApplicable, method_checks, run_check, verify
from bench.testing.check import judge, require
from bench.testing.problems import Plain


def check_of(outcome: Exception | None) -> Check[None]:
    def function(subject: None) -> None:
        if outcome is not None:
            raise outcome

    return Check("example", "nothing", function)


@pytest.mark.parametrize(
    ("outcome", "excused", "state"),
    [
        (None, False, "ok"),
        (None, True, "failed"),
        (CheckFailure("wrong"), False, "failed"),
        (CheckFailure("wrong"), True, "expected failure"),
        (ZeroDivisionError("wrong"), False, "failed"),
        (ZeroDivisionError("wrong"), True, "expected failure"),
        (NotApplicable("nothing here"), False, "not applicable"),
        (NotApplicable("nothing here"), True, "not applicable"),
    ],
)
def test_the_states_of_a_verdict(outcome: Exception | None, excused: bool, state: str) -> None:
    verdict = judge(check_of(outcome), None, {"example": "it has its reason"} if excused else {})
    assert verdict.state == state
    assert verdict.message or state == "ok"


def test_an_excuse_that_is_not_needed_is_told() -> None:
    verdict = judge(check_of(None), None, {"example": "it has its reason"})
    assert "remove it from expected_failures" in verdict.message


def test_what_a_plug_in_raises_is_told_with_its_place() -> None:
    verdict = judge(check_of(ZeroDivisionError("by nothing")), None, {})
    assert verdict.message.startswith("it raised ZeroDivisionError: by nothing (test_check.py, line ")


@pytest.mark.slow
def test_a_test_fails_passes_or_is_skipped_with_the_reason() -> None:
    checks = {check.name: check for check in method_checks()}
    assert run_check(checks["version"], Plain()).state == "ok"
    with pytest.raises(CheckFailure, match="has no equation"):
        run_check(checks["docstring"], Plain())
    with pytest.raises(SkipTest, match="every network is one function"):
        run_check(checks["exchangeable"], Plain())


def test_require() -> None:
    require(True, "never")
    with pytest.raises(AssertionError, match="always"):
        require(False, "always")


def test_unknown_checks_and_things_that_are_no_plug_in() -> None:
    with pytest.raises(UserError, match=r"--only: unknown check 'finit'; did you mean finite\?"):
        list(verify(Plain(), ["finit"]))
    with pytest.raises(TypeError, match="give run_check an instance"):
        run_check(next(method_checks()), Plain)  # type: ignore[arg-type]
