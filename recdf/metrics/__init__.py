"""The metrics, one module a family, each metric one function of `Lists`.

To add one, `@metric` on a function in the module of its family, and its name in these places:

1. `__all__` of that module,
2. the import from that module, and `__all__`, here,
3. the import from here, and `__all__`, in `recdf/__init__.py`,
4. a slow twin under `@oracle` in `tests/oracles/accuracy.py` (families relevance, ranking and money) or
   `tests/oracles/beyond.py` (all others), then `python tests/test_pages.py` for the table of the README.

The tests say which of these is missing.
"""

from .diversity import a_ndcg, calibration, categories, category_entropy, ild, ils, subtopic_recall
from .exposure import coverage, entropy, gini, hhi, personalization, user_coverage
from .fairness import arp_ratio, exposure_ratio, exposure_share, pop_reo, pop_rsp
from .money import money_ndcg, money_precision, money_recall, revenue
from .novelty import aclt, aplt, efd, epc, popularity, serendipity, surprisal, unexpectedness, unseen
from .ranking import arhr, auc, bpref, dcg, err, first_rank, mapr, mar, mrr, ndcg, pap, pauc, rbp
from .rating import mae, pooled_mae, pooled_rmse, rmse
from .relevance import (
    accuracy,
    confusion,
    f1,
    fallout,
    hitrate,
    hits,
    mcc,
    precision,
    recall,
    rprecision,
    specificity,
)

__all__ = [
    "a_ndcg",
    "accuracy",
    "aclt",
    "aplt",
    "arhr",
    "arp_ratio",
    "auc",
    "bpref",
    "calibration",
    "categories",
    "category_entropy",
    "confusion",
    "coverage",
    "dcg",
    "efd",
    "entropy",
    "epc",
    "err",
    "exposure_ratio",
    "exposure_share",
    "f1",
    "fallout",
    "first_rank",
    "gini",
    "hhi",
    "hitrate",
    "hits",
    "ild",
    "ils",
    "mae",
    "mapr",
    "mar",
    "mcc",
    "money_ndcg",
    "money_precision",
    "money_recall",
    "mrr",
    "ndcg",
    "pap",
    "pauc",
    "personalization",
    "pooled_mae",
    "pooled_rmse",
    "pop_reo",
    "pop_rsp",
    "popularity",
    "precision",
    "rbp",
    "recall",
    "revenue",
    "rmse",
    "rprecision",
    "serendipity",
    "specificity",
    "subtopic_recall",
    "surprisal",
    "unexpectedness",
    "unseen",
    "user_coverage",
]
