"""docs/paper.md says what the facts and the kept results say."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench.reports._paper_experiments import Found, find, reference
from bench.spec.cell import Outcome
from bench.store.results import StoredResults
from bench.store.store import Store
from tests.fixtures.results import save_outcomes, spec
from tools.keep_paper_results import verdicts_of, with_verdicts
from tools.kept_results import read, write
from tools.paper_page import RESULTS, digest, notes, page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "paper.md"
FILES = sorted(RESULTS.glob("*.json"))
LARGEST = 200_000  # bytes of a file


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == page() + "\n", "run: make paper"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_kept_verdicts_are_of_claims_as_they_are(path: Path) -> None:
    known = {claim["text"]: digest(claim) for claim in reference()["claims"]}
    for text, verdict in read(path).content["verdicts"].items():
        assert verdict["claim"] == known.get(text), f"{text}: has changed; keep the results of suite {path.stem} again"


def test_a_changed_result_changes_the_page(tmp_path: Path) -> None:
    content = read(RESULTS / "toy.json").content
    kind = next(kind for kind in content["kinds"] if kind["method"] == "mc-dropout")
    before = f"| {np.mean(kind['values']['mpiw']):.4g} ± "
    assert before in PAGE.read_text("utf-8")
    kind["values"]["mpiw"] = [2 * value for value in kind["values"]["mpiw"]]
    write(content, tmp_path / "toy.json")
    changed = page(tmp_path)
    assert before not in changed
    assert f"| {np.mean(kind['values']['mpiw']):.4g} ± " in changed


def test_files_are_small() -> None:
    assert all(path.stat().st_size < LARGEST for path in FILES)


def test_every_experiment_has_a_section() -> None:
    assert set(reference()["experiments"]) < set(notes()["sections"])


def stored_toy_results(store: Store) -> StoredResults:
    random = np.random.default_rng(0)
    places = [("toy", method, seed) for method in ("mc-dropout", "mcni-fixed") for seed in range(6)]
    outcomes = {
        place: Outcome("ok", metrics={"picp": random.uniform(), "mpiw": random.uniform(), "other": 1.0})
        for place in places
    }
    specs = {place: spec(*place, dataset_options={"rows": 200, "test": "same"}) for place in places}
    return save_outcomes(store, "toy", outcomes, ["picp", "mpiw"], "mc-dropout", specs)


def test_what_is_kept_is_read_back(store: Store, tmp_path: Path) -> None:
    results = stored_toy_results(store)
    write(with_verdicts(results, "uqbench run toy"), tmp_path / "toy.json")
    again = read(tmp_path / "toy.json")
    order = ["dataset", "method", "seed", "metric"]
    wanted = results.frame[results.frame["metric"] != "other"].sort_values(order)[[*order, "value"]]
    found = again.frame.sort_values(order)[[*order, "value"]]
    pd.testing.assert_frame_equal(found.reset_index(drop=True), wanted.reset_index(drop=True), rtol=1e-5)
    both = [find("toy", [each]) for each in (results, again)]
    assert isinstance(both[0], Found)
    assert isinstance(both[1], Found)
    assert both[0].departures == both[1].departures
    verdicts = [{one.claim["text"]: one.verdict for one in verdicts_of(each)} for each in (results, again)]
    assert verdicts[0] == verdicts[1]
