"""Convolutions of few channels on a CPU: a compiled step of ResNet8 of width 4 takes less than half of the time.

torch's kernels work on 16 channels at once; with 4 channels, three quarters of that are padding. Here images are stored
with the batch last and the kernels (`small_convolutions.cpp`) work on 16 images at once. Compiled graphs use them where
all of their convolutions have few channels, and the compiler then stores whatever is between them in the same way.
"""

import ctypes
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx

from bench.machine.kernels import kernels_name, load_kernels

MOST_CHANNELS = 16  # of outputs, which are the inputs of the next; with more, torch's kernels are faster
FEWEST_IMAGES = 16  # at once in a vector of the processor
SOURCE = Path(__file__).with_suffix(".cpp")

aten = torch.ops.aten
_library = torch.library.Library("uqbench", "DEF")
_library.define("convolution(Tensor x, Tensor weight, int stride, int padding) -> Tensor")
_library.define(
    "convolution_of_gradient(Tensor gradient, Tensor weight, int height, int width, int stride, int padding) -> Tensor"
)
_library.define("convolution_by_weight(Tensor x, Tensor gradient, int size, int stride, int padding) -> Tensor")


def all_small(graph: fx.GraphModule) -> bool:
    """Return whether a graph has convolutions, and all of them are ones that are faster here."""
    forward = graph.graph.find_nodes(op="call_function", target=aten.convolution.default)
    backward = graph.graph.find_nodes(op="call_function", target=aten.convolution_backward.default)
    nodes = [(node.args[0], node.args[1], node.args[3:9]) for node in forward]
    nodes += [(node.args[1], node.args[2], node.args[4:10]) for node in backward]
    return bool(nodes) and all(_small(x.meta["val"], weight.meta["val"], *rest) for x, weight, rest in nodes)


def _small(
    x: Tensor,
    weight: Tensor,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    _: object,
    groups: int,
) -> bool:
    return (
        x.ndim == 4
        and x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and weight.shape[0] <= MOST_CHANNELS
        and x.shape[0] >= FEWEST_IMAGES
        and tuple(weight.shape[2:]) in ((1, 1), (3, 3))
        and len({*stride}) == len({*padding}) == 1
        and {*dilation} == {1}
        and not transposed
        and groups == 1
    )


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return what takes the place of torch's convolutions when a graph of small ones is compiled."""
    return {aten.convolution.default: _convolution, aten.convolution_backward.default: _convolution_backward}


def _batch_last(x: Tensor) -> Tensor:
    """Have whatever computes these images store them with the batch last; a copy would cost more than a convolution."""
    images, _, height, width = x.shape
    strides = [1, height * width * images, width * images, images]
    stored: Tensor = torch.ops.prims.inductor_force_stride_order(x, strides)
    return stored.permute(1, 2, 3, 0)


def _convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int], *_: object
) -> Tensor:
    y: Tensor = torch.ops.uqbench.convolution(_batch_last(x), weight.contiguous(), stride[0], padding[0])
    if bias is not None:
        y = y + bias[:, None, None, None]
    return y.permute(3, 0, 1, 2)


def _convolution_backward(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: list[int] | None,
    stride: list[int],
    padding: list[int],
    *rest: Any,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    wanted: list[bool] = rest[-1]
    last, size = _batch_last(gradient), weight.shape[2]
    by_input = by_weight = by_bias = None
    if wanted[0]:
        by_input = torch.ops.uqbench.convolution_of_gradient(
            last, weight.contiguous(), x.shape[2], x.shape[3], stride[0], padding[0]
        ).permute(3, 0, 1, 2)
    if wanted[1]:
        by_weight = torch.ops.uqbench.convolution_by_weight(_batch_last(x), last, size, stride[0], padding[0])
    if wanted[2]:
        by_bias = last.sum((1, 2, 3))
    return by_input, by_weight, by_bias


def _empty_outputs(x: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
    outputs = [(length + 2 * padding - weight.shape[2]) // stride + 1 for length in x.shape[1:3]]
    return x.new_empty(weight.shape[0], *outputs, x.shape[3])


def _empty_inputs(gradient: Tensor, weight: Tensor, height: int, width: int, stride: int, padding: int) -> Tensor:
    return gradient.new_empty(weight.shape[1], height, width, gradient.shape[3])


def _empty_weights(x: Tensor, gradient: Tensor, size: int, stride: int, padding: int) -> Tensor:
    return x.new_empty(gradient.shape[0], x.shape[0], size, size)


class _Convolution(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_int64)
        for name in (
            *("inputs", "height", "width", "outputs", "out_height", "out_width"),
            *("images", "size", "stride", "padding"),
        )
    )


def _forward(x: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
    y = _empty_outputs(x, weight, stride, padding)
    shape = _Convolution(*x.shape[:3], *y.shape, weight.shape[2], stride, padding)
    _in_parts("sum_rows", y.shape[1], x, weight, y, shape, 0)
    return y


def _of_gradient(gradient: Tensor, weight: Tensor, height: int, width: int, stride: int, padding: int) -> Tensor:
    result = _empty_inputs(gradient, weight, height, width, stride, padding)
    shape = _Convolution(*result.shape[:3], *gradient.shape, weight.shape[2], stride, padding)
    _in_parts("sum_rows", height, gradient, weight, result, shape, 1)
    return result


def _by_weight(x: Tensor, gradient: Tensor, size: int, stride: int, padding: int) -> Tensor:
    result = _empty_weights(x, gradient, size, stride, padding)
    shape = _Convolution(*x.shape[:3], *gradient.shape, size, stride, padding)
    _in_parts("sum_weights", x.shape[0], x, gradient, result, shape)
    return result


for _name, _compute, _empty in (
    ("convolution", _forward, _empty_outputs),
    ("convolution_of_gradient", _of_gradient, _empty_inputs),
    ("convolution_by_weight", _by_weight, _empty_weights),
):
    _library.impl(_name, _compute, "CPU")
    torch.library.register_fake(f"uqbench::{_name}", _empty, lib=_library)


def _in_parts(
    name: str, count: int, one: Tensor, other: Tensor, result: Tensor, shape: _Convolution, *rest: int
) -> None:
    """Call a kernel for `count` rows or channels, on as many threads as torch has."""
    compiled = kernels()
    if compiled is None:  # a graph that was compiled with them, on a machine that cannot compile them again
        raise RuntimeError("the kernels of small convolutions cannot be compiled")
    kernel, given = compiled[name], [one.contiguous(), other.contiguous(), result]
    addresses = [ctypes.c_void_p(tensor.data_ptr()) for tensor in given]
    numbers = [ctypes.c_int64(number) for number in rest]

    def part(begin: int, end: int) -> None:
        kernel(*addresses, ctypes.byref(shape), *numbers, ctypes.c_int64(begin), ctypes.c_int64(end))

    parts = min(torch.get_num_threads(), count)
    if parts == 1:
        part(0, count)
        return
    cuts = [count * k // parts for k in range(parts + 1)]
    for future in [_threads(parts).submit(part, *cut) for cut in pairwise(cuts)]:
        future.result()


@functools.cache
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "convolutions")


if hasattr(os, "register_at_fork"):  # a forked process has none of the threads that its pool counts
    os.register_at_fork(after_in_child=_threads.cache_clear)


def kernels_of_this_version() -> str:
    """Return a name for the kernels on this processor, whether or not they can be compiled."""
    return kernels_name(SOURCE)


def own_kernels_name() -> str:
    """Return a name for the kernels on this processor; empty where they cannot be compiled."""
    return "" if kernels() is None else kernels_of_this_version()


@functools.cache
def kernels() -> ctypes.CDLL | None:
    """Return the compiled kernels; None where they cannot be compiled."""
    return load_kernels(SOURCE)
