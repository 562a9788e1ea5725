"""recdf: evaluate logged recommendations in pandas. Two long frames in, two tidy metric tables out.

Start with these; `help` of each says more:

* `rd.evaluate(true, pred, ["ndcg", "recall"], k=10)` is the way in: what users found relevant and what was recommended
  to them give an `Evaluation` with `.per_user` (one row per list) and `.summary` (one row per metric). Its help
  explains the options that all functions share: columns, order, ties, population, `by=`, `like=`.
* `rd.check(true, pred)` lists what is odd in the data, before you believe a number.
* `rd.ndcg(true, pred, k=10)` is one number, `rd.ndcg.per_user(true, pred, k=10)` one row per user. Every metric is such
  a function: `rd.metrics_table()` lists them, and `help(rd.ndcg)` says when to use it and when not.
* `rd.compare_models(result.per_user)` and, for an experiment, `rd.compare_variants` tell differences from chance.
* `rd.evaluate_parquet` takes files larger than memory, `rd.spark.evaluate` and `rd.dask.evaluate` frames of these
  engines; `rd.sample_shop()` makes data to try things on.

Examples
--------
>>> import recdf as rd
>>> shop = rd.sample_shop()
>>> result = rd.evaluate(shop.true, shop.pred, ["ndcg", "recall"], k=10, by="model")
>>> result.summary[["model", "metric", "k", "value"]].round(3).head(2)
  model  metric   k  value
0   knn    ndcg  10  0.185
1   knn  recall  10  0.231
"""

import importlib as _importlib
import typing as _typing

from . import errors, metrics
from ._version import __version__ as __version__
from .errors import (
    ByWarning,
    ColumnError,
    DataError,
    DeprecatedWarning,
    DuplicateError,
    DuplicateWarning,
    EmptyPopulationError,
    EngineError,
    FewNegativesWarning,
    FoldByWarning,
    IdTypeError,
    JudgedWarning,
    MissingExtraError,
    NoOverlapWarning,
    NullKeyError,
    OptionError,
    OrderWarning,
    RankWarning,
    RecdfError,
    RecdfWarning,
    TieError,
    TimeByWarning,
    UndefinedMetricError,
    UnknownWarning,
    WeightWarning,
    WriteError,
)
from .evaluation.evaluate import evaluate
from .evaluation.result import Evaluation, read_parquet
from .evaluation.summary import summarize
from .inputs.conventions import CONVENTIONS, Convention, conventions_table
from .inputs.frames import from_dict, from_labelled
from .matching.counts import Counts
from .matching.hits import Hits
from .matching.lists import Lists
from .metrics import *  # noqa: F403  (the metrics of the registry; metrics/__init__.pyi names them for type checkers)
from .metrics.metric import METRICS, Metric, metric, metrics_table
from .metrics.sampled import sampled_values

if _typing.TYPE_CHECKING:
    from .datasets import Shop, sample_shop
    from .diagnostics.compare_conventions import compare_conventions
    from .diagnostics.count_tables import exposure_table, hit_table, position_table, user_gap
    from .diagnostics.data_checks import check
    from .display import plot as plot
    from .display.leaderboard import Leaderboard, leaderboard
    from .display.report.page import report
    from .experiments.compare.bootstrap_ci import bootstrap_ci
    from .experiments.compare.compare_from_moments import compare_variants_from_moments
    from .experiments.compare.compare_models import compare_models
    from .experiments.compare.compare_variants import compare_variants
    from .experiments.compare.variant_moments import variant_moments
    from .experiments.decide.experiment_health import experiment_health
    from .experiments.decide.verdict import adjust_pvalues
    from .experiments.join.join_experiment import join_experiment
    from .experiments.join.roll_up import roll_up
    from .experiments.plan.plan_experiment import plan_experiment
    from .logs.impressions import Impressions, from_impressions
    from .logs.log_checks import check_log
    from .logs.time_slices import time_slice
    from .off_policy.compare_targets import ope_compare
    from .off_policy.estimate_value import ope_estimate
    from .off_policy.propensity_check import popularity_propensity, propensity_check
    from .off_policy.reward_table import reward_table
    from .off_policy.target_from_recs import target_from_recs
    from .off_policy.weight_diagnostics import ope_diagnostics
    from .partitions import dask as dask
    from .partitions import engines as engines
    from .partitions import spark as spark
    from .partitions.evaluate_parquet import evaluate_parquet
    from .partitions.impressions_parquet import impressions_parquet
    from .tables.comparisons import report_table
    from .tables.shown_frames import ReportTable

__all__ = [
    "CONVENTIONS",
    "METRICS",
    "ByWarning",
    "ColumnError",
    "Convention",
    "Counts",
    "DataError",
    "DeprecatedWarning",
    "DuplicateError",
    "DuplicateWarning",
    "EmptyPopulationError",
    "EngineError",
    "Evaluation",
    "FewNegativesWarning",
    "FoldByWarning",
    "Hits",
    "IdTypeError",
    "Impressions",
    "JudgedWarning",
    "Leaderboard",
    "Lists",
    "Metric",
    "MissingExtraError",
    "NoOverlapWarning",
    "NullKeyError",
    "OptionError",
    "OrderWarning",
    "RankWarning",
    "RecdfError",
    "RecdfWarning",
    "ReportTable",
    "Shop",
    "TieError",
    "TimeByWarning",
    "UndefinedMetricError",
    "UnknownWarning",
    "WeightWarning",
    "WriteError",
    "adjust_pvalues",
    "bootstrap_ci",
    "check",
    "check_log",
    "compare_conventions",
    "compare_models",
    "compare_variants",
    "compare_variants_from_moments",
    "conventions_table",
    "errors",
    "evaluate",
    "evaluate_parquet",
    "experiment_health",
    "exposure_table",
    "from_dict",
    "from_impressions",
    "from_labelled",
    "hit_table",
    "impressions_parquet",
    "join_experiment",
    "leaderboard",
    "metric",
    "metrics_table",
    "ope_compare",
    "ope_diagnostics",
    "ope_estimate",
    "plan_experiment",
    "popularity_propensity",
    "position_table",
    "propensity_check",
    "read_parquet",
    "report",
    "report_table",
    "reward_table",
    "roll_up",
    "sample_shop",
    "sampled_values",
    "summarize",
    "target_from_recs",
    "time_slice",
    "user_gap",
    "variant_moments",
]
__all__ += metrics.__all__


# Rooms that `evaluate` does not need are loaded when one of their names is first used, so that importing recdf takes no
# longer than evaluating does. Type checkers read the imports above; a test compares the two.
_MODULES = {
    "plot": ".display.plot",
    "dask": ".partitions.dask",
    "engines": ".partitions.engines",
    "spark": ".partitions.spark",
}
_LATE = {
    **_MODULES,
    "Shop": ".datasets",
    "sample_shop": ".datasets",
    "check": ".diagnostics.data_checks",
    "check_log": ".logs.log_checks",
    "compare_conventions": ".diagnostics.compare_conventions",
    "exposure_table": ".diagnostics.count_tables",
    "hit_table": ".diagnostics.count_tables",
    "position_table": ".diagnostics.count_tables",
    "user_gap": ".diagnostics.count_tables",
    "Leaderboard": ".display.leaderboard",
    "leaderboard": ".display.leaderboard",
    "report": ".display.report.page",
    "bootstrap_ci": ".experiments.compare.bootstrap_ci",
    "compare_models": ".experiments.compare.compare_models",
    "compare_variants_from_moments": ".experiments.compare.compare_from_moments",
    "compare_variants": ".experiments.compare.compare_variants",
    "experiment_health": ".experiments.decide.experiment_health",
    "join_experiment": ".experiments.join.join_experiment",
    "plan_experiment": ".experiments.plan.plan_experiment",
    "ReportTable": ".tables.shown_frames",
    "report_table": ".tables.comparisons",
    "roll_up": ".experiments.join.roll_up",
    "variant_moments": ".experiments.compare.variant_moments",
    "adjust_pvalues": ".experiments.decide.verdict",
    "Impressions": ".logs.impressions",
    "from_impressions": ".logs.impressions",
    "time_slice": ".logs.time_slices",
    "ope_compare": ".off_policy.compare_targets",
    "ope_diagnostics": ".off_policy.weight_diagnostics",
    "ope_estimate": ".off_policy.estimate_value",
    "popularity_propensity": ".off_policy.propensity_check",
    "propensity_check": ".off_policy.propensity_check",
    "reward_table": ".off_policy.reward_table",
    "target_from_recs": ".off_policy.target_from_recs",
    "evaluate_parquet": ".partitions.evaluate_parquet",
    "impressions_parquet": ".partitions.impressions_parquet",
}


if not _typing.TYPE_CHECKING:  # a type checker that saw this would take any name of the package for granted

    def __getattr__(name: str) -> _typing.Any:
        if name not in _LATE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = _importlib.import_module(_LATE[name], __name__)
        found = module if name in _MODULES else getattr(module, name)
        globals()[name] = found  # the next use finds it at once
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
