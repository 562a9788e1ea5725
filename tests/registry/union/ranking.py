"""Relevance, ranking and subtopics."""

from registry.union.frames import mean_over, plainly

ADAPTERS = {
    "mapr": plainly("mapr"),
    "mapr:implicit": mean_over("true", "mapr"),
    "precision": plainly("precision"),
    "subtopic_recall": lambda frames, params: plainly("subtopic_recall", aspects=frames.aspects)(frames, params),
}

NOT_YET = {
    "a_ndcg", "arhr", "auc", "dcg", "f1", "intent_aware", "mapr:tied", "mapr:transform", "ndcg", "normalized_gain",
    "pair_accuracy", "pap", "pauc", "percentile_rank", "precision:divisor=achievable_shown", "precision:pooled",
    "relevant_rank", "rprecision",
}  # fmt: skip
