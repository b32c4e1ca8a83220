"""Records a function over a whole stack as a flat graph of operations.

Eager `vmap` spends most of a small step in Python. Replaying the recorded operations avoids that; `compiled_graphs`
then fuses them where it pays. Shapes are fixed by the trace. Two properties are tested: the numbers of a member do not
depend, to the last bit, on how many others are in the graph (from two members up), nor on its place among them.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx
from torch._guards import TracingContext, tracing
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

Call = Callable[..., Any]
Run = Callable[[list[Tensor]], Sequence[Tensor]]  # of the flat tensors of the arguments; it may empty the list


@dataclass(frozen=True)
class FlatCall:
    """A function of nested arguments that can be called with their flat tensors, which saves time in a loop."""

    run: Run
    given: pytree.TreeSpec  # the structure of the arguments
    returned: pytree.TreeSpec

    def __call__(self, *arguments: Any) -> Any:
        """Call it with nested arguments."""
        return pytree.tree_unflatten(list(self.run(pytree.tree_leaves(arguments))), self.returned)


def flat_call(call: Call, arguments: tuple[Any, ...]) -> FlatCall:
    """Return a function as it is, for arguments of the same structure."""
    given = pytree.tree_structure(arguments)

    def run(leaves: list[Tensor]) -> list[Tensor]:
        return pytree.tree_leaves(call(*pytree.tree_unflatten(leaves, given)))

    return FlatCall(run, given, pytree.tree_structure(call(*arguments)))


def trace(call: Call, arguments: tuple[Any, ...]) -> tuple[fx.GraphModule, FlatCall]:
    """Return the graph of a function for arguments of these shapes, and how it is called."""
    leaves, given = pytree.tree_flatten(arguments)
    returned: list[pytree.TreeSpec] = []

    def flat(*tensors: Tensor) -> list[Tensor]:
        results, structure = pytree.tree_flatten(call(*pytree.tree_unflatten(list(tensors), given)))
        returned.append(structure)
        return results

    # The tracer identifies tensors by object: one tensor passed as two arguments would become one input.
    with one_fake_mode():
        graph = make_fx(flat)(*(leaf.clone() for leaf in leaves))
    _drop_identities(graph)
    _transpose_tall_products(graph)
    return graph, FlatCall(lambda tensors: graph(*tensors), given, returned[0])


def one_fake_mode() -> AbstractContextManager[object]:
    """Return a context for traces; without it torch makes a new mode of fake tensors for every node it records."""
    return tracing(TracingContext(FakeTensorMode(allow_fallback_kernels=True)))


def _drop_identities(graph: fx.GraphModule) -> None:
    """Remove operations that return what they are given: each takes as long to call as one that computes."""
    aten = torch.ops.aten
    nodes = [node for node in graph.graph.nodes if node.op == "call_function"]
    # A product is new memory, a view is not: an operation in place would see the difference.
    in_place = any(getattr(getattr(node.target, "_schema", None), "is_mutable", True) for node in nodes)
    for node in nodes:
        source = node.args[0]
        view = node.target in (aten.view.default, aten._unsafe_view.default, aten.expand.default)
        if (view and _alike(node, source)) or (node.target is aten.mul.Scalar and node.args[1] == 1 and not in_place):
            node.replace_all_uses_with(source)
            graph.graph.erase_node(node)
    graph.recompile()


def _alike(one: fx.Node, other: fx.Node) -> bool:
    first, second = one.meta["val"], other.meta["val"]
    return bool(first.shape == second.shape and first.stride() == second.stride())


def _transpose_tall_products(graph: fx.GraphModule) -> None:
    """Compute every batched product that has more rows than columns as its transpose.

    Row-major kernels run along the columns: a stack of 50 x 8 products (the weight gradient of a narrow layer) took
    284 us, the same as 8 x 50 took 83 us.
    """
    bmm, swap = torch.ops.aten.bmm.default, torch.ops.aten.transpose.int
    for node in graph.graph.find_nodes(op="call_function", target=bmm):
        _, rows, columns = node.meta["val"].shape
        if rows <= columns or columns == 1:
            continue
        with graph.graph.inserting_after(node):
            back = graph.graph.call_function(swap, (node, 1, 2))
        back.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(back)
        back.args = (node, 1, 2)
        left, right = node.args
        with graph.graph.inserting_before(node):
            node.args = (graph.graph.call_function(swap, (right, 1, 2)), graph.graph.call_function(swap, (left, 1, 2)))
    graph.recompile()
