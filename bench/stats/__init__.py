"""Statistics on repeated results: pure functions on arrays and data frames, every random draw from a given generator.

`compare` and `rank` take the frame of a suite and return everything that tables, reports and the gate show; the other
functions work on arrays. docs/statistics.md says which test decides what, and gives its error rates.
"""

from bench.stats.aggregate import (
    Estimate,
    Profile,
    improvement_probabilities,
    improvement_probability,
    interquartile_mean,
    interquartile_mean_interval,
    performance_profile,
)
from bench.stats.all_pairs import PairwiseTests, compare_all_pairs
from bench.stats.bayes import Posterior, correlated_t_test, signed_rank
from bench.stats.bootstrap import bca_interval, cut_interval, hull, percentile_interval
from bench.stats.cell_counts import CellCounts
from bench.stats.compare import Comparison, compare, compare_each
from bench.stats.compare_over_datasets import OverallComparison
from bench.stats.corrections import adjust_p_values, benjamini_hochberg, holm
from bench.stats.dataset_comparison import DatasetComparison, Interval
from bench.stats.distributions import ranks, t_quantile, t_tail
from bench.stats.effects import cliffs_delta, paired_superiority, pooled_deviation, standardised_difference, superiority
from bench.stats.equal_draws import methods_with_equal_draws, unequal_draws
from bench.stats.hierarchical import next_dataset
from bench.stats.joint_signs import joint_sign_test, smallest_joint_p
from bench.stats.pairing import LostCells, Measure, MetricLike, Repeats, losses, pair_repeats, widest_difference
from bench.stats.planning import detectable_difference, pairs_needed, power
from bench.stats.rank import MethodRank, PairTest, Ranking, rank
from bench.stats.rank_tests import (
    average_ranks,
    critical_difference,
    friedman,
    friedman_demsar,
    iman_davenport,
    nemenyi,
    rank_groups,
    ranks_per_dataset,
    wilcoxon_holm,
)
from bench.stats.recalibration import Recalibrations, ScaledColumn, recalibration_frame, recalibrations
from bench.stats.replication import Repetition, datasets_by_test, repetition
from bench.stats.row_questions import RowTable, compare_rows, disputed_rows, hardest_rows, row_frame, row_tables
from bench.stats.row_sampling import RowTest, row_test
from bench.stats.settings import Margin, Settings, Verdict
from bench.stats.stored_rows import StoredRows
from bench.stats.tests import (
    equivalence_test,
    permutation_test,
    sign_test,
    smallest_permutation_p,
    t_interval,
    t_test,
    trimmed_mean,
    trimmed_test,
    variance_factor,
    wilcoxon_test,
)
from bench.stats.whole_means import repeat_means, repeats_due

__all__ = ["CellCounts", "Comparison", "DatasetComparison", "Estimate", "Interval", "LostCells", "Margin", "Measure"]
__all__ += ["MethodRank", "MetricLike", "OverallComparison", "PairTest", "PairwiseTests", "Posterior", "Profile"]
__all__ += ["Ranking", "Repeats", "Repetition", "Settings", "Verdict"]
__all__ += ["adjust_p_values", "average_ranks", "bca_interval", "benjamini_hochberg", "cliffs_delta", "compare"]
__all__ += ["compare_all_pairs", "compare_each", "correlated_t_test", "critical_difference", "cut_interval"]
__all__ += [
    "detectable_difference",
    "equivalence_test",
    "friedman",
    "friedman_demsar",
    "holm",
    "hull",
    "iman_davenport",
]
__all__ += ["improvement_probabilities", "improvement_probability", "interquartile_mean", "interquartile_mean_interval"]
__all__ += [
    "losses",
    "methods_with_equal_draws",
    "nemenyi",
    "pair_repeats",
    "paired_superiority",
    "pairs_needed",
    "percentile_interval",
    "performance_profile",
]
__all__ += ["permutation_test", "pooled_deviation", "power", "rank", "rank_groups", "ranks_per_dataset", "repetition"]
__all__ += ["sign_test", "signed_rank", "smallest_permutation_p", "standardised_difference", "superiority"]
__all__ += ["RowTest", "datasets_by_test", "joint_sign_test", "next_dataset", "row_test", "smallest_joint_p"]
__all__ += [
    "ranks",
    "t_interval",
    "t_quantile",
    "t_tail",
    "t_test",
    "unequal_draws",
    "variance_factor",
    "widest_difference",
]
__all__ += ["wilcoxon_holm", "wilcoxon_test"]
__all__ += ["RowTable", "compare_rows", "disputed_rows", "hardest_rows", "row_frame", "row_tables"]
__all__ += ["Recalibrations", "ScaledColumn", "recalibrations"]
__all__ += ["StoredRows", "recalibration_frame", "repeat_means", "repeats_due", "trimmed_mean", "trimmed_test"]
