"""Keeps the results of a suite that docs/paper.md is made from, with the verdicts on the paper's claims.

`python -m tools.keep_paper_results STORE SUITE --command "uqbench run SUITE ..."` writes docs/results/paper/SUITE.json.
With `--add`, datasets and methods that only the present file has stay: cells that take long may be in several stores.
"""

import argparse
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.api import Results
from bench.reports._paper_experiments import UNDECIDED, Found, JudgedClaim, find, judge_claims, reference
from bench.store.results import StoredResults
from bench.store.store import Store
from tools.kept_results import KeptResults, joined, kept, read, write
from tools.paper_page import RESULTS, digest

SCORES = ("crps", "winkler")  # proper scores, which the paper does not have: kept beside what it reports


def metrics_of(results: Results) -> set[str]:
    """Return the metrics that are kept: of the suite, of the paper's tables and claims about it, and proper scores."""
    paper = reference()
    held = {name for name in paper["experiments"] if isinstance(find(name, [results]), Found)}
    names = {*SCORES, *results.metrics, *paper["code_metrics"].values()}
    for table in paper["tables"]:
        names |= {name for ours in table["ours"].values() for name in ours if table["experiment"] in held}
    for claim in paper["claims"]:
        names |= {claim.get("metric", ""), *claim.get("metrics", ())} if claim["experiment"] in held else set()
    return {name for name in results.frame["metric"].unique() if str(name).partition("@")[0] in names}


def verdicts_of(results: Results) -> list[JudgedClaim]:
    """Return the verdicts on the claims of the experiments that some results hold."""
    found = {name: find(name, [results]) for name in reference()["experiments"]}
    return [one for one in judge_claims(found, [results]) if one.found is not None]


def with_verdicts(results: Results, command: str, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what is kept of some results: their values, and the verdicts that take more than these, or long.

    `before` is what was kept of other cells of the suite; verdicts that need arrays are then not given anew.
    """
    content = kept(results, metrics_of(results), command)
    if before is not None:
        content = joined(content, before)
        return {**content, "verdicts": before["verdicts"]}
    again = {one.claim["text"]: one.judged.verdict for one in verdicts_of(KeptResults(content))}
    verdicts = {
        one.claim["text"]: {**asdict(one.judged), "claim": digest(one.claim)}
        for one in verdicts_of(results)
        if one.judged.verdict not in UNDECIDED and ("levels" in one.claim or again[one.claim["text"]] in UNDECIDED)
    }
    return {**content, "verdicts": verdicts}


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store")
    parser.add_argument("suite")
    parser.add_argument("--command", required=True, help="that made these results")
    parser.add_argument("--add", action="store_true", help="to what is kept of other datasets and methods")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    path = given.out / f"{given.suite}.json"
    before = read(path).content if given.add else None
    with closing(Store(given.store)) as store:
        content = with_verdicts(StoredResults(store, given.suite), given.command, before)
    write(content, path)


if __name__ == "__main__":
    main()
