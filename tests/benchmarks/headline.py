"""The headline: 120 MLPs 8-50-1 trained together and compiled, against an ordinary loop. Prints JSON.

    python -m tests.benchmarks.headline

The time of a long training less that of a short one: what is done once per training, such as loading graphs, is left
out here and is inside every row of the table of suite `uci`.
"""

import json
import time
from statistics import median

from bench.methods.deterministic import Deterministic
from bench.training.fit import fit
from bench.training.limits import Limits
from bench.training.usage import counted
from tests.benchmarks.test_stack_speed import loop_step, members, problem_rows

MEMBERS, SHORT, LONG, ROUNDS = 120, 2, 12, 3


def trained(epochs: int) -> tuple[float, int]:
    """Return the seconds and the member-steps of a training."""
    with counted() as usage:
        began = time.perf_counter()
        for _ in fit(members(Deterministic(), MEMBERS, epochs, rows), Limits(compiling=True)):
            pass
        return time.perf_counter() - began, usage.member_steps


if __name__ == "__main__":
    rows = problem_rows()
    loop_step(rows, 200, fused=False)
    trained(SHORT)
    steps, loops = [], []
    for _ in range(ROUNDS):
        loops.append(loop_step(rows, 1000, fused=False))
        (short, few), (long, many) = trained(SHORT), trained(LONG)
        steps.append((long - short) / (many - few))
        loops.append(loop_step(rows, 1000, fused=False))
    print(json.dumps({"step_us": median(steps) * 1e6, "loop_us": median(loops) * 1e6}))
