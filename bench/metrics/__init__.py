"""Metrics of accuracy, calibration, selective prediction and detection, each with one stated convention.

Pure functions over arrays do the work; a `Metric` declares one of them; `score` applies all that fit a `Forecast`.
"""

from bench.metrics.calibration import (
    ReliabilityCurve,
    adaptive_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    maximum_calibration_error,
    reliability_curve,
    root_mean_squared_calibration_error,
    smooth_calibration_error,
)
from bench.metrics.class_predictions import ClassPrediction, Dirichlet, Logits, Probabilities, Sets
from bench.metrics.classification import (
    BrierSplit,
    accuracy,
    brier_score,
    brier_split,
    categorical_nll,
    class_wise_calibration_error,
    top_k_accuracy,
)
from bench.metrics.crps import crps_fair, crps_fair_rows, crps_gaussian, crps_gaussian_rows
from bench.metrics.detection import auroc, average_precision, detection_scores, false_positive_rate
from bench.metrics.discovery import catalogue, condition, declaration, find_declaration, using_metrics
from bench.metrics.forecast import Forecast, Prediction, TargetScale
from bench.metrics.groups import group_names, score_by_group
from bench.metrics.intervals import (
    Intervals,
    coverage_probability,
    gaussian_intervals,
    level_of,
    mean_width,
    width_of,
    winkler_score,
)
from bench.metrics.metric import Metric
from bench.metrics.mixture import Mixture
from bench.metrics.noise import fit_noise_variance
from bench.metrics.normal_mixture import NormalMixture
from bench.metrics.predictions import Normal, NormalInverseGamma, Points, RegressionPrediction
from bench.metrics.quantile_predictions import Quantiles
from bench.metrics.quantile_scores import interval_score, pinball_loss, weighted_interval_score
from bench.metrics.quantiles import (
    PitHistogram,
    QuantileCurve,
    central_values,
    miscalibration_area,
    pit_histogram,
    pit_values,
    quantile_calibration_error,
    quantile_curve,
    root_mean_squared_quantile_error,
)
from bench.metrics.regression import (
    gaussian_nll,
    gaussian_nll_rows,
    mean_absolute_error,
    r_squared,
    root_mean_squared_error,
    sharpness,
    standardised_log_loss,
)
from bench.metrics.robustness import flip_level
from bench.metrics.scoring import MetricError, left_out, reasons_without_value, score
from bench.metrics.selective import (
    RiskCoverage,
    area_under_generalised_risk,
    area_under_risk_coverage,
    coverage_at_risk,
    excess_area_under_risk_coverage,
    risk_at_coverage,
    risk_coverage_curve,
    sparsification_error,
)
from bench.metrics.sets import mean_set_size, set_coverage, singleton_share, size_stratified_coverage
from bench.metrics.sorting import sort_by_score
from bench.metrics.uncertainty import (
    entropy,
    expected_entropy,
    model_information,
    model_variance,
    mutual_information,
    predictive_entropy,
    total_variance,
    variation_ratio,
)
from bench.metrics.variance_calibration import dawid_sebastiani_score, normalised_calibration_error

__all__ = ["BrierSplit", "ClassPrediction", "Dirichlet", "Forecast", "Intervals", "Logits", "Metric", "MetricError"]
__all__ += ["Mixture", "Normal", "NormalInverseGamma", "NormalMixture", "PitHistogram", "Points", "Prediction"]
__all__ += ["Probabilities", "QuantileCurve"]
__all__ += ["Quantiles", "RegressionPrediction", "ReliabilityCurve", "RiskCoverage", "Sets", "TargetScale", "accuracy"]
__all__ += ["adaptive_calibration_error", "area_under_generalised_risk", "area_under_risk_coverage", "auroc"]
__all__ += ["average_precision", "brier_score", "brier_split", "catalogue", "categorical_nll", "central_values"]
__all__ += ["class_wise_calibration_error", "condition", "coverage_at_risk", "coverage_probability", "crps_fair"]
__all__ += ["crps_fair_rows", "crps_gaussian", "crps_gaussian_rows", "dawid_sebastiani_score"]
__all__ += ["debiased_calibration_error", "declaration", "detection_scores", "entropy"]
__all__ += ["excess_area_under_risk_coverage", "expected_calibration_error", "expected_entropy", "false_positive_rate"]
__all__ += ["find_declaration", "fit_noise_variance", "flip_level", "gaussian_intervals", "gaussian_nll"]
__all__ += ["gaussian_nll_rows", "group_names", "interval_score", "left_out", "level_of", "maximum_calibration_error"]
__all__ += ["mean_absolute_error", "mean_set_size", "mean_width", "miscalibration_area", "model_information"]
__all__ += ["model_variance", "mutual_information"]
__all__ += ["normalised_calibration_error", "pinball_loss", "pit_histogram", "pit_values", "predictive_entropy"]
__all__ += ["quantile_calibration_error", "quantile_curve", "r_squared", "reasons_without_value", "reliability_curve"]
__all__ += ["risk_at_coverage", "risk_coverage_curve", "root_mean_squared_calibration_error", "root_mean_squared_error"]
__all__ += ["root_mean_squared_quantile_error", "score", "score_by_group", "set_coverage", "sharpness"]
__all__ += ["singleton_share", "size_stratified_coverage", "smooth_calibration_error", "sort_by_score"]
__all__ += ["sparsification_error", "standardised_log_loss", "top_k_accuracy", "total_variance", "using_metrics"]
__all__ += ["variation_ratio", "weighted_interval_score", "width_of", "winkler_score"]
