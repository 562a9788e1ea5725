"""Reductions of per-list metrics, and conventions of libraries."""

from registry.union.frames import WHOLE, Frames, Params

import recdf as rd


def reduced(name):
    """The adapter of a statistic of lists; users are those of both frames unless the row says otherwise."""

    def adapter(frames: Frames, params: Params) -> float:
        own = {key: params[key] for key in ("normalizer", "divisor") if key in params}
        k = params["k"] if params["k"] != float("inf") else WHOLE
        text = f"{name}({','.join(f'{key}={value}' for key, value in own.items())})@{k}"
        # trec_eval counts 0 for users without relevant items; the others leave them out.
        true = frames.relevant.query("relevance > 0") if own else frames.relevant
        result = rd.evaluate(true, frames.pred, text, users=params.get("users", "both"), undefined="zero")
        how = {"stat": params["stat"], **({"alpha": params["alpha"]} if "alpha" in params else {})}
        if params["stat"] == "urisk":
            rows = result.per_user
            how["base"] = rows.assign(user_id=list(rows["user_id"].iloc[-1:]) + list(rows["user_id"].iloc[:-1]))
        return float(rd.summarize(result, **how)["value"].iloc[0])

    return adapter


def grouped_auc(frames: Frames, params: Params) -> float:
    """GAUC of labelled rows: the mean of the AUC of each user, weighted by relevant items or by rows."""
    true, pred = rd.from_labelled(frames.clicks, relevance_col="label", score_cols="probability")
    result = rd.evaluate(true, pred, f"auc@{WHOLE}")
    how = params.get("weight_by", params.get("weight"))
    return float(rd.summarize(result, weight_by=None if how == "none" else how)["value"].iloc[0])


ADAPTERS = {
    "mapr:stat": reduced("mapr"),
    "bpref:stat": reduced("bpref"),
    "precision:stat": reduced("precision"),
    "auc:of=labels": grouped_auc,
}

NOT_YET = {"auc:like", "fallout", "gini:like", "ild:like", "popularity:like", "serendipity:like"}
