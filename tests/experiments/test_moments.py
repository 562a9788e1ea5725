"""Moments of users by variant, and the comparison that they give: the table of `compare_variants`
on the users."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recdf as rd


def people(n=400, seed=1):
    """Users of three unequal variants, and metrics of all sorts: skewed, null, constant, huge,
    tiny, shares."""
    rng = np.random.default_rng(seed)
    users = pd.DataFrame(
        {
            "user_id": rng.permutation(n),
            "variant": rng.choice(["C", "A", "B"], n, p=[0.3, 0.6, 0.1]),
        }
    )
    users["segment"] = rng.choice(list("xyz"), n, p=[0.5, 0.45, 0.05])
    half = (users["variant"] == "A") & (rng.random(n) < 0.5)
    metrics = {
        "revenue@10": rng.exponential(size=n) ** 2,
        "first_rank@10": 5 + rng.normal(size=n),
        "ndcg@10": np.where(rng.random(n) < 0.2, np.nan, rng.random(n)),
        "same": 0.1,
        "hit": (rng.random(n) < 0.3) * 1.0,
        "all_or_none": (users["variant"] == "A") * 1.0,
        "huge": rng.normal(size=n) * 1e200,
        "large": rng.normal(size=n) * 1e140,
        "minute": rng.normal(size=n) * 1e-200,
        "lost": np.where(half, np.nan, rng.random(n)),
        "one_arm": np.where(users["variant"] == "A", 0.1, rng.random(n)),
        "count": rng.integers(0, 5, n),
    }
    return users.assign(**metrics), list(metrics)


def in_shards(users, metrics, shard, **options):
    """Moments of the users of each shard, from the last to the first, as one frame."""
    parts = [
        rd.experiments.variant_moments(users[shard == one], metrics, **options)
        for one in np.unique(shard)[::-1]
    ]
    return pd.concat(parts, ignore_index=True)


def assert_equal(found, expected):
    # Moments do not hold the values of single users.
    assert found["diff_without_top"].isna().all()
    known = ~expected["remarks"].str.contains("few_units")
    assert known.mean() > 0.7
    columns = [name for name in expected.columns if name != "diff_without_top"]
    found_attrs, expected_attrs = found.attrs, expected.attrs
    found, expected = found.loc[known, columns], expected.loc[known, columns]
    # Without the surplus of an arm they have a bound.
    for name in ("detail", "verdict"):
        found[name] = found[name].str.replace("there may be no", "there is no")
    found.attrs, expected.attrs = found_attrs, expected_attrs
    pd.testing.assert_frame_equal(found, expected, rtol=1e-12, atol=1e-12)
    assert found.attrs == expected.attrs


# -- moments


def test_moments_by_hand():
    # A: 1, 2, 3, 6 has the mean 3 and the deviations −2, −1, 0, 3: squares 14, cubes 18. B: 4
    # alone, one null.
    users = pd.DataFrame(
        {"user_id": range(6), "variant": list("AABAAB"), "m": [1, 2, 4, 3, 6, None]}
    )
    expected = pd.DataFrame(
        {
            "variant": ["A", "B"],
            "metric": ["m", "m"],
            "n": [4, 1],
            "n_null": [0, 1],
            "mean": [3.0, 4.0],
            "std": [np.sqrt(14 / 3), np.nan],
            "skewness": [(18 / 4) / (14 / 4) ** 1.5, 0.0],
            "min": [1.0, 4.0],
            "max": [6.0, 4.0],
        }
    )
    pd.testing.assert_frame_equal(rd.experiments.variant_moments(users, "m", nan="drop"), expected)
    assert (
        rd.experiments.variant_moments(users[:0], "m").columns.tolist() == expected.columns.tolist()
    )


def test_the_skewness_is_that_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    users, _ = people()
    found = rd.experiments.variant_moments(users, "revenue@10", by="segment").set_index(
        ["segment", "variant"]
    )["skewness"]
    expected = users.groupby(["segment", "variant"])["revenue@10"].apply(
        lambda values: stats.skew(values)
    )
    pd.testing.assert_series_equal(found, expected, check_names=False, rtol=1e-12)


# ------------------------------------------------------------------------------------------
# comparison

OPTIONS = [
    {},
    {"alternative": "less", "correction": "bh", "family": "metric"},
    {"sequential_n": 500, "relative": "log"},
    {"test": {"hit": "proportion"}, "expected": {"A": 6, "B": 1, "C": 3}, "primary": ["hit"]},
    {"expected": {"A": 1, "B": 1, "C": 1, "D": 1}},
    {"smaller_is_better": ["revenue@10"], "alternative": "greater", "confidence": 0.9},
]


@pytest.mark.long
@pytest.mark.parametrize("by", [None, "segment", ["segment", "week"]])
def test_the_table_is_that_of_the_users(by):
    users, metrics = people()
    users["week"] = users["count"] % 2
    # With segments, the shares over all of them are a matter of keys, which moments do not have.
    rows = users if by is None else users.drop(columns="user_id")
    moments = in_shards(users, metrics, users["user_id"] % 5, by=by, nan="drop")
    for options in OPTIONS:
        expected = rd.compare_variants(
            rows, metrics, control="A", by=by, nan="drop", **options, details=True
        )
        found = rd.experiments.compare_variants_from_moments(
            moments, metrics, control="A", by=by, **options, details=True
        )
        assert_equal(found, expected)
    some = rd.experiments.compare_variants_from_moments(
        moments, ["hit", "same"], control="A", by=by, details=True
    )
    assert_equal(some, rd.compare_variants(rows, ["hit", "same"], control="A", by=by, details=True))


@pytest.mark.long
@given(
    shard=st.lists(st.integers(0, 6), min_size=60, max_size=60),
    centre=st.sampled_from([0.0, -3.0, 1e4]),
    order=st.randoms(use_true_random=False),
)
def test_any_split_of_the_users_in_any_order(shard, centre, order):
    rng = np.random.default_rng(0)
    users = pd.DataFrame(
        {"user_id": range(60), "variant": rng.choice(["A", "B"], 60, p=[0.8, 0.2])}
    )
    users["m"], users["share"] = centre + rng.exponential(size=60), (rng.random(60) < 0.5) * 1.0
    rows = in_shards(users, ["m", "share"], np.array(shard)).to_dict("records")
    order.shuffle(rows)
    moments = pd.DataFrame(
        sorted(rows, key=lambda row: row["metric"])
    )  # the order of the metrics is that of the rows
    options = {"control": "A", "test": {"share": "proportion"}}
    found = rd.experiments.compare_variants_from_moments(moments, **options, details=True)
    expected = rd.compare_variants(users, ["m", "share"], **options, details=True)
    numbers = ["mean_control", "mean_treatment", "se", "df"]
    pd.testing.assert_frame_equal(found[numbers], expected[numbers], rtol=1e-12, atol=0)
    words = ["n_control", "n_treatment", "remarks", "verdict", "reject"]
    pd.testing.assert_frame_equal(found[words], expected[words])
    np.testing.assert_allclose(
        found["p_value"], expected["p_value"], rtol=1e-12 * max(1, abs(centre))
    )


def test_what_a_health_check_found_withholds_the_verdict():
    users, _ = people()
    health = rd.experiments.experiment_health(
        users[["user_id"]], users[["user_id", "variant"]], expected={"A": 1, "B": 1, "C": 1}
    )
    moments = rd.experiments.variant_moments(users, "hit")
    assert_equal(
        rd.experiments.compare_variants_from_moments(
            moments, control="A", health=health, details=True
        ),
        rd.compare_variants(users, "hit", control="A", health=health, details=True),
    )


def test_equal_values_have_no_difference_whatever_their_number():
    # The mean of 37 or of 83 times 0.1 is not 0.1 in floating point.
    users = pd.DataFrame({"user_id": range(120), "variant": ["A"] * 37 + ["B"] * 83, "m": 0.1})
    of_users = rd.compare_variants(users, "m", control="A", details=True).iloc[0]
    of_moments = rd.experiments.compare_variants_from_moments(
        in_shards(users, "m", users["user_id"] % 7), control="A", details=True
    ).iloc[0]
    for row in (of_users, of_moments):
        assert row["diff"] == 0
        assert row["verdict"].startswith("no difference shown")
        assert row["remarks"] == "zero_variance; ratio_not_checked"


# -- ratios of sums and covariates


def visitors(n=900, seed=3):
    """Users with clicks, views (of whom some have none), and what they did before."""
    rng = np.random.default_rng(seed)
    users = pd.DataFrame(
        {
            "user_id": rng.permutation(n),
            "variant": rng.choice(["B", "A", "C"], n, p=[0.5, 0.3, 0.2]),
        }
    )
    users["segment"] = rng.choice(list("xy"), n)
    taste = rng.gamma(2, size=n)
    users["views"] = rng.poisson(4 * taste) * 1.0
    users["clicks"] = rng.binomial(
        users["views"].astype(int), 0.2 + 0.1 * (users["variant"] == "C")
    )
    users["views_before"] = rng.poisson(4 * taste) + 1e6
    users["clicks_before"] = rng.poisson(taste) * 1.0
    users["mean"] = np.where(users["views"] > 0, users["clicks"], np.nan)
    users["mean__n"] = users["views"]
    return users


ASKED = [
    ({"ctr": ("clicks", "views"), "clicks": "clicks"}, {"clicks": "views_before"}),
    (
        {"ctr": ("clicks", "views")},
        {"ctr": [("clicks_before", "views_before"), "views_before"]},
    ),
    ({"per list": ("mean", "mean__n")}, None),
    (["clicks", "views"], "clicks_before"),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("metrics", "covariates"), ASKED)
@pytest.mark.parametrize("by", [None, pytest.param("segment", marks=pytest.mark.long)])
def test_ratios_and_covariates_are_those_of_the_users(metrics, covariates, by):
    users = visitors()
    moments = in_shards(
        users, metrics, users["user_id"] % 4, by=by, nan="drop", covariates=covariates
    )
    options = {"control": "A", "by": by, "covariates": covariates, "details": True}
    given = users if by is None else users.drop(columns="user_id")
    expected = rd.compare_variants(given, metrics, nan="drop", **options)
    found = rd.experiments.compare_variants_from_moments(moments, metrics, **options)
    # Of the values after the adjustment nobody knows the skewness, which unequal arms need.
    without = {"skewness_not_checked", "few_units", ""}
    for table in (found, expected):
        table["remarks"] = [
            "; ".join(one for one in text.split("; ") if one not in without)
            for text in table["remarks"]
        ]
    assert found["diff_without_top"].isna().all()
    apart = ["diff_without_top", "verdict", "balance_p"]
    # The balance of a ratio, and of covariates beside others, is tested as that of a normal mean.
    several = isinstance(covariates, dict) and "ctr" in covariates
    pd.testing.assert_series_equal(
        found["balance_p"], expected["balance_p"], rtol=0.15 if several else 1e-9
    )
    names = [name for name in found if name not in apart]
    assert {"metric", "treatment", "n_control", "diff", "se", "p_value", "theta"} <= {*names}
    pd.testing.assert_frame_equal(found[names], expected[names], rtol=1e-9, atol=1e-12)


def test_covariances_by_hand():
    # A: clicks 1, 3 of views 2, 6; B: clicks 0, 1, 2 of views 0, 2, 4. Around the means 2 and 4 in
    # A: (−1)(−2) + 1·2 = 4; around 1 and 2 in B: (−1)(−2) + 0 + 1·2 = 4, over n − 1.
    users = pd.DataFrame(
        {"variant": list("AABBB"), "clicks": [1, 3, 0, 1, 2], "views": [2, 6, 0, 2, 4]}
    )
    found = rd.experiments.variant_moments(users, {"ctr": ("clicks", "views")})
    pairs = found[found["other"].notna()]
    expected = pd.DataFrame(
        {
            "variant": ["A", "B"],
            "metric": "clicks",
            "other": "views",
            "n": [2, 3],
            "mean": [2.0, 1.0],
            "mean_other": [4.0, 2.0],
            "covariance": [4.0, 2.0],
        }
    )
    assert pairs[list(expected)].to_dict("records") == expected.to_dict("records")
    views = found[(found["metric"] == "views") & found["other"].isna()]
    assert views["n_zero"].tolist() == [0, 1]
    assert views["n_empty"].tolist() == [0, 0]


def test_a_ratio_from_the_moments_of_sql():
    # count, avg, stddev_samp and covar_samp of a database, without the optional columns.
    users = visitors()
    rows = []
    for variant, own in users.groupby("variant"):
        common = {"variant": variant, "n": len(own)}
        rows += [
            {**common, "metric": name, "mean": own[name].mean(), "std": own[name].std()}
            for name in ("clicks", "views")
        ]
        rows[-1]["n_zero"] = (own["views"] == 0).sum()
        pair = {"other": "views", "mean": own["clicks"].mean(), "mean_other": own["views"].mean()}
        covariance = own["clicks"].cov(own["views"])
        rows.append({**common, "metric": "clicks", **pair, "covariance": covariance})
    metrics = {"ctr": ("clicks", "views")}
    found = rd.experiments.compare_variants_from_moments(
        pd.DataFrame(rows).sample(frac=1, random_state=0), metrics, control="A"
    )
    expected = rd.compare_variants(users, metrics, control="A")
    numbers = ["n_control", "mean_control", "diff", "se", "ci_low", "p_value", "rel_ci_high"]
    pd.testing.assert_frame_equal(found[numbers], expected[numbers], rtol=1e-9)


RATIO = rd.experiments.variant_moments(visitors(), {"ctr": ("clicks", "views")})
PAIR = RATIO["other"].notna()
BAD_RATIOS = [
    (RATIO[~PAIR], "no covariance of 'clicks' and 'views'; name 'ctr' and its"),
    (RATIO.drop(columns="n_zero"), "no 'n_zero' of 'views'"),
    (RATIO.assign(covariance=RATIO["covariance"] * 9), "larger than the product of the standard"),
    (pd.concat([RATIO, RATIO[PAIR]]), "covariances in moments are of more users than the means"),
    (RATIO.drop(columns="mean_other"), "no column 'mean_other'"),
]


@pytest.mark.parametrize(("moments", "words"), BAD_RATIOS)
def test_bad_moments_of_a_ratio(moments, words):
    with pytest.raises((rd.DataError, rd.ColumnError), match=words):
        rd.experiments.compare_variants_from_moments(
            moments, {"ctr": ("clicks", "views")}, control="A"
        )


def test_a_ratio_that_does_not_vary_has_no_verdict():
    # In floats, sums of squares of 2·x − x·2 are not quite 0.
    users = visitors().assign(views=lambda frame: frame["views"] + 0.1)
    users["clicks"] = users["views"] / 3
    moments = rd.experiments.variant_moments(users, {"ctr": ("clicks", "views")})
    found = rd.experiments.compare_variants_from_moments(
        moments, {"ctr": ("clicks", "views")}, control="A"
    )
    assert found["remarks"].str.contains("zero_variance").all()
    assert set(found["effect"]) <= {"none", ""}


# -- moments of other programs


@pytest.mark.long
def test_moments_without_the_optional_columns():
    stats = pytest.importorskip("scipy.stats")
    users, _ = people()
    values = users.groupby("variant")["ndcg@10"]
    moments = values.agg(n="count", mean="mean", std="std").reset_index().assign(metric="ndcg@10")
    table = rd.experiments.compare_variants_from_moments(moments, control="A", details=True)
    a, b, _ = (moments.loc[i, ["mean", "std", "n"]].tolist() for i in range(3))
    row = table.iloc[0]
    assert row["p_value"] == pytest.approx(
        stats.ttest_ind_from_stats(*b, *a, equal_var=False).pvalue, rel=1e-12
    )
    # The arms are so unequal that a skewness could matter; in equal arms it could not.
    assert (
        table["remarks"].tolist()
        == ["missing_not_checked; skewness_not_checked; ratio_not_checked"] * 2
    )
    assert table[["n_dropped", "n_dropped_control", "n_dropped_treatment"]].isna().all(axis=None)
    refused = rd.experiments.compare_variants_from_moments(
        moments, control="A", sequential_n=1000, details=True
    )
    assert refused["remarks"].str.contains("sequential_refused").all()
    equal = moments.assign(n=100, n_null=0)
    equal = rd.experiments.compare_variants_from_moments(
        equal, control="A", expected=dict.fromkeys("ABC", 1), details=True
    )
    assert equal["remarks"].tolist() == ["", ""]
    shares = pd.DataFrame(
        {"variant": ["A", "B"], "metric": "hit", "n": [40, 50], "mean": [0.25, 0.5]}
    )
    shares["std"] = np.sqrt(shares["mean"] * (1 - shares["mean"]) * shares["n"] / (shares["n"] - 1))
    row = rd.experiments.compare_variants_from_moments(
        shares, control="A", test="proportion", details=True
    ).iloc[0]
    assert row["p_value"] == pytest.approx(
        stats.fisher_exact([[10, 30], [25, 25]]).pvalue, rel=1e-9
    )


# -- bad input

USERS = pd.DataFrame({"user_id": [1, 2, 3, 4], "variant": list("ABAB"), "m": [1.0, None, 2.0, 3.0]})
GOOD = pd.DataFrame(
    {
        "variant": ["A", "B"],
        "metric": "m",
        "n": 30,
        "n_null": 0,
        "mean": 1.0,
        "std": 0.5,
        "min": 0.0,
        "max": 2.0,
    }
)
ONE_PART = pd.concat([GOOD, GOOD[:1].assign(metric="other")])
TWO_PARTS = pd.concat([GOOD, GOOD.assign(metric="other"), GOOD])

BAD_MOMENTS = [
    (GOOD.drop(columns="std"), rd.ColumnError, "no column 'std'"),
    (
        USERS,
        rd.ColumnError,
        "none of the columns 'metric'.* If it has one row per user, call "
        "rd.experiments.variant_moments first",
    ),
    (
        GOOD.assign(shard=[1, 2]),
        rd.ColumnError,
        "the column 'shard', which is no moment.*each user must be in one",
    ),
    (GOOD[:0], rd.DataError, "no rows"),
    (GOOD[:1], rd.OptionError, r"moments\['variant'\] has one variant, 'A'"),
    (GOOD.assign(variant=["A", None]), rd.NullKeyError, "is null in 1 of 2"),
    (GOOD.assign(metric=None), rd.NullKeyError, r"moments\['metric'\] is null in 2 of 2"),
    (GOOD.assign(metric=7), rd.DataError, "the name of a metric is a string"),
    (
        GOOD.assign(n=1.5),
        rd.DataError,
        r"moments\['n'\] is not a number of users in 2 of 2 rows \(1.5",
    ),
    (GOOD.assign(n=[30, None]), rd.DataError, r"moments\['n'\] is not a number of users in 1 of 2"),
    (GOOD.assign(n_null=-1), rd.DataError, r"moments\['n_null'\] is not a number of users"),
    (
        GOOD.assign(mean=[1.0, None]),
        rd.DataError,
        r"moments\['mean'\] is null beside users in 1 of 2",
    ),
    (
        GOOD.assign(mean=[1.0, 3.0]),
        rd.DataError,
        r"moments\['mean'\] is not between min and max in 1 of 2",
    ),
    (
        GOOD.assign(std=[0.5, -0.5]),
        rd.DataError,
        r"moments\['std'\] is negative in 1 of 2 rows \(-0.5",
    ),
    (
        GOOD.assign(std=[0.5, None]),
        rd.DataError,
        r"moments\['std'\] is null beside two users or more",
    ),
    (GOOD.assign(std=np.inf), rd.DataError, "infinite"),
    (GOOD.assign(std="a lot"), rd.DataError, r"\('a lot'\); expected numbers"),
    (
        ONE_PART,
        rd.DataError,
        r"in 1 of 2 variants or segments, such as variant='B': \{'m': 30, 'other': 'no row'\}",
    ),
    (TWO_PARTS, rd.DataError, r"in 2 of 2 .* \{'m': 60, 'other': 30\}"),
]


@pytest.mark.parametrize(("moments", "error", "words"), BAD_MOMENTS)
def test_bad_moments(moments, error, words):
    with pytest.raises(error, match=words):
        rd.experiments.compare_variants_from_moments(moments, control="A", details=True)


BAD_CALLS = [
    ({"control": "Z"}, rd.OptionError, "control='Z' is not in moments"),
    ({"metrics": "other"}, rd.OptionError, r"metrics= names \['other'\]"),
    ({"metrics": []}, rd.OptionError, "metrics is empty"),
    (
        {"metrics": {"r": ("m", "n")}},
        rd.ColumnError,
        "the metrics in moments has no column 'n'; it has 'm'",
    ),
    ({"by": "variant"}, rd.OptionError, "column of the variant"),
    ({"by": "mean"}, rd.OptionError, "by='mean' is also a column of the result"),
    ({"test": "proportion"}, rd.DataError, "metric 'm' has values other than 0 and 1"),
    ({"primary": "other"}, rd.OptionError, "primary= names"),
    ({"alternative": "two_sided"}, rd.OptionError, "alternative="),
    ({"covariats": "x"}, rd.OptionError, "has no option 'covariats'"),
    ({"nan": "drop"}, rd.OptionError, "nan= is about users.*rd.experiments.variant_moments"),
    ({"user_col": "user_id"}, rd.OptionError, "user_col= is about users"),
    *(
        (
            {name: value},
            rd.OptionError,
            f"^{name}=.*needs one row per user.*to_pandas.*a sample of the users by a hash",
        )
        for name, value in {
            "strata": "x",
            "cluster": "x",
            "test": "bootstrap",
            "n_resamples": 10,
            "seed": 1,
            "cap": {"m": 0.9},
            "time_col": "day",
            "weight_col": "w",
        }.items()
    ),
]


@pytest.mark.parametrize(("options", "error", "words"), BAD_CALLS)
def test_bad_options_of_a_comparison_from_moments(options, error, words):
    with pytest.raises(error, match=words):
        rd.experiments.compare_variants_from_moments(
            GOOD, **{"control": "A", **options}, details=True
        )


def test_options_of_the_rows_at_their_defaults_and_the_need_of_a_null_count():
    table = rd.experiments.compare_variants_from_moments(
        GOOD, control="A", test="t", covariates=None, progress=False, details=True
    )
    assert table["remarks"].tolist() == ["ratio_not_checked"]
    with pytest.raises(rd.OptionError, match=r"expected= counts users.*'n_null'"):
        rd.experiments.compare_variants_from_moments(
            GOOD.drop(columns="n_null"), control="A", expected={"A": 1, "B": 1}, details=True
        )


BAD_USERS = [
    (USERS, {}, rd.DataError, "metric 'm' is null in 1 of 4"),
    (
        USERS,
        {"metrics": {"r": ("user_id", "m")}},
        rd.DataError,
        "metric 'r' is null in 1 of 4",
    ),
    (USERS, {"nan": "drop", "covariates": ["user_id", "m"]}, rd.OptionError, "several of a mean"),
    (USERS, {"metrics": "user_id", "covariates": "m"}, rd.DataError, "'m' is null for some users"),
    (
        USERS.assign(k=1.0),
        {"metrics": ["m", "user_id"], "covariates": "k", "nan": "drop"},
        rd.DataError,
        "'m' and 'user_id' both use 'k' and are null for different users",
    ),
    (USERS, {"metrics": {"my name": "m"}}, rd.OptionError, "so rename the column"),
    (USERS, {"metrics": "other"}, rd.ColumnError, "other"),
    (USERS, {"nan": "zero"}, rd.OptionError, "nan="),
    (USERS.assign(user_id=1), {"nan": "drop"}, rd.DataError, "more than one variant"),
    (USERS.assign(user_id=1, variant="A"), {"nan": "drop"}, rd.DuplicateError, "several rows"),
    (
        USERS.rename(columns={"m": "mean"}),
        {"metrics": "mean", "by": "mean"},
        rd.OptionError,
        "by='mean'",
    ),
    (
        USERS.assign(n="A"),
        {"variant_col": "n", "nan": "drop"},
        rd.OptionError,
        "variant_col='n' is also a column",
    ),
    (USERS.to_dict(), {}, TypeError, "data is a dict"),
]


@pytest.mark.parametrize(("data", "options", "error", "words"), BAD_USERS)
def test_bad_users(data, options, error, words):
    with pytest.raises(error, match=words):
        rd.experiments.variant_moments(data, **{"metrics": "m", **options})


def test_weights_of_the_evaluation_warn():
    users = USERS.dropna().assign(weight=2.0)
    users.attrs["recdf"] = {"weight": "weight"}
    with pytest.warns(rd.WeightWarning, match="weight"):
        rd.experiments.variant_moments(users, "m")


@pytest.mark.parametrize("column", ["metric", "other", "variant", "segment"])
def test_labels_of_moments_that_have_no_hash_are_named(column):
    users, _ = people(60)
    moments = rd.experiments.variant_moments(users, ["hit", "count"], by="segment")
    moments[column] = pd.Series([[1]] * len(moments), dtype=object)
    with pytest.raises(rd.IdTypeError, match=rf"moments\['{column}'\] holds values that cannot"):
        rd.experiments.compare_variants_from_moments(moments, "hit", control="A", by="segment")


def test_a_covariate_is_a_metric_too():
    """Without metrics=, all metrics of the moments are compared, and the covariate is one."""
    rng = np.random.default_rng(0)
    users = pd.DataFrame({"user_id": range(60), "variant": ["A", "B"] * 30})
    users["before"] = rng.normal(size=60)
    users["clicks"] = users["before"] + rng.normal(size=60)
    moments = rd.experiments.variant_moments(users, "clicks", covariates="before")
    options = {"control": "A", "covariates": "before", "details": True}
    found = rd.experiments.compare_variants_from_moments(moments, **options)
    want = rd.compare_variants(users, ["clicks", "before"], **options)
    assert found["metric"].tolist() == ["clicks", "before"]
    for name in ("mean_control", "diff", "ci_low", "p_value", "variance_reduction"):
        assert found[name].tolist() == pytest.approx(want[name].tolist(), rel=1e-9, nan_ok=True)
    assert found["effect"].tolist() == want["effect"].tolist()
    assert np.isnan(found["p_value"].iloc[1])  # the covariate explains all of itself


def test_moments_of_a_ramp_up_are_those_of_its_periods():
    """A tenth of the first week's users are treated, and half of those of the second."""
    day = np.repeat(["2026-11-03", "2026-11-10"], 200)
    treated = np.arange(400) % np.repeat([10, 2], 200) == 0
    data = pd.DataFrame({"variant": np.where(treated, "B", "A"), "y": np.arange(400.0), "day": day})
    with pytest.raises(rd.DataError, match="shares of the variants change over 'day'") as found:
        rd.experiments.variant_moments(data, "y")
    assert found.value.column == "day"
    moments = rd.experiments.variant_moments(data, "y", by="day")
    assert moments["n"].tolist() == [180, 20, 100, 100]
    assert len(rd.experiments.variant_moments(data.drop(columns="day"), "y")) == 2


def test_covariates_that_two_metrics_share_are_tested_beside_the_others(rng):
    users = pd.DataFrame({"variant": ["A", "B"] * 150, "past": rng.normal(size=300)})
    for name in ("near", "spend", "views", "visits"):
        users[name] = users["past"] + rng.normal(size=300)
    given = {"spend": "past", "views": "near", "visits": "near"}
    metrics = list(given)
    moments = rd.experiments.variant_moments(users, metrics, covariates=given)
    options = {"covariates": given, "control": "A", "details": True}
    found = rd.experiments.compare_variants_from_moments(moments, metrics, **options)
    want = rd.compare_variants(users, metrics, **options)
    np.testing.assert_allclose(found["balance_p"], want["balance_p"], rtol=1e-9)


def test_users_in_both_arms_are_a_share_of_all_users_of_an_arm():
    n = 1600
    users = pd.DataFrame({"variant": ["A", "B"] * (n // 2), "y": np.arange(n) % 7.0})
    users.loc[np.arange(n) % 4 < 2, "y"] = np.nan
    # Of 820 users of A, 20 were in both arms, and 1 of 801 of B.
    users["n_multi_variant"] = np.where(users["variant"] == "A", 20, 1) / (n // 2)
    of_rows = rd.compare_variants(users, "y", control="A", nan="drop")
    moments = rd.experiments.variant_moments(users, "y", nan="drop")
    found = rd.experiments.compare_variants_from_moments(moments, "y", control="A")
    assert found["remarks"].tolist() == of_rows["remarks"].tolist() == ["ratio_not_checked"]
