"""Two lists, items, categories and groups, serendipity, ratings and probabilities."""

ADAPTERS = {}

NOT_YET = {
    "aplt", "bias_disparity", "category_entropy", "coverage", "entropy", "explained_variance", "gini", "item_gap",
    "least_promoted", "mse", "overlap", "pooled_auc", "pooled_brier", "pooled_explained_variance", "pooled_log_loss",
    "pooled_mse", "pooled_pair_accuracy", "pooled_r2", "popularity", "r2", "rbo", "serendipity",
}  # fmt: skip
