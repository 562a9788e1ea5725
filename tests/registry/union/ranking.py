"""Relevance, ranking and subtopics."""

import pandas as pd
from registry.union.frames import at_k, mean_over, per_user, plainly

import recdf as rd

SCORES = {"score_col": "score"}  # the frame also has ranks, which are never equal


def of_aspects(name):
    """The adapter of a metric that takes the aspects."""
    return lambda frames, params: per_user(frames, name, params, aspects=frames.aspects)


def of_items(name, population="all"):
    return lambda frames, params: per_user(
        frames, name, params, items=frames.items, users=population
    )


def intent_aware(frames, params):
    if params.get("weights") == "aspect number":
        numbers = frames.aspects["aspect"].drop_duplicates()
        params = {**params, "weights": pd.DataFrame({"aspect": numbers, "weight": numbers})}
    return of_aspects("intent_aware")(frames, params)


def whole(name, **options):
    """The adapter of a metric of whole lists: a row that names no k has none."""
    return lambda frames, params: per_user(frames, name, {"k": float("inf"), **params}, **options)


def right_pairs(frames, params):
    """Rows with `complement` are 1 minus the metric; a row that names the order of ties has that of
    recdf."""
    left = {name: value for name, value in params.items() if name not in ("complement", "ties")}
    found = whole("pair_accuracy", **SCORES)(frames, left)
    return {user: 1 - value for user, value in found.items()} if "complement" in params else found


def smaller_id_first(frames, params):
    """trec_eval puts the smaller id first among equal scores of preferences, and users without a
    pair count 0."""
    found = pd.Series(whole("pair_accuracy", ties="item_asc", **SCORES)(frames, params))
    return with_mean(found[found.index != 9].fillna(0.0))


def with_mean(found):
    """Values by user, and as trec_eval has it the mean, in which an undefined value counts 0."""
    return {**found, "all": found.mean()}


def of_truth(name):
    def measured(frames, params):
        found = pd.Series(per_user(frames, name, params, users="true"))
        return with_mean(found.fillna(0.0))

    return measured


def at_most_k(frames, params):
    """The mean of recommenders leaves out users without a hit in the first k."""
    found = rd.rprecision.per_user(
        frames.relevant, frames.pred, at_most=params["k"], users="both"
    ).iloc[:, -1]
    return float(found[found > 0].mean())


def filled(frames, params):
    """implicit counts the ranks that a short list leaves empty as misses, so the lists get items
    that are no hits."""
    true, k, lists = frames.relevant, params["k"], []
    for user in true["user_id"].unique():
        own, wanted = frames.pred[frames.pred["user_id"] == user], true[true["user_id"] == user]
        own = own.sort_values("rank")["item_id"].head(k).tolist()
        rest = frames.items[~frames.items["item_id"].isin([*own, *wanted["item_id"]])][
            "item_id"
        ].tolist()
        lists.append(pd.DataFrame({"user_id": user, "item_id": [*own, *rest][:k]}))
    return rd.auc(true, pd.concat(lists), **params, items=frames.items)


def zero_without_a_pair(frames, params):
    """ir_measures gives 0 to a list without a pair."""
    return {
        user: 0.0 if value != value else value
        for user, value in plainly("auc")(frames, params).items()
    }


def at_hand(name, **options):
    """The adapter of one number for all lists."""
    return lambda frames, params: getattr(rd, name)(
        frames.relevant, frames.pred, **at_k(params), **options
    )


def of_catalogue(name):
    return lambda frames, params: rd_call(name, frames, params)


def rd_call(name, frames, params):
    population = params.get("users", "true")
    params = {one: value for one, value in params.items() if one != "users"}
    return getattr(rd, name)(
        frames.relevant, frames.pred, **at_k(params), items=frames.items, users=population
    )


ADAPTERS = {
    "a_ndcg": of_aspects("a_ndcg"),
    "arhr": plainly("arhr"),
    "auc": plainly("auc", **SCORES),
    "auc:implicit": filled,
    "auc:ir_measures": zero_without_a_pair,
    "auc:max_fpr": plainly("auc", **SCORES),
    "auc:tied=half": plainly("auc"),
    "dcg": of_truth("dcg"),
    "f1": plainly("f1"),
    "intent_aware": intent_aware,
    "mapr": plainly("mapr"),
    "mapr:implicit": mean_over("true", "mapr"),
    "mapr:tied": plainly("mapr", **SCORES),
    "mapr:transform": of_truth("mapr"),
    "ndcg": plainly("ndcg"),
    "ndcg:implicit": mean_over("true", "ndcg"),
    "normalized_gain": plainly("normalized_gain"),
    "pair_accuracy": right_pairs,
    "pair_accuracy:trec_eval": smaller_id_first,
    "pap": plainly("pap"),
    "pauc": plainly("pauc"),
    "percentile_rank": of_items("percentile_rank"),
    "percentile_rank:pooled": of_catalogue("percentile_rank"),
    "precision": plainly("precision"),
    "precision:divisor=achievable_shown": plainly("precision"),
    "precision:pooled": at_hand("precision"),
    "relevant_rank": plainly("relevant_rank", **SCORES),
    "rprecision": plainly("rprecision"),
    "rprecision:at_most": at_most_k,
    "subtopic_recall": of_aspects("subtopic_recall"),
}
