"""The paper's claims: each verdict from results made so that the answer is known."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from bench.api import Facts, Section, Table
from bench.plugins.registry import Registry
from bench.reports.paper import reference
from bench.spec.cell import Outcome
from bench.store.results import StoredResults
from bench.store.store import Store
from tests.fixtures.results import save_outcomes, spec
from tests.fixtures.studies import PAPER, softmax, timed

TOY: dict[str, Any] = {"training": {"epochs": 500, "learning_rate": 0.005}, "network": {"hidden": [100]}, "draws": 500}
OPTIONS: dict[str, Any] = {"rows": 200, "test": "same"}


def toy(store: Store, means: Mapping[str, Mapping[str, float]], seeds: int = 8, **changes: Any) -> StoredResults:
    """A suite as the paper's toy experiment; `means` are those of each method, seeds scatter by 0.01."""
    random = np.random.default_rng(0)
    places = [("toy", method, seed) for method in means for seed in range(seeds)]
    outcomes = {
        place: Outcome("ok", metrics={m: v + 0.01 * random.normal() for m, v in means[place[1]].items()})
        for place in places
    }
    options = {**OPTIONS, **changes}
    specs = {place: spec(*place, dataset_options=options, **TOY) for place in places}
    return save_outcomes(store, "toy", outcomes, ["picp", "mpiw"], "mc-dropout", specs)


def section(*suites: StoredResults) -> Section | None:
    found: Section | None = Registry().make("report", "paper", {}).overall(suites)
    return found


def verdicts(found: Section | None) -> dict[str, str]:
    assert found is not None
    both = [b.data for b in found.blocks if isinstance(b, Table) and b.name.startswith("claims")]
    return {claim: verdict for data in both for claim, verdict in zip(data["claim"], data["verdict"], strict=True)}


AS_CLAIMED = {
    "mc-dropout": {"mpiw": 0.46, "picp": 0.5},
    "mcni-fixed": {"mpiw": 0.29, "picp": 0.6},
    "mcni-learned": {"mpiw": 0.29, "picp": 0.4},
}


def test_what_the_data_show_is_the_verdict(store: Store) -> None:
    found = verdicts(section(toy(store, AS_CLAIMED)))
    assert found["On the toy function MCNI (fixed) has narrower intervals than MC dropout"] == "reproduced"
    assert found["On the toy function MCNI (fixed) covers more than MC dropout"] == "reproduced"
    assert found["On the toy function MCNI (learned) covers more than MC dropout"] == "not reproduced"
    assert found["MCNI (fixed) and MCNI (learned) perform similarly on the toy function (coverage)"] == "not reproduced"
    assert found["MCNI has a higher accuracy than MC dropout"] == "not comparable"


def test_too_few_seeds_are_inconclusive_and_say_how_many_it_takes(store: Store) -> None:
    found = section(toy(store, AS_CLAIMED, seeds=3))
    assert found is not None
    table = next(b for b in found.blocks if isinstance(b, Table) and b.name == "claims")
    row: Any = table.data.set_index("claim").loc["On the toy function MCNI (fixed) covers more than MC dropout"]
    assert row["verdict"] == "inconclusive"
    assert row["seeds it would take, or why not"] == "at least 5 seeds"


def test_another_experiment_is_not_compared(store: Store) -> None:
    assert section(toy(store, AS_CLAIMED, test="fresh")) is None


def test_tables_stand_beside_the_papers(store: Store) -> None:
    found = section(toy(store, AS_CLAIMED))
    assert found is not None
    table = next(b for b in found.blocks if isinstance(b, Table) and b.name == "paper-Figure 1")
    row: Any = table.data.set_index(["method", "metric"]).loc[("mc-dropout", "mpiw")]
    assert row["paper"] == "0.4616"
    assert float(row["ours, mpiw"].split(" ± ")[0]) == pytest.approx(0.46, abs=0.02)
    facts = next(b for b in found.blocks if isinstance(b, Facts)).facts
    assert int(facts["claims"]) == len(reference()["claims"])
    assert sum(int(v) for k, v in facts.items() if k != "claims") == int(facts["claims"])


def test_claims_about_softmax_and_latency(store: Store) -> None:
    found = verdicts(section(softmax(store), timed(store)))
    dispersed = "As noise on the image grows, the softmax outputs of the draws become more dispersed"
    assert found[dispersed] == "not comparable"  # mcni-learned was not run
    assert found["Ten passes cost hardly more than one"] == "not comparable"


def test_every_claim_and_value_has_its_place() -> None:
    paper = reference()
    for claim in paper["claims"]:
        assert claim["place"]
        assert claim["experiment"] in paper["experiments"]
        assert (claim["kind"] == "none") == ("why" in claim)
        assert claim["kind"] == "none" or set(claim["method"]) <= set(PAPER)
    for table in paper["tables"]:
        for _, method, metric, *value in table["values"]:
            assert method in PAPER
            assert metric.partition("@")[0] in table["ours"]
            assert 1 <= len(value) <= 2
    counts = {table["name"]: len(table["values"]) for table in paper["tables"]}
    assert counts == {
        "Figure 1": 6,
        "Table II, RMSE": 32,
        "Table II, MSLL": 24,
        "Table III": 12,
        "Figure 2": 4,
        "Table IV": 13,
    }
