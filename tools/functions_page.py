"""The page docs/functions.md: every name of `bench`, for notebooks and scripts.

python -m tools.functions_page docs/functions.md
"""

import bench
from tools.api_page import entry
from tools.pages import write_page

INTRODUCTION = """# The names of bench

*Written by `python -m tools.functions_page docs/functions.md` from the docstrings in `bench/`; edit those.*

`import bench` for notebooks and scripts. [python.md](python.md) uses all of them in turn; plug-ins import from
[bench.api](api.md).
"""

# In the order of work; a test compares these names with bench.__all__.
SECTIONS = {
    "Run": "run_suite SuiteRun RunOptions reproduce Reproduced",
    "Results": "open_store load_results merge_stores rescore recalibrate row_tables",
    "Compare": "compare_methods rank_methods Rankings Settings Margin",
    "Pages": "write_report write_leaderboard",
    "Errors": "UserError",
}


def page() -> str:
    """Return the page."""
    lines = [INTRODUCTION]
    for title, names in SECTIONS.items():
        lines.append(f"## {title}\n")
        for name in names.split():
            lines += [f"### {name}\n", *entry(name, getattr(bench, name)), ""]
    return "\n".join(lines).rstrip()


if __name__ == "__main__":
    write_page(__doc__, page)
