"""Kept predictions hold the law and the posterior, so that metrics against the truth are computed from them again."""

import io

import numpy as np
import pytest

from bench.metrics import Forecast, Normal, NormalMixture
from bench.metrics.kept import Kept, pack, unpack


@pytest.mark.parametrize("kind", ["normal", "mixture"])
def test_metrics_against_the_truth_are_the_same_from_kept_predictions(kind: str, rng: np.random.Generator) -> None:
    mean, noise = rng.normal(size=(1, 50)), rng.gamma(2.0, size=(1, 50))
    law = Normal(mean, noise_variance=noise)
    stated = Normal(mean + 0.3, 0.2 * noise, 1.1 * noise)
    mixed = NormalMixture(mean[..., None] + np.array([-0.5, 0.5]), np.repeat(noise[..., None], 2, axis=2))
    posterior = Normal(mean + 0.1, 0.1 * noise, noise)
    forecast = Forecast.of(stated if kind == "normal" else mixed, mean[0], None, None, mean[0], law, posterior)
    values = Kept(forecast).scores()
    content = pack(Kept(forecast), "compact", values)
    assert content is not None
    with np.load(io.BytesIO(content)) as arrays:
        again = unpack(dict(arrays))
    found = again.scores()
    assert found.keys() == values.keys()
    assert {"law_regret", "posterior_distance"} <= found.keys()
    for name, value in values.items():
        assert found[name] == pytest.approx(value, rel=1.1e-4, abs=1e-12), name
