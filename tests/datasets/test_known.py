"""Datasets with a known law: the oracle wins every proper score, and exact posteriors are exact and calibrated."""

import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from bench.api import Array, Dataset, Law, Mixture, Normal, Probabilities, RegressionPrediction, Split
from bench.datasets.known_process import fourier_series
from bench.metrics.row_losses import losses_of_rows
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.testing import verify

SUITE = load_suite("truth")


def make(name: str, **options: object) -> Dataset:
    dataset: Dataset = Registry().make("dataset", name, options)
    return dataset


def of_suite(name: str) -> Dataset:
    entry = SUITE.datasets[name]
    return make(entry.use or name, **{**entry.options, "test_rows": 2000})


def law_of(split: Split) -> Law:
    assert split.law is not None
    return split.law


def rivals(law: RegressionPrediction) -> list[Normal]:
    """Normals that are wrong in mean or variance by a fifth and more of the noise, or in their shape alone."""
    noise = law.noise_variance
    assert noise is not None
    mean, std = law.centre, np.sqrt(noise)
    changes = ((0.0, 0.5), (0.0, 2.0), (0.4, 1.0), (-0.4, 1.2))
    wrong = [Normal(mean + shift * std, noise_variance=noise * factor) for shift, factor in changes]
    return wrong if isinstance(law, Normal) else [*wrong, Normal(mean, noise_variance=noise)]


@pytest.mark.parametrize("name", SUITE.datasets)
def test_the_oracle_wins_every_proper_score(name: str) -> None:
    """At each row by expectation, so that the mean of a rival's excess is not below 0 by more than its error."""
    split = of_suite(name).load(0)
    stated = law_of(split).at(split.test_x)
    gaps: list[Array] = []
    if isinstance(stated, Probabilities):
        p = stated.probabilities[0]
        for q in (p**2 / (p**2).sum(1, keepdims=True), 0.8 * p + 0.2 / p.shape[1], p[:, ::-1]):
            own, other = (losses_of_rows(each, split.test_y) for each in (p, q))
            gaps += [other[score] - own[score] for score in ("brier", "nll_categorical")]
    else:
        assert isinstance(stated, RegressionPrediction)
        own_law = Mixture(stated)
        for rival in map(Mixture, rivals(stated)):
            gaps.append(own_law.log_density(split.test_y) - rival.log_density(split.test_y))
            gaps.append(rival.crps(split.test_y) - own_law.crps(split.test_y))
    for gap in gaps:
        assert gap.mean() > -2 * gap.std() / np.sqrt(len(gap))


@pytest.mark.parametrize("name", SUITE.datasets)
def test_targets_follow_the_law_of_every_dataset_of_the_suite(name: str) -> None:
    assert [str(verdict) for verdict in verify(of_suite(name), ["law"]) if verdict.state != "ok"] == []


def test_the_kernel_of_the_process_is_the_squared_exponential() -> None:
    for length in (0.05, 0.6, 2.0):
        frequencies, sizes = fourier_series(length)
        distance = np.linspace(0, 6, 200)
        kernel = np.square(sizes) @ np.cos(frequencies[:, None] * distance)
        np.testing.assert_allclose(kernel, np.exp(-np.square(distance / length) / 2), atol=1e-11)


def test_the_posterior_of_a_process_is_that_of_scikit_learn() -> None:
    split = make("known-process", rows=60, gap=True, length=0.5, noise=0.3).load(0)
    posterior = law_of(split).given(split.train_x, split.train_y)
    assert posterior is not None
    stated = posterior.at(split.test_x)
    assert isinstance(stated, Normal)
    process = GaussianProcessRegressor(RBF(0.5), alpha=0.3**2, optimizer=None).fit(split.train_x, split.train_y)
    mean, std = process.predict(split.test_x, return_std=True)
    assert stated.model_variance is not None
    np.testing.assert_allclose(stated.mean[0], mean, atol=1e-8)
    np.testing.assert_allclose(stated.model_variance[0], np.square(std), atol=1e-8)


def test_the_posterior_of_linear_weights_is_the_joint_normal_conditioned() -> None:
    split = make("known-linear", rows=20, inputs=3, noise=0.7, test_rows=5).load(0)
    posterior = law_of(split).given(split.train_x, split.train_y)
    assert posterior is not None
    stated = posterior.at(split.test_x)
    assert isinstance(stated, Normal)
    assert stated.model_variance is not None
    one, other = (np.column_stack([np.ones(len(x)), x]) for x in (split.train_x, split.test_x))
    gain = other @ one.T @ np.linalg.inv(one @ one.T + 0.49 * np.eye(20))
    np.testing.assert_allclose(stated.mean[0], gain @ split.train_y, rtol=1e-9)
    np.testing.assert_allclose(stated.model_variance[0], np.diag(other @ other.T - gain @ one @ other.T), rtol=1e-9)


@pytest.mark.parametrize("name", ["known-linear", "known-process"])
def test_the_exact_posterior_passes_simulation_based_calibration_and_a_wrong_one_does_not(name: str) -> None:
    """Talts et al. 2018: over draws of weights and data the rank of the truth in its posterior is uniform."""
    ranks: dict[float, list[float]] = {0.5: [], 1.0: [], 2.0: []}
    dataset = make(name, rows=20, test_rows=2)
    for number in range(300):
        split = dataset.load(number)
        posterior = law_of(split).given(split.train_x, split.train_y)
        assert posterior is not None
        stated = posterior.at(split.test_x)
        assert isinstance(stated, Normal)
        assert stated.model_variance is not None
        assert split.test_truth is not None
        for factor, found in ranks.items():
            exact = Normal(stated.mean, stated.model_variance * factor**2)
            found.append(float(exact.cdf(split.test_truth)[0, 0]))
    assert kstest(ranks[1.0], "uniform").pvalue > 0.02
    assert max(kstest(ranks[factor], "uniform").pvalue for factor in (0.5, 2.0)) < 1e-3


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("known-noise", {"rows": 1}, "at least 2 rows, 2 test_rows and 1 input are needed"),
        ("known-noise", {"size": 0.0}, "size must be above 0, got 0.0"),
        ("known-process", {"length": 0.01}, "length must be at least 0.05, got 0.01"),
        ("known-classes", {"inputs": 1}, "at least 2 classes and 2 inputs are needed, got 3 and 1"),
        ("known-classes", {"label_noise": 1.5}, "label_noise must be from 0 to 1, got 1.5"),
    ],
)
def test_options_that_make_no_sense_are_refused(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(Exception, match=message):
        make(name, **options)


def test_test_rows_of_a_gap_are_named_by_their_place() -> None:
    split = make("known-noise", gap=True, rows=50).load(0)
    assert split.test_groups is not None
    away = np.abs(split.test_x[:, 0])
    assert np.abs(split.train_x[:, 0]).min() >= 0.6
    assert set(split.test_groups) == {"data", "gap", "beyond"}
    np.testing.assert_array_equal(split.test_groups == "gap", away < 0.6)
