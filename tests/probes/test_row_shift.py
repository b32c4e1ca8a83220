"""Shifted rows by their definition, and the probe against the ordinary one on splits that are shifted themselves."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from bench.api import Split
from bench.errors import UserError
from bench.metrics import declaration
from bench.probes import make_probe
from bench.probes.row_shift import SIZES, RowShift, shifted_rows
from bench.spec.cell import Outcome
from bench.spec.protocol import Protocol
from tests.fixtures.training import NUMBER, PROTOCOL

Load = Callable[..., Split]
USUAL = Protocol().probe
PROBE = RowShift(shifts=["noise", "extrapolation"], severities=[2, 5])


def test_shifted_rows_are_what_the_probe_says(load: Load) -> None:
    split = load("diabetes")
    spread, centre = split.train_x.std(axis=0), split.train_x.mean(axis=0)
    for severity in range(1, 6):
        noise, offset, missing = (
            shifted_rows(split, name, severity, 3).test_x - split.test_x for name in ("noise", "offset", "missing")
        )
        size = SIZES["noise"][severity - 1]
        assert noise.std(axis=0) == pytest.approx(size * spread, rel=0.5)
        assert np.sqrt(np.mean((noise / spread) ** 2)) == pytest.approx(size, rel=0.15)
        np.testing.assert_allclose(np.abs(offset), np.broadcast_to(size * spread, offset.shape), rtol=1e-4, atol=1e-6)
        assert (missing != 0).mean() == pytest.approx(SIZES["missing"][severity - 1], abs=0.06)
        gone = shifted_rows(split, "missing", severity, 3).test_x
        np.testing.assert_allclose(gone[missing != 0], np.broadcast_to(centre, gone.shape)[missing != 0], atol=1e-6)


def test_extrapolation_keeps_the_farthest_rows_with_their_targets(load: Load) -> None:
    split = load("diabetes")
    far = shifted_rows(split, "extrapolation", 4, 0)
    distance = (((split.test_x - split.train_x.mean(0)) / split.train_x.std(0)) ** 2).sum(1)
    kept = np.sort(np.argsort(distance)[-int(np.ceil(0.2 * len(distance))) :])
    np.testing.assert_array_equal(far.test_x, split.test_x[kept])
    np.testing.assert_array_equal(far.test_y, split.test_y[kept])


def test_a_seed_gives_the_same_rows_and_a_severity_more_of_the_same_noise(load: Load) -> None:
    split = load("diabetes")
    for name in SIZES:
        again = shifted_rows(split, name, 3, 7).test_x
        np.testing.assert_array_equal(shifted_rows(split, name, 3, 7).test_x, again)
    one, two = (shifted_rows(split, "noise", severity, 7).test_x - split.test_x for severity in (3, 4))
    np.testing.assert_allclose(two, 2 * one, rtol=1e-3, atol=1e-5)
    assert (shifted_rows(split, "noise", 3, 8).test_x != shifted_rows(split, "noise", 3, 7).test_x).all()


@pytest.mark.slow
def test_a_condition_is_what_shifted_rows_give_the_ordinary_probe(
    ask: Callable[..., list[Outcome]], load: Load
) -> None:
    split = load("diabetes")
    places = [(name, severity) for name in PROBE.shifts for severity in PROBE.severities]
    questions = [(PROBE.spec, split), (USUAL, split)]
    questions += [(USUAL, shifted_rows(split, name, severity, NUMBER)) for name, severity in places]
    shifted, clean, *usual = ask("mcni-fixed", {"alpha": 0.3}, questions)
    assert {n: v for n, v in shifted.metrics.items() if "@" not in n} == clean.metrics
    for (name, severity), outcome in zip(places, usual, strict=True):
        condition = f"@{name}:{severity}"
        found = {n.partition("@")[0]: v for n, v in shifted.metrics.items() if n.endswith(condition)}
        detection = {n: found.pop(n) for n in list(found) if n.startswith("ood_")}
        assert found == outcome.metrics
        variances = clean.arrays["variance"], outcome.arrays["variance"]
        expected = roc_auc_score(np.repeat([0, 1], [len(v) for v in variances]), np.concatenate(variances))
        assert detection["ood_auroc_variance"] == pytest.approx(expected, abs=1e-12)
    both = [shifted.metrics[f"rmse@{name}:5"] for name in PROBE.shifts]
    assert shifted.metrics["rmse@all:5"] == pytest.approx(np.mean(both))
    assert {declaration(name).task for name in shifted.metrics} == {"regression"}
    assert shifted.training["draws"] == PROTOCOL.draws


def test_what_cannot_be_shifted_is_refused(load: Load) -> None:
    PROBE.check(load("wine"))
    with pytest.raises(UserError, match="'row-shift' is for rows of a table, not for inputs of shape"):
        PROBE.check(load())
    with pytest.raises(UserError, match=r"probe\.shifts: unknown shift 'nose'; did you mean noise"):
        make_probe({"kind": "row-shift", "shifts": ["nose"]})
    with pytest.raises(UserError, match=r"probe\.severities: name at least one"):
        make_probe({"kind": "row-shift", "severities": []})
    assert PROBE.rows_drawn(50) == 50 * 5
    assert replace(PROBE, severities=[1]).rows_drawn(10) == 30
