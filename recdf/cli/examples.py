"""What the help of each command shows first: calls that a test runs in the order of this file."""

EXAMPLES = {
    "demo": """
recdf demo
recdf demo --out shop""",
    "check": """
recdf check --true true.parquet --pred pred.parquet --by model""",
    "evaluate": """
recdf evaluate --true true.parquet --pred pred.parquet --by model -m ndcg@10
recdf evaluate --true true.parquet --pred pred.parquet --by model \\
  -m ndcg recall mrr -k 5 10 --out models
recdf evaluate --true true.parquet --pred pred.parquet --by model \\
  -m map@10 --like recommenders
recdf evaluate --true true.parquet --pred pred.parquet --by model \\
  -m coverage@10 popularity@10 --items items.parquet --log log.parquet
recdf evaluate --true true.parquet --pred shown.parquet --users pred \\
  -m hits@20 --out shown""",
    "compare": """
recdf compare models --baseline popularity --metric ndcg@10""",
    "leaderboard": """
recdf leaderboard models --baseline popularity""",
    "gate": """
recdf gate models --model knn --baseline models --baseline-model popularity \\
  --budget ndcg@10=-2%""",
    "diff": """
recdf diff models models --before-model popularity --after-model knn""",
    "report": """
recdf report models --baseline popularity --out page.html""",
    "audit": """
recdf audit --true true.parquet --pred pred.parquet --by model \\
  --log log.parquet""",
    "experiment": """
recdf experiment shown --assignment assignment.parquet --control A \\
  --missing zero --metric hits@20 --expected A=0.5 B=0.5""",
    "quantiles": """
recdf quantiles --rows requests.parquet --control A --metric ms \\
  --quantiles 0.5 0.99 --expected A=1 B=1""",
    "plan": """
recdf plan shown --metric hits@20 --rel-effect 0.05""",
    "aa": """
recdf aa shown --metric hits@20""",
    "srm": """
recdf srm --assignment visitors.parquet --column browser \\
  --expected A=0.5 B=0.5""",
    "interleave": """
recdf interleave --a popularity.parquet --b knn.parquet -k 10 --out mixed""",
    "interleaved": """
recdf interleaved mixed/lists.parquet --clicks clicks.parquet""",
    "impressions": """
recdf impressions impressions.parquet --clicks clicks.parquet \\
  --time-col time --window 24h --out lists""",
    "ope": """
recdf ope decisions.parquet --estimators ips snips""",
    "history": """
recdf history nights --fail-on drift""",
}
