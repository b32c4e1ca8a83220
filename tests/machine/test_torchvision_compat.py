"""The compatibility module, in fresh interpreters: beside stand-ins for torchvision, and the real one if installed."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.machine.torchvision_compat import import_torchvision

REGISTERED = "bool(torch._C._jit_get_schemas_for_operator('torchvision::nms'))"
# As in torchvision: the import asks torch whether the operator has a kernel, and fails where nobody declared it.
BROKEN = """
import torch, torchvision.part
torch._C._dispatch_has_kernel_for_dispatch_key("torchvision::nms", "Meta")
"""
CALL = f"""
import torch, sys
from bench.errors import UserError
from bench.machine.torchvision_compat import import_torchvision
try:
    module = import_torchvision()
    print(module.__name__, getattr(module, "count", ""), {REGISTERED}, import_torchvision() is module)
except (UserError, RuntimeError, ModuleNotFoundError) as error:
    print(type(error).__name__, error)
"""


def called(folder: Path, package: str, code: str = CALL) -> str:
    """Run the code beside a torchvision of the tests' own making."""
    (folder / "torchvision").mkdir()
    (folder / "torchvision" / "__init__.py").write_text(package)
    (folder / "torchvision" / "part.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_missing_operators_are_declared_and_the_import_begins_anew(tmp_path: Path) -> None:
    assert called(tmp_path, BROKEN) == "torchvision  True True"


@pytest.mark.slow
def test_a_torchvision_that_works_is_left_alone(tmp_path: Path) -> None:
    assert called(tmp_path, "count = 7") == "torchvision 7 False True"


@pytest.mark.slow
def test_other_faults_are_not_hidden(tmp_path: Path) -> None:
    package = "import os\nif 'other' in os.environ: import no_such_package_of_ours\nraise RuntimeError('another fault')"
    code = CALL + "import os\nos.environ['other'] = ''\n" + CALL
    assert called(tmp_path, package, code).splitlines() == [
        "RuntimeError another fault",
        "ModuleNotFoundError No module named 'no_such_package_of_ours'",
    ]


def test_without_torchvision_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(UserError, match="torchvision is not installed; 'pip install"):
        import_torchvision()


@pytest.mark.slow
def test_the_real_one_and_torchmetrics_beside_it() -> None:
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    code = (
        "from bench.machine.torchvision_compat import import_torchvision\n"
        "vision = import_torchvision()\nimport torch, torchmetrics\n"
        "logits = vision.models.resnet18().eval()(torch.zeros(1, 3, 32, 32))\n"
        "print(vision.datasets.CIFAR10.__name__, tuple(logits.shape))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.strip() == "CIFAR10 (1, 1000)", done.stderr
