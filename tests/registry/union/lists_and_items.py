"""Two lists, items, categories and groups, serendipity, ratings and probabilities."""

from typing import Any

from registry.union.frames import WHOLE, Adapter

import recdf as rd


def rated(name: str, frame: str, label: str, score: str, **given: Any) -> Adapter:
    """The adapter of a metric of one frame with labels and predictions, whose users may be given as
    "2..5"."""

    def value(frames, params):
        rows = getattr(frames, frame)
        if "users" in params:
            first, last = map(int, params["users"].split(".."))
            rows = rows[rows["user_id"].between(first, last)]
        table = rows[["user_id", "item_id"]]
        both = table.assign(relevance=rows[label]), table.assign(score=rows[score])
        if given or not hasattr(getattr(rd, name), "per_user"):
            return getattr(rd, name)(*both, **given)
        values = getattr(rd, name).per_user(*both)
        return dict(zip(values["user_id"], values[name], strict=True))

    return value


def against_base(name: str) -> Adapter:
    """The adapter of a metric of two lists. LensKit counts the ranks of a re-ranking from 0.

    The scores of the rows of ir_measures were negative ranks, and it gives the score 0 to what is
    not shown.
    """

    def values(frames, params):
        less = params.get("offset") == "lenskit"
        params = {key: value for key, value in params.items() if key not in ("offset", "tail")}
        if params.get("against") == "ideal":
            params["unshown"] = "first"
        true, side = (
            (frames.relevant, {"base": frames.base}) if name == "rbo" else (frames.base, {})
        )
        table = getattr(rd, name).per_user(
            true, frames.pred, **params, **side, users="all" if side else "pred"
        )
        found = dict(zip(table["user_id"], table.iloc[:, -1], strict=True))
        return {user: max(0.0, value - less) for user, value in found.items()} if less else found

    return values


def of_items(name: str, **renamed: str) -> Adapter:
    """The adapter of a metric of items or of a log, over the lists of pred, of which RecBole takes
    only whole ones.

    Users of both frames are those with a list and with a relevant item, as elliot takes them.
    """

    def value(frames, params):
        metric, lists = getattr(rd, name), frames.pred
        if params.get("users") == "10 or more items":
            lists = lists[lists.groupby("user_id")["item_id"].transform("size") >= 10]
        given = {renamed.get(key, key): one for key, one in params.items() if key != "users"}
        sides = {
            "items": frames.items,
            "log": frames.log,
            "true": frames.relevant.query("relevance > 0"),
        }
        first = {one: sides[one] for one in metric.arguments if one != "pred"}
        if "items" not in first and "items" in metric.needs:
            given["items"] = sides["items"]
        if "true" in first:
            given["users"] = params.get("users", "both")
        if not hasattr(metric, "per_user"):
            return metric(*first.values(), lists, **given)
        table = metric.per_user(*first.values(), lists, **given)
        return dict(zip(table["user_id"], table.iloc[:, -1], strict=True))

    return value


def serendipity(frames, params):
    """Over the lists of pred; recommenders refuses lists with items that the user had, so it got
    the others of ten."""
    lists, given = (
        frames.pred,
        {"of": params["of"], "k": params["k"], "log": frames.log, "users": "pred"},
    )
    if params["of"] == "similarity":
        given["similarity"] = params["features"]
    if "unseen items only" in params:
        had = lists[["user_id", "item_id"]].merge(
            frames.log.drop_duplicates(), how="left", indicator=True
        )["_merge"]
        lists = lists[(had == "left_only").to_numpy() & (lists["rank"] <= params["k"])]
    table = rd.serendipity.per_user(frames.relevant, lists, items=frames.items, **given)
    return dict(zip(table["user_id"], table.iloc[:, -1], strict=True))


def ordered_pairs(frames, params):
    """Surprise counts a tie in the prediction as wrong."""
    return rated(
        "pair_accuracy", "ratings", "rating", "prediction", tied="wrong", pooled=True, k=WHOLE
    )(frames, params)


def bias_disparity(frames, params):
    """One pair of groups; the groups of users are those of `users`."""
    key = params["group"].replace("u", "").replace("i", "")
    given = {
        "of": params.get("of", "both"),
        "items": frames.items,
        "users": frames.users,
        "k": params.get("k", 10),
    }
    return rd.bias_disparity(frames.log, frames.pred, **given)[key]


RATINGS = ("mse", "r2", "explained_variance")
PROBABILITIES = ("pooled_auc", "pooled_brier", "pooled_log_loss")

ADAPTERS = {
    **{name: against_base(name) for name in ("rbo", "overlap", "least_promoted")},
    **{
        name: of_items(name)
        for name in ("aplt", "category_entropy", "coverage", "gini", "item_gap")
    },
    "entropy": of_items("entropy", base="log_base"),
    "popularity": of_items("popularity", base="share_of"),
    "bias_disparity": bias_disparity,
    "serendipity": serendipity,
    "pooled_pair_accuracy": ordered_pairs,
    **{name: rated(name, "ratings", "rating", "prediction") for name in RATINGS},
    **{
        f"pooled_{name}": rated(f"pooled_{name}", "ratings", "rating", "prediction")
        for name in RATINGS
    },
    **{name: rated(name, "clicks", "label", "probability") for name in PROBABILITIES},
}
