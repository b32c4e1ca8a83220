"""The search and final fit of one cell as a good JAX user would write them; needs numpy and jax alone.

    python -m tests.benchmarks.jax_peer problem.npz 5000000

The file is what `tests.benchmarks.uci_cell` wrote, the number the steps of all members together after which the search
ends at the latest. Prints JSON.

Members (configurations on folds) are trained together: `vmap` over members, `scan` over the steps of an epoch and over
some epochs, one `jit` around it, random numbers and shuffles in the graph, state donated. Early stopping is in the
graph, too. A stack is cut into parts of a few fixed sizes, each compiled once, and is packed again whenever fewer or
smaller parts can hold those that still train. What made a difference in trials on a busy machine: the numbers of all
members come from one call; threefry, JAX's default generator; masks from 16 bits; parts of 120.

Configurations of a fold share their batches, as in the harness: their seeds are the same.
"""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# Nested dictionaries of arrays. Every array of `members` has a row for each member; those of `data` have one for each
# fold: x and y with all rows, and the numbers of the rows that train and that validate.
Tree = dict[str, Any]

SIZES = (120, 60, 24, 8)  # of the parts of a stack
STEPS_PER_CALL = 100  # about: below, the call itself would cost
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
KEPT_VALUES = 2**18  # activations of a validation pass at once: what stays in the cache
WEIGHTS = ("w1", "w2")


def outputs(params: Tree, x: Any, mask: Any = 1.0) -> Any:
    hidden = jax.nn.relu(x @ params["w1"] + params["b1"]) * mask
    return (hidden @ params["w2"] + params["b2"])[:, 0]


def squared_error(found: Any, y: Any) -> Any:
    return jnp.square(found - y).mean()


def loss(method: str, params: Tree, x: Any, y: Any, noise: Any, level: Any) -> Any:
    """Return the training loss of one member."""
    if method == "mc-dropout":
        return squared_error(outputs(params, x, noise), y)
    if method.startswith("mcni"):
        noisy = dict(params)
        for name in WEIGHTS:
            alpha = params[f"alpha:{name}"] if method == "mcni-learned" else level
            noisy[name] = params[name] + alpha * jax.lax.stop_gradient(params[name].std()) * noise[name]
        return squared_error(outputs(noisy, x), y)
    return squared_error(outputs(params, x), y)


def draw_noise(method: str, key: Any, params: Tree, rows: int, level: Any) -> Any:
    """Return the random numbers of one step for all members."""
    count, _, hidden = params["w1"].shape
    if method == "mc-dropout":
        bits = jax.random.bits(key, (count, rows, hidden), "uint16")
        dropped = bits < (level * 2.0**16).astype(jnp.uint16)[:, None, None]
        return jnp.where(dropped, 0.0, (1 / (1 - level))[:, None, None])
    if method.startswith("mcni"):
        sizes = [params[name][0].size for name in WEIGHTS]
        numbers = jnp.split(jax.random.normal(key, (count, sum(sizes))), [sizes[0]], axis=1)
        return {name: part.reshape(params[name].shape) for name, part in zip(WEIGHTS, numbers, strict=True)}
    return jnp.zeros(count)


def adam(members: Tree, gradient: Tree, step: Any) -> tuple[Tree, Tree]:
    """Return parameters and moments after one step; noise levels do not decay."""
    params, moments = {}, {}
    for name, param in members["params"].items():
        each = (slice(None), *[None] * (param.ndim - 1))
        g = gradient[name] + (0.0 if name.startswith("alpha:") else members["weight_decay"][each] * param)
        first = BETA1 * members["moments"][name][0] + (1 - BETA1) * g
        second = BETA2 * members["moments"][name][1] + (1 - BETA2) * g * g
        scale = jnp.sqrt(second / (1 - BETA2**step)) + EPSILON
        params[name] = param - members["learning_rate"][each] / (1 - BETA1**step) * (first / scale)
        moments[name] = (first, second)
    return params, moments


def train_epoch(method: str, members: Tree, done: Any, key: Any, data: Tree, order: Any) -> tuple[Tree, Any]:
    """Train for one epoch on the rows `order`, `[folds, steps, batch]`; return the members and the losses of each step.

    `done`: how many steps the members have trained before.
    """
    folds = jnp.arange(len(order))[:, None, None]
    batches = tuple(data[name][folds, order].swapaxes(0, 1) for name in ("x", "y"))
    differentiated = jax.vmap(jax.value_and_grad(partial(loss, method)))
    level = members["level"]

    def advance(carry: Any, rows: Any) -> tuple[Any, Any]:
        params, moments, step, key = carry
        key, own = jax.random.split(key)
        noise = draw_noise(method, own, params, order.shape[-1], level)
        x, y = (part[members["fold"]] for part in rows)
        value, gradient = differentiated(params, x, y, noise, level)
        params, moments = adam({**members, "params": params, "moments": moments}, gradient, step)
        return (params, moments, step + 1, key), value

    first = (members["params"], members["moments"], done + 1, key)
    (params, moments, _, _), losses = jax.lax.scan(advance, first, batches)
    return stop_early({**members, "params": params, "moments": moments}, data), losses


def stop_early(members: Tree, data: Tree) -> Tree:
    """Validate without noise, keep the best weights, and end the members whose patience is over.

    What has ended trains on until its part is packed again: only what it keeps counts.
    """
    folds = jnp.arange(len(data["validation"]))[:, None]
    x, y = (data[name][folds, data["validation"]] for name in ("x", "y"))

    def validated(member: Any) -> Any:
        params, fold = member
        return squared_error(outputs(params, x[fold]), y[fold])

    count, _, hidden = members["params"]["w1"].shape
    at_once = min(count, max(1, KEPT_VALUES // (y.shape[1] * hidden)))
    value = jax.lax.map(validated, (members["params"], members["fold"]), batch_size=at_once)
    better = members["active"] & (value < members["best"])

    def keep(new: Any, old: Any) -> Any:
        return jnp.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    since = jnp.where(better, 0, members["since"] + 1)
    epochs = members["epochs"] + members["active"]
    return {
        **members,
        "kept": jax.tree.map(keep, members["params"], members["kept"]),
        "best": jnp.where(better, value, members["best"]),
        "since": since,
        "epochs": epochs,
        "active": members["active"] & (since < data["patience"]) & (epochs < data["most_epochs"]),
    }


def train_epochs(method: str, batch: int, epochs: int, members: Tree, done: Any, seed: Any, data: Tree) -> Tree:
    """Train for some epochs, in a new order each."""
    folds, rows = data["train"].shape
    steps = rows // batch

    def epoch(carry: Any, key: Any) -> tuple[Any, None]:
        members, done = carry
        shuffling, noise = jax.random.split(key)
        rows = jax.vmap(jax.random.permutation)(jax.random.split(shuffling, folds), data["train"])
        order = rows[:, : steps * batch].reshape(folds, steps, batch)
        return (train_epoch(method, members, done, noise, data, order)[0], done + steps), None

    keys = jax.random.split(jax.random.key(seed), epochs)
    (members, _), _ = jax.lax.scan(epoch, (members, done), keys)
    return members


def cut(count: int, sizes: Sequence[int]) -> list[int]:
    """Return the sizes of the parts that hold this many members."""
    whole, left = divmod(count, max(sizes))
    return [max(sizes)] * whole + ([min(size for size in sizes if size >= left)] if left else [])


def packed(members: Tree, chosen: Any, sizes: Sequence[int]) -> list[Tree]:
    """Return parts that hold the chosen members, the last of them filled up."""
    parts, begin = [], 0
    for size in cut(len(chosen), sizes):
        own = chosen[begin : begin + size]
        rows = np.concatenate([own, np.full(size - len(own), chosen[0])])
        part = jax.tree.map(lambda array, rows=rows: array[rows], members)
        part["active"][len(own) :] = False
        part["number"][len(own) :] = -1
        parts.append(part)
        begin += size
    return parts


def joined(parts: Sequence[Tree]) -> Tree:
    """Return all members of some parts, in memory of numpy, where no shape needs a compiled function."""
    return jax.tree.map(lambda *arrays: np.concatenate([np.asarray(array) for array in arrays]), *parts)  # type: ignore[no-any-return]


@dataclass
class Trained:
    """What a stack reached, and what it took."""

    best: Any  # validation loss of each member
    member_steps: int
    slot_steps: int
    seconds: float
    cpu_seconds: float
    compile_seconds: float


def fit(method: str, batch: int, members: Tree, data: Tree, sizes: Sequence[int], bound: int) -> Trained:
    """Train until all members have stopped, or have trained `bound` steps together."""
    steps = data["train"].shape[1] // batch
    epochs = max(1, round(STEPS_PER_CALL / steps))
    count = len(members["best"])
    call = jax.jit(partial(train_epochs, method, batch, epochs), donate_argnums=0)
    began = time.perf_counter()
    compiled = {}
    for size in sizes:
        example = packed(members, np.zeros(size, int), [size])[0]
        compiled[size] = call.lower(example, np.float32(0), np.uint32(0), data).compile()
    data = jax.device_put(data)
    compile_seconds = time.perf_counter() - began

    began, began_cpu = time.perf_counter(), time.process_time()
    best, trained = np.full(count, np.inf), np.zeros(count, int)
    parts, calls, slot_steps = packed(members, np.arange(count), sizes), 0, 0
    while parts:
        for number, part in enumerate(parts):
            clock = np.float32(calls * epochs * steps), np.uint32(calls * 1000 + number)
            parts[number] = compiled[len(part["best"])](part, *clock, data)
            slot_steps += len(part["best"]) * epochs * steps
        calls += 1
        for part in parts:
            own = np.asarray(part["number"])
            best[own[own >= 0]] = np.asarray(part["best"])[own >= 0]
            trained[own[own >= 0]] = np.asarray(part["epochs"])[own >= 0]
        active = np.concatenate([np.asarray(part["active"]) for part in parts])
        if trained.sum() * steps >= bound:
            break
        if sum(cut(int(active.sum()), sizes)) < len(active):
            parts = packed(joined(parts), np.flatnonzero(active), sizes)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - began_cpu
    return Trained(best, int(trained.sum()) * steps, slot_steps, seconds, cpu_seconds, compile_seconds)


def new_members(params: Tree, fold: Any, learning_rate: Any, weight_decay: Any, level: Any) -> Tree:
    """Return members before their first step; all arguments have a row for each."""
    count = len(fold)
    return {
        "params": params,
        "moments": {name: (np.zeros_like(value), np.zeros_like(value)) for name, value in params.items()},
        "kept": params,
        "best": np.full(count, np.inf, np.float32),
        "since": np.zeros(count, np.int32),
        "epochs": np.zeros(count, np.int32),
        "active": np.ones(count, bool),
        "number": np.arange(count),
        "fold": fold.astype(np.int32),
        **{"learning_rate": learning_rate, "weight_decay": weight_decay, "level": level},
    }


class Problem:
    """One cell as `tests.benchmarks.uci_cell` writes it; names begin with `search` or `final`."""

    def __init__(self, path: str) -> None:
        self.arrays = dict(np.load(path))
        self.method, self.batch = str(self.arrays["method"]), int(self.arrays["batch"])

    def data(self, stage: str) -> Tree:
        """Return the rows of the search, or of the final fit."""
        own = {name: self.arrays[f"{stage}_{name}"] for name in ("x", "y", "train", "validation")}
        return own | {name: self.arrays[name] for name in ("patience", "most_epochs")}

    def members(self, stage: str, configurations: Any) -> Tree:
        """Return every one of some configurations from every start: those of the folds, or of the final networks."""
        starts = {name: self.arrays[f"{stage}_{name}"] for name in ("w1", "b1", "w2", "b2")}
        count = len(starts["w1"])
        each = np.repeat(configurations, count)
        from_start = np.tile(np.arange(count), len(configurations))
        params = {name: start[from_start] for name, start in starts.items()}
        rate, decay, level = (self.arrays[name][each] for name in ("learning_rate", "weight_decay", "level"))
        if self.method == "mcni-learned":
            for name in WEIGHTS:
                params[f"alpha:{name}"] = np.ones_like(params[name]) * level[:, None, None]
        fold = from_start if stage == "search" else np.zeros(len(each))
        return new_members(params, fold, rate, decay, level)

    def losses(self) -> dict[str, Any]:
        """Return the losses `[steps, members]` and the best validation losses on the orders that the file has."""
        members, data = self.members("search", np.arange(len(self.arrays["level"]))), self.data("search")
        call, found = jax.jit(partial(train_epoch, self.method)), []
        for epoch, order in enumerate(self.arrays["orders"]):
            done, key = np.float32(epoch * order.shape[1]), jax.random.key(epoch)
            members, losses = call(members, done, key, data, order)
            found.extend(losses.tolist())
        return {"losses": found, "best": members["best"].tolist()}

    def run(self, bound: int) -> dict[str, float]:
        """Search and fit; return what it took."""
        every = np.arange(len(self.arrays["level"]))
        members, data = self.members("search", every), self.data("search")
        search = fit(self.method, self.batch, members, data, SIZES, bound)
        chosen = search.best.reshape(len(every), -1).mean(1).argmin()
        last = self.members("final", np.array([chosen]))
        final = fit(self.method, self.batch, last, self.data("final"), [len(last["best"])], bound)
        both = (search, final)
        return {
            "member_steps": sum(part.member_steps for part in both),
            "slot_steps": sum(part.slot_steps for part in both),
            "seconds": sum(part.seconds for part in both),
            "cpu_seconds": sum(part.cpu_seconds for part in both),
            "compile_seconds": sum(part.compile_seconds for part in both),
            "whole": search.member_steps < bound,
            "loss": float(search.best.reshape(len(every), -1).mean(1).min()),
            "final_loss": float(final.best.mean()),
        }


if __name__ == "__main__":
    problem = Problem(sys.argv[1])
    compare = "orders" in problem.arrays
    print(json.dumps(problem.losses() if compare else problem.run(int(sys.argv[2]))))
