"""User models, and what is judged: `recdf.metrics.user_models` and `recdf.metrics.judgements`."""

import numpy as np
import pandas as pd
from registry.union.frames import per_user, plainly

import recdf as rd


def judged(frames, params):
    """Judged items. ir_measures counts relevance −1 as judged, and says 0 for a list without
    recommendations."""
    true = frames.true
    if params.get("divisor") == "shown":
        true = true.assign(relevance=true["relevance"].clip(lower=0))
    found = per_user(frames, "judged", params, true)
    return {user: 0.0 if np.isnan(value) else value for user, value in found.items()}


def utility(frames, params):
    """Prices of hits and misses; the catalogue counts where d asks for it."""
    return per_user(frames, "utility", params, items=frames.items["item_id"])


def unrepeated(frames, params):
    """Ranks 2r − 1, and every third row again at rank 2r; recdf counts rows, not the numbers of a
    column of ranks."""
    pred = frames.pred.assign(rank=2 * frames.pred["rank"] - 1)
    again = pred[frames.pred["rank"] % 3 == 0]
    pred = pd.concat([pred, again.assign(rank=again["rank"] + 1)])
    pred = pred[pred["rank"] <= params["max_rank"]]
    table = rd.unrepeated.per_user(pred, k=99, deep=params["deep"], duplicates="keep")
    return dict(zip(table["user_id"], table.iloc[:, -1], strict=True))


def sufficient(frames, params):
    """Length of the lists of `pred`."""
    table = rd.sufficient.per_user(frames.pred, **params)
    return dict(zip(table["user_id"], table.iloc[:, -1], strict=True))


def column(name):
    """A column that every per-user table has."""

    def of_table(frames, params):
        table = rd.evaluate(frames.relevant, frames.pred, "hits", users="all").per_user
        return dict(zip(table["user_id"], table[name], strict=True))

    return of_table


ADAPTERS = {
    "bpref": lambda frames, params: per_user(frames, "bpref", params, frames.true),
    "infap": lambda frames, params: per_user(frames, "infap", params, frames.true),
    "iprecision": plainly("iprecision"),
    "iprecision:trec_eval": lambda frames, params: per_user(
        frames, "iprecision", {**params, "rounding": "nearest"}
    ),
    "judged": judged,
    "list_length": lambda frames, params: per_user(
        frames, "judged", {**params, "of": "shown", "divisor": "none"}
    ),
    "relevant_count": column("n_true"),
    "rbp": lambda frames, params: per_user(frames, "rbp", {**params, "normalize": "achievable"}),
    "rbp_residual": plainly("rbp_residual"),
    "sufficient": sufficient,
    "unrepeated": unrepeated,
    "user_model": plainly("user_model"),
    "utility": utility,
}
