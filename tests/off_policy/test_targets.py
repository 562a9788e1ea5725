"""target_from_recs, reward_table, ope_diagnostics and ope_compare, against plain loops and hand
calculation."""

import math

import numpy as np
import pandas as pd
import pytest
from off_policy.logs import bandit_log, slate_log
from oracles.off_policy import standard_error, units_of, value

import recdf as rd

LOG = pd.DataFrame(
    {
        "user_id": [1, 1, 2, 2, 3],
        "item_id": ["a", "b", "a", "c", "a"],
        "position": [1, 2, 1, 2, 1],
        "reward": [1, 0, 2, 1, 0],
        "propensity": [0.5, 0.5, 0.25, 0.5, 1.0],
    }
)
PRED = pd.DataFrame(
    {
        "user_id": [1, 1, 2, 2, 9],
        "item_id": ["b", "a", "a", "b", "a"],
        "score": [0.1, 0.9, 0.3, 0.8, 0.5],
    }
)


def targets(pred=PRED, log=LOG, **options):
    return rd.ope.target_from_recs(log, pred, **options)["target_propensity"].tolist()


# -------------------------------------------------------------------------------------
# target_from_recs


def test_membership():
    assert targets() == [1, 1, 1, 0, 0]


def test_first_items():
    # By score the lists are 1: a b, 2: b a.
    assert targets(k=1) == [1, 0, 0, 0, 0]
    assert targets(k=2) == targets()


def test_positions():
    # 1: a at 1 and b at 2 are logged there; 2: a is recommended at 2 and was logged at 1.
    assert targets(position_col="position") == [1, 1, 0, 0, 0]
    assert targets(position_col="position", k=1) == [1, 0, 0, 0, 0]


def test_the_order_of_recommendations_is_that_of_evaluate():
    by_row = PRED.drop(columns="score")
    assert targets(by_row, k=1) == [0, 1, 1, 0, 0]
    assert targets(PRED.assign(rank=[1, 2, 1, 2, 1]), k=1) == [0, 1, 1, 0, 0]
    whole = PRED.assign(score=[1, 2, 2**60, 2**60 + 1, 0])
    assert targets(whole, k=1) == targets(k=1)
    assert targets({1: ["a", "b"], 2: ["b"]}, k=1) == [1, 0, 0, 0, 0]
    assert targets({1: {"a": 0.9, "b": 0.1}}, k=1) == [1, 0, 0, 0, 0]


def test_several_recommenders():
    pred = pd.concat([PRED.assign(model="z"), PRED[PRED["user_id"] == 2].assign(model="y")])
    both = rd.ope.target_from_recs(LOG, pred, by="model")
    assert both["model"].tolist() == ["y"] * 5 + ["z"] * 5
    assert both["target_propensity"].tolist() == [0, 0, 1, 0, 0, *targets()]
    assert both["reward"].tolist() == LOG["reward"].tolist() * 2
    ranked = rd.ope.target_from_recs(LOG, pred, by="model", k=1)["target_propensity"].tolist()
    assert ranked == [0, 0, 0, 0, 0, *targets(k=1)]
    assert len(rd.ope.estimate(both, by="model")) == 4


def test_list_keys_of_several_columns():
    log = LOG.assign(day=[1, 1, 1, 2, 2])
    pred = PRED.assign(day=[1, 2, 2, 1, 1])
    found = targets(pred, log, on=["user_id", "day", "item_id"])
    # Recommended: (1, 1, b), (1, 2, a), (2, 2, a), (2, 1, b), (9, 1, a).
    assert found == [0, 1, 0, 0, 0]


def test_inputs_stay_as_they_are():
    log, pred = LOG.copy(), PRED.copy()
    rd.ope.target_from_recs(log, pred, k=1, position_col="position")
    pd.testing.assert_frame_equal(log, LOG)
    pd.testing.assert_frame_equal(pred, PRED)
    shifted = LOG.set_index(pd.Index([9, 8, 7, 6, 5]))
    assert targets(log=shifted) == targets()


def test_replay_by_hand():
    found = rd.ope.estimate(rd.ope.target_from_recs(LOG, PRED), estimators=["ips", "snips"])
    # Weights 2, 2, 4, 0, 0 of rewards 1, 0, 2.
    assert found["value"].tolist() == pytest.approx([(2 + 8) / 5, 10 / 8])
    assert found["n_matched"].tolist() == [3, 3]


# -----------------------------------------------------------------------------------------
# reward_table


def smoothed(log, rows, item, position, prior):
    """Mean reward of a cell over some rows, pulled to their mean by `prior` rows."""
    own = [i for i in rows if log.loc[i, "item_id"] == item and log.loc[i, "position"] == position]
    mean = sum(log.loc[i, "reward"] for i in rows) / len(rows)
    return (sum(log.loc[i, "reward"] for i in own) + prior * mean) / (len(own) + prior)


@pytest.mark.long
@pytest.mark.parametrize("folds", [1, 3])
def test_reward_table_against_loops(folds):
    rng = np.random.default_rng(0)
    log = bandit_log(40)[["user_id", "item_id", "reward"]].assign(position=rng.integers(1, 3, 40))
    candidates = pd.DataFrame(
        {
            "position": np.repeat([1, 2], 4),
            "item_id": [0, 1, 2, 9] * 2,
            "target_propensity": [0.4, 0.3, 0.2, 0.1] * 2,
        }
    )
    found = rd.ope.reward_table(log, candidates=candidates, prior=4, folds=folds)
    users = sorted(set(log["user_id"]))
    fold = [users.index(user) % folds for user in log["user_id"]]
    for i in range(len(log)):
        rows = [j for j in range(len(log)) if folds == 1 or fold[j] != fold[i]]
        position = log.loc[i, "position"]
        logged = smoothed(log, rows, log.loc[i, "item_id"], position, 4)
        shares = candidates[candidates["position"] == position]
        expected = sum(
            row.target_propensity * smoothed(log, rows, row.item_id, position, 4)
            for row in shares.itertuples()
        )
        assert found.loc[i, "q_logged"] == pytest.approx(logged, rel=1e-12)
        assert found.loc[i, "q_target"] == pytest.approx(expected, rel=1e-12)
    assert found["target_mass"].tolist() == pytest.approx([1.0] * 40)
    assert list(found.columns) == [*log.columns, "q_logged", "q_target", "target_mass"]
    shuffled = rd.ope.reward_table(
        log.sample(frac=1, random_state=0), candidates=candidates, prior=4, folds=folds
    )
    assert sorted(shuffled["q_target"]) == pytest.approx(sorted(found["q_target"]), rel=1e-12)


def test_personal_candidates_take_the_position_of_the_row():
    candidates = pd.DataFrame(
        {
            "user_id": [1, 1, 2, 3],
            "item_id": ["a", "b", "c", "a"],
            "target_propensity": [0.5, 0.5, 1, 0.25],
        }
    )
    with pytest.warns(rd.RecdfWarning, match="in 1 of 5 rows"):
        found = rd.ope.reward_table(LOG, candidates=candidates, prior=0, folds=1)
    # Mean rewards: (a, 1) is 1, (b, 2) 0, (c, 2) 1; cells without rows take the mean of all, 4/5.
    assert found["q_logged"].tolist() == pytest.approx([1, 0, 1, 1, 1])
    assert found["q_target"].tolist() == pytest.approx([0.5 + 0.4, 0.4 + 0.0, 0.8, 1.0, 0.25])
    assert found["target_mass"].tolist() == [1, 1, 1, 1, 0.25]


def test_the_golden_model_of_open_bandit():
    # Its q: (clicks + 50·rate)/(n + 50) per item and position of another log, so the same formula
    # on that log's counts.
    log = pd.DataFrame(
        {
            "item_id": [1] * 10 + [2] * 30,
            "position": 1,
            "reward": [1] * 2 + [0] * 8 + [1] * 3 + [0] * 27,
        }
    )
    uniform = pd.DataFrame({"item_id": [1, 2], "target_propensity": 0.5})
    found = rd.ope.reward_table(log, candidates=uniform, folds=1, fold_by=None)
    rate = 5 / 40
    q = [(2 + 50 * rate) / 60, (3 + 50 * rate) / 80]
    assert found["q_logged"].tolist() == pytest.approx([q[0]] * 10 + [q[1]] * 30)
    assert found["q_target"].tolist() == pytest.approx([sum(q) / 2] * 40)


# --------------------------------------------------------------------------------------
# ope_diagnostics


def test_diagnostics_by_hand():
    log = bandit_log(200)
    found = rd.ope.diagnostics(log).iloc[0]
    weight = log["target_propensity"] / log["propensity"]
    assert found["propensity_min"] == log["propensity"].min()
    assert found["weight_p50"] == pytest.approx(np.quantile(weight, 0.5))
    assert found["weight_p99"] == pytest.approx(np.quantile(weight, 0.99))
    assert found["worst_rows_share"] == pytest.approx(weight.nlargest(2).sum() / weight.sum())
    assert found["zero_weight_share"] == pytest.approx((weight == 0).mean())
    z = (weight.mean() - 1) / (weight.std(ddof=1) / math.sqrt(200))
    assert found["weight_mean_z"] == pytest.approx(z)
    estimated = rd.ope.estimate(log, estimators="ips").iloc[0]
    shared = [
        "n_rows",
        "n_units",
        "n_clusters",
        "n_matched",
        "ess",
        "ess_share",
        "ess_reward",
        "weight_mean",
        "weight_max",
    ]
    shared += ["logging_value", "max_weight_share", "unsupported_mass", "flags", "trust"]
    for name in shared:
        assert found[name] == estimated[name], name


def test_diagnostics_by_group_and_of_slates():
    log = slate_log()
    options = {"slate_col": "slate", "interaction": "standard", "propensity_kind": "conditional"}
    table = rd.ope.diagnostics(
        pd.concat([log.assign(week=2), log.assign(week=1)]), by="week", **options
    )
    assert table["week"].tolist() == [1, 2]
    alone = rd.ope.diagnostics(log, **options)
    pd.testing.assert_frame_equal(table[table["week"] == 1].drop(columns="week"), alone)
    ratio = (log["target_propensity"] / log["propensity"]).groupby(log["slate"]).prod()
    assert alone["ess"][0] == pytest.approx(ratio.sum() ** 2 / (ratio**2).sum())


# ------------------------------------------------------------------------------------------
# ope_compare


def stacked(models=("x", "y"), make=bandit_log):
    log = make()
    rng = np.random.default_rng(3)
    parts = []
    for model in models:
        share = rng.uniform(0, 1, len(log))
        parts.append(
            log.assign(model=model, target_propensity=share, q_target=rng.uniform(0, 3, len(log)))
        )
    return pd.concat(parts, ignore_index=True)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["ips", "snips", "dr", "sndr", "dm"])
@pytest.mark.parametrize("cluster", ["user_id", "row"])
def test_differences_against_loops(name, cluster):
    log = stacked(make=lambda: bandit_log().assign(row=np.arange(40) * 7)).drop(columns="kept")
    found = rd.ope.compare(
        log, estimators=name, cluster=cluster, q_logged="q_logged", q_target="q_target"
    ).iloc[0]
    x, y = (units_of(log[log["model"] == model]) for model in "xy")
    both = [[one, other] for (one,), (other,) in zip(x, y, strict=True)]

    def difference(pairs, multiplicity=None):
        own = [
            value([[pair[i]] for pair in pairs], name, multiplicity=multiplicity) for i in (0, 1)
        ]
        return own[1] - own[0]

    assert found["diff"] == pytest.approx(difference(both), rel=1e-10)
    clusters = [pair[0][cluster] for pair in both]
    assert found["se"] == pytest.approx(standard_error(difference, both, clusters), rel=1e-7)
    assert found["n_clusters"] == len(set(clusters))
    assert found[["baseline", "model"]].tolist() == ["x", "y"]
    separate = rd.ope.estimate(
        log, estimators=name, by="model", cluster=cluster, q_logged="q_logged", q_target="q_target"
    )
    assert found[["value_baseline", "value"]].tolist() == separate["value"].tolist()
    assert found["rel_diff"] == pytest.approx(found["diff"] / found["value_baseline"])
    assert found["ci_high"] - found["ci_low"] == pytest.approx(2 * 1.959963984540054 * found["se"])


def test_comparison_with_oneself_is_exactly_nothing():
    log = pd.concat([bandit_log().assign(model=model) for model in "ab"])
    found = rd.ope.compare(log)
    assert found[["diff", "se", "ci_low", "ci_high"]].to_numpy().tolist() == [[0, 0, 0, 0]] * 2


def test_all_pairs_or_one_baseline():
    log = stacked(("b", "a", "c"))
    pairs = rd.ope.compare(log, estimators="ips")[["baseline", "model"]].to_numpy().tolist()
    assert pairs == [["a", "b"], ["a", "c"], ["b", "c"]]
    pairs = (
        rd.ope.compare(log, estimators="ips", baseline="c")[["baseline", "model"]]
        .to_numpy()
        .tolist()
    )
    assert pairs == [["c", "a"], ["c", "b"]]


def test_comparison_of_slates_and_row_order():
    log = slate_log()
    both = pd.concat([log.assign(model="a"), log.assign(model="b", target_propensity=0.5)])
    options = {"slate_col": "slate", "interaction": "cascade", "propensity_kind": "conditional"}
    for cluster in ("user_id", None):
        first = rd.ope.compare(both, cluster=cluster, **options)
        again = rd.ope.compare(both.sample(frac=1, random_state=1), cluster=cluster, **options)
        pd.testing.assert_frame_equal(first, again, rtol=1e-12)
    separate = rd.ope.estimate(both, by="model", **options)
    assert first["value"].tolist() == pytest.approx(
        separate.loc[separate["model"] == "b", "value"].tolist()
    )


def test_flags_of_either_target_stand_on_the_difference():
    log = bandit_log(4000, users=4000)
    even = log.assign(model="even", target_propensity=log["propensity"])
    rare = log.assign(model="rare", target_propensity=np.where(log["item_id"] == 0, 0.01, 0))
    row = rd.ope.compare(pd.concat([even, rare]), estimators="snips").iloc[0]
    flags = rd.ope.estimate(pd.concat([even, rare]), by="model", estimators="snips")["flags"]
    assert flags[0] == "same_policy"
    assert row["flags"] == f"{flags[1]}, same_policy"
    assert flags[1] == "unsupported, mean_weight"
    assert row["trust"].startswith("do not use")


# --------------------------------------------------------------------------------------
# Keys of the log and of the candidates of reward_table


def uniform(**columns):
    return pd.DataFrame({"item_id": ["a", "b"] * 3, "target_propensity": 0.5, **columns})


def test_keys_of_candidates_may_have_another_type_of_the_same_ids():
    log = LOG.assign(item_id=list("ababa"))
    users = [1, 1, 2, 2, 3, 3]
    expected = rd.ope.reward_table(log, candidates=uniform(user_id=users), folds=1)
    for ids in (
        pd.Series(users, dtype="int64[pyarrow]"),
        pd.Series(users, dtype="Int32"),
        pd.Categorical(users),
    ):
        candidates = uniform(user_id=ids)
        candidates.index = pd.Index(range(6), name="user_id")
        found = rd.ope.reward_table(log, candidates=candidates, folds=1)
        pd.testing.assert_frame_equal(found, expected)
    bands = log.rename(columns={"position": "context row"}).assign(**{"": 0.5, "new": True})
    candidates = uniform(**{"": 0.5, "new": True}).head(2)
    found = rd.ope.reward_table(
        bands, candidates=candidates, by=["item_id", "context row"], folds=1
    )
    assert found["target_mass"].tolist() == [1.0] * 5


@pytest.mark.parametrize(
    ("ids", "error", "said"),
    [
        (list("112233"), rd.IdTypeError, "integer ids .* string ids .*can never match"),
        ([1, 1, 2, 2, 3, None], rd.NullKeyError, r"candidates\['user_id'\] is null in 1 of 6"),
        ([1, 1, 2, 2, 3.5, 3.5], rd.DataError, "1 of 5 rows of log have no candidate"),
    ],
)
def test_keys_of_candidates_that_cannot_match(ids, error, said):
    with pytest.raises(error, match=said):
        rd.ope.reward_table(LOG, candidates=uniform(user_id=ids), folds=1)


def test_rewards_whose_sums_are_not_finite_are_refused():
    with pytest.raises(rd.DataError, match=r"rewards up to 1e\+308"):
        rd.ope.reward_table(LOG.assign(reward=1e308), candidates=uniform(), folds=1)


def test_popularity_keeps_the_column_of_the_items():
    with pytest.raises(rd.OptionError, match="item_col='n' is also a column of the result"):
        rd.ope.popularity_propensity(LOG.rename(columns={"item_id": "n"}), item_col="n")


def test_positions_from_zero_are_no_ranks():
    first = LOG.assign(position=LOG["position"] - 1)
    with pytest.raises(rd.DataError, match=r"begins at 0, and ranks count from 1; add 1 to it"):
        targets(log=first, position_col="position")


def test_the_worst_rows_are_those_with_the_largest_weighted_weights():
    # 100 rows, of which the 1 % is one row: weight 2 · 30 of (2 · 30 + 99 · 1 · 1).
    log = pd.DataFrame({"user_id": range(100), "propensity": 0.5, "reward": [0, 1] * 50})
    log = log.assign(target_propensity=0.5, n=1.0)
    log.loc[7, ["target_propensity", "n"]] = 1.0, 30.0
    found = rd.ope.diagnostics(log, weight_col="n").iloc[0]
    assert found["worst_rows_share"] == pytest.approx(60 / 159, rel=1e-12)
    assert found["max_weight_share"] == pytest.approx(60 / 159, rel=1e-12)
    assert rd.ope.diagnostics(log)["worst_rows_share"][0] == pytest.approx(2 / 101, rel=1e-12)


def test_relative_differences_need_a_base_above_nothing():
    log = pd.DataFrame({"user_id": range(4), "item_id": list("aabb"), "propensity": 0.5})
    pred = pd.DataFrame({"model": list("xxxxyyyy"), "user_id": [0, 1, 2, 3] * 2})
    pred["item_id"] = list("aaaabbbb")
    both = rd.ope.target_from_recs(log.assign(reward=[1.0, 3.0, 4.0, 4.0]), pred, by="model")
    # x earns (2 + 6)/4, y (8 + 8)/4, and the log 3.
    estimated, compared = rd.ope.estimate(both, by="model", estimators="ips"), rd.ope.compare(both)
    assert estimated["rel_lift"].tolist() == pytest.approx([-1 / 3, 1 / 3])
    assert compared["rel_diff"][0] == pytest.approx(1.0)
    costs = both.assign(reward=-both["reward"])
    assert rd.ope.estimate(costs, by="model")["rel_lift"].isna().all()
    assert rd.ope.compare(costs)["rel_diff"].isna().all()
