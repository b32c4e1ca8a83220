"""The section compares methods by the rows of one test set."""

import numpy as np

from bench.api import Table
from bench.reports.rows import Rows
from bench.store.results import StoredResults
from bench.store.store import Store, SuiteRecord
from bench.testing.report_results import ExampleResults
from tests.fixtures.banks import cell, outcome, predicted


def test_differences_and_hard_rows_are_those_of_the_stored_predictions(store: Store) -> None:
    cells = [cell(number, "m" if number < 2 else "other") for number in range(4)]
    cells = [type(one)(one.key, one.dataset, 0, one.method, one.seed % 2, one.spec) for one in cells]
    made = [predicted(0) for _ in cells]
    store.want(SuiteRecord("tiny", "Tiny", "m", [], "{}"), cells)
    store.save([(one, outcome(kept)) for one, kept in zip(cells, made, strict=True)], "tiny")
    section = Rows(shown=3).section(StoredResults(store, "tiny"))
    assert section is not None
    tables = {block.name: block for block in section.blocks if isinstance(block, Table)}
    differences = tables["rows-toy-differences"].numbers
    assert differences is not None
    assert differences["difference"].tolist() == [0.0, 0.0]  # the same predictions
    (line,) = tables["rows-toy-differences"].data.to_dict("records")  # one line per method, whatever the losses
    assert line["method"] == "other"
    assert set(line.keys()) - {"method"} == set(differences["loss"])
    assert line["squared_error"].startswith("0.000")
    hard = tables["rows-toy-hardest"].data
    worst = np.argsort(-np.square(made[0].test.mean - made[0].test.observed), kind="stable")[:3]
    assert hard["row"].tolist() == worst.tolist()
    assert "rows-toy-disputed" not in tables  # they disagree nowhere
    assert list(hard.columns) == ["row", "observed", "loss", "disagreement", "best method", "m", "other"]


def test_without_predictions_there_is_no_section() -> None:
    assert Rows().section(ExampleResults()) is None
