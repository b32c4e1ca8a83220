"""The generated parts of docs/results/uci-fixed.md."""

import tomllib
from pathlib import Path

from bench.text_tables import markdown_table
from tools.findings import Exports, Means

SUITE, LONGER, METHOD = "uci-fixed", "leaderboard-uci", "mc-dropout"
PUBLISHED = tomllib.loads(Path(__file__).with_name("published_values.toml").read_text("utf-8"))


def rmse(exports: Exports) -> str:
    """Return a table of datasets by methods: mean and standard deviation over repeats."""
    values = Means(exports.required(SUITE), ["rmse"])
    datasets, methods = (list(dict.fromkeys(names)) for names in zip(*values.places, strict=True))
    rows = [[name, *(values.text(name, method, "rmse", None) for method in methods)] for name in sorted(datasets)]
    return "\n".join(markdown_table(["dataset", *methods], rows))


def literature(exports: Exports) -> str:
    """Return the RMSE of MC dropout beside published ones, with little and with more patience."""
    ours = {suite: Means(exports.required(suite), ["rmse"]) for suite in (SUITE, LONGER)}
    known = {name: value for name, value in PUBLISHED["mc-dropout-rmse"].items() if name != "source"}
    rows = [
        [name, f"{value:.2f}", *(values.text(name, METHOD, "rmse", None) for values in ours.values())]
        for name, value in known.items()
    ]
    head = ["dataset", "published", f"`{SUITE}`", f"`{LONGER}`"]
    higher = {
        suite: [name for name, value in known.items() if values.value(name, METHOD, "rmse") > value]
        for suite, values in ours.items()
    }
    counts = " and ".join(f"on {len(names)} in `{suite}`" for suite, names in higher.items())
    text = (
        f"Of these {len(known)} datasets our mean RMSE is higher than the published one {counts} "
        f"({', '.join(higher[LONGER])})."
    )
    return "\n".join([*markdown_table(head, rows), "", text])
