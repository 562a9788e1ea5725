"""Weighted comparisons, against statsmodels, brute force, and the same sums written out."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.regression.linear_model as sm
from cli.command import run

import recdf as rd


def users(n=120, seed=0):
    """Two models on the same users, in two variants, with weights that are sometimes 0 and a column
    from before."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"user_id": range(n), "variant": np.array(["A", "B"])[rng.integers(0, 2, n)]}
    )
    frame["w"] = rng.choice([0.0, 0.5, 1.0, 4.0], n)
    frame["before"] = rng.normal(size=n)
    frame["a"] = np.clip(0.3 + 0.2 * frame["before"] + 0.2 * rng.normal(size=n), 0, 1)
    frame["b"] = np.clip(frame["a"] + rng.normal(0.05, 0.2, n), 0, 1)
    return frame


def long(frame):
    rows = [frame[["user_id", "w"]].assign(model=model, m=frame[model]) for model in "ab"]
    return pd.concat(rows, ignore_index=True)


def wls(values, weights):
    kept = np.asarray(weights) > 0
    y, w = np.asarray(values)[kept], np.asarray(weights)[kept]
    return sm.WLS(y, np.ones(len(y)), weights=w).fit(cov_type="HC1", use_t=True)


@pytest.mark.long
def test_models_by_t():
    frame = users()
    expected = wls(frame["b"] - frame["a"], frame["w"])
    row = rd.compare_models(long(frame), "m", baseline="a", weight_col="w", details=True).iloc[0]
    low, high = expected.conf_int()[0]
    found = [
        row[name] for name in ("diff", "se", "statistic", "p_value", "ci_low", "ci_high", "df")
    ]
    np.testing.assert_allclose(
        found,
        [
            expected.params[0],
            expected.bse[0],
            expected.tvalues[0],
            expected.pvalues[0],
            low,
            high,
            row["df"],
        ],
    )
    assert (
        row["n_users"]
        == (frame["w"] > 0).sum()
        == row["df"] + 1
        == row["wins"] + row["ties"] + row["losses"]
    )
    assert row["mean_model"] == pytest.approx(np.average(frame["b"], weights=frame["w"]))
    weights = frame["w"][frame["w"] > 0]
    spread = np.average((frame["b"] - frame["a"] - row["diff"]) ** 2, weights=frame["w"])
    assert row["d_z"] == pytest.approx(
        row["diff"] / np.sqrt(spread / (1 - (weights**2).sum() / weights.sum() ** 2))
    )
    numbers = ["diff", "se", "d_z", "ci_low", "p_value", "rel_diff"]
    equal = rd.compare_models(long(frame).assign(w=3.0), baseline="a", weight_col="w", details=True)
    plain = rd.compare_models(long(frame).drop(columns="w"), baseline="a", details=True)
    np.testing.assert_allclose(equal[numbers], plain[numbers], rtol=1e-12)


@pytest.mark.long
def test_models_by_resampling():
    few = users(9, seed=3)
    few = few[few["w"] > 0]
    d = (few["w"] * (few["b"] - few["a"])).to_numpy()
    sums = [abs(np.dot(signs, d)) for signs in itertools.product((1, -1), repeat=len(d))]
    exact = np.mean([total >= abs(d.sum()) * (1 - 1e-12) for total in sums])
    row = rd.compare_models(
        long(few), "m", baseline="a", weight_col="w", test="randomization", details=True
    ).iloc[0]
    assert row["p_value"] == pytest.approx(exact)
    frame = users(400)
    t = rd.compare_models(long(frame), "m", baseline="a", weight_col="w", details=True).iloc[0]
    for test in ("randomization", "bootstrap"):
        row = rd.compare_models(
            long(frame),
            "m",
            baseline="a",
            weight_col="w",
            test=test,
            n_resamples=4000,
            details=True,
        ).iloc[0]
        assert row["diff"] == t["diff"]
        assert [row["ci_low"], row["ci_high"]] == pytest.approx(
            [t["ci_low"], t["ci_high"]], abs=0.15 * t["se"]
        )


def test_folds_and_missing_users():
    frame = users()
    folds = pd.concat(
        [long(frame).assign(fold=0), long(frame).assign(fold=1, m=lambda rows: rows["m"] / 2)]
    )
    found = rd.compare_models(
        folds, "m", baseline="a", weight_col="w", fold="fold", details=True
    ).iloc[0]
    expected = wls(0.75 * (frame["b"] - frame["a"]), frame["w"])
    assert [found["diff"], found["se"]] == pytest.approx([expected.params[0], expected.bse[0]])
    lacking = long(frame).drop(index=5)
    found = rd.compare_models(
        lacking, "m", baseline="a", weight_col="w", missing="drop", details=True
    ).iloc[0]
    rest = frame.drop(index=5)
    assert found["diff"] == pytest.approx(wls(rest["b"] - rest["a"], rest["w"]).params[0])


def test_a_result_with_weights_is_compared_with_them():
    frame = users(40)
    true = frame[["user_id", "w"]].assign(item_id="x")
    pred = pd.concat(
        [
            frame[["user_id"]].assign(model=m, item_id=np.where(frame[m] > 0.4, "x", "y"))
            for m in "ab"
        ]
    )
    result = rd.evaluate(true, pred, "recall@1", by="model", weight_col="w")
    row = result.compare_models(baseline="a", details=True).iloc[0]
    value = result.summary.set_index("model")["value"]
    assert row["diff"] == pytest.approx(value["b"] - value["a"])
    plain = result.compare_models(baseline="a", weight_col=None, details=True).iloc[0]
    assert plain["diff"] == pytest.approx((frame["b"] > 0.4).mean() - (frame["a"] > 0.4).mean())


@pytest.mark.long
def test_variants():
    frame = users()
    row = rd.compare_variants(frame, "b", control="A", weight_col="w", details=True).iloc[0]
    arms = [wls(part["b"], part["w"]) for _, part in frame.groupby("variant")]
    se = np.hypot(arms[0].bse[0], arms[1].bse[0])
    expected = [arms[0].params[0], arms[1].params[0], arms[1].params[0] - arms[0].params[0], se]
    assert row[["mean_control", "mean_treatment", "diff", "se"]].tolist() == pytest.approx(expected)
    assert row["n_control"] + row["n_treatment"] == (frame["w"] > 0).sum()
    assert row["n_dropped"] == (frame["w"] == 0).sum()
    written = frame[frame["w"] > 0]
    written = written.assign(wb=written["w"] * written["b"], wx=written["w"] * written["before"])
    for options, pair in (
        ({}, {}),
        ({"covariates": "before"}, {"covariates": {"b": ("wx", "w")}}),
        ({"test": "bootstrap", "n_resamples": 200}, {"test": "bootstrap", "n_resamples": 200}),
        ({"test": "permutation", "n_resamples": 200}, {"test": "permutation", "n_resamples": 200}),
        ({"sequential_n": 500}, {"sequential_n": 500}),
    ):
        found = rd.compare_variants(
            frame, "b", control="A", weight_col="w", **options, details=True
        )
        expected = rd.compare_variants(
            written, {"b": ("wb", "w")}, control="A", **pair, details=True
        )
        # Weights are not the denominator of a metric: whether they differ is a matter of the users.
        other = ["n_dropped", "n_dropped_control", "n_dropped_treatment", "balance_p", "unbalanced"]
        other += ["mean_denominator_control", "mean_denominator_treatment", "p_denominator"]
        other += ["holds_for"]
        pd.testing.assert_frame_equal(found.drop(columns=other), expected.drop(columns=other))
    ratio = rd.compare_variants(
        frame, {"r": ("b", "a")}, control="A", weight_col="w", details=True
    ).iloc[0]
    of_a = frame[frame["variant"] == "A"]
    assert ratio["mean_control"] == pytest.approx(
        np.dot(of_a["w"], of_a["b"]) / np.dot(of_a["w"], of_a["a"])
    )
    dropped = frame.assign(b=frame["b"].where((frame["w"] > 0) | (frame.index > 60)))
    assert (
        rd.compare_variants(dropped, "b", control="A", weight_col="w", details=True).iloc[0]["diff"]
        == row["diff"]
    )


@pytest.mark.long
def test_the_command(tmp_path, capsys):
    frame = users(60)
    true = frame[["user_id", "w"]].assign(item_id="x")
    pred = pd.concat(
        [
            frame[["user_id"]].assign(model=m, item_id=np.where(frame[m] > 0.4, "x", "y"))
            for m in "ab"
        ]
    )
    result = rd.evaluate(true, pred, "recall@1", by="model", weight_col="w")
    result.to_parquet(tmp_path / "result")
    assert run(capsys, "compare", tmp_path / "result", "--out", tmp_path / "out")[0] == 0
    found = pd.read_parquet(tmp_path / "out" / "comparison.parquet")
    assert found["diff"].tolist() == pytest.approx(
        result.compare_models(details=True)["diff"].tolist()
    )


BAD = [
    ({"w": [1.0, np.nan, 1, 1]}, {}, rd.DataError, "1 null weights of 4"),
    ({"w": [1.0, -1, 1, 1]}, {}, rd.DataError, "1 negative or infinite weights"),
    (
        {"w": [1.0, 1, 2, 1]},
        {},
        rd.DataError,
        "'w' differs between the rows of 1 users .*a user has one weight",
    ),
    ({}, {"weight_col": "v"}, rd.ColumnError, "per_user has no column 'v'"),
    ({}, {"test": "wilcoxon"}, rd.OptionError, "signed ranks take no weights"),
]


@pytest.mark.parametrize(("columns", "options", "error", "words"), BAD)
def test_bad_input_of_models(columns, options, error, words):
    frame = pd.DataFrame(
        {"model": list("aabb"), "user_id": [1, 2, 1, 2], "m": [0.1, 0.2, 0.3, 0.5], "w": 1.0}
    )
    with pytest.raises(error, match=words):
        rd.compare_models(
            frame.assign(**columns), "m", **{"weight_col": "w", **options}, details=True
        )


def test_proportions_take_no_weights():
    with pytest.raises(rd.OptionError, match="test='proportion' takes no weight_col="):
        rd.compare_variants(
            users(), "b", control="A", weight_col="w", test="proportion", details=True
        )


def values_at_1e12(n):
    """Users whose values vary by 1 around 1e12, and the exact weighted means less 1e12."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"user_id": range(n), "variant": np.repeat(["A", "B"], n // 2)})
    frame["w"] = rng.choice([0.5, 1 / 3, 1.0, 2.0, 3.0, 1.7], n)
    above = np.rint(rng.normal(size=n) * 2**12) / 2**12  # adding 1e12 loses no digit of it
    parts = [slice(0, n // 2), slice(n // 2, n)]
    means = [math.fsum(frame["w"][at] * above[at]) / math.fsum(frame["w"][at]) for at in parts]
    return frame.assign(m=above + 1e12, m_less=above), means[1] - means[0]


@pytest.mark.parametrize("n", [20_000, 2**17])  # more users are told on a coarser grid
def test_weights_of_large_values_keep_the_digits_of_their_difference(tmp_path, n):
    frame, expected = values_at_1e12(n)
    frame.to_parquet(tmp_path / "users.parquet", row_group_size=n // 4)
    given = {"control": "A", "weight_col": "w", "details": True}
    small = rd.compare_variants(frame, "m_less", **given).iloc[0]
    for users in (frame, tmp_path / "users.parquet"):
        row = rd.compare_variants(users, "m", **given).iloc[0]
        # Each product of a value and its weight is rounded to 2e-4.
        assert abs(row["diff"] - expected) < 3e-4 * row["se"]
        assert row["se"] == pytest.approx(small["se"], rel=1e-4)
        assert row["p_value"] == pytest.approx(small["p_value"], abs=3e-4)


@pytest.mark.parametrize("options", [{"strata": "week"}, {"covariates": "before"}])
def test_an_adjusted_mean_of_large_values_keeps_the_digits_of_its_difference(options):
    frame, _ = values_at_1e12(400)
    frame["week"] = frame["user_id"] % 3
    frame["before"] = np.random.default_rng(2).normal(size=400)
    given = {"control": "A", "details": True, **options}
    small, large = (rd.compare_variants(frame, one, **given).iloc[0] for one in ("m_less", "m"))
    for name in ("diff", "se", "p_value"):
        assert large[name] == pytest.approx(small[name], rel=1e-9), name


def test_means_of_clusters_of_large_values_keep_the_digits_of_their_difference():
    frame, _ = values_at_1e12(20_000)
    frame["team"] = frame["user_id"] // 7
    frame["variant"] = np.where(frame["team"] % 2, "A", "B")
    given = {"control": "A", "details": True, "cluster": "team"}
    small, large = (rd.compare_variants(frame, one, **given).iloc[0] for one in ("m_less", "m"))
    # Each sum of a cluster is rounded to 1e-3.
    assert abs(large["diff"] - small["diff"]) < 3e-4 * small["se"]


@pytest.mark.parametrize("n", [40, 2**17])
def test_weighted_values_whose_squares_are_no_numbers(n):
    frame, _ = values_at_1e12(n)
    frame["m"] *= 1e180
    frame["week"] = frame["user_id"] % 2
    for options in ({}, {"strata": "week"}):
        row = rd.compare_variants(frame, "m", control="A", weight_col="w", **options).iloc[0]
        assert row["withheld"] == "huge_values"
    frame["w"] = 0.0
    row = rd.compare_variants(frame, "m", control="A", weight_col="w", **options).iloc[0]
    assert row["withheld"] == "too_few_users"
