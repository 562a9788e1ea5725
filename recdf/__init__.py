"""recdf: evaluate logged recommendations in pandas. Two long frames in, two tidy metric tables out."""

from . import errors
from .audit import check
from .bootstrap import bootstrap_ci
from .compare import compare_models
from .conventions import CONVENTIONS, Convention, conventions_table
from .decision import adjust_pvalues
from .dialects import compare_conventions
from .errors import (
    ColumnError,
    DataError,
    DuplicateError,
    DuplicateWarning,
    EmptyPopulationError,
    IdTypeError,
    MissingExtraError,
    NoOverlapWarning,
    NullKeyError,
    OptionError,
    RecdfError,
    RecdfWarning,
    TieError,
    UndefinedMetricError,
)
from .evaluate import Evaluation, evaluate, summarize
from .experiment import join_experiment
from .frames import from_dict, from_labelled
from .health import experiment_health
from .lists import Lists
from .metric import METRICS, Metric, metric, metrics_table
from .metrics import (
    accuracy,
    arhr,
    auc,
    bpref,
    confusion,
    dcg,
    err,
    f1,
    fallout,
    first_rank,
    hitrate,
    hits,
    mapr,
    mar,
    mcc,
    money_ndcg,
    money_precision,
    money_recall,
    mrr,
    ndcg,
    pap,
    pauc,
    precision,
    rbp,
    recall,
    revenue,
    rprecision,
    specificity,
)
from .plan import plan_experiment
from .report import ReportTable, report_table
from .rollup import roll_up
from .sample import Shop, sample_shop
from .storage import read_parquet
from .streaming import evaluate_parquet
from .variants import compare_variants

__version__ = "0.1.0"

__all__ = [
    "CONVENTIONS",
    "METRICS",
    "ColumnError",
    "Convention",
    "DataError",
    "DuplicateError",
    "DuplicateWarning",
    "EmptyPopulationError",
    "Evaluation",
    "IdTypeError",
    "Lists",
    "Metric",
    "MissingExtraError",
    "NoOverlapWarning",
    "NullKeyError",
    "OptionError",
    "RecdfError",
    "RecdfWarning",
    "ReportTable",
    "Shop",
    "TieError",
    "UndefinedMetricError",
    "accuracy",
    "adjust_pvalues",
    "arhr",
    "auc",
    "bootstrap_ci",
    "bpref",
    "check",
    "compare_conventions",
    "compare_models",
    "compare_variants",
    "confusion",
    "conventions_table",
    "dcg",
    "err",
    "errors",
    "evaluate",
    "evaluate_parquet",
    "experiment_health",
    "f1",
    "fallout",
    "first_rank",
    "from_dict",
    "from_labelled",
    "hitrate",
    "hits",
    "join_experiment",
    "mapr",
    "mar",
    "mcc",
    "metric",
    "metrics_table",
    "money_ndcg",
    "money_precision",
    "money_recall",
    "mrr",
    "ndcg",
    "pap",
    "pauc",
    "plan_experiment",
    "precision",
    "rbp",
    "read_parquet",
    "recall",
    "report_table",
    "revenue",
    "roll_up",
    "rprecision",
    "sample_shop",
    "specificity",
    "summarize",
]
