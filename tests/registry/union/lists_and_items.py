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


RATINGS = ("mse", "r2", "explained_variance")
PROBABILITIES = ("pooled_auc", "pooled_brier", "pooled_log_loss")

ADAPTERS = {
    **{name: rated(name, "ratings", "rating", "prediction") for name in RATINGS},
    **{f"pooled_{name}": rated(f"pooled_{name}", "ratings", "rating", "prediction") for name in RATINGS},
    **{name: rated(name, "clicks", "label", "probability") for name in PROBABILITIES},
}

NOT_YET = {
    "aplt", "bias_disparity", "category_entropy", "coverage", "entropy", "gini", "item_gap", "least_promoted",
    "overlap", "pooled_pair_accuracy", "popularity", "rbo", "serendipity",
}  # fmt: skip
