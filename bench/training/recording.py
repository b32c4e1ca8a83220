"""Records a call of many small operations and repeats it in the same memory, without the Python that led to them.

A call of `vmap` takes 0.2 to 0.5 ms of Python, whatever it computes. Repeating its operations takes some microseconds
for each, so that draws can be made in parts whose activations stay in the processor's cache. Nothing is traced: the
first call computes, and the operations that it came down to are kept with the tensors that they read and wrote. A
repetition calls the same operations on the same tensors in the same order, so its bits are those of the call. Views
stay valid and are not repeated, nor is what depends on nothing that changes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

Repeat = Callable[[], None]
Step = tuple[Callable[..., object], Sequence[Any], Mapping[str, Any]]
Layout = tuple[tuple[int, ...], tuple[int, ...], int]  # shape, strides, and how many numbers past an aligned one

ATEN = torch.ops.aten
# Products, and the same with a sum: written at once they take less time than one after the other.
WITH_SUM = {ATEN.bmm.default: ATEN.baddbmm, ATEN.mm.default: ATEN.addmm}
# A product with fewer changing rows or columns, such as a vector per draw by a matrix, is rounded in another way than
# one with more of them: such draws would depend on the size of the parts in which they are made.
FEWEST_CHANGING = 16
BLOCK_OF_ROWS = 4  # a product of one column computes so many rows at once, and the rest at the end in another way
ALIGNED = 64  # bytes: memory that torch allocates begins at multiples of it
UNKNOWN = 0  # the memory of a tensor that has several parts
# Operations whose results do not follow from the shapes of their arguments, or are numbers of Python.
UNREPEATABLE = {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output, torch.Tag.nondeterministic_seeded}


def record(call: Callable[[], Tensor], changing: Sequence[Tensor], rows: int = 0) -> tuple[Tensor, Repeat | None]:
    """Call a function of some tensors; return its output and a function that computes it anew, in the same memory.

    `changing` are the tensors whose values may differ between repetitions, `rows` how many rows of a product one draw
    has. None: the call cannot be repeated, or gives other bits than a call for more draws would.
    """
    with _Operations() as operations:
        output = call()
    return output, _repetition(operations.all, _memory(changing), rows)


@dataclass(frozen=True, eq=False)
class _Operation:
    """One operation with its arguments and results, and the memory that these are in."""

    function: Any
    arguments: Sequence[Any]
    named: Mapping[str, Any]
    results: Sequence[Tensor]
    reads: set[int]
    overwrites: set[int]
    makes: set[int]  # memory that was none of its arguments'
    sums_product: bool  # it adds to the product before it, and both at once have given the same bits


class _Operations(TorchDispatchMode):
    """Keeps all operations with their tensors, so that no memory is used twice."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch does not type it
        self.all: list[_Operation] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        sums_product = func is ATEN.add_.Tensor and not named and self._adds_to_product(*args)
        result = func(*args, **named)
        results, reads = _tensors(result), _memory(args) | _memory(named.values())
        overwrites = _memory(args[place] if place < len(args) else named.get(name) for place, name in _written(func))
        self.all.append(
            _Operation(func, args, named, results, reads, overwrites, _memory(results) - reads, sums_product)
        )
        return result

    def _adds_to_product(self, target: Tensor, summand: Any) -> bool:
        """Return whether the product before is what is added to, and both at once give the same bits."""
        product = next((each for each in reversed(self.all) if each.makes or each.overwrites), None)
        if product is None or product.function not in WITH_SUM or not _fits(product.results[0], target, summand):
            return False
        if not summand.dtype.is_floating_point or not product.results[0].numel():
            return False
        layouts = (_layout(tensor) for tensor in (*product.arguments, summand))
        return _rounds_alike(product.function, summand.dtype, torch.get_num_threads(), *layouts)


def _layout(tensor: Tensor) -> Layout:
    return tuple(tensor.shape), tensor.stride(), tensor.data_ptr() % ALIGNED // tensor.element_size()


@lru_cache(1024)
def _rounds_alike(
    product: Any, dtype: torch.dtype, _threads: int, left: Layout, right: Layout, summand: Layout
) -> bool:
    """Return whether a product with a sum has the same bits in one operation as in two, tried on random numbers.

    Libraries round differently where a product has many columns: they add to the result after each block of them. What
    they do follows from the layouts and the number of threads, so one trial serves all draws of a process.
    """
    source = torch.Generator().manual_seed(0)
    few = max(2, left[0][0] // 4)  # enough for the kernel of the whole product

    def first(layout: Layout, batched: bool) -> Tensor:
        shape, strides, begin = layout
        if batched and shape[0] > 1:
            shape = (min(few, shape[0]), *shape[1:])
        length = begin + 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        return torch.randn(length, dtype=dtype, generator=source).as_strided(shape, strides, begin)

    one_each = len(left[0]) == 3  # of the matrices
    a, b, c = first(left, True), first(right, one_each), first(summand, one_each and len(summand[0]) == 3)
    return torch.equal(product(a, b).add_(c), WITH_SUM[product].default(c, a, b))


def _fits(product: Tensor, target: Tensor, summand: Any) -> bool:
    """Return whether a sum with all of a product, or with a view of all of it, is a sum with the product itself."""
    if not isinstance(summand, Tensor) or summand.dtype != product.dtype:
        return False
    if target.data_ptr() != product.data_ptr() or target.numel() != product.numel():
        return False
    if summand.ndim <= 1:
        return target.is_contiguous() and product.is_contiguous() and target.shape[-1] == product.shape[-1]
    return product.ndim == 3 and target.shape == product.shape and target.stride() == product.stride()


def _repetition(operations: Sequence[_Operation], changing: set[int], rows: int) -> Repeat | None:
    if any(UNKNOWN in each.reads | each.makes for each in operations):
        return None
    made = {place for each in operations for place in each.makes}
    overwritten = {place for each in operations for place in each.overwrites}
    if not overwritten <= made | changing:
        return None  # the first call has changed its own arguments
    # What is overwritten has to be made again each time, even where it was the same at first.
    varying, steps = changing | overwritten, list[Step]()
    last: _Operation | None = None
    for each in operations:
        if not varying & (each.reads | each.makes):
            continue
        if UNREPEATABLE & set(each.function.tags) or _depends_on_size(each, varying, rows):
            return None
        varying |= each.makes
        if each.sums_product and last is not None:
            product = last.results[0]
            steps[-1] = (WITH_SUM[last.function].out, (each.arguments[1], *last.arguments), {"out": product})
        elif each.overwrites:
            steps.append((each.function, each.arguments, each.named))
        elif each.makes:
            steps.append(_again(each))
        else:
            continue
        last = each

    def repeat() -> None:
        for function, arguments, named in steps:
            function(*arguments, **named)

    return repeat


def _depends_on_size(operation: _Operation, varying: set[int], rows: int) -> bool:
    """Return whether it is a product over all draws of a call that is rounded in another way for fewer draws."""
    if operation.function not in (ATEN.mm.default, ATEN.addmm.default):
        return False
    left, right = operation.arguments[-2:]
    few_rows = left.shape[0] < FEWEST_CHANGING or (right.shape[1] == 1 and rows % BLOCK_OF_ROWS)
    few_columns = right.shape[1] < FEWEST_CHANGING
    return bool(varying & _memory([left] * bool(few_rows) + [right] * few_columns))


def _again(operation: _Operation) -> Step:
    """Return a call that writes the results of an operation into those that are there."""
    into, name = _form_with_output(operation.function)
    if into is not None:
        return into, operation.arguments, {**operation.named, name: operation.results[0]}

    def again() -> None:
        found = operation.function(*operation.arguments, **operation.named)
        for old, new in zip(operation.results, _tensors(found), strict=True):
            old.copy_(new)

    return again, (), {}


@cache
def _form_with_output(function: Any) -> tuple[Any, str]:
    """Return the form of an operation that writes its one result into an argument, and that argument's name."""
    wanted = [(each.name, str(each.type)) for each in function._schema.arguments]
    if len(function._schema.returns) == 1:
        for name in function.overloadpacket.overloads():
            form = getattr(function.overloadpacket, name)
            outputs = [each.name for each in form._schema.arguments if each.is_out]
            others = [(each.name, str(each.type)) for each in form._schema.arguments if not each.is_out]
            if len(outputs) == 1 and others == wanted:
                return form, outputs[0]
    return None, ""


@cache
def _written(function: Any) -> list[tuple[int, str]]:
    """Return the places and names of the arguments that an operation overwrites."""
    arguments = enumerate(function._schema.arguments)
    return [(place, each.name) for place, each in arguments if each.alias_info is not None and each.alias_info.is_write]


def _tensors(value: Any) -> list[Tensor]:
    """Return the tensors in a value: itself, or those in a list of lists."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for each in value for tensor in _tensors(each)]
    return []


def _memory(values: Iterable[Any]) -> set[int]:
    """Return the identity of the memory of all tensors in some values."""
    found = set[int]()
    for each in values:
        if isinstance(each, Tensor):
            found.add(each.untyped_storage()._cdata if each.layout is torch.strided else UNKNOWN)
        elif isinstance(each, (list, tuple)):
            found |= _memory(each)
    return found
