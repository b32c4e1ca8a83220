"""The table of suite `uci`: what its cells take, beside an ordinary loop and JAX.

python -m tests.benchmarks.uci_table rows.jsonl                       # the file of UQBENCH_TABLE; prints Markdown
python -m tests.benchmarks.uci_table rows.jsonl --processor-time      # for rows measured on a busy machine
"""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

Row = dict[str, Any]  # set, method, warm; cold and jax where they were measured

UNDISTURBED = 0.9  # share of the time in which the process ran


def loop_us(run: Row) -> float:
    """Return the microseconds of a step of the loop, of the two measurements beside a run."""
    return sum(run["loop_us"]) / 2


def step_us(run: Row) -> float:
    """Return the microseconds of a member-step, over the whole run."""
    return float(run["seconds"] / run["member_steps"] * 1e6)


def times_loop(run: Row) -> float:
    """Return how many times as long the loop would take for the same steps."""
    return loop_us(run) / step_us(run)


def times_jax(row: Row) -> float:
    """Return how many times as long JAX takes per step of a network that still trains."""
    return step_us(row["jax"]) / step_us(row["warm"])


def disturbed(run: Row) -> bool:
    """Return whether other processes took much of the core; compiling has processes of its own."""
    return not run["graphs_compiled"] and run["cpu_seconds"] < UNDISTURBED * run["seconds"]


def _cells(row: Row) -> list[str]:
    warm, cold, jax = row["warm"], row.get("cold"), row.get("jax")
    return [
        row["set"],
        row["method"],
        f"{warm['member_steps']:,}",
        f"{warm['seconds']:.1f}{' *' if disturbed(warm) else ''}",
        f"{warm['member_steps'] / warm['slot_steps']:.0%}".replace("%", " %"),
        f"{step_us(warm):.1f}",
        f"{loop_us(warm):.0f}",
        f"**{times_loop(warm):.0f}x**",
        f"{cold['seconds']:.1f}, {times_loop(cold):.0f}x" if cold else "–",
        f"{step_us(jax):.1f}{'' if jax['whole'] else ' (a part)'}" if jax else "–",
        f"{jax['compile_seconds']:.0f}" if jax else "–",
        f"{times_jax(row):.2f}x" if jax else "–",
    ]


HEADER = [
    "set",
    "method",
    "member-steps",
    "seconds",
    "slots in use",
    "us per member-step",
    "loop, us",
    "times the loop",
    "cold: seconds, times the loop",
    "JAX, us",
    "JAX compiles, s",
    "times JAX",
]


def markdown(rows: Sequence[Row]) -> str:
    """Return the table, and below it the means of its ratios."""
    lines = [HEADER, ["---"] * len(HEADER), *map(_cells, rows)]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    return "\n".join([table, "", *_summaries(rows)])


def _summaries(rows: Sequence[Row]) -> Iterable[str]:
    kinds: Sequence[tuple[str, Callable[[Row], float], Sequence[Row]]] = (
        ("the loop, warm", lambda row: times_loop(row["warm"]), rows),
        ("the loop, cold", lambda row: times_loop(row["cold"]), [row for row in rows if row.get("cold")]),
        ("JAX, warm", times_jax, [row for row in rows if row.get("jax")]),
    )
    for name, ratio, those in kinds:
        if those:
            ratios = {f"{row['set']}, {row['method']}": ratio(row) for row in those}
            least = min(ratios, key=ratios.__getitem__)
            mean = f"geometric mean {geometric_mean(ratios.values()):.3g} over {len(those)} rows"
            yield f"Times {name}: {mean}, least {ratios[least]:.3g} ({least})."
    if any(disturbed(row["warm"]) for row in rows):
        yield "* Other processes took much of the core."


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file; of two for the same set and method the later one."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return list({(row["set"], row["method"]): row for row in rows}.values())


def in_processor_time(row: Row) -> Row:
    """Return a row by the clock of its processes; a cold run has none, because compiling starts others."""
    warm = {**row["warm"], "seconds": row["warm"]["cpu_seconds"], "loop_us": row["warm"]["loop_cpu_us"]}
    jax = {"jax": {**row["jax"], "seconds": row["jax"]["cpu_seconds"]}} if "jax" in row else {}
    return {"set": row["set"], "method": row["method"], "warm": warm, **jax}


if __name__ == "__main__":
    rows = read_rows(Path(sys.argv[1]))
    print(markdown([in_processor_time(row) for row in rows] if "--processor-time" in sys.argv else rows))
