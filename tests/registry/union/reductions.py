"""Reductions of per-list metrics, and conventions of libraries."""

import numpy as np
from registry.union.frames import WHOLE, Frames, Params

import recdf as rd


def reduced(name):
    """The adapter of a statistic of lists; users are those of both frames unless the row says
    otherwise."""

    def adapter(frames: Frames, params: Params) -> float:
        own = {key: params[key] for key in ("normalizer", "divisor") if key in params}
        k = params["k"] if params["k"] != float("inf") else WHOLE
        text = f"{name}({','.join(f'{key}={value}' for key, value in own.items())})@{k}"
        # trec_eval counts 0 for users without relevant items; the others leave them out.
        true = frames.relevant.query("relevance > 0") if own else frames.relevant
        result = rd.evaluate(
            true, frames.pred, text, users=params.get("users", "both"), undefined="zero"
        )
        how = {"stat": params["stat"], **({"alpha": params["alpha"]} if "alpha" in params else {})}
        if params["stat"] == "urisk":
            rows = result.per_user
            how["base"] = rows.assign(
                user_id=list(rows["user_id"].iloc[-1:]) + list(rows["user_id"].iloc[:-1])
            )
        return float(rd.summarize(result, **how)["value"].iloc[0])

    return adapter


def grouped_auc(frames: Frames, params: Params) -> float:
    """GAUC of labelled rows: the mean of the AUC of each user, weighted by relevant items or by
    rows."""
    true, pred = rd.logs.from_labelled(
        frames.clicks, relevance_col="label", score_cols="probability"
    )
    result = rd.evaluate(true, pred, f"auc@{WHOLE}")
    how = params.get("weight_by", params.get("weight"))
    return float(rd.summarize(result, weight_by=None if how == "none" else how)["value"].iloc[0])


def per_list(metric: str, frames: Frames, *given, **options):
    """Values of a metric of lists at 10 by user, beside the number of items shown."""
    found = getattr(rd, metric).per_user(*given, 10, users="pred", **options)
    n_pred = frames.pred.groupby("user_id").size().clip(upper=10)
    return found.set_index("user_id").iloc[:, -1], n_pred


def evidently_ild(frames: Frames, params: Params) -> float:
    """evidently divides the sum of distances by the number of items, which is (m − 1)/2 times too
    much."""
    values, m = per_list(
        "ild", frames, frames.pred, features=frames.items.set_index("item_id")[["x", "y", "z"]]
    )
    return float((values * (m - 1) / 2).mean())


def evidently_serendipity(frames: Frames, params: Params) -> float:
    """evidently takes 1 less the sum over the hits of their mean similarity to the past, of users
    with a hit."""
    features = frames.items.set_index("item_id")[["x", "y", "z"]].to_numpy(float)
    length = np.maximum(
        np.linalg.norm(features, axis=1), 1e-300
    )  # an item without features is like no other
    unit = dict(zip(frames.items["item_id"], features / length[:, None], strict=True))
    log = frames.log.groupby("user_id")["item_id"].agg(list)
    hits = frames.pred[frames.pred["rank"] <= 10].merge(
        frames.true.query("relevance > 0"), on=["user_id", "item_id"]
    )
    found = [
        1 - sum(np.mean([unit[item] @ unit[past] for past in log[user]]) for item in items)
        for user, items in hits.groupby("user_id")["item_id"]
        if user in log.index
    ]
    return float(np.mean(found))


def evidently_popularity(frames: Frames, params: Params) -> float:
    """evidently leaves out items that the log does not have, as `like=` does here."""
    return rd.popularity(frames.log, frames.pred, 10, like="evidently")


def evidently_gini(frames: Frames, params: Params) -> float:
    """evidently takes the shown items for the catalogue, and divides by one less than there are."""
    shown = frames.pred.loc[frames.pred["rank"] <= 10, ["item_id"]].drop_duplicates()
    return rd.gini(shown, frames.pred, 10, like="evidently") * len(shown) / (len(shown) - 1)


def elliot_auc(frames: Frames, params: Params):
    """The sum over hits of 1 − misses above / (misses of the catalogue + 1), over min(k,
    n_true)."""
    seen, k = frames.log.groupby("user_id").size(), params.get("k", WHOLE)
    true = frames.relevant.query("relevance > 0")
    n_true = true.groupby("user_id").size()
    pairs = frames.pred.set_index(["user_id", "item_id"]).index.isin(
        true.set_index(["user_id", "item_id"]).index
    )
    pred = frames.pred.assign(hit=pairs)[frames.pred["rank"] <= k]
    found = {}
    for user, rows in pred.sort_values("rank").groupby("user_id"):
        if user in n_true:
            below = len(frames.items) - seen.get(user, 0) - n_true[user] + 1
            above = (~rows["hit"]).cumsum()[rows["hit"]]
            found[user] = float((1 - above / below).sum() / min(k, n_true[user]))
    return found


def torchmetrics_fallout(frames: Frames, params: Params):
    """The irrelevant items among the first k over those of the query, which are the candidates."""
    values = {}
    for user, rows in frames.pred.groupby("user_id"):
        true, own = frames.relevant.query("user_id == @user and relevance > 0"), rows[["item_id"]]
        if len(true):
            there = true[true["item_id"].isin(own["item_id"])]
            values[user] = (
                rd.fallout(there, rows, 10, items=own, like="torchmetrics") if len(there) else 0.0
            )
    return values


ADAPTERS = {
    "auc:like": elliot_auc,
    "fallout": torchmetrics_fallout,
    "gini:like": evidently_gini,
    "ild:like": evidently_ild,
    "popularity:like": evidently_popularity,
    "serendipity:like": evidently_serendipity,
    "mapr:stat": reduced("mapr"),
    "bpref:stat": reduced("bpref"),
    "precision:stat": reduced("precision"),
    "auc:of=labels": grouped_auc,
}
