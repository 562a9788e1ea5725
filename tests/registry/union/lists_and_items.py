"""Two lists, items, categories and groups, serendipity, ratings and probabilities."""

from registry.union.frames import Adapter

import recdf as rd


def rated(name: str, frame: str, label: str, score: str) -> Adapter:
    """The adapter of a metric of one frame with labels and predictions, whose users may be given as "2..5"."""

    def value(frames, params):
        rows = getattr(frames, frame)
        if "users" in params:
            first, last = map(int, params["users"].split(".."))
            rows = rows[rows["user_id"].between(first, last)]
        table = rows[["user_id", "item_id"]]
        both = table.assign(relevance=rows[label]), table.assign(score=rows[score])
        if not hasattr(getattr(rd, name), "per_user"):
            return getattr(rd, name)(*both)
        values = getattr(rd, name).per_user(*both)
        return dict(zip(values["user_id"], values[name], strict=True))

    return value


def against_base(name: str) -> Adapter:
    """The adapter of a metric of two lists. LensKit counts the ranks of a re-ranking from 0.

    The scores of the rows of ir_measures were negative ranks, and it gives the score 0 to what is not shown.
    """

    def values(frames, params):
        less = params.get("offset") == "lenskit"
        params = {key: value for key, value in params.items() if key not in ("offset", "tail")}
        if params.get("against") == "ideal":
            params["unshown"] = "first"
        true, side = (frames.relevant, {"base": frames.base}) if name == "rbo" else (frames.base, {})
        table = getattr(rd, name).per_user(true, frames.pred, **params, **side, users="all" if side else "pred")
        found = dict(zip(table["user_id"], table.iloc[:, -1], strict=True))
        return {user: max(0.0, value - less) for user, value in found.items()} if less else found

    return values


RATINGS = ("mse", "r2", "explained_variance")
PROBABILITIES = ("pooled_auc", "pooled_brier", "pooled_log_loss")

ADAPTERS = {
    **{name: against_base(name) for name in ("rbo", "overlap", "least_promoted")},
    **{name: rated(name, "ratings", "rating", "prediction") for name in RATINGS},
    **{f"pooled_{name}": rated(f"pooled_{name}", "ratings", "rating", "prediction") for name in RATINGS},
    **{name: rated(name, "clicks", "label", "probability") for name in PROBABILITIES},
}

NOT_YET = {
    "aplt", "bias_disparity", "category_entropy", "coverage", "entropy", "gini", "item_gap",
    "pooled_pair_accuracy", "popularity", "serendipity",
}  # fmt: skip
