"""The metrics, one module a family, each metric one function of `Lists`.

To add one: write the function in its family, add its name to the import here, and its slow twin to
`tests/oracle.py`; the tests tell what is missing.
"""

from .money import money_ndcg, money_precision, money_recall, revenue
from .ranking import arhr, auc, bpref, dcg, err, first_rank, mapr, mar, mrr, ndcg, pap, pauc, rbp
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
    "accuracy",
    "arhr",
    "auc",
    "bpref",
    "confusion",
    "dcg",
    "err",
    "f1",
    "fallout",
    "first_rank",
    "hitrate",
    "hits",
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
    "precision",
    "rbp",
    "recall",
    "revenue",
    "rprecision",
    "specificity",
]
