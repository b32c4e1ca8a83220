"""Traces a function over a whole stack into a flat graph, and compiles it where that pays.

Eager `vmap` spends most of a small step in Python. Replaying the recorded operations of one trace avoids that;
`torch.compile` then fuses them. Shapes are fixed by the trace. Two properties are tested: the numbers of a member do
not depend, to the last bit, on how many others are in the graph (from two members up), nor on its place among them.
"""

import shutil
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

Call = Callable[..., Any]

# Compiling takes 5 to 10 s and saves 1 to 2 ms per step, for any size of the stack.
STEPS_THAT_PAY_FOR_COMPILING = 10_000


def compiler_found() -> bool:
    """Return whether there is a C++ compiler for `torch.compile`."""
    return any(shutil.which(name) for name in ("g++", "clang++", "c++"))


def trace(call: Call, arguments: tuple[Any, ...]) -> Call:
    """Return the function as a recorded graph, for arguments of the same shapes."""
    # The tracer identifies tensors by object: one tensor passed as two arguments would become one input.
    distinct = pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf, arguments)
    graph = make_fx(call)(*distinct)
    _transpose_tall_products(graph)
    return graph


def compiled(graph: Call, arguments: tuple[Any, ...]) -> Call:
    """Return the compiled graph, after a first call with these arguments."""

    def compile_and_call() -> Call:
        fast: Call = torch.compile(graph, fullgraph=True, dynamic=False)
        fast(*arguments)
        return fast

    try:
        return compile_and_call()
    except Exception:  # of the compiler, which has every kind of error
        # A process that was killed during compilation leaves a partial file in torch's cache, on which every later one
        # fails: only an error with an empty cache is the compiler's.
        from torch._inductor.utils import fresh_cache  # takes a second to import

        with fresh_cache():
            return compile_and_call()


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
