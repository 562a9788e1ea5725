"""Take a raw log on Dask to a decision: log, lists, metrics, join, health, decision. No list comes
into memory.

    python examples/engine_chain.py [users]

Needs `recdf[dask,stats]`. On Spark, write `rd.spark` in place of `rd.dask`, and make the frames
with `spark.createDataFrame` or `spark.read.parquet`. The log is generated.
"""

import sys

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd

import recdf as rd

ITEMS, SHOWN = 200, 6


def made_log(n_users):
    """Impressions of one session a user, clicks half a minute later, and the variant of each user.
    The items of B are clicked more often."""
    rng = np.random.default_rng(0)
    users = pd.DataFrame(
        {"user_id": np.arange(n_users), "variant": rng.choice(["A", "B"], n_users)}
    )
    start = pd.Timestamp("2026-09-01") + pd.to_timedelta(rng.integers(0, 86400, n_users), unit="s")
    log = pd.DataFrame(
        {
            "user_id": np.repeat(users["user_id"], SHOWN).array,
            "session_id": 1,
            "item_id": rng.permuted(np.tile(np.arange(ITEMS), (n_users, 1)), axis=1)[
                :, :SHOWN
            ].ravel(),
            "position": np.tile(np.arange(1, SHOWN + 1), n_users),
            "time": np.repeat(start, SHOWN),
        }
    )
    rate = np.where(np.repeat(users["variant"], SHOWN) == "B", 0.16, 0.12)
    clicks = log.loc[rng.random(len(log)) < rate, ["user_id", "item_id", "time"]]
    return log, clicks.assign(time=clicks["time"] + pd.Timedelta("30s")), users


log, clicks, assignment = made_log(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
metrics, names = ["hits", "ndcg"], ["hits@6", "ndcg@6"]
plan = {"A": 0.5, "B": 0.5}
how = {"how": "mean", "missing": "zero"}
on_lists = {"undefined": "zero", "users": "pred"}
options = {"time_col": "time", "window": "1h"}

# 1. The log is in partitions of Dask. What is odd in it?
with dask.config.set(scheduler="threads"):
    frames = {
        "log": dd.from_pandas(log, npartitions=2),
        "clicks": dd.from_pandas(clicks.reset_index(drop=True), npartitions=1),
    }
    print(rd.dask.check_log(**frames, **options), "\n")

    # 2. Clicks are attributed to impressions where the rows are. The lists stay there.
    lists = rd.dask.from_impressions(**frames, **options)
    print(lists.spec["counts"]["impressions"], "impressions\n")

    # 3. Metrics of every list. The summary comes back; the rows per list stay. Several steps use
    # the lists, so that the workers keep them.
    true, pred = lists.true.persist(), lists.pred.persist()
    result = rd.dask.evaluate(true, pred, metrics, 6, **(lists.options | on_lists))
    print(result.summary[["metric", "k", "value", "n"]].round(3).to_string(index=False), "\n")

    # 4. Is the experiment sound? Of both frames the ids and the variants come into memory.
    users = dd.from_pandas(assignment, npartitions=2)
    health = rd.experiments.experiment_health(result.per_user, users, expected=plan)
    print(health[["variant", "n_assigned", "srm_p", "missing_p"]].round(3).to_string(index=False))

    # 5. Users are joined to their variants on the workers, which return a few sums.
    moments = result.variant_moments(users, names, user_col="user_id", **how)

# 6. The effect, and the decision.
asked = {"control": "A", "health": health, "larger_is_better": "hits@6", "details": True}
table = rd.experiments.compare_variants_from_moments(moments, **asked)
print("\n", rd.experiments.report_table(table), "\n", sep="")
assert not health["srm_flag"].any(), "users per variant do not fit the plan"
roles = {"hits@6": "success", "ndcg@6": ("guardrail", "-5%")}
decision = rd.experiments.decide_experiment(table, roles=roles)
print(decision[["treatment", "decision"]].to_string(index=False))

# The same rows in memory give the same numbers.
lists = rd.from_impressions(log, clicks=clicks, **options)
result = rd.evaluate(*lists, metrics, 6, **(lists.options | on_lists))
users = result.join_experiment(assignment, user_col="user_id", **how)
expected = rd.compare_variants(users, names, **asked)
shown = ["metric", "n_control", "n_treatment", "diff", "ci_low", "ci_high", "p_adj", "verdict"]
pd.testing.assert_frame_equal(table[shown], expected[shown], rtol=1e-9, check_dtype=False)
