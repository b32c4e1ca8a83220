"""The paper's claims: each verdict from results made so that the answer is known."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from bench.api import Facts, Section, Table, Text
from bench.plugins.registry import Registry
from bench.reports._paper_claims import KINDS
from bench.reports._paper_experiments import reference
from bench.spec.cell import Outcome
from bench.store.results import StoredResults
from bench.store.store import Store
from tests.fixtures.planned import in_format_1, planned
from tests.fixtures.results import save_outcomes
from tests.fixtures.studies import PAPER, softmax, timed


def toy(store: Store, means: Mapping[str, Mapping[str, float]], seeds: int = 8, *changes: str) -> StoredResults:
    """A suite as the paper's toy experiment; `means` are those of each method, seeds scatter by 0.01."""
    random = np.random.default_rng(0)
    places = [("toy", method, seed) for method in means for seed in range(seeds)]
    outcomes = {
        place: Outcome("ok", metrics={m: v + 0.01 * random.normal() for m, v in means[place[1]].items()})
        for place in places
    }
    specs = {place: in_format_1(spec) for place, spec in planned("toy", [f"seeds={seeds}", *changes])}
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
    assert found["MCNI has a higher accuracy than MC dropout"] == "not run"


def test_too_few_seeds_decide_nothing_and_say_how_many_it_takes(store: Store) -> None:
    found = section(toy(store, AS_CLAIMED, seeds=3))
    assert found is not None
    table = next(b for b in found.blocks if isinstance(b, Table) and b.name == "claims")
    row: Any = table.data.set_index("claim").loc["On the toy function MCNI (fixed) covers more than MC dropout"]
    assert row["verdict"] == "cannot be decided"
    assert row["seeds it would take, or why not"] == "at least 5 seeds"


def test_another_experiment_is_not_compared(store: Store) -> None:
    assert section(toy(store, AS_CLAIMED, 8, "datasets.toy.test=fresh")) is None


def test_a_departure_is_part_of_the_verdict(store: Store) -> None:
    found = section(toy(store, AS_CLAIMED, 8, "methods.mc-dropout.rate=0.5", "training.momentum=0.5"))
    assert found is not None
    texts = [b.text for b in found.blocks if isinstance(b, Text)]
    departures = (
        "under the protocol of the text of the paper",
        "training.momentum is 0.5, in the text of the paper 0.9",
        "methods.mc-dropout.rate is 0.5, in the text of the paper 0.2",
    )
    assert any(all(part in text for part in departures) for text in texts), texts
    narrower = "On the toy function MCNI (fixed) has narrower intervals than MC dropout"
    assert verdicts(found)[narrower] == "reproduced under departures"


def test_an_untouched_run_has_no_departures(store: Store) -> None:
    found = section(toy(store, AS_CLAIMED))
    assert found is not None
    assert any("Departures: none." in b.text for b in found.blocks if isinstance(b, Text))


def test_no_dataset_is_shown_under_the_name_of_another(store: Store) -> None:
    """Digits beside the paper's CIFAR-10, and one UCI dataset beside eight of the paper."""
    found = section(softmax(store))
    assert found is not None
    table = next(b for b in found.blocks if isinstance(b, Table) and b.name == "paper-Figure 2")
    row: Any = table.data.set_index("method").loc["mc-dropout"]
    assert (row["dataset"], row["our dataset"]) == ("cifar10", "digits")
    assert any("dataset digits is not the paper's" in b.text for b in found.blocks if isinstance(b, Text))
    assert table.numbers is not None
    assert set(table.numbers["our_dataset"]) == {"digits"}


def test_one_dataset_does_not_stand_for_the_others(store: Store) -> None:
    places = [("boston", method, seed) for method in PAPER for seed in range(5)]
    specs = {place: in_format_1(spec) for place, spec in planned("uci", ["seeds=5"]) if place in places}
    outcomes = {place: Outcome("ok", metrics={"rmse": 3.0}) for place in places}
    found = section(save_outcomes(store, "uci", outcomes, ["rmse"], "mc-dropout", specs))
    assert found is not None
    table = next(b for b in found.blocks if isinstance(b, Table) and b.name == "paper-Table II, RMSE")
    ours = table.data.set_index("dataset")["ours, rmse"]
    assert set(ours.loc["boston"]) == {"3.000 ± 0.000"}
    assert set(ours.drop("boston")) == {"–"}


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


def of_code(store: Store, experiment: str, metrics: list[str], lost: tuple[str, int] = ("", 0)) -> Section:
    """The report on a suite by the protocol of the public code; each metric has its position as its value.

    `lost` is a method, and how many of its repeats have no value.
    """
    suite = f"{experiment}-code"
    specs = {place: in_format_1(spec) for place, spec in planned(suite) if place[1] in PAPER}
    outcomes = {
        place: Outcome(
            "ok",
            metrics={} if place[1] == lost[0] and place[2] < lost[1] else {m: float(i) for i, m in enumerate(metrics)},
        )
        for place in specs
    }
    found = section(save_outcomes(store, suite, outcomes, metrics, "mc-dropout", specs))
    assert found is not None
    return found


def test_under_the_protocol_of_the_code_tables_show_its_quantities(store: Store) -> None:
    """As that code computes them, because the paper's numbers appear to be computed like that."""
    found = of_code(store, "cifar10", ["accuracy", "accuracy_mean_logits", "ece", "ece_last_pass"])
    table = next(b for b in found.blocks if isinstance(b, Table) and b.name == "paper-Table III")
    assert list(table.data.filter(like="ours")) == ["ours, accuracy_mean_logits", "ours, ece_last_pass"]
    rows = table.data.set_index(["method", "metric"])
    assert rows.loc[("mcni-fixed", "accuracy"), "ours, accuracy_mean_logits"] == "1.000 ± 0.000"
    assert rows.loc[("mcni-fixed", "ece"), "ours, ece_last_pass"] == "3.000 ± 0.000"


def test_a_mean_over_some_repeats_says_so(store: Store) -> None:
    """An image that never flips has no level, and a variance of 0 no likelihood."""
    found = of_code(store, "cifar10", ["accuracy_mean_logits", "accuracy"], lost=("mcni-fixed", 2))
    table = next(b for b in found.blocks if isinstance(b, Table) and b.name == "paper-Table III")
    ours = table.data[table.data["metric"] == "accuracy"].set_index("method")["ours, accuracy_mean_logits"]
    assert ours["mcni-fixed"] == "0.000 ± 0.000 (3 of 5 repeats)"
    assert ours["mc-dropout"] == "0.000 ± 0.000"


def test_what_a_suite_lacks_for_a_claim_is_printed(store: Store) -> None:
    lines = Registry().make("report", "paper", {}).verdicts([timed(store)])
    assert any(line.startswith("not run: Ten passes cost hardly more than one (Section VI-A") for line in lines)
    assert not any(line.startswith("no experiment") for line in lines)


def test_claims_about_softmax_and_latency(store: Store) -> None:
    found = verdicts(section(softmax(store), timed(store)))
    dispersed = "As noise on the image grows, the softmax outputs of the draws become more dispersed"
    assert found[dispersed] == "not run"  # of mcni-learned
    assert found["Ten passes cost hardly more than one"] == "not run"


def test_every_claim_and_value_has_its_place() -> None:
    paper = reference()
    for claim in paper["claims"]:
        assert claim["place"]
        assert claim["experiment"] in paper["experiments"]
        assert (claim["kind"] == "none") == ("why" in claim)
        assert claim["kind"] == "none" or (claim["kind"], claim.get("by", "means")) in KINDS
        methods = [*claim.get("method", ()), *claim.get("over", ()), *claim.get("levels", ())]
        assert bool(methods) == (claim["kind"] != "none")
        assert set(methods) <= set(PAPER)
    for table in paper["tables"]:
        for _, method, metric, *value in table["values"]:
            assert method.removesuffix("-stored") in PAPER
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
        "Stored runs, toy": 6,
        "Stored search, UCI": 32,
    }


def test_most_of_table_2_is_the_stored_search_of_the_public_code() -> None:
    tables = {table["name"]: table["values"] for table in reference()["tables"]}
    printed = {(dataset, method): value for dataset, method, _, value, _ in tables["Table II, RMSE"]}
    differ = {
        (dataset, method)
        for dataset, method, _, value in tables["Stored search, UCI"]
        if abs(value - printed[dataset, method]) > 0.500001e-4
    }
    assert len(differ) == 7
    assert {method for _, method in differ} == {"mc-dropout"}
