"""Evaluate three recommenders on the sample shop, look at segments, keep the result.

    python examples/quickstart.py

Needs nothing but recdf: the shop is generated.
"""

import tempfile
from pathlib import Path

import recdf as rd
from recdf.datasets import sample_shop

METRICS = ["hitrate", "precision", "recall", "ndcg", "mrr", "revenue"]

# 1. Two long frames: what users bought, and what each model recommended to them.
shop = sample_shop(seed=0)
print(shop.true.head(3).to_string(index=False), "\n")
print(shop.pred.head(3).to_string(index=False), "\n")

# 2. Every metric, for every model, over the same users: those who bought something.
result = rd.evaluate(
    shop.true, shop.pred, METRICS, k=10, by="model", score_col="score", value_col="value"
)
print(result.summary.to_string(index=False), "\n")

# 3. One row per (model, user) joins to anything you know about the users; validate= catches a user
# listed twice.
joined = result.per_user.merge(
    shop.users[["user_id", "segment"]], on="user_id", how="left", validate="many_to_one"
)
by_segment = rd.summarize(joined, by=["model", "segment"])
ndcg = by_segment[by_segment["metric"].str.startswith("ndcg")]
print(ndcg[["model", "segment", "value", "ci_low", "ci_high", "n"]].to_string(index=False), "\n")

# 4. Two parquet files that DuckDB, polars and Spark read too; the definitions travel in their
# metadata.
with tempfile.TemporaryDirectory() as folder:
    result.to_parquet(Path(folder) / "results")
    again = rd.read_parquet(Path(folder) / "results")
print(
    "read back, equal:",
    again.summary.equals(result.summary) and again.per_user.equals(result.per_user),
)
