"""Every table of `rd.experiments` about one experiment: B has more clicks, not in the app, and
loses users."""

import functools

import numpy as np
import pandas as pd

import recdf as rd

ROLES = {"clicks": "success", "revenue": ("guardrail", "-2%"), "ms": ("guardrail", 4.0)}


@functools.cache
def experiment_tables(seed=1):
    draw = np.random.default_rng(seed)
    n = 3000
    users = pd.DataFrame({"user_id": range(n), "variant": draw.permutation(["A", "B"] * (n // 2))})
    users["device"] = draw.choice(["app", "web", "tv"], n)
    b = users["variant"] == "B"
    users["clicks"] = draw.poisson(np.where(b & (users["device"] != "app"), 3.4, 2.6)).astype(float)
    users["revenue"] = np.where(draw.random(n) < 0.3, draw.lognormal(2, 1, n), 0.0)
    users["ms"] = draw.gamma(4, 25, n) + 12 * b
    of = {"control": "A", "expected": {"A": 1, "B": 1}, "smaller_is_better": "ms"}
    metrics = ["clicks", "revenue", "ms"]
    effects = rd.compare_variants(users, metrics, **of, details=True)
    # Users of the television who are lost in B break the ratio.
    lost = users[~((users["device"] == "tv") & b & (users["user_id"] % 3 == 0))]
    days = pd.DataFrame(
        {"user_id": np.repeat(range(n), 6), "day": np.tile(range(6), n), "exposed": 0}
    )
    days = days.merge(users[["user_id", "variant"]])
    days["clicks"] = draw.poisson(
        2 + np.where(days["variant"] == "B", 0.4 - 0.07 * days["day"], 0)
    ).astype(float)
    a, c = (
        dict.fromkeys(range(80), items) for items in (["tea", "jam", "ale"], ["ham", "rye", "tea"])
    )
    lists = rd.experiments.interleave(a, c, k=3)
    clicks = lists[(lists["team"] == "b") & (lists["user_id"] % 3 > 0)]
    shop = rd.sample_shop(n_users=300, n_items=80, n_recs=10)
    models = rd.evaluate(shop.true, shop.pred, ["ndcg"], k=10, by="model").per_user
    x = rd.experiments
    return {
        "compare_variants": effects,
        "effect_over_time": x.effect_over_time(
            days,
            "clicks",
            control="A",
            time_col="day",
            exposure_col="exposed",
            kind="since_exposure",
            expected={"A": 1, "B": 1},
            details=True,
        ),
        "segment_effects": x.segment_effects(
            rd.compare_variants(users, metrics, by="device", **of, details=True), details=True
        ),
        "find_srm": x.find_srm(lost, ["device"], expected={"A": 1, "B": 1}),
        "aa_test": x.aa_test(users, ["clicks", "revenue"], shares=(0.9, 0.1), n=300),
        "compare_quantiles": x.compare_quantiles(
            users, "ms", quantiles=[0.5, 0.9], **of, details=True
        ),
        "compare_zero_inflated": x.compare_zero_inflated(
            users, "revenue", control="A", expected={"A": 1, "B": 1}, details=True
        ),
        "compare_interleaved": x.compare_interleaved(lists, clicks, details=True),
        "decide_experiment": x.decide_experiment(effects, roles=ROLES),
        "role_verdicts": x.role_verdicts(effects, ROLES),
        "plan_comparison": x.plan_comparison(models, "ndcg@10", baseline="popularity", diff=0.02),
        "plan_experiment": x.plan_experiment(
            users, metrics, rel_effect=0.03, arrivals=[900, 500, 400], guardrails={"revenue": "-2%"}
        ),
        "plan_of_n": x.plan_experiment(users, metrics, n=9000, guardrails={"revenue": "-2%"}),
    }
