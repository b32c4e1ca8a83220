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
from bench.metrics.forecast import Forecast, TargetScale
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
from bench.metrics.noise import fit_noise_variance
from bench.metrics.quantiles import (
    PitHistogram,
    QuantileCurve,
    pit_histogram,
    pit_values,
    quantile_calibration_error,
    quantile_curve,
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
from bench.metrics.scoring import MetricError, score
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
    mutual_information,
    predictive_entropy,
    total_variance,
    variation_ratio,
)

__all__ = ["BrierSplit", "Forecast", "Intervals", "Metric", "MetricError", "PitHistogram", "QuantileCurve"]
__all__ += ["ReliabilityCurve", "RiskCoverage", "TargetScale"]
__all__ += ["accuracy", "adaptive_calibration_error", "area_under_generalised_risk", "area_under_risk_coverage"]
__all__ += ["auroc", "average_precision", "brier_score", "brier_split", "catalogue", "categorical_nll"]
__all__ += ["class_wise_calibration_error", "condition", "coverage_at_risk", "coverage_probability", "crps_fair"]
__all__ += ["crps_fair_rows", "crps_gaussian", "crps_gaussian_rows", "debiased_calibration_error", "declaration"]
__all__ += ["detection_scores", "entropy", "excess_area_under_risk_coverage", "expected_calibration_error"]
__all__ += ["expected_entropy", "false_positive_rate", "find_declaration", "fit_noise_variance", "flip_level"]
__all__ += ["gaussian_intervals", "gaussian_nll", "gaussian_nll_rows", "group_names", "level_of"]
__all__ += ["maximum_calibration_error", "mean_absolute_error", "mean_set_size", "mean_width", "mutual_information"]
__all__ += ["pit_histogram", "pit_values", "predictive_entropy", "quantile_calibration_error", "quantile_curve"]
__all__ += ["r_squared", "reliability_curve", "risk_at_coverage", "risk_coverage_curve"]
__all__ += ["root_mean_squared_calibration_error", "root_mean_squared_error", "score", "score_by_group"]
__all__ += ["set_coverage", "sharpness", "singleton_share", "size_stratified_coverage", "smooth_calibration_error"]
__all__ += ["sort_by_score", "sparsification_error", "standardised_log_loss", "top_k_accuracy", "total_variance"]
__all__ += ["using_metrics", "variation_ratio", "width_of", "winkler_score"]
