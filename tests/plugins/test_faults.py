"""A mistake in a plug-in is told in one line with the hook, the file and the line of its author."""

import re
from pathlib import Path

import numpy as np
import pytest

from bench.api import Split
from bench.plugins.faults import explain
from bench.plugins.registry import Registry
from bench.run.job import Job
from bench.run.jobs import outcomes
from bench.spec.plugin import PluginSpec
from bench.spec.protocol import Protocol, Training
from bench.testing import verify

METHOD = '''"""A method with a mistake in it: b = b (nobody 2026)."""
import random
from dataclasses import dataclass
import torch
from torch import Tensor, nn
from bench.api import Batch, Method, Net, Tape


@dataclass(frozen=True)
class Mistaken(Method):
    rate: float = 0.1

    def {hook}
'''
LINE = 14  # of the first line in the hook's body
LOSS = "loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:\n        "
DRAW = "draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:\n        "
UPDATE = "update(self, net, gradient, optimizer, state, step, tape):\n        "

DATA = "batch.loss(net(batch.x))"

CONDITION = r"a Python condition.*torch\.where"
NUMBER = r"turned into a Python number or array.*keep it a tensor"
MISTAKES = {
    "if": (LOSS + f"if self.rate > 0:\n            return {DATA}", CONDITION),
    "if else": (LOSS + f"return {DATA} if batch.y.mean() > 0 else 2 * {DATA}", CONDITION),
    "item": (LOSS + f"return {DATA} * self.rate.item()", NUMBER),
    "float": (LOSS + f"return {DATA} * float(batch.x.mean())", NUMBER),
    "numpy": (LOSS + f"return {DATA} * float(batch.x.numpy().mean())", NUMBER),
    "randn": (LOSS + "return batch.loss(net(batch.x + torch.randn(batch.x.shape)))", "random numbers from the tape"),
    "bernoulli": (LOSS + "return batch.loss(net(batch.x * torch.bernoulli(batch.x * 0)))", "from the tape"),
    "mask": (LOSS + "return net(batch.x)[batch.y > 0].mean()", r"shape of a result depends.*torch\.where"),
    "in place": (LOSS + "batch.x[:, 0] = 0.0", r"writes into batch\.x in place"),
    "new in place": (LOSS + f"z = torch.zeros(3); z += self.rate; return {DATA} + z.sum()", "in place"),
    "shape": (LOSS + "return batch.loss(net(batch.x) @ torch.ones(3, 3))", "RuntimeError: mat1 and mat2"),
    "key": (LOSS + "return net.params['weight'].sum()", "KeyError: 'weight'"),
    "update": (UPDATE + "return optimizer.update({}, {}, {}, step) if step.progress > 0.5 else ({}, {})", CONDITION),
    "draw if": (DRAW + "return net(x) if tape.normal(()) > 0 else -net(x)", CONDITION),
    "draw randn": (DRAW + "return net(x) + torch.randn(())", "random numbers from the tape"),
}
SPLIT = Split("regression", np.linspace(0, 1, 40)[:, None], np.linspace(-1, 1, 40), np.ones((3, 1)), np.ones(3))
PROTOCOL = Protocol(Training(epochs=1, batch=8), PluginSpec("mlp", options={"hidden": [4]}), draws=5)


def mistaken(folder: Path, hook: str) -> Path:
    path = folder / "mistaken.py"
    path.write_text(METHOD.format(hook=hook))
    return path


@pytest.mark.parametrize("name", MISTAKES)
def test_a_run_tells_the_line(name: str, tmp_path: Path) -> None:
    hook, reason = MISTAKES[name]
    method = Registry([mistaken(tmp_path, hook)]).make("method", "mistaken", {})
    (_, outcome), *_ = outcomes([Job(method, PROTOCOL, SPLIT, seed) for seed in range(2)])
    first, _, rest = outcome.message.partition("\n")
    assert outcome.status == "failed"
    assert re.match(rf"{hook.partition('(')[0]}, mistaken\.py:{LINE}: .*{reason}", first), first
    assert len(first) < 400
    assert "Traceback" in rest


@pytest.mark.parametrize("name", ["if", "randn", "draw if"])
def test_verify_tells_the_same_line(name: str, tmp_path: Path) -> None:
    hook, reason = MISTAKES[name]
    method = Registry([mistaken(tmp_path, hook)]).make("method", "mistaken", {})
    (verdict,) = verify(method, ["seeded"])
    assert re.match(rf"{hook.partition('(')[0]}, mistaken\.py:{LINE}: .*{reason}", verdict.message)


def test_an_error_without_a_hook_keeps_its_type() -> None:
    assert explain(ZeroDivisionError("by nothing")) == "ZeroDivisionError: by nothing"


def test_a_mistake_in_a_lambda_or_a_module_has_its_own_line(tmp_path: Path) -> None:
    noise = "hidden = lambda h: (\n            h * self.rate.item())"
    body = LOSS + f"{noise}\n        return batch.loss(net(batch.x, hidden=hidden))"
    method = Registry([mistaken(tmp_path, body)]).make("method", "mistaken", {})
    ((_, outcome),) = outcomes([Job(method, PROTOCOL, SPLIT, 0)])
    assert outcome.message.startswith(f"loss, mistaken.py:{LINE + 1}: ")
