"""The definitions of the metrics of a result: one row per column, from its spec and the registry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from ..errors import OptionError
from ..metrics.metric import find

METRIC_FIELDS = ("name", "k", "definition")  # of a metric in a spec
# Columns of texts, with the fields of the metric's record.
DEFINITION_FIELDS = {
    "family": "family",
    "meaning": "doc",
    "formula": "formula",
    "better": "better",
    "references": "references",
}


def better_of(column: str) -> str | None:
    """Return "larger" or "smaller" for a column such as "first_rank@10", None where the metric has no direction."""
    try:
        return find(re.split("[@(]", column)[0]).better
    except OptionError:  # not a metric of the registry
        return None


def definitions(spec: Mapping[str, Any]) -> pd.DataFrame:
    """Return one row per metric column of a spec: its definition with every option, its meaning and its formula.

    A metric that is not registered, such as a user's own function in another session, has empty texts.
    """
    rows = []
    for column, found in spec["metrics"].items():
        try:
            record: Any = find(found["definition"].partition("@")[0].partition("(")[0])
        except OptionError:
            record = None
        texts = {
            name: " ".join((getattr(record, field, "") or "").split()) for name, field in DEFINITION_FIELDS.items()
        }
        rows.append({"column": column, **{name: found[name] for name in METRIC_FIELDS}, **texts})
    return pd.DataFrame(rows, columns=["column", *METRIC_FIELDS, *DEFINITION_FIELDS])
