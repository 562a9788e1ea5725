"""The bounds of a metric in comparisons of variants: found once, from its values and its name, and
read by guardrails and plans. Expected are the bounds of the definitions, and counts by hand."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import recdf as rd
from recdf.inputs.machine import sized, sizes

EX = rd.experiments
K = np.log(20)  # users who may be missing by chance
NONE = (np.nan, np.nan)
N = 600
BOUNDS = {
    "paid": (0, 1),  # zeros and ones, of whatever name
    "hitrate@10": (0, 1),
    "hitrate@5": NONE,  # in per cent, with means below 1
    "ndcg@10": (0, 1),
    "first_rank@10": (1, np.nan),
    "spend": NONE,
    "ctr": NONE,
    "q": (0, 1),
    "cent": NONE,
}
METRICS = {
    **{name: name for name in [*BOUNDS][:6]},
    "ctr": ("paid", "views"),
    "q": ("mrr@10", "mrr@10__n"),  # a mean over lists, as sums
    "cent": ("map@10", "map@10__n"),  # the same in per cent
}


def people(n=N):
    draw = np.random.default_rng(3)
    shares = {name: (draw.random(n) < 0.4) * 1.0 for name in ("paid", "hitrate@10")}
    lists = draw.integers(1, 4, n)
    return pd.DataFrame(
        {
            "user_id": np.arange(n),
            "variant": np.where(np.arange(n) % 2, "B", "A"),
            "week": np.arange(n) // 2 % 3,
            "store": np.arange(n) % 80,
            "weight": draw.integers(0, 5, n) / 4,
            **shares,
            "hitrate@5": 20.0 * draw.binomial(5, 0.006, n),
            "ndcg@10": draw.random(n),
            "first_rank@10": draw.integers(1, 9, n),
            "spend": draw.gamma(2, 3, n),
            "views": draw.integers(1, 9, n),
            "mrr@10": draw.random(n) * lists,
            "mrr@10__n": lists,
            "map@10": 100 * draw.random(n) * lists,
            "map@10__n": lists,
        }
    )


def by_rows(users, metrics, folder, **options):
    return rd.compare_variants(users, metrics, control="A", **options, details=True)


def by_file(users, metrics, folder, **options):
    users.to_parquet(folder / "users.parquet", index=False, row_group_size=150)
    with sized(replace(sizes(), summed_rows=100, summed_batch=128)):
        path = folder / "users.parquet"
        return rd.compare_variants(path, metrics, control="A", **options, details=True)


def by_moments(users, metrics, folder, **options):
    moments = EX.variant_moments(users, metrics)
    options |= {"control": "A", "details": True}
    return EX.compare_variants_from_moments(moments, metrics, **options)


HOW = [
    {},
    {"strata": "week"},
    {"weight_col": "weight"},
    {"cluster": "store"},
    {"weight_col": "weight", "strata": "week"},
    {"weight_col": "weight", "cluster": "store"},
]


DESIGNS = [*((one, how) for one in (by_rows, by_file) for how in HOW), (by_moments, {})]


def bounds_of(table):
    ends = map(tuple, table[["metric_low", "metric_high"]].to_numpy())
    return dict(zip(table["metric"], ends, strict=True))


@pytest.mark.few(5)
@pytest.mark.parametrize(("compare", "options"), DESIGNS)
def test_bounds_are_those_of_the_definition_and_of_zeros_and_ones(compare, options, tmp_path):
    users = people()
    if options.get("cluster"):
        users = users.assign(store=2 * users["store"] + (users["variant"] == "B"))
    found = bounds_of(compare(users, METRICS, tmp_path, **options))
    assert found.keys() == BOUNDS.keys()
    for name, bounds in BOUNDS.items():
        np.testing.assert_array_equal(found[name], bounds, err_msg=name)


@pytest.mark.few(3)
@pytest.mark.parametrize(("compare", "options"), DESIGNS)
def test_a_caller_declares_bounds_and_values_outside_are_refused(compare, options, tmp_path):
    """In every design; of a ratio its values are the means of the arms."""
    users = people()
    if options.get("cluster"):
        users = users.assign(store=2 * users["store"] + (users["variant"] == "B"))
    metrics = {name: METRICS[name] for name in ("spend", "ctr", "hitrate@10")}
    given = {"spend": (-5, 90), "ctr": (0, 2.5)}
    found = bounds_of(compare(users, metrics, tmp_path, **options, bounds=given))
    assert found == given | {"hitrate@10": (0, 1)}
    most = users["spend"].max()
    with pytest.raises(rd.DataError, match=rf"'spend' has values .* to {most:g}, outside of"):
        compare(users, metrics, tmp_path, **options, bounds={"spend": (0, most - 0.1)})
    with pytest.raises(rd.DataError, match=r"'ctr' has values .* outside of"):
        compare(users, metrics, tmp_path, **options, bounds={"ctr": (0, 0.01)})


@pytest.mark.parametrize("compare", [by_rows, by_file, by_moments])
@pytest.mark.parametrize(
    ("bounds", "by", "verdict"),
    [
        ((0, 20), 200 / 11, "better"),  # of B's mean 11, a user who has 0 takes 11/200
        ((9, 500), 200 / 490, "check: 0.41 users who gain all would turn it"),  # 10 is A's mean
        ((-1000, 12), 200 / 1011, "check: 0.20 users who lose all would turn it"),
    ],
)
def test_users_at_a_declared_bound_may_turn_what_is_said(compare, bounds, by, verdict, tmp_path):
    y = np.tile([9.0, 10, 11, 10], 50)
    users = pd.DataFrame({"variant": np.repeat(["A", "B"], 200), "y": np.r_[y, y + 1]})
    users["user_id"] = range(400)
    options = {"larger_is_better": "y", "expected": {"A": 1, "B": 1}, "bounds": {"y": bounds}}
    row = compare(users, "y", tmp_path, **options).iloc[0]
    assert (row["verdict"], row["unless"]) == (verdict, "")
    assert row["turned_by"] == pytest.approx(by)


@pytest.mark.parametrize("compare", [by_rows, by_file, by_moments])
def test_a_value_in_another_arm_tells_of_the_column(compare, tmp_path):
    users = people()
    users["variant"] = np.array(["A", "B", "C"])[np.arange(N) % 3]
    users.loc[2, ["ndcg@10", "paid"]] = 1.5
    found = bounds_of(compare(users, ["ndcg@10", "paid", "hitrate@10"], tmp_path))
    np.testing.assert_array_equal(found["ndcg@10"], NONE)
    np.testing.assert_array_equal(found["paid"], NONE)
    assert found["hitrate@10"] == (0, 1)


@pytest.mark.parametrize("compare", [by_rows, by_file, by_moments])
def test_a_value_that_is_rounded_up_is_no_value_beyond_the_bounds(compare, tmp_path):
    users = people()[["user_id", "variant", "ndcg@10"]]
    users.loc[2, "ndcg@10"] = np.nextafter(1, 2)
    assert bounds_of(compare(users, "ndcg@10", tmp_path))["ndcg@10"] == (0, 1)
    users.loc[2, "ndcg@10"] = 1e299  # of which no product may overflow
    assert np.isnan(bounds_of(compare(users, "ndcg@10", tmp_path))["ndcg@10"]).all()


@pytest.mark.parametrize("compare", [by_rows, by_file])
def test_weighted_ones_of_a_stratum_are_no_values_beyond_the_bounds(compare, tmp_path):
    users = people()
    users["weight"] = np.random.default_rng(1).gamma(2, 0.1, N)
    users["paid"] = users["paid"].where(users["week"] > 0, 1.0)
    table = compare(users, "paid", tmp_path, weight_col="weight", strata="week")
    assert bounds_of(table)["paid"] == (0, 1)


@pytest.mark.parametrize(("how", "second"), [("mean", (0, 1)), ("sum", NONE)])
def test_zeros_and_ones_of_a_day_have_bounds(how, second, tmp_path):
    """On the second day each user has two rows, of which the sum may be 2; means are .5 as well."""
    rows = pd.DataFrame(
        {"user_id": np.arange(600) % 200, "day": np.minimum(np.arange(600) // 200, 1)}
    )
    rows["variant"] = np.where(rows["user_id"] % 2, "B", "A")
    shares = (np.random.default_rng(2).random((2, 600)) < 0.4) * 1.0
    rows["paid"], rows["hitrate@10"] = shares
    rows["ndcg@10"] = 0.4 * shares[0]  # also of two rows, no sum is above 1
    rows.to_parquet(tmp_path / "rows.parquet")
    options = {"control": "A", "time_col": "day", "exposure_col": None, "details": True}
    options |= {"how": how, "larger_is_better": "paid"}
    for given in (rows, tmp_path / "rows.parquet"):
        table = EX.effect_over_time(given, ["paid", "hitrate@10", "ndcg@10"], **options)
        found = table[["metric_low", "metric_high"]].to_numpy()
        of_ndcg = (0, 1) if how == "mean" else NONE
        np.testing.assert_array_equal(found, [(0, 1), (0, 1), of_ndcg, NONE, second, of_ndcg])


def test_a_trend_takes_declared_bounds():
    """The effects fall by 1 a day, and each user's own values by .5 or rise by as much. A unit at
    a bound moves each day by its distance r over the n = 100 of an arm, and the slope by Σ|c|·r/n
    of the days' contrasts c = (-.5, 0, .5)."""
    users = pd.DataFrame({"user_id": range(200), "variant": ["A", "B"] * 100})
    rows = users.merge(pd.DataFrame({"day": [1.0, 2, 3]}), how="cross")
    treated, one = rows["variant"] == "B", rows["user_id"] // 2
    rows["y"] = 10 + one % 5 + (one % 2 - 0.5) * (rows["day"] - 2) + treated * (4 - rows["day"])
    options = {"control": "A", "time_col": "day", "exposure_col": None, "details": True}
    options |= {"expected": {"A": 1, "B": 1}}

    def trend(**bounds):
        found = EX.effect_over_time(rows, "y", **options, **bounds)
        return found.iloc[0]["trend_verdict"], found["remarks"].unique().tolist()

    # K more users of B with the slope v take its mean slope to 0: n·1 = K·(v − 1).
    turn = f"3 in 100 users of the treatment rise by {1 + 100 / K:.3g} a day more than the others"
    assert trend() == (f"fades, unless {turn}", ["unbounded"])
    # A's mean is 12 each day and B's 15, 14 and 13.
    assert trend(bounds={"y": (0, 18)}) == ("fades", [""])
    verdict, remarks = trend(bounds={"y": (0, 900)})
    turned = 1 / ((900 - 12) / 100)
    assert verdict == f"check: {turned:.2f} users who lose or gain all would turn it"
    assert remarks == ["unseen_units"]
    with pytest.raises(rd.DataError, match=r"'y' has values from 9\.5 to 17\.5, outside of"):
        trend(bounds={"y": (0, 16)})


def test_plans_take_declared_bounds():
    """s = 1; the farther bound is 60 from the mean 10, and K users may be at it by chance."""
    users = pd.DataFrame({"spend": np.tile([9.0, 11], 100)})
    spread = np.sqrt(200 / 199)
    plan = EX.plan_experiment(users, "spend", n=1000, bounds={"spend": (0, 70)}).iloc[0]
    least = stats.norm.ppf(0.8) * spread * np.sqrt(2 / 500) + K * 60 / 500
    assert plan["mde_abs"] == pytest.approx(least, rel=1e-4)
    lists = pd.DataFrame({"user_id": np.arange(400) % 200, "model": np.repeat(["a", "b"], 200)})
    lists["spend"] = np.r_[users["spend"], np.tile([10.0, 10, 8, 12], 50)]  # differ by ±1
    options = {"baseline": "a", "n": 1000, "bounds": {"spend": (0, 70)}}
    plan = EX.plan_comparison(lists, "spend", **options).iloc[0]
    least = stats.norm.ppf(0.8) * spread * np.sqrt(1 / 1000) + K * 70 / 1000
    assert plan["mde_abs"] == pytest.approx(least, rel=1e-4)
    for function, frame in ((EX.plan_experiment, users), (EX.plan_comparison, lists)):
        given = options if function is EX.plan_comparison else {"n": 1000}
        with pytest.raises(rd.DataError, match="'spend' has values"):
            function(frame, "spend", **given | {"bounds": {"spend": (0, 10)}})


OF_USERS = {
    "variants": partial(rd.compare_variants, metrics="y", control="A"),
    "moments": lambda users, **bounds: EX.compare_variants_from_moments(
        EX.variant_moments(users, "y"), control="A", **bounds
    ),
    "over_time": partial(
        EX.effect_over_time, metrics="y", control="A", time_col="day", exposure_col=None
    ),
    "plan": partial(EX.plan_experiment, metrics="y", n=100),
}


@pytest.mark.parametrize("bounds", [{"y": (1, 0)}, {"y": 3}, {"z": (0, 1)}, {"y": "ab"}, 3])
@pytest.mark.parametrize("function", OF_USERS)
def test_wrong_bounds_are_errors(function, bounds):
    users = pd.DataFrame({"user_id": range(8), "variant": ["A", "B"] * 4, "y": range(8), "day": 1})
    with pytest.raises(rd.OptionError, match="bounds"):
        OF_USERS[function](users, bounds=bounds)


def judged(table, margin):
    row = EX.role_verdicts(table, {table["metric"].iloc[0]: ("guardrail", margin)}).iloc[0]
    return row["effect"], row["verdict"], row["note"]


SHARES = [
    (by_rows, {"weight_col": "weight"}),
    (by_file, {"weight_col": "weight"}),
    (by_rows, {"cluster": "store"}),
    (by_file, {"cluster": "store"}),
    (by_rows, {}),
    (by_file, {}),
    (by_moments, {}),
]


@pytest.mark.few(4)
@pytest.mark.parametrize(("compare", "options"), SHARES)
def test_a_guardrail_of_zeros_and_ones_counts_the_users_who_turn_it(compare, options, tmp_path):
    """All but one user of an arm are served: k of n more who are not take the mean m to the margin,
    m·n/(n + k)."""
    users = people(4000).assign(served=lambda f: 1.0 * (f.index > 1))
    users["weight"] += 0.5
    users["store"] = users.index % 400
    table = compare(users, "served", tmp_path, **options, expected={"A": 1, "B": 1})
    own = users[users["variant"] == "B"]
    size = own["weight"] if "weight_col" in options else pd.Series(1.0, own.index)
    if "cluster" in options:
        size = own.groupby("store").size()
    typical = size.sum() / np.sqrt((size**2).mean())
    mean, control = (table[f"mean_{side}"].iloc[0] for side in ("treatment", "control"))
    units = "clusters" if "cluster" in options else "users"
    few, many = (judged(table, mean * typical / (by + typical) - control) for by in (2.8, 4.5))
    said = f"check: 2.8 {units} who lose all would turn it"
    assert few == ("not_safe", "not shown safe", said)
    beside = ", for users with a weight of up to 1.5" * ("weight_col" in options)
    assert many == ("safe", f"safe{beside}", "")


@pytest.mark.few(4)
@pytest.mark.parametrize("compare", [by_rows, by_file])
@pytest.mark.parametrize("options", HOW[1:])
def test_a_guardrail_in_per_cent_has_no_bounds(compare, options, tmp_path):
    users = people(4000)
    users["store"] = users.index % 400
    table = compare(users, "hitrate@5", tmp_path, **options)
    assert table[["mean_control", "mean_treatment"]].max(axis=None) < 1
    effect, verdict, _ = judged(table, -1.0)
    assert effect in ("safe", "within_margin")
    assert ", unless 3 in " in verdict


@pytest.mark.parametrize("compare", [by_rows, by_file])
def test_zeros_and_ones_of_clusters_are_asked_about_unseen_ones(compare, tmp_path):
    """25 or 26 of 50 rows of each of 60 clusters are ones, and one more in B: so do 60·.02/(.51 +
    .02) clusters who have none."""
    store = np.arange(6000) // 50
    b = store % 2
    users = pd.DataFrame({"user_id": np.arange(6000), "store": store})
    users["variant"] = np.where(b, "B", "A")
    users["paid"] = 1.0 * (np.arange(6000) % 50 < 25 + b + (store % 4 > 1))
    row = compare(users, "paid", tmp_path, cluster="store").iloc[0]
    assert row["reject"]
    assert row["turned_by"] == pytest.approx(60 * 0.02 / 0.53)
    assert row["verdict"].startswith("check: 2.3 clusters who lose all would turn it")


def test_a_table_without_the_bounds_is_to_be_made_again():
    table = by_rows(people(), "ndcg@10", None).drop(columns="metric_low")
    with pytest.raises(rd.ColumnError, match="no column 'metric_low'"):
        judged(table, -0.1)


@pytest.mark.parametrize("cluster", [None, "store"])
def test_a_plan_knows_zeros_and_ones_of_any_name(cluster):
    """k clusters of 2 users at 0 take the mean m of n users by 2·k·m/(n + 2·k)."""
    users = pd.DataFrame({"store": np.arange(8000) // 2})
    users["served"] = 1.0 * (users["store"] > 0)
    size = 2 if cluster else 1
    plan = EX.plan_experiment(
        users, "served", n=4000, guardrails={"served": -0.01}, cluster=cluster
    ).iloc[0]
    mean = 1 - 2 / 8000
    spread = np.sqrt(mean * (1 - mean) * size * (8000 / size) / (8000 / size - 1))
    k = K * size
    least = stats.norm.ppf(0.8) * spread * np.sqrt(2 / 2000) + k * mean / (2000 + k)
    assert plan["mde_abs"] == pytest.approx(least, rel=1e-6)
    plans = [
        EX.plan_experiment(one, one.columns[1], rel_effect=0.002, cluster=cluster)
        for one in (users, users.rename(columns={"served": "hitrate@10"}))
    ]
    pd.testing.assert_frame_equal(*(one.drop(columns="metric") for one in plans))


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_one_bound_alone_plans_no_effect(alternative):
    users = pd.DataFrame({"first_rank@10": np.random.default_rng(1).integers(1, 3, 500)})
    plans = [
        EX.plan_experiment(one, one.columns[0], n=60, alternative=alternative)["mde_abs"].item()
        for one in (users, users.rename(columns={"first_rank@10": "x"}))
    ]
    assert plans[0] == plans[1]


def test_no_value_of_a_capped_metric_is_above_the_cap():
    """More users with huge values count as the cap, so they turn what they would turn at it."""
    draw = np.random.default_rng(0)
    data = pd.DataFrame({"user_id": range(4000), "variant": draw.choice(["A", "B"], 4000)})
    data["spend"] = draw.gamma(1, 20, 4000) * (1 - 0.2 * (data["variant"] == "B"))
    data["weight"] = draw.choice([1.0, 2.0], 4000)
    limit = data["spend"].quantile(0.9)
    call = partial(
        rd.compare_variants, data, "spend", control="A", expected={"A": 1, "B": 1}, details=True
    )
    for given in ({}, {"weight_col": "weight"}, {"cluster": "user_id"}):
        capped = partial(call, cap={"spend": 0.9}, **given)
        row = capped(bounds={"spend": (0, 5000)}).iloc[0]
        pd.testing.assert_series_equal(row, capped(bounds={"spend": (0, limit)}).iloc[0])
        assert row["metric_high"] == limit
        assert row["verdict"].startswith("worse")
        assert row["withheld"] == ""
        alone = capped()
        assert (alone["metric_low"].isna() & (alone["metric_high"] == limit)).all()
        assert not alone["verdict"].str.contains("or more").any()
        safe = EX.role_verdicts(alone, {"spend": ("guardrail", "-30%")})["verdict"].item()
        assert "or more" not in safe
    # 20 users of B with the largest value there is leave it worse.
    more = pd.DataFrame({"user_id": range(4000, 4020), "variant": "B", "spend": 5000.0})
    data = pd.concat([data, more])
    assert call.func(data, "spend", **call.keywords, cap={"spend": 0.9})["reject"].item()
