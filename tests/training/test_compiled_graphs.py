"""Compiled graphs: the same numbers as traced ones up to rounding, kept for later processes, and bounded."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils import _pytree as pytree

from bench.machine.compiled_cache import VARIABLE, compiled_folder, prune
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.methods.mcni_learned import MCNILearned
from bench.training import compiled_graphs, forms
from bench.training.compiled_graphs import compiled, compiler_found
from bench.training.forms import TRACED, Form
from bench.training.limits import Limits
from bench.training.tracing import Call, FlatCall, trace
from bench.training.usage import counted
from tests.fixtures.training import FitInOrder, MakeMember, sine_rows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of torch's own modules
    pytest.mark.skipif(not compiler_found(), reason="no C++ compiler: compiled graphs cannot be tried here"),
]


def compiled_call(call: Call, arguments: tuple[Any, ...]) -> FlatCall:
    graph, traced = trace(call, arguments)
    return replace(traced, run=compiled(graph, pytree.tree_leaves(arguments)))


def twice_sine(x: Tensor) -> Tensor:
    return (2.0 * x).sin()


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(compiled_graphs, "_loaded", {})
    return tmp_path


def forget_loaded() -> None:
    from torch._inductor.utils import clear_caches  # takes seconds

    clear_caches()
    compiled_graphs._loaded.clear()


def test_half_a_file_in_the_compilers_cache_is_got_over(own_cache: Path) -> None:
    x = torch.arange(3.0)
    assert torch.allclose(compiled_call(twice_sine, (x,))(x), twice_sine(x))
    written = [*own_cache.rglob("*.so"), *own_cache.rglob("graphs/*.py")]
    assert len(written) >= 2
    for path in written:  # as a process leaves them that is killed while they are written
        path.unlink()  # the old file is in use here
        path.write_bytes(b"\x7fELF")
    forget_loaded()
    assert torch.allclose(compiled_call(twice_sine, (x,))(x), twice_sine(x))


def test_vector_instructions_are_not_tried_unless_a_compilation_fails(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor.cpu_vec_isa import VecISA, pick_vec_isa

    tried: list[object] = []
    check = VecISA.check_build

    def noted(kind: VecISA, code: str) -> bool:
        tried.append(kind)
        return check(kind, code)

    monkeypatch.setattr(VecISA, "check_build", noted)
    compiled_graphs._forget_vector_instructions()
    x = torch.arange(5.0)
    assert torch.allclose(compiled_call(twice_sine, (x,))(x), twice_sine(x))
    assert not tried
    assert set(own_cache.rglob("*.so")) == set(own_cache.rglob("*.main.so"))  # kernels, and no program of a trial

    # A processor whose instructions the compiler does not know.
    believed, compile_graph = str(pick_vec_isa()), compiled_graphs._compile
    tried.clear()
    compiled_graphs._forget_vector_instructions()

    def fails_at_first(path: Path | None, *rest: Any) -> Any:
        if path is not None:
            assert str(pick_vec_isa()) == believed
            raise RuntimeError("unrecognised option")
        return compile_graph(path, *rest)

    monkeypatch.setattr(compiled_graphs, "_compile", fails_at_first)
    monkeypatch.setattr(compiled_graphs, "_loaded", {})
    x = torch.arange(7.0)
    assert torch.allclose(compiled_call(twice_sine, (x,))(x), twice_sine(x))
    assert bool(tried) == (believed != "INVALID_VEC_ISA")


SCRIPT = """
import sys, torch
from bench.training.compiled_graphs import compiled
from bench.training.tracing import trace

def result(factor):
    x, w = torch.arange(6.0).view(1, 2, 3), torch.ones(1, 3, 2)
    graph, _ = trace(lambda x, w: (factor * x).sin() @ w, (x, w))
    return compiled(graph, [x, w])([x, w])[0].tolist()
"""


def test_another_process_loads_what_was_compiled_without_the_compiler() -> None:
    names: dict[str, Any] = {}
    exec(SCRIPT, names)
    factor = time.time()  # a graph that no earlier run of the tests has compiled
    here = names["result"](factor)
    there = SCRIPT + f"print(result({factor!r}), 'torch._inductor.compile_fx' in sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", there], capture_output=True, text=True, check=True, env=os.environ.copy()
    )
    assert done.stdout.splitlines() == [str(here), "False"]


def test_the_folder_that_torch_chooses_by_itself_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Torch writes its default into its variable as soon as it is imported, which looks like a user's choice."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    for named in (None, default_cache_dir()):
        if named:
            monkeypatch.setenv(VARIABLE, named)
        assert compiled_folder() == tmp_path / "uqbench" / "compiled"
    monkeypatch.setenv(VARIABLE, str(tmp_path / "mine"))
    assert compiled_folder() == tmp_path / "mine"


def test_buffers_that_are_written_and_constants_of_the_graph_are_kept_right() -> None:
    norm, table = nn.BatchNorm1d(3), torch.arange(6.0).view(2, 3)

    def call(running: dict[str, Tensor], x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        written = {name: b.clone() for name, b in running.items()}
        outputs = functional_call(norm, written, (x,))
        return outputs + table[0], written

    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    running = {**dict(norm.named_buffers()), **{name: p.detach() for name, p in norm.named_parameters()}}
    expected, written = call(running, x)
    found, after = compiled_call(call, (running, x))(running, x)
    torch.testing.assert_close(found, expected)
    assert after.keys() == written.keys()
    for name, buffer in written.items():
        torch.testing.assert_close(after[name], buffer)


def test_results_have_the_memory_format_of_the_next_arguments() -> None:
    def call(kernel: Tensor, x: Tensor) -> Tensor:
        return kernel + nn.functional.conv2d(x, kernel).mean()

    kernel = torch.randn(4, 3, 3, 3, generator=torch.Generator().manual_seed(0))
    x = torch.randn(2, 3, 8, 8).contiguous(memory_format=torch.channels_last)
    step = compiled_call(call, (kernel, x))
    once = step(kernel, x)
    assert once.stride() == kernel.stride()
    torch.testing.assert_close(step(once, x), call(call(kernel, x), x), atol=1e-4, rtol=1e-4)


def test_what_was_used_longest_ago_is_removed_first(tmp_path: Path) -> None:
    for age, name in enumerate(("new", "old", "oldest")):
        path = tmp_path / "aa" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 100)
        os.utime(path, (1e9 - age, 1e9 - age))
    assert prune(tmp_path, kept=250) == (1, 100)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["new", "old"]
    assert prune(tmp_path, kept=250) == (0, 0)


@pytest.mark.parametrize("method", [Deterministic(), MCDropout(0.2), MCNILearned()])
def test_members_of_a_compiled_stack_are_as_they_are_alone(
    method: Deterministic, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    """Alone, among 7, and among more than there are slots, whose order of ending differs: every bit is the same."""
    limits = Limits(compiling=True)
    members = [member(method, seed, epochs=2 + seed % 5) for seed in range(40)]
    with counted() as usage:
        crowd = fit_in_order(members, limits)
    assert usage.slot_steps % 32 == 0, "the size of the stack changed"
    some, alone = fit_in_order(members[30:37], limits), fit_in_order([members[33]], limits)
    assert {one.form for one in (*crowd, *some, *alone)} == {Form(compiled=True)}
    for key, value in alone[0].params.items():
        assert torch.equal(value, some[3].params[key])
        assert torch.equal(value, crowd[33].params[key])
    traced = fit_in_order(members[:3], Limits(compiling=False))
    for one, other in zip(traced, crowd, strict=False):
        assert one.form == TRACED
        for key, value in one.params.items():
            torch.testing.assert_close(other.params[key], value, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("method", [Deterministic(), MCNILearned()])
def test_a_wide_stack_of_a_long_queue_changes_no_bit(
    method: Deterministic, member: MakeMember, fit_in_order: FitInOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is wide while members wait and narrow in the tail; those that were in both are as they are alone."""
    monkeypatch.setattr(forms, "WIDE_SLOTS", 41)
    limits = Limits(compiling=True)
    members = [member(method, seed, epochs=2 + seed % 5 + 4 * (seed % 41 == 7)) for seed in range(4 * 41)]
    with counted() as usage:
        crowd = fit_in_order(members, limits)
    assert usage.slot_steps % 32, "the stack was never wide"
    assert usage.slot_steps % 41, "the stack was never narrow"
    assert {one.form for one in crowd} == {Form(compiled=True)}
    for place in (0, 47, 127, 159):
        alone = fit_in_order([members[place]], limits)[0]
        for key, value in alone.params.items():
            assert torch.equal(value, crowd[place].params[key])


def test_one_graph_serves_epochs_of_every_length(member: MakeMember, fit_in_order: FitInOrder, own_cache: Path) -> None:
    """A final fit has other rows than the folds of its search, and must not wait for the compiler again."""
    limits = Limits(compiling=True)
    for method in (Deterministic(), MCDropout()):
        before = len(list(own_cache.glob("graphs/*.py")))
        for train in (64, 40):
            fit_in_order([member(method, rows=sine_rows(train + 10, 10), epochs=2, batch=8)], limits)
        assert len(list(own_cache.glob("graphs/*.py"))) == before + 1
