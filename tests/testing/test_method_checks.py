"""Every check finds the fault that it is there for, and only that one; a healthy method passes all of them."""

import importlib.util
import os
import sys
from dataclasses import make_dataclass
from pathlib import Path
from types import ModuleType

import pytest

from bench.api import Look
from bench.plugins.registry import Registry
from bench.testing import method_checks, verify

pytestmark = pytest.mark.slow


def load(name: str) -> ModuleType:
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


broken = load("broken_methods")
BROKEN = {
    "options": broken.NotADataclass,
    "version": broken.NoVersion,
    "docstring": load("undocumented_method").Undocumented,
    "search-space": broken.BadSpace,
    "expected-failures": broken.BadExcuse,
    "look": broken.BorrowedLook,
    "skip": broken.SilentSkip,
    "shapes": broken.DoubleDraw,
    "finite": broken.FiniteNearby,
    "prediction": broken.CentresRows,
    "probabilities": broken.OneClassMore,
    "seeded": broken.Unseeded,
    "draws-differ": broken.ReadsInVain,
    "many-draws": broken.RarelyFinite,
    "exchangeable": broken.Drifting,
    "global-randomness": broken.GlobalNumbers,
    "no-state": broken.Scribbles,
    "round-trip": broken.KeepsOnModule,
    "learns": broken.Lazy,
    "watched": broken.Unwatched,
    "stack-invariance": broken.LooksAtNeighbours,
    "last-bit": broken.GlimpsesAtNeighbours,
    "plain-path": broken.LooksAtVmap,
    "ensemble-of-one": broken.SharesWork,
    "tiny-data": broken.NeedsRows,
    "constant-targets": broken.NeedsVariety,
    "missing-class": broken.NeedsAllClasses,
    "second-device": broken.StaysOnHost,
    "draws-stay": broken.AsksTheDevice,
    "variance-shrinks": broken.FixedNoise,
    "cost": broken.Hoards,
}
QUICK = ("options", "version", "docstring", "search-space", "expected-failures", "look", "skip", "tiny-data", "cost")


def test_the_healthy_method_passes_all() -> None:
    verdicts = list(verify(broken.Healthy()))
    assert [v.check for v in verdicts if v.state != "ok"] == ["ensemble-of-one"]  # it has one network
    assert not [str(v) for v in verdicts if v.state == "failed"]
    assert len(verdicts) == len(BROKEN)


def test_there_is_a_broken_method_for_every_check() -> None:
    assert list(BROKEN) == [check.name for check in method_checks()]


@pytest.mark.parametrize("name", BROKEN)
def test_a_check_finds_its_fault_and_no_other(name: str) -> None:
    """All other checks are those that cost nothing; UQBENCH_THOROUGH=1 runs every one of them (a few minutes)."""
    others = [] if os.environ.get("UQBENCH_THOROUGH") else [name, *QUICK]
    found = {v.check: v.message for v in verify(BROKEN[name](), others) if v.state == "failed"}
    assert list(found) == [name], found
    assert len(found[name].split()) > 6, "a failure says what to do"


def test_a_variance_that_does_not_shrink_has_three_ways_out() -> None:
    without_excuse = type("Own", (Registry().load("method", "deep-ensemble"),), {"expected_failures": {}})(networks=2)
    for method in (broken.FixedNoise(), without_excuse):
        (verdict,) = verify(method, ["variance-shrinks"])
        assert verdict.state == "failed"
        for way in ("1 / batch.rows", "spread = 'level'", "'aleatoric'", "expected_failures"):
            assert way in verdict.message


def test_draws_that_seldom_differ_do_differ() -> None:
    (verdict,) = verify(broken.RareMask(), ["draws-differ"])
    assert verdict.state == "ok", verdict.message


@pytest.mark.parametrize(
    ("look", "message"),
    [("blue", "look is 'blue'; write look = Look("), (Look("red", ":", "h", filled=False), "an open marker means")],
)
def test_a_look_that_figures_cannot_use_is_told(look: object, message: str) -> None:
    (verdict,) = verify(type("Own", (broken.Healthy,), {"look": look})(), ["look"])
    assert verdict.state == "failed"
    assert message in verdict.message


def test_a_look_that_is_an_option_is_told() -> None:
    own = make_dataclass("Own", [("look", object, None)], bases=(broken.Healthy,), frozen=True)
    (verdict,) = verify(own(), ["look"])
    assert verdict.message.startswith("look is an option")
