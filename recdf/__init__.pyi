"""The public names of recdf/public_names.py, as type checkers see them. Written by
`python tests/generated.py`.
"""

from . import diagnostics as diagnostics
from . import errors as errors
from . import experiments as experiments
from . import logs as logs
from . import metrics as metrics
from . import ope as ope
from ._version import __version__ as __version__
from .datasets import Shop as Shop
from .datasets import sample_shop as sample_shop
from .diagnostics.audits import audit as audit
from .diagnostics.data_checks import check as check
from .diagnostics.gate_records import Gate as Gate
from .diagnostics.gates import gate as gate
from .diagnostics.levels import ceiling as ceiling
from .diagnostics.levels import chance_level as chance_level
from .diagnostics.list_changes import Diff as Diff
from .diagnostics.list_changes import diff as diff
from .display import plot as plot
from .display.leaderboard import Leaderboard as Leaderboard
from .display.leaderboard import leaderboard as leaderboard
from .display.report.page import report as report
from .errors import ByWarning as ByWarning
from .errors import ColumnError as ColumnError
from .errors import DataError as DataError
from .errors import DuplicateError as DuplicateError
from .errors import DuplicateWarning as DuplicateWarning
from .errors import EmptyPopulationError as EmptyPopulationError
from .errors import EngineError as EngineError
from .errors import FewNegativesWarning as FewNegativesWarning
from .errors import FoldByWarning as FoldByWarning
from .errors import IdTypeError as IdTypeError
from .errors import JudgedWarning as JudgedWarning
from .errors import LogWarning as LogWarning
from .errors import MissingExtraError as MissingExtraError
from .errors import NoOverlapWarning as NoOverlapWarning
from .errors import NullKeyError as NullKeyError
from .errors import OptionError as OptionError
from .errors import OrderWarning as OrderWarning
from .errors import RankWarning as RankWarning
from .errors import RecdfError as RecdfError
from .errors import RecdfWarning as RecdfWarning
from .errors import TieError as TieError
from .errors import TimeByWarning as TimeByWarning
from .errors import UndefinedMetricError as UndefinedMetricError
from .errors import UnknownWarning as UnknownWarning
from .errors import WeightWarning as WeightWarning
from .errors import WriteError as WriteError
from .evaluation.evaluate import evaluate as evaluate
from .evaluation.result import Evaluation as Evaluation
from .evaluation.result import join_results as join_results
from .evaluation.result import read_parquet as read_parquet
from .evaluation.summary import summarize as summarize
from .experiments.compare.compare_models import compare_models as compare_models
from .experiments.compare.variants import compare_variants as compare_variants
from .experiments.join.join_experiment import join_experiment as join_experiment
from .formats.file_sets import read as read
from .formats.trec_files import write_trec as write_trec
from .inputs.conventions import CONVENTIONS as CONVENTIONS
from .inputs.conventions import Convention as Convention
from .inputs.conventions import conventions_table as conventions_table
from .inputs.options import Options as Options
from .logs.impressions import Impressions as Impressions
from .logs.impressions import from_impressions as from_impressions
from .matching.counts import Counts as Counts
from .matching.hits import Hits as Hits
from .matching.lists import Lists as Lists
from .metrics import *  # noqa: F403
from .metrics.metric import METRICS as METRICS
from .metrics.metric import Metric as Metric
from .metrics.metric import metric as metric
from .metrics.metric import metrics_table as metrics_table
from .partitions import dask as dask
from .partitions import spark as spark
from .partitions.evaluate_parquet import evaluate_parquet as evaluate_parquet

__all__ = [
    "ByWarning",
    "ColumnError",
    "Convention",
    "Counts",
    "DataError",
    "DuplicateError",
    "DuplicateWarning",
    "EmptyPopulationError",
    "EngineError",
    "Evaluation",
    "FewNegativesWarning",
    "FoldByWarning",
    "Hits",
    "IdTypeError",
    "JudgedWarning",
    "Lists",
    "LogWarning",
    "Metric",
    "MissingExtraError",
    "NoOverlapWarning",
    "NullKeyError",
    "OptionError",
    "Options",
    "OrderWarning",
    "RankWarning",
    "RecdfError",
    "RecdfWarning",
    "TieError",
    "TimeByWarning",
    "UndefinedMetricError",
    "UnknownWarning",
    "WeightWarning",
    "WriteError",
    "audit",
    "ceiling",
    "chance_level",
    "check",
    "compare_models",
    "compare_variants",
    "conventions_table",
    "diff",
    "evaluate",
    "evaluate_parquet",
    "from_impressions",
    "gate",
    "join_experiment",
    "join_results",
    "leaderboard",
    "metric",
    "metrics_table",
    "read",
    "read_parquet",
    "report",
    "sample_shop",
    "summarize",
    "write_trec",
]
__all__ += metrics.__all__
