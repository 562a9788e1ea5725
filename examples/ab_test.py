"""Decide an A/B test on the sample shop: is it sound, what did the variant change, for whom?

    python examples/ab_test.py

Needs `recdf[stats]` (SciPy). A shows popular items, B those of a kNN model; the shop is generated.
"""

import tempfile
from pathlib import Path

import recdf as rd

# 1. What each user was shown in the experiment, and what they bought: `users="pred"` is everyone
# who was shown a list. Who bought nothing scores 0: leaving them out would compare users whom the
# variants themselves selected.
shop = rd.sample_shop(seed=0)
result = rd.evaluate(
    shop.true,
    shop.shown,
    ["revenue@20", "hits@20", "ndcg@20"],
    users="pred",
    value_col="value",
    undefined="zero",
)

# 2. Is the experiment sound? Users per variant as planned, and metrics missing alike in both.
assignment = shop.assignment.merge(
    shop.users[["user_id", "segment"]], on="user_id", validate="one_to_one"
)
health = rd.experiments.experiment_health(
    result.per_user, assignment, expected={"A": 0.5, "B": 0.5}
)
print(
    health[["variant", "n_assigned", "share", "srm_p", "missing_rate", "missing_p"]]
    .round(3)
    .to_string(index=False)
)
assert not health["srm_flag"].any(), (
    "users per variant do not fit the plan: find out why before reading an effect"
)

# 3. One row per assigned user, also those who were shown nothing: they count 0, in both variants.
users = result.join_experiment(assignment, missing="zero")
print(
    f"\n{len(users):,} assigned users, {int((~users['has_metrics']).sum())} of them without a "
    "list\n"
)

# 4. The effect. What a user spent before the experiment explains some of what they spend in it
# (CUPED), so that the interval gets narrower; revenue decides, the others explain. `ctr` is a ratio
# of sums: bought over shown.
metrics = {"revenue": "revenue@20", "ctr": ("hits@20", "n_pred"), "ndcg": "ndcg@20"}
options = {"control": "A", "covariates": "pre_spend", "expected": {"A": 0.5, "B": 0.5}}
options["details"] = True  # how much variance the covariate took away
effect = rd.compare_variants(users, metrics, primary="revenue", **options)
print(rd.experiments.report_table(effect), "\n")

# 5. For whom? Each segment is an experiment of its own; p-values are adjusted over all of them.
segments = rd.compare_variants(users, {"revenue": "revenue@20"}, by="segment", **options)
print(rd.experiments.report_table(segments), "\n")

# 6. The decision, and the tables that a reviewer needs.
decision = effect.set_index("metric").loc["revenue"]
print(
    f"B is {decision['verdict']}: {decision['diff']:+.2f} per user, between "
    f"{decision['ci_low']:+.2f} and {decision['ci_high']:+.2f}; the covariate took "
    f"{decision['variance_reduction']:.0%} of the variance away."
)
with tempfile.TemporaryDirectory() as folder:
    for name, table in {"health": health, "effect": effect, "segments": segments}.items():
        table.to_parquet(Path(folder) / f"{name}.parquet")
