"""recdf: evaluate logged recommendations in pandas."""

from .bootstrap import bootstrap_ci
from .compare import compare_models
from .decision import adjust_pvalues
from .experiment import join_experiment
from .health import experiment_health
from .plan import plan_experiment
from .report import report_table
from .rollup import roll_up
from .variants import compare_variants

__version__ = "0.1.0"

__all__ = [
    "adjust_pvalues",
    "bootstrap_ci",
    "compare_models",
    "compare_variants",
    "experiment_health",
    "join_experiment",
    "plan_experiment",
    "report_table",
    "roll_up",
]
