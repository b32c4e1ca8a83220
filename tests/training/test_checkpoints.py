"""A training that was interrupted ends with the very numbers of one that was not."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from bench.api import Array, Method
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.methods.mcni_learned import MCNILearned
from bench.methods.swag import SWAG
from bench.networks.resnet8 import ResNet8Network
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.run.driver import run
from bench.run.summary import Summary
from bench.store.store import Store
from bench.training import checkpoints, small_convolutions
from bench.training.fit import fit
from bench.training.limits import Limits, threads
from bench.training.member import Fitted, Member
from tests.fixtures.training import MakeMember

pytestmark = pytest.mark.slow

RESNET = ResNet8Network()


class Interrupted(BaseException):
    """Stands for a kill."""


def interrupt_after(saves: int, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Let the training die after so many checkpoints were written; return which, as they are written."""
    written: list[Path] = []
    save = checkpoints.save

    def count(path: Path, *rest: object) -> bool:
        kept = save(path, *rest)  # type: ignore[arg-type]
        written.append(path)
        if len(written) == saves:
            raise Interrupted
        return kept

    monkeypatch.setattr(checkpoints, "save", count)
    return written


def trained(members: list[Member], limits: Limits) -> list[Fitted]:
    done = dict(fit(members, limits))
    return [done[number] for number in range(len(members))]


def assert_same(one: Fitted, other: Fitted) -> None:
    assert (one.status, one.epochs, one.validation_loss) == (other.status, other.epochs, other.validation_loss)
    np.testing.assert_array_equal(one.history, other.history)
    for part in ("params", "buffers", "memory"):
        tensors, others = getattr(one, part), getattr(other, part)
        assert tensors.keys() == others.keys()
        for name in tensors:
            assert torch.equal(tensors[name], others[name]), f"{part} {name}"


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        (MCNILearned(), {"optimizer": "sgd", "schedule": "cosine", "augmentation": "crop-flip"}),
        (MCDropout(), {"optimizer": "adam", "patience": 2}),  # early stopping: the best weights are kept, too
        (SWAG(), {"optimizer": "sgd", "learning_rate": 1e-3}),  # it remembers every epoch
    ],
    ids=["mcni-learned", "mc-dropout", "swag"],
)
def test_a_network_goes_on_from_its_last_epoch_to_the_same_bits(
    method: Method, settings: dict[str, object], member: MakeMember, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first of two ends before the second is interrupted: it must not be trained again either.
    members = [
        replace(member(method, seed, network=RESNET, epochs=4, **settings), checkpoint=f"place/{seed}.safetensors")
        for seed in range(2)
    ]
    whole = trained(members, Limits(path="plain"))
    limits = Limits(path="plain", checkpoints=str(tmp_path))
    with pytest.MonkeyPatch.context() as patch:
        interrupt_after(whole[0].epochs + 2, patch)
        with pytest.raises(Interrupted):
            trained(members, limits)
    written = interrupt_after(-1, monkeypatch)
    resumed = trained(members, limits)
    assert len(written) == whole[1].epochs - 2
    for one, other in zip(whole, resumed, strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("spoil", ["cut", "other form", "other network"])
def test_a_checkpoint_that_does_not_fit_is_not_used(spoil: str, member: MakeMember, tmp_path: Path) -> None:
    one = replace(member(Deterministic(), network=RESNET, epochs=2), checkpoint="a.safetensors")
    limits = Limits(path="plain", checkpoints=str(tmp_path))
    (whole,) = trained([one], Limits(path="plain"))
    file = tmp_path / "a.safetensors"
    if spoil == "other network":
        trained([replace(member(Deterministic(), epochs=1), checkpoint="a.safetensors")], limits)
    else:
        trained([one], limits)
        with safe_open(file, framework="pt") as content:
            tensors = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
        # With other numbers: were the file used, the result would differ.
        wrong = {name: tensor + 1 if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
        about = {**checkpoints.form(torch.device("cpu"), False), "torch": "1.0"}
        checkpoints.save(file, {"": {}, **_by_part(wrong)}, about)
    if spoil == "cut":
        file.write_bytes(file.read_bytes()[:1000])
        with pytest.warns(UserWarning, match="not a complete checkpoint"):
            (again,) = trained([one], limits)
    else:
        (again,) = trained([one], limits)
    assert_same(whole, again)


def test_a_compiled_training_does_not_go_on_with_other_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that had begun before an update, with convolutions of torch, ended with bits of neither version."""
    cpu, parts = torch.device("cpu"), {"params": {"w": torch.ones(2)}}
    for compiled in (True, False):
        assert checkpoints.save(tmp_path / str(compiled), parts, checkpoints.form(cpu, compiled))
    later = tmp_path / "kernels.cpp"
    later.write_bytes(small_convolutions.SOURCE.read_bytes() + b"// of a later version\n")
    monkeypatch.setattr(small_convolutions, "SOURCE", later)
    assert checkpoints.load(tmp_path / "True", checkpoints.form(cpu, True), parts) is None
    assert checkpoints.load(tmp_path / "False", checkpoints.form(cpu, False), parts) is not None


def _by_part(tensors: dict[str, torch.Tensor]) -> dict[str, dict[str, torch.Tensor]]:
    parts: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        part, _, rest = name.partition("/")
        parts.setdefault(part, {})[rest] = tensor
    return parts


def test_a_folder_that_cannot_be_written_is_told_once_and_the_training_goes_on(
    member: MakeMember, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    one = replace(member(Deterministic(), epochs=3), checkpoint="a.safetensors")
    with pytest.warns(UserWarning, match="no checkpoints") as told:
        (fitted,) = trained([one], Limits(path="plain", checkpoints=str(tmp_path / "file")))
    assert (len(told), fitted.epochs) == (1, 3)


def test_networks_of_a_stack_are_not_kept(member: MakeMember, tmp_path: Path) -> None:
    one = replace(member(Deterministic(), epochs=1), checkpoint="a.safetensors")
    trained([one], Limits(path="stack", checkpoints=str(tmp_path)))
    assert not list(tmp_path.iterdir())


CHANGES = ("network.kind=resnet8", "training.epochs=3", "training.batch=128", "draws=2")


def run_here(store: Path) -> Summary:
    suite = load_suite("digits", [*CHANGES, "seeds=1"]).only([], ["mcni-fixed"])
    with closing(Store(str(store))) as opened, threads(1):  # sums are cut by threads: as many as in the killed run
        return run(suite, Registry(), opened)


def run_there(store: Path) -> "subprocess.Popen[bytes]":
    sets = [word for change in CHANGES for word in ("--set", change)]
    which = ["--method", "mcni-fixed", "--seeds", "1", "--engine", "inline", "--store", str(store)]
    return subprocess.Popen(
        [sys.executable, "-m", "bench", "run", "digits", *which, *sets], env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def results(store: Path) -> tuple[dict[tuple[str, str], float], dict[str, dict[str, Array]]]:
    with closing(Store(str(store), create=False, writable=False)) as kept:
        values = {(row["key"], row["metric"]): row["value"] for row in kept.values("digits")}
        return values, {key: kept.load_arrays(key) or {} for key, _ in values}


def test_a_killed_run_goes_on_and_stores_what_an_uninterrupted_one_does(tmp_path: Path) -> None:
    run_here(tmp_path / "whole.db")
    process = run_there(tmp_path / "killed.db")
    folder, epochs = tmp_path / "killed.db.checkpoints", 0
    while epochs < 2:
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.02)
        for file in folder.glob("*/*.safetensors"):
            with safe_open(file, framework="pt") as content:
                epochs = max(epochs, len(content.get_tensor("member/history")))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert list(folder.glob("*/*.safetensors"))
    assert run_here(tmp_path / "killed.db").stored == 1
    assert not folder.exists()
    (metrics, arrays), killed = results(tmp_path / "whole.db"), results(tmp_path / "killed.db")
    assert len(arrays) == 1
    assert killed[0] == metrics
    for key, named in arrays.items():
        for name, array in named.items():
            np.testing.assert_array_equal(array, killed[1][key][name])
