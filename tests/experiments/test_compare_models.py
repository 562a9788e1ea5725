"""Models on the same users: golden numbers, SciPy live, traps, errors, invariances; bootstrap
intervals."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import recdf as rd
from recdf.errors import (
    ColumnError,
    DataError,
    DuplicateError,
    EmptyPopulationError,
    IdTypeError,
    OptionError,
)

HERE = Path(__file__).parents[1] / "golden"
GOLDEN = json.loads((HERE / "inference.json").read_text(encoding="utf-8"))["paired_models"]


@pytest.fixture(scope="module")
def wide():
    return pd.read_csv(HERE / "paired_models.csv")


@pytest.fixture(scope="module")
def long(wide):
    return wide.melt("user_id", var_name="model", value_name="mrr@5")


def row(table, model):
    return table[table["model"] == model].iloc[0]


# -- golden numbers


@pytest.mark.parametrize("model", ["m1", "m2"])
def test_paired_t(long, model):
    found, recorded = (
        row(rd.compare_models(long, baseline="base", correction="none", details=True), model),
        GOLDEN[model],
    )
    names = {
        "diff": "diff",
        "statistic": "t",
        "p_value": "p_t",
        "ci_low": "ci_low",
        "ci_high": "ci_high",
        "d_z": "d_z",
    }
    np.testing.assert_allclose(
        [found[name] for name in names],
        [recorded[other] for other in names.values()],
        rtol=1e-9,
        atol=1e-9,
    )
    assert [found[name] for name in ("wins", "losses", "ties")] == [
        recorded[n] for n in ("wins", "losses", "ties")
    ]
    assert found["df"] == 249


def of_rounded(wide, model, alternative="two-sided"):
    """SciPy's p of differences without rounding noise, which it would rank as it stands."""
    d = (wide[model] - wide["base"]).round(12)
    return stats.wilcoxon(d, alternative=alternative, method="approx").pvalue


@pytest.mark.parametrize("model", ["m1", "m2"])
def test_wilcoxon(wide, long, model):
    found = row(
        rd.compare_models(long, baseline="base", test="wilcoxon", correction="none", details=True),
        model,
    )
    assert found["p_value"] == pytest.approx(of_rounded(wide, model), abs=1e-9)
    assert found["ci_low"] == pytest.approx(GOLDEN[model]["ci_low"], abs=1e-9)
    assert found["remarks"] == "wilcoxon_not_mean"


@pytest.mark.parametrize("model", ["m1", "m2"])
def test_randomization(long, model):
    options = {"test": "randomization", "n_resamples": 20_000, "correction": "none"}
    found = row(rd.compare_models(long, baseline="base", **options, details=True), model)
    # The standard error of a p of 0.05 from 20,000 flips is 0.0015.
    assert found["p_value"] == pytest.approx(GOLDEN[model]["p_randomization_200k"], abs=0.006)
    assert found["ci_low"] == pytest.approx(GOLDEN[model]["ci_low"], abs=0.001)
    assert found["ci_high"] == pytest.approx(GOLDEN[model]["ci_high"], abs=0.001)
    assert (found["n_resamples"], found["seed"]) == (20_000, 0)


def test_small_randomization_is_exact():
    d = np.array(GOLDEN["exact_small"]["d"])
    frames = {
        "base": pd.DataFrame({"user_id": range(len(d)), "m": 0.5}),
        "new": pd.DataFrame({"user_id": range(len(d)), "m": 0.5 + d}),
    }
    found = rd.compare_models(frames, test="randomization", details=True).iloc[0]
    assert found["p_value"] == pytest.approx(GOLDEN["exact_small"]["p_exact"], abs=1e-12)
    assert found["n_resamples"] == 2**7


def test_bootstrap_is_near_the_t_interval(long):
    boot = rd.compare_models(
        long, baseline="base", test="bootstrap", n_resamples=8000, details=True
    )
    t = rd.compare_models(long, baseline="base", details=True)
    np.testing.assert_allclose(boot["se"], t["se"], rtol=0.04)
    for name in ("ci_low", "ci_high"):
        np.testing.assert_allclose(boot[name], t[name], atol=0.1 * t["se"].max())
    np.testing.assert_allclose(boot["p_value"], t["p_value"], atol=0.02)


# -- live
# SciPy


@pytest.mark.long
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_alternatives_are_scipys(wide, long, alternative):
    options = {"baseline": "base", "alternative": alternative, "correction": "none"}
    t = rd.compare_models(long, **options, confidence=0.9, details=True)
    signed = rd.compare_models(long, **options, test="wilcoxon", details=True)
    flips = rd.compare_models(
        long, **options, test="randomization", n_resamples=10_000, details=True
    )
    for model in ("m1", "m2"):
        want = stats.ttest_rel(wide[model], wide["base"], alternative=alternative)
        interval = want.confidence_interval(0.9)
        found = row(t, model)
        np.testing.assert_allclose(
            [found["statistic"], found["p_value"], found["ci_low"], found["ci_high"]],
            [want.statistic, want.pvalue, interval.low, interval.high],
        )
        d = (wide[model] - wide["base"]).to_numpy()
        want = of_rounded(wide, model, alternative)
        assert row(signed, model)["p_value"] == pytest.approx(want)
        flipped = np.random.default_rng(0).choice([-1.0, 1.0], (20_000, len(d))) @ d
        side = {"two-sided": np.abs, "greater": np.positive, "less": np.negative}[alternative]
        assert row(flips, model)["p_value"] == pytest.approx(
            np.mean(side(flipped) >= side(d.sum()) - 1e-9), abs=0.02
        )


def test_equivalence_is_statsmodels_tost(wide, long):
    weightstats = pytest.importorskip("statsmodels.stats.weightstats")
    table = rd.compare_models(long, baseline="base", margin={"mrr@5": 0.03}, details=True)
    for model in ("m1", "m2"):
        want = weightstats.ttost_paired(
            wide[model].to_numpy(), wide["base"].to_numpy(), -0.03, 0.03
        )[0]
        assert row(table, model)["p_equivalence"] == pytest.approx(want)
    assert row(table, "m2")["verdict"] == "equivalent"
    assert rd.compare_models(long, details=True)["p_equivalence"].isna().all()


def test_all_pairs_and_correction(wide, long):
    table = rd.compare_models(long, correction="bh", details=True)
    assert list(zip(table["baseline"], table["model"], strict=True)) == [
        ("base", "m1"),
        ("base", "m2"),
        ("m1", "m2"),
    ]
    for found in table.itertuples():
        want = stats.ttest_rel(wide[found.model], wide[found.baseline])
        assert found.p_value == pytest.approx(want.pvalue)
        assert found.mean_model == pytest.approx(wide[found.model].mean())
        assert found.rel_diff == pytest.approx(
            wide[found.model].mean() / wide[found.baseline].mean() - 1
        )
    np.testing.assert_allclose(table["p_adj"], stats.false_discovery_control(table["p_value"]))


# -- users, folds, keys


def models(**columns):
    return {name: pd.DataFrame(frame) for name, frame in columns.items()}


def test_users_of_one_model_only():
    frames = models(
        a={"user_id": [1, 2, 3, 4], "m": [1.0, 2.0, 3.0, np.nan]},
        b={"user_id": [5, 4, 3, 2], "m": [9.0, np.nan, 5.0, 3.0]},
    )
    with pytest.raises(DataError, match=r"'a' only in 1 users and for 'b' only in 1 \(1, 5\)"):
        rd.compare_models(frames, details=True)
    inner = rd.compare_models(frames, missing="drop", details=True).iloc[0]
    assert (inner["n_users"], inner["n_only_baseline"], inner["n_only_model"]) == (2, 1, 1)
    assert (inner["mean_baseline"], inner["mean_model"], inner["diff"]) == (2.5, 4.0, 1.5)
    zero = rd.compare_models(frames, missing="zero", details=True).iloc[0]
    # User 4 is undefined for both and counts for neither.
    assert zero["n_users"] == 4
    assert zero["diff"] == pytest.approx((-1 + 1 + 2 + 9) / 4)
    want = stats.ttest_1samp([-1, 1, 2, 9], 0)
    assert zero["p_value"] == pytest.approx(want.pvalue)


def test_folds_of_a_user_are_one_unit():
    rng = np.random.default_rng(0)
    users, folds = np.repeat(np.arange(30), 4), np.tile(np.arange(4), 30)
    shared = rng.normal(size=30)[users]
    base = pd.DataFrame({"user_id": users, "fold": folds, "m": rng.normal(size=120)})
    new = base.assign(m=base["m"] + shared + rng.normal(0, 0.1, 120)).sample(frac=1, random_state=0)
    with pytest.raises(DuplicateError, match="in 30 cases"):
        rd.compare_models({"base": base, "new": new}, "m", details=True)
    found = rd.compare_models({"base": base, "new": new}, "m", fold="fold", details=True).iloc[0]
    means = [frame.groupby("user_id")["m"].mean().to_numpy() for frame in (base, new)]
    want = stats.ttest_rel(means[1], means[0])
    assert found["n_users"] == 30
    assert found["p_value"] == pytest.approx(want.pvalue)
    # A fold that one model lacks is no pair; the user's other folds are.
    found = rd.compare_models(
        {"base": base, "new": new.iloc[1:]}, "m", fold="fold", missing="drop", details=True
    ).iloc[0]
    assert (found["n_users"], found["n_only_baseline"]) == (30, 1)


@pytest.mark.long
def test_composite_key_and_frames_of_evaluate():
    per_user = pd.DataFrame(
        {
            "model": ["als"] * 4 + ["pop"] * 4,
            "user": [1, 1, 2, 2] * 2,
            "session": list("abab") * 2,
            "n_true": 3,
            "n_pred": 10,
            "ndcg@10": [0.9, 0.5, 0.7, 0.8, 0.1, 0.2, 0.3, 0.5],
            "mrr@5": np.linspace(0, 1, 8),
        }
    )
    per_user["spend"] = 1.0
    with_spend = rd.compare_models(
        per_user, user_col=["user", "session"], baseline="pop", details=True
    )
    assert with_spend["metric"].tolist() == ["ndcg@10", "mrr@5", "spend"]
    # What evaluate wrote into attrs changes nothing: a merge would lose it.
    per_user.attrs["recdf"] = {
        "by": ["model"],
        "metrics": {"ndcg@10": {"name": "ndcg"}, "mrr@5": {"name": "mrr"}},
    }
    pd.testing.assert_frame_equal(
        rd.compare_models(per_user, user_col=["user", "session"], baseline="pop", details=True),
        with_spend,
        check_flags=False,
    )
    table = rd.compare_models(
        per_user, ["ndcg@10", "mrr@5"], user_col=["user", "session"], baseline="pop", details=True
    )
    assert table["metric"].tolist() == ["ndcg@10", "mrr@5"]
    assert table["diff"].tolist() == [pytest.approx(0.45), pytest.approx(-4 / 7)]
    assert table["n_users"].tolist() == [2, 2]
    assert table["n_lists"].tolist() == [4, 4]


def test_ids_of_other_width_match_and_other_kinds_do_not():
    a = pd.DataFrame({"user_id": [2**53, 2**53 + 1, 5], "m": [0.1, 0.2, 0.4]})
    b = a.assign(m=[0.2, 0.4, 0.7]).iloc[::-1]
    want = rd.compare_models({"a": a, "b": b}, details=True)
    other = rd.compare_models({"a": a, "b": b.astype({"user_id": "Int64"})}, details=True)
    pd.testing.assert_frame_equal(other, want)
    with pytest.raises(IdTypeError, match="never match"):
        rd.compare_models({"a": a, "b": b.astype({"user_id": str})}, details=True)


# -- traps


def test_identical_models_have_no_statistics(long):
    twins = pd.concat([long[long.model == "m1"], long[long.model == "m1"].assign(model="twin")])
    for test in ("t", "randomization", "bootstrap"):
        found = rd.compare_models(twins, test=test, margin=0.1, details=True).iloc[0]
        assert (
            found[["se", "ci_low", "ci_high", "d_z", "p_value", "p_adj", "p_equivalence"]]
            .isna()
            .all()
        )
        assert (found["ties"], found["remarks"], found["verdict"]) == (
            250,
            "zero_variance",
            "no difference shown",
        )


@pytest.mark.long
def test_wilcoxon_rejects_equal_means():
    """Skewed differences with mean 0: signed ranks see the median."""
    runs = {f"m{seed}": np.random.default_rng(seed).exponential(size=500) - 1 for seed in range(30)}
    frames = models(
        a={"user_id": np.arange(500), **dict.fromkeys(runs, 0.0)},
        b={"user_id": np.arange(500), **runs},
    )
    rejected = {
        test: rd.compare_models(frames, test=test, correction="none", details=True)["reject"].sum()
        for test in ("t", "wilcoxon")
    }
    assert rejected["wilcoxon"] >= 25
    assert rejected["t"] <= 5


def test_smaller_is_better(long):
    ranks = long.rename(columns={"mrr@5": "first_rank@5"}).assign(cost=long["mrr@5"])
    table = rd.compare_models(ranks, baseline="base", correction="none", details=True)
    m1 = table[table.model == "m1"]
    assert m1["effect"].tolist() == ["worse", "better"]
    assert m1["verdict"].str.contains("unless 3 in 250 users differ by −").all()
    chosen = rd.compare_models(
        ranks, "cost", baseline="base", correction="none", smaller_is_better=["cost"], details=True
    )
    assert row(chosen, "m1")["effect"] == "worse"


BAD = [
    (
        "baseline",
        lambda f: (f, {"baseline": "x"}),
        OptionError,
        r"baseline='x'.*\['base', 'm1', 'm2'\]",
    ),
    ("one model", lambda f: (f[f.model == "m1"], {}), OptionError, "at least two"),
    ("no model column", lambda f: (f, {"model_col": "mdel"}), ColumnError, "did you mean 'model'"),
    ("metric", lambda f: (f, {"metrics": "mrr"}), ColumnError, "'mrr'"),
    ("text metric", lambda f: (f.assign(t="x"), {"metrics": "t"}), DataError, "expected numbers"),
    (
        "infinite",
        lambda f: (f.assign(t=np.inf), {"metrics": "t"}),
        DataError,
        "infinite in 750 of 750",
    ),
    ("no float column", lambda f: (f.drop(columns="mrr@5"), {}), OptionError, "no float column"),
    ("test", lambda f: (f, {"test": "ttest"}), OptionError, "valid are 't'"),
    ("margin", lambda f: (f, {"margin": 0}), OptionError, "above 0"),
    ("margin of another", lambda f: (f, {"margin": {"x": 1.0}}), OptionError, "not compared"),
    (
        "resamples",
        lambda f: (f, {"n_resamples": 0}),
        OptionError,
        "an integer from 1 to 10,000,000",
    ),
    ("seed", lambda f: (f, {"seed": -1}), OptionError, "at least 0"),
    (
        "twice",
        lambda f: (pd.concat([f, f.iloc[:2]]), {}),
        DuplicateError,
        "model and user_id, in 2 cases such as 0, 1",
    ),
]


@pytest.mark.parametrize(
    ("make", "error", "words"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_bad_input(long, make, error, words):
    frame, options = make(long)
    with pytest.raises(error, match=words):
        rd.compare_models(frame, **options, details=True)


# -------------------------------------------------------------------------------------------
# whole-table properties


@pytest.mark.long
@pytest.mark.parametrize("test", ["t", "randomization", "bootstrap", "wilcoxon"])
def test_row_order_form_and_company_do_not_matter(wide, long, test):
    before = long.copy(deep=True)
    long = long.assign(other=long["mrr@5"] ** 2)
    options = {"test": test, "n_resamples": 1500, "correction": "none"}
    want = rd.compare_models(long, **options, details=True)
    pd.testing.assert_frame_equal(
        rd.compare_models(long.sample(frac=1, random_state=5), **options, details=True), want
    )
    frames = {name: part.drop(columns="model").iloc[::-1] for name, part in long.groupby("model")}
    pd.testing.assert_frame_equal(rd.compare_models(frames, **options, details=True), want)
    # A pair alone has the numbers that it has beside others.
    alone = rd.compare_models(long[long.model != "m2"], "other", **options, details=True)
    part = want[(want.metric == "other") & (want.model == "m1")].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, part)
    pd.testing.assert_frame_equal(long.drop(columns="other"), before)


@pytest.mark.long
def test_more_pairs_than_fit_one_batch():
    rng = np.random.default_rng(0)
    frames = {
        f"m{i:02d}": pd.DataFrame({"user_id": range(50), "m": rng.random(50)}) for i in range(12)
    }
    table = rd.compare_models(frames, test="randomization", n_resamples=500, details=True)
    assert len(table) == 66
    last = rd.compare_models(
        {name: frames[name] for name in ("m10", "m11")},
        test="randomization",
        n_resamples=500,
        details=True,
    )
    assert table["p_value"].iloc[-1] == last["p_value"].iloc[0]
    assert table["p_value"].notna().all()


@pytest.mark.long
def test_tables_go_to_parquet(long, tmp_path):
    for i, test in enumerate(("t", "bootstrap")):
        table = rd.compare_models(long, test=test, n_resamples=50, details=True)
        table.to_parquet(tmp_path / f"{i}.parquet")
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / f"{i}.parquet"), table)
        assert {str(dtype) for dtype in table.dtypes} <= {
            "str",
            "object",
            "int64",
            "float64",
            "bool",
            "Int64",
        }
        assert rd.experiments.report_table(table).frame["wins/ties/losses"].str.count(
            "/"
        ).tolist() == [2, 2, 2]


# -------------------------------------------------------------------------------------------
# bootstrap_ci


def test_bootstrap_ci_is_near_the_normal_interval(wide):
    n = len(wide)
    table = rd.experiments.bootstrap_ci(wide, ["m1", "m2"], n_resamples=5000)
    for found in table.itertuples():
        values = wide[found.metric]
        assert found.value == pytest.approx(values.mean())
        assert found.se == pytest.approx(values.std() / np.sqrt(n), rel=0.05)
        assert found.ci_low == pytest.approx(found.value - 1.96 * found.se, abs=0.2 * found.se)
        assert found.ci_high == pytest.approx(found.value + 1.96 * found.se, abs=0.2 * found.se)


def test_bootstrap_ci_of_sessions_resamples_users():
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(200), 5)
    frame = pd.DataFrame(
        {"user_id": users, "m": rng.normal(size=200)[users] + rng.normal(0, 0.1, 1000), "n": 2}
    )
    found = rd.experiments.bootstrap_ci(frame, {"mean": "m", "half": ("m", "n")}, n_resamples=4000)
    means = frame.groupby("user_id")["m"].mean()
    assert found["se"].iloc[0] == pytest.approx(means.std() / np.sqrt(200), rel=0.08)
    assert found["se"].iloc[1] == pytest.approx(found["se"].iloc[0] / 2)
    assert found["n_units"].tolist() == [200, 200]
    rows = rd.experiments.bootstrap_ci(frame.assign(row=range(1000)), "m", cluster="row")
    assert rows["se"].iloc[0] < 0.6 * found["se"].iloc[0]


def test_bootstrap_ci_groups_and_undefined():
    frame = pd.DataFrame(
        {"user_id": range(40), "m": [0.1, np.nan, 0.3, 0.7] * 10, "s": ["x"] * 20 + ["y"] * 20}
    )
    table = rd.experiments.bootstrap_ci(frame, "m", by="s", n_resamples=200)
    assert table["s"].tolist() == ["x", "y"]
    assert table["n_units"].tolist() == [15, 15]
    assert table["n_undefined"].tolist() == [5, 5]
    dropped = rd.experiments.bootstrap_ci(frame.dropna(), "m", by="s", n_resamples=200)
    np.testing.assert_allclose(table["value"], dropped["value"])
    alone = rd.experiments.bootstrap_ci(
        frame[frame.s == "y"].sample(frac=1, random_state=0), "m", n_resamples=200
    )
    pd.testing.assert_series_equal(
        alone.iloc[0], table.drop(columns="s").iloc[1], check_names=False
    )
    edge = rd.experiments.bootstrap_ci(frame.assign(c=0.1, one=[1.0, *[np.nan] * 39]), ["c", "one"])
    assert edge["remarks"].tolist() == ["zero_variance", "too_few_units"]
    assert edge[["se", "ci_low", "ci_high"]].isna().all(axis=None)
    with pytest.raises(EmptyPopulationError, match="no rows"):
        rd.experiments.bootstrap_ci(frame.iloc[:0], "m")


# -- without the top units


@pytest.mark.parametrize("n", [60, 500])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_difference_without_the_users_who_are_farthest_from_the_mean(n, weighted):
    rng = np.random.default_rng(n)
    users = pd.DataFrame({"user_id": range(n), "w": rng.integers(1, 4, n) * 1.0})
    a, b = users.assign(m=rng.random(n)), users.assign(m=rng.lognormal(0, 1.5, n))
    options = {"weight_col": "w"} if weighted else {}
    row = rd.compare_models({"a": a, "b": b}, "m", **options, details=True).iloc[0]
    w, d = (users["w"] if weighted else users["w"] * 0 + 1), b["m"] - a["m"]
    part = (w * (d - np.average(d, weights=w))).abs()
    left = users.index.difference(part.nlargest(min(10, n // 20)).index)
    assert row["diff_without_top"] == pytest.approx(np.average(d[left], weights=w[left]), rel=1e-9)
    assert row["diff"] > row["diff_without_top"]


def test_units_of_several_lists_are_left_out_as_a_whole():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"user_id": np.arange(600) // 3, "session_id": np.arange(600) % 3})
    frames = {name: rows.assign(m=rng.lognormal(0, 1, 600)) for name in "ab"}
    row = rd.compare_models(frames, "m", user_col=["user_id", "session_id"], details=True).iloc[0]
    d = (frames["b"]["m"] - frames["a"]["m"]).groupby(rows["user_id"]).mean()
    left = d.drop((d - d.mean()).abs().nlargest(10).index)
    assert row["diff_without_top"] == pytest.approx(left.mean(), rel=1e-9)
    same = rd.compare_models(
        {"a": frames["a"], "b": frames["a"].assign(m=frames["a"]["m"] + 1)},
        "m",
        user_col=["user_id", "session_id"],
        details=True,
    ).iloc[0]
    assert same["diff_without_top"] == pytest.approx(1)
