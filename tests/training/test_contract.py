"""The contract holds for the forms of built-in methods that go through other code than the default.

A network in a stack, alone and without a stack is the same one. The defaults go through the same checks of the
conformance kit, in tests/testing/test_builtins.py.
"""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pytest
import torch

from bench.api import Method
from bench.plugins.registry import Registry
from bench.training.drawing import Drawing, draw
from bench.training.fit import fit
from bench.training.limits import Limits
from bench.training.member import Fitted, Member, Rows, finish, training_form

pytestmark = pytest.mark.slow

FORMS: dict[str, list[dict[str, Any]]] = {
    "bayes-by-backprop": [{"local_reparameterization": False}],
    "laplace": [{"structure": "kronecker"}, {"structure": "diagonal"}],
    "mc-dropout": [{"per_row": True}],
    "mcni-fixed": [{"law": "laplace", "multiplicative": True}],
    "mcni-learned": [{"granularity": "channel"}],
    "pni": [{"where": "activations"}],
    "sgld": [{"preconditioned": True}],
    "weight-noise": [{"where": "activations"}],
}
PLACE, STACK = 2, 4


def methods() -> list[Any]:
    registry, made = Registry(), []
    for name, forms in FORMS.items():
        for options in forms:
            form = ", ".join([name, *(str(value) for value in options.values())])
            made.append(pytest.param(registry.make("method", name, options), id=form))
    return made


@pytest.fixture(scope="module")
def trained() -> Callable[[str, list[Member], Limits], list[Fitted]]:
    """Return what trains members, once for all methods that train alike."""
    kept: dict[Hashable, list[Fitted]] = {}

    def train(what: str, members: list[Member], limits: Limits) -> list[Fitted]:
        key = (what, training_form(members[0].method)[0], members[0].rows.task)
        if key not in kept:
            done = dict(fit(members, limits))
            kept[key] = [done[number] for number in range(len(members))]
        return [finish(one, network) for one, network in zip(members, kept[key], strict=True)]

    return train


def class_rows(rows: Rows) -> Rows:
    return Rows("classification", rows.x, (rows.y > 0).long(), rows.train, rows.validation)


@pytest.mark.parametrize("method", methods())
def test_a_network_does_not_depend_on_its_neighbours(
    method: Method, member: Callable[..., Member], trained: Callable[[str, list[Member], Limits], list[Fitted]]
) -> None:
    first = member(method, PLACE, epochs=6)
    rows = first.rows if method.skip(first.problem) is None else class_rows(first.rows)
    members = [member(method, seed, rows=rows, epochs=6) for seed in range(STACK)]
    one, stack, plain = members[PLACE], Limits(path="stack"), Limits(path="plain")

    def drawn(network: Fitted, limits: Limits) -> np.ndarray[Any, Any]:
        return draw(Drawing(method, [network] * method.networks, rows.task, rows.x, 0, 12), limits)

    among = trained("among", members, stack)[PLACE]
    (alone,), (by_itself,) = trained("alone", [one], stack), trained("plain", [one], plain)
    for name, value in alone.params.items():
        assert torch.equal(among.params[name], value), f"{name} depends on the neighbours"
    functions = drawn(alone, stack)
    np.testing.assert_array_equal(drawn(among, stack), functions)
    np.testing.assert_allclose(drawn(by_itself, plain), functions, atol=2e-5)
    assert np.isfinite(functions).all()
    if len(functions) > method.networks:
        assert len(functions) == 12
        assert (functions.std(0).max(-1) > 0).all()
    (begun,) = trained("begun", [member(method, PLACE, rows=rows, epochs=1)], plain)
    assert alone.train_loss < begun.train_loss
