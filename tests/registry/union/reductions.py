"""Reductions of per-list metrics, and conventions of libraries."""

ADAPTERS = {}

NOT_YET = {
    "auc:like", "auc:of=labels", "bpref:stat", "fallout", "gini:like", "ild:like", "mapr:stat", "popularity:like",
    "precision:stat", "serendipity:like",
}  # fmt: skip
