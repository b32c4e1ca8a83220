"""An outcome on its way to another process."""

import math
import pickle

import numpy as np
import pytest

from bench.spec.cell import Outcome


def test_an_outcome_crosses_processes_unchanged() -> None:
    arrays = {"draws": np.arange(6, dtype=np.float32).reshape(2, 3), "levels": np.array([0.1, np.nan])}
    metrics = {"rmse": 0.1 + 0.2, "nll": math.inf, "r2": -math.inf}
    sent = Outcome("ok", "a warning", metrics, {"epochs": [3]}, {"seconds": 0.5}, {"python": "3.11"}, arrays)
    received = pickle.loads(pickle.dumps(sent))
    assert {**vars(received), "arrays": None} == {**vars(sent), "arrays": None}
    assert received.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(received.arrays[name], array, strict=True)


@pytest.mark.parametrize("outcome", [Outcome("ok", training={"x": object()}), Outcome("ok", training={"x": math.nan})])
def test_what_is_not_plain_data_crosses_no_process(outcome: Outcome) -> None:
    with pytest.raises((TypeError, ValueError)):
        pickle.dumps(outcome)


def test_no_object_of_a_plug_in_crosses_inside_an_array() -> None:
    with pytest.raises(ValueError, match="Object arrays"):
        pickle.dumps(Outcome("ok", arrays={"x": np.array([object()])}))
