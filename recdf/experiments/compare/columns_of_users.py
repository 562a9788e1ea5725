"""Which columns of users a comparison of variants reads, so that no others are read from a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from ...inputs.needed_columns import NeededColumns
from ...inputs.options import as_columns
from ...inputs.per_user_columns import evaluated
from ..decide.balance import looks_like_date
from ..decide.experiment_health import key_of
from ..experiment_columns import metric_specs, require
from ..samples import covariate_specs


def columns_of_users(
    metrics: Any,
    covariates: Any,
    variant_col: str,
    named: Sequence[Any],
    health: pd.DataFrame | None,
) -> NeededColumns:
    """Return which columns of a frame a comparison reads: those that are named, and those that it
    looks at by itself.

    The latter are the user, dates that may be the time of the assignment, weights and, where no
    user is known, ids that may repeat.
    """

    def needed(head: pd.DataFrame) -> list[str]:
        specs = metric_specs(metrics, head, "data")
        pairs = [
            *specs.values(),
            *(x for xs in covariate_specs(covariates, specs, head).values() for x in xs),
        ]
        names = require(
            head, "data", [variant_col, *(name for one in named for name in as_columns(one))]
        )
        names += [name for pair in pairs for name in pair if name is not None]
        if isinstance(health, pd.DataFrame) and "users_digest" in health.columns and len(health):
            names += key_of(health["users_digest"].iloc[0])
        names += ["user_id", "n_true", "n_rows", "weight", str(evaluated(head).get("weight"))]
        names += [name for name in head.columns if looks_like_date(head[name])]
        if "user_id" not in head.columns and not named[0]:
            kinds = pd.api.types.is_float_dtype, pd.api.types.is_bool_dtype
            names += [
                name for name in head.columns if not any(kind(head[name].dtype) for kind in kinds)
            ]
        return [name for name in head.columns if name in names]

    return needed
