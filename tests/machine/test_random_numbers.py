"""Random numbers of the kernels: torch's own, bit by bit, and torch's generator where it would have been."""

import ctypes
from pathlib import Path

import pytest
import torch

from bench.machine import kernels, random_numbers
from bench.machine.compiler import cpp_compiler
from bench.machine.kernels import load_kernels
from bench.machine.random_numbers import FEWEST, FLAGS, SOURCE, TORCH

LAWS = {"normals": random_numbers.write_normals, "uniforms": random_numbers.write_uniforms}

compiler = pytest.mark.skipif(cpp_compiler() is None, reason="no C++ compiler: kernels cannot be compiled here")


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch) -> random_numbers._Numbers:
    """A process that has drawn nothing yet."""
    fresh = random_numbers._Numbers()
    monkeypatch.setattr(random_numbers, "_here", fresh)
    return fresh


def assert_torchs_numbers(law: str) -> None:
    expected, found = torch.empty(FEWEST), torch.empty(FEWEST)
    TORCH[law](torch.Generator().manual_seed(1), expected)
    LAWS[law](torch.Generator().manual_seed(1), found)
    assert torch.equal(expected, found)


@compiler
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("before", [0, 1, 100, 623, 624, 700])
def test_numbers_are_those_of_torch(law: str, before: int, numbers: random_numbers._Numbers) -> None:
    numbers.by_torch = random_numbers.ENOUGH_TO_COMPILE
    for count in (FEWEST, FEWEST + 1, 1248, 3200, 9999, 2**16, 300_001):
        expected, found = (torch.Generator().manual_seed(count + before) for _ in range(2))
        for source in (expected, found):
            torch.empty(before).uniform_(generator=source)
        wanted, given = torch.empty(count), torch.empty(count)
        TORCH[law](expected, wanted)
        LAWS[law](found, given)
        assert torch.equal(wanted, given)
        assert torch.equal(expected.get_state(), found.get_state())
        # A normal number that torch keeps for the next call stays where it is.
        assert torch.equal(torch.empty(5).normal_(generator=expected), torch.empty(5).normal_(generator=found))
    assert numbers.kernels is not None or not random_numbers._same_as_torch(_kernels())


def _kernels() -> ctypes.CDLL:
    found = load_kernels(SOURCE, *FLAGS)
    assert found is not None
    return found


@compiler
def test_kernels_are_compiled_when_that_pays(
    numbers: random_numbers._Numbers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "compiled_folder", lambda: tmp_path)
    monkeypatch.setattr(random_numbers, "ENOUGH_TO_COMPILE", 5 * FEWEST)
    target, source = torch.empty(FEWEST), torch.Generator()
    for _ in range(4):
        random_numbers.write_uniforms(source, target)
        assert not list(tmp_path.rglob("*.so"))
    random_numbers.write_uniforms(source, target)
    assert len(list(tmp_path.rglob("*.so"))) == 1
    other = random_numbers._Numbers()  # of another process: loads what is there at once
    assert (other.found(1) is None) == (numbers.found(1) is None)
    assert other.by_torch == 1


@compiler
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("0x9d2c5680u", "0x9d2c5780u"),  # another uniform number
        # another rounding of one normal number in five thousand
        ("std::fma(y * m, square, e * -2.12194440e-4f)", "std::fma(e, -2.12194440e-4f, (y * m) * square)"),
        ("state_.next += here;", "state_.next += 0;"),  # another state
    ],
)
def test_kernels_of_other_bits_are_not_used(
    right: str, wrong: str, numbers: random_numbers._Numbers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SOURCE.read_text("utf-8")
    assert right in text
    (tmp_path / "other.cpp").write_text(text.replace(right, wrong), "utf-8")
    monkeypatch.setattr(random_numbers, "SOURCE", tmp_path / "other.cpp")
    monkeypatch.setattr(kernels, "compiled_folder", lambda: tmp_path)
    numbers.by_torch = random_numbers.ENOUGH_TO_COMPILE
    assert_torchs_numbers("uniforms")
    assert numbers.kernels is None
    assert numbers.settled  # and not tried again


def test_without_a_compiler_torch_draws(
    numbers: random_numbers._Numbers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "cpp_compiler", lambda: None)
    monkeypatch.setattr(kernels, "compiled_folder", lambda: tmp_path)
    numbers.by_torch = random_numbers.ENOUGH_TO_COMPILE
    assert_torchs_numbers("normals")


@pytest.mark.parametrize(
    "target",
    [torch.empty(3, 2 * FEWEST)[:, ::2], torch.empty(2 * FEWEST, dtype=torch.float64), torch.empty(FEWEST - 1)],
)
def test_torch_draws_what_kernels_cannot(target: torch.Tensor, numbers: random_numbers._Numbers) -> None:
    expected = target.normal_(generator=torch.Generator().manual_seed(1)).clone()
    random_numbers.write_normals(torch.Generator().manual_seed(1), target)
    assert torch.equal(expected, target)
    assert not numbers.looked_for
