"""Choose one of three models of the sample shop: paired on the same users, corrected for many
tests.

    python examples/model_choice.py

Needs `recdf[stats]` (SciPy). The shop is generated.
"""

import recdf as rd

# 1. Every model on the same users: those who bought something.
shop = rd.sample_shop(seed=0)
result = rd.evaluate(
    shop.true, shop.pred, ["ndcg", "recall", "revenue"], k=10, by="model", value_col="value"
)
print(
    result.summary[["model", "metric", "value", "ci_low", "ci_high"]]
    .round(3)
    .to_string(index=False),
    "\n",
)

# 2. The intervals above say how users differ; which model is better is asked user by user. All
# three pairs on three metrics are nine tests, and p is adjusted for all of them (Holm).
pairs = result.compare_models()
print(rd.experiments.report_table(pairs), "\n")

# 3. Against what runs today; and does the answer hang on the test? Flipping the signs of the
# differences at random asks for no distribution.
today = result.compare_models("ndcg@10", baseline="popularity")
print(
    today[["model", "diff", "ci_low", "ci_high", "p_adj", "verdict"]]
    .round(4)
    .to_string(index=False),
    "\n",
)
flipped = result.compare_models("ndcg@10", baseline="popularity", test="randomization")
assert flipped["verdict"].tolist() == today["verdict"].tolist()

# 4. The choice: a model that is shown to be better than both others.
shown = pairs[pairs["p_adj"] <= 0.05].copy()
shown["winner"] = shown["model"].where(shown["diff"] > 0, shown["baseline"])
rivals = shown.groupby(["metric", "winner"]).size()
print(
    "better than both others:",
    ", ".join(f"{model} in {metric}" for metric, model in rivals[rivals == 2].index),
)
