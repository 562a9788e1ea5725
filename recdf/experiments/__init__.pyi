"""The public names of recdf/public_names.py, as type checkers see them. Written by
`python tests/generated.py`.
"""

from ..experiments.compare.bootstrap_ci import bootstrap_ci as bootstrap_ci
from ..experiments.compare.by_segment import segment_effects as segment_effects
from ..experiments.compare.cheap_labels import prediction_powered as prediction_powered
from ..experiments.compare.compare_models import compare_models as compare_models
from ..experiments.compare.from_moments import compare_variants_from_moments as compare_variants_from_moments
from ..experiments.compare.from_moments import variant_moments as variant_moments
from ..experiments.compare.interleaving import compare_interleaved as compare_interleaved
from ..experiments.compare.interleaving import interleave as interleave
from ..experiments.compare.over_time import effect_over_time as effect_over_time
from ..experiments.compare.quantiles import compare_quantiles as compare_quantiles
from ..experiments.compare.quantiles import compare_zero_inflated as compare_zero_inflated
from ..experiments.compare.variants import compare_variants as compare_variants
from ..experiments.decide.adjust_pvalues import adjust_pvalues as adjust_pvalues
from ..experiments.decide.decide_experiment import decide_experiment as decide_experiment
from ..experiments.decide.decide_experiment import read_plan as read_plan
from ..experiments.decide.decide_experiment import role_verdicts as role_verdicts
from ..experiments.decide.experiment_health import experiment_health as experiment_health
from ..experiments.decide.experiment_health import find_srm as find_srm
from ..experiments.decide.proxy_metrics import proxy_metrics as proxy_metrics
from ..experiments.join.join_experiment import join_experiment as join_experiment
from ..experiments.join.roll_up import roll_up as roll_up
from ..experiments.plan.aa_splits import aa_test as aa_test
from ..experiments.plan.plan_comparison import plan_comparison as plan_comparison
from ..experiments.plan.plan_experiment import arrivals_by_day as arrivals_by_day
from ..experiments.plan.plan_experiment import plan_experiment as plan_experiment
from ..judge.comparisons import report_table as report_table
from ..tables.cells import ReportTable as ReportTable

__all__ = [
    "ReportTable",
    "aa_test",
    "adjust_pvalues",
    "arrivals_by_day",
    "bootstrap_ci",
    "compare_interleaved",
    "compare_models",
    "compare_quantiles",
    "compare_variants",
    "compare_variants_from_moments",
    "compare_zero_inflated",
    "decide_experiment",
    "effect_over_time",
    "experiment_health",
    "find_srm",
    "interleave",
    "join_experiment",
    "plan_comparison",
    "plan_experiment",
    "prediction_powered",
    "proxy_metrics",
    "read_plan",
    "report_table",
    "role_verdicts",
    "roll_up",
    "segment_effects",
    "variant_moments",
]
