"""Files of kept results: cells that were run in several stores are joined."""

from typing import Any

import pytest

from tools.kept_results import KeptResults, joined

SPEC = "not read here"


def content(methods: dict[str, float], code: str, data: str = "rows") -> dict[str, Any]:
    kinds = [
        {"dataset": "yacht", "method": name, "spec": SPEC, "training": {}, "seeds": [0], "splits": [0], "values": v}
        for name, v in ((name, {"rmse": [value]}) for name, value in methods.items())
    ]
    about = {"title": "", "baseline": None, "metrics": ["rmse"], "command": "", "data": {"yacht": {"0": data}}}
    return {"suite": "uci", **about, "environment": {"code": code}, "kinds": kinds}


def test_new_cells_stand_beside_those_that_were_kept_and_replace_their_own() -> None:
    found = joined(content({"b": 2.0, "c": 3.0}, "new"), content({"a": 1.0, "b": 0.0}, "old, older"))
    frame = KeptResults(found).frame
    assert dict(zip(frame["method"], frame["value"], strict=True)) == {"a": 1.0, "b": 2.0, "c": 3.0}
    assert found["environment"]["code"] == "new, old, older"


def test_results_of_other_rows_or_suites_are_not_joined() -> None:
    with pytest.raises(ValueError, match="yacht: the rows"):
        joined(content({"b": 2.0}, "new", data="others"), content({"a": 1.0}, "old"))
    with pytest.raises(ValueError, match="cannot be added"):
        joined({**content({"b": 2.0}, "new"), "suite": "toy"}, content({"a": 1.0}, "old"))
