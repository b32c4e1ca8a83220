"""The speed of suite `uci`: what its cells take, beside an ordinary loop and JAX.

    python -m tools.speed_table rows.jsonl           # adds the rows to results/, writes the tables of README and docs
    python -m tools.speed_table                      # writes the tables anew from the rows that were kept
    python -m tools.speed_table rows.jsonl --print   # prints the large table and writes nothing

Rows are what `UQBENCH_TABLE=rows.jsonl` of tests/benchmarks/test_uci_speed.py writes. A row takes the place of an
earlier one for the same set and method; one of a cold run alone (`UQBENCH_COLD=only`) is added to it.
`--processor-time` takes the clock of the processes, for rows that were measured on a busy machine; rows are kept that
way and the tables say so.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from bench.counts import plural
from bench.text_tables import markdown_table
from tools.pages import replace_part

# set, method; warm, cold and jax where they were measured; clock where it is the processor's
Row = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
ROWS = ROOT / "results" / "uci-speed.jsonl"
UNDISTURBED = 0.9  # share of the time in which the process ran
PROCESSOR = "processor"


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


def by_processor(rows: Sequence[Row]) -> bool:
    """Return whether the rows are by the clock of their processes."""
    return any(row.get("clock") == PROCESSOR for row in rows)


Column = tuple[str, Callable[[Row], str]]


def large_table(rows: Sequence[Row]) -> list[str]:
    """Return the table of docs/performance.md; columns that no row has are left out."""
    columns: list[Column] = [("set", lambda row: str(row["set"])), ("method", lambda row: str(row["method"]))]
    warm: list[Column] = [
        ("member-steps", lambda row: f"{row['warm']['member_steps']:,}"),
        ("seconds", lambda row: f"{row['warm']['seconds']:.1f}{' *' if disturbed(row['warm']) else ''}"),
        ("slots in use", lambda row: f"{100 * row['warm']['member_steps'] / row['warm']['slot_steps']:.0f} %"),
        ("us per member-step", lambda row: f"{step_us(row['warm']):.1f}"),
        ("loop, us", lambda row: f"{loop_us(row['warm']):.0f}"),
        ("times the loop", lambda row: f"**{times_loop(row['warm']):.0f}x**"),
    ]
    cold: list[Column] = [("cold: seconds, times the loop", _cold)]
    jax: list[Column] = [
        ("JAX, us", lambda row: f"{step_us(row['jax']):.1f}{'' if row['jax']['whole'] else ' (a part)'}"),
        ("JAX compiles, s", lambda row: f"{row['jax']['compile_seconds']:.0f}"),
        ("times JAX", lambda row: f"{times_jax(row):.2f}x"),
    ]
    for part, own in (("warm", warm), ("cold", cold), ("jax", jax)):
        columns += [(head, _where(part, cell)) for head, cell in own if any(part in row for row in rows)]
    return markdown_table([head for head, _ in columns], [[cell(row) for _, cell in columns] for row in rows])


def _cold(row: Row) -> str:
    return f"{row['cold']['seconds']:.1f}, {times_loop(row['cold']):.0f}x"


def _where(part: str, cell: Callable[[Row], str]) -> Callable[[Row], str]:
    return lambda row: cell(row) if part in row else "–"


def small_table(rows: Sequence[Row]) -> list[str]:
    """Return the table of the README: sets by methods, how many times as fast as the loop."""
    sets, methods = (list(dict.fromkeys(row[name] for row in rows)) for name in ("set", "method"))
    ratios = {(row["set"], row["method"]): f"{times_loop(row['warm']):.0f}x" for row in rows}
    return markdown_table(
        ["set", *methods], [[one, *(ratios.get((one, method), "–") for method in methods)] for one in sets]
    )


def loop_mean(rows: Sequence[Row]) -> float:
    """Return the geometric mean of the ratios to the loop."""
    return geometric_mean(times_loop(row["warm"]) for row in rows)


def jax_in_words(rows: Sequence[Row]) -> str:
    """Return what JAX takes, after how long a compilation."""
    ratios = [times_jax(row) for row in rows if "jax" in row]
    compiling = [row["jax"]["compile_seconds"] for row in rows if "jax" in row]
    seconds = f"after {min(compiling):.0f} to {max(compiling):.0f} s of compiling"
    return f"{seconds} takes {min(ratios):.2f} to {max(ratios):.2f} times our time"


def by_fastest_loops(rows: Sequence[Row]) -> list[float]:
    """Return the ratios to the fastest loop of each method, of all that were timed beside its warm and cold runs."""
    loops: dict[str, float] = {}
    for row in rows:
        timed = [us for part in ("warm", "cold") for us in row.get(part, {}).get("loop_us", ())]
        loops[row["method"]] = min(*timed, loops.get(row["method"], math.inf))
    return [loops[row["method"]] / step_us(row["warm"]) for row in rows]


def summary(rows: Sequence[Row]) -> Iterable[str]:
    """Yield what the large table says."""
    if warm := [row for row in rows if "warm" in row]:
        yield _warm_summary(warm)
    if colds := [times_loop(row["cold"]) for row in rows if "cold" in row]:
        yield (
            f"From an empty compile cache the geometric mean over {plural(len(colds), 'cell')} is "
            f"{geometric_mean(colds):.1f} times the loop, the least {min(colds):.2f}."
        )
    if with_jax := [row for row in rows if "jax" in row]:
        mean = geometric_mean(times_jax(row) for row in with_jax)
        longer = sum(row["jax"]["compile_seconds"] > row["warm"]["seconds"] for row in with_jax)
        yield (
            f"JAX {jax_in_words(rows)} (geometric mean {mean:.2f}); compiling alone takes longer than {longer} of "
            f"these {plural(len(with_jax), 'cell')} take here."
        )
    if warm:
        ratios = by_fastest_loops(warm)
        yield (
            "Loops of one method differ between rows of a shared machine: with the fastest one of each method "
            f"the geometric mean would be {geometric_mean(ratios):.1f} times the loop, the least {min(ratios):.1f}."
        )
    if any(disturbed(row["warm"]) for row in warm):
        yield "A star: other processes took more than a tenth of the core."


def _warm_summary(rows: Sequence[Row]) -> str:
    least = min(rows, key=lambda row: times_loop(row["warm"]))
    words = " by processor time" if by_processor(rows) else ""
    also = ""
    if not words and all("loop_cpu_us" in row["warm"] for row in rows):
        also = f" ({loop_mean([in_processor_time(row) for row in rows]):.1f} by processor time)"
    return (
        f"The geometric mean over {plural(len(rows), 'cell')} is **{loop_mean(rows):.1f} times the loop**{words}{also};"
        f" the least is {times_loop(least['warm']):.0f}, of `{least['method']}` on {least['set']}."
    )


def large(rows: Sequence[Row]) -> str:
    """Return the large table, and below it what it says."""
    return "\n".join([*large_table(rows), "", " ".join(summary(rows))])


def in_readme(rows: Sequence[Row]) -> str:
    """Return the table of the README, and its sentence."""
    jax = (
        f", and\na JAX version of the same study, which {jax_in_words(rows)}"
        if any("jax" in row for row in rows)
        else ""
    )
    clock = ", by processor time" if by_processor(rows) else ""
    return "\n".join(
        [
            *small_table(rows),
            "",
            f"The geometric mean is {loop_mean(rows):.1f}x{clock}. [docs/performance.md]"
            f"(docs/performance.md#suite-uci-cell-by-cell) has the seconds, the command, what the loop does{jax}.",
        ]
    )


PARTS: dict[str, tuple[str, Callable[[Sequence[Row]], str]]] = {
    "README.md": ("speed", in_readme),
    "docs/performance.md": ("uci table", large),
}


def page(name: str, text: str, rows: Sequence[Row]) -> str:
    """Return a page with its table of speed anew."""
    part, write = PARTS[name]
    return replace_part(text, part, f"\n{write(rows)}\n")


def read_rows(*paths: Path) -> list[Row]:
    """Return the rows of some files: of two for one cell the later one, with the cold run that follows it."""
    found: dict[tuple[str, str], Row] = {}
    for line in (line for path in paths if path.exists() for line in path.read_text("utf-8").splitlines()):
        row: Row = json.loads(line)
        key = row["set"], row["method"]
        found[key] = row if "warm" in row else {**found.get(key, {}), **row}
    # Sets and methods in the order in which they came first.
    places = [list(dict.fromkeys(names)) for names in zip(*found, strict=True)]
    return sorted(found.values(), key=lambda row: (places[0].index(row["set"]), places[1].index(row["method"])))


def in_processor_time(row: Row) -> Row:
    """Return a row by the clock of its processes, without a cold run: compiling starts others."""
    warm = {**row["warm"], "seconds": row["warm"]["cpu_seconds"], "loop_us": row["warm"]["loop_cpu_us"]}
    jax = {"jax": {**row["jax"], "seconds": row["jax"]["cpu_seconds"]}} if "jax" in row else {}
    return {"set": row["set"], "method": row["method"], "clock": PROCESSOR, "warm": warm, **jax}


def main() -> None:
    """Print a table, or keep its rows and write the tables of the pages."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("rows", type=Path, nargs="?", default=ROWS, help="the file of UQBENCH_TABLE")
    arguments.add_argument("--processor-time", action="store_true", help="by the clock of the processes")
    arguments.add_argument("--print", action="store_true", help="print the large table and write nothing")
    given = arguments.parse_args()
    rows = read_rows(given.rows) if given.print else read_rows(ROWS, given.rows)
    if given.processor_time:
        rows = [in_processor_time(row) for row in rows]
    if given.print:
        print(large(rows))
        return
    ROWS.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for name in PARTS:
        path = ROOT / name
        path.write_text(page(name, path.read_text("utf-8"), rows), "utf-8")


if __name__ == "__main__":
    main()
