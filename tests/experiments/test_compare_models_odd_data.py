"""`compare_models` gives no false verdict on odd data: ties, huge values, and users that
a model lacks."""

import numpy as np
import pandas as pd
import pytest
from experiments.verdicts import arms, compare
from scipy import stats

import recdf as rd
from recdf.errors import DataError, OptionError
from recdf.stats.arms import arm
from recdf.stats.many_tests import adjust
from recdf.stats.student import equivalence_p

# -- pairs of models


def pair(d, **options):
    frames = {
        name: pd.DataFrame({"user_id": range(len(d)), "m": v})
        for name, v in (("a", d * 0), ("b", d))
    }
    return rd.compare_models(frames, **options).iloc[0]


@pytest.mark.long
def test_wilcoxons_verdict_follows_the_ranks():
    # 115 wins and 385 losses were "better": the sign of the mean beside the p of the ranks.
    d = np.r_[np.full(115, 10.0), np.full(385, -1.0)] + np.linspace(0, 1e-3, 500)
    found = pair(d, test="wilcoxon")
    assert (found["wins"], found["losses"]) == (115, 385)
    assert found["diff"] > 0
    assert found["verdict"] == "ranks lower"
    assert pair(-d, test="wilcoxon")["verdict"] == "ranks higher"
    signed = stats.rankdata(np.abs(d)) * np.sign(d)
    assert signed.sum() < 0
    assert pair(d)["effect"] == "better"


@pytest.mark.few(1)
@pytest.mark.parametrize("test", ["t", "wilcoxon", "randomization"])
def test_mostly_ties_are_named(test, rng):
    d = np.where(np.arange(400) < 20, rng.normal(size=400), 0.0)
    assert "mostly_zero" in pair(d, test=test, margin=0.5, n_resamples=200)["remarks"].split("; ")
    assert "mostly_zero" not in pair(rng.normal(size=400), test=test, n_resamples=200)["remarks"]


@pytest.mark.long
def test_better_within_the_margin(rng):
    # A difference of .001 with a margin of .01 was plainly "better".
    d = rng.normal(0.001, 0.001, 400)

    def said(d, margin):  # the metric has no bounds, so that the verdict says what would turn it
        return pair(d, margin=margin)["verdict"].partition(", unless")[0]

    assert said(d, margin=0.01) == "better, within the margin"
    assert said(-d, margin=0.01) == "worse, within the margin"
    assert said(d - d.mean(), margin=0.01) == "equivalent"
    assert said(d, margin=0.0005) == "better"


@pytest.mark.slow
@pytest.mark.parametrize(("n", "gain", "share"), [(100, 0.5, 0.03), (300, 0.5, 0.03)])
def test_skewness_alone_shows_no_difference_to_be_within_the_margin(n, gain, share):
    # A few gain much, and the margin is the true mean: "within the margin" in 16 and 8.5 % of the
    # runs, because many samples lack those few.
    runs, rng = 600, np.random.default_rng(8)
    d = 0.01 + rng.normal(0, 0.02, (n, runs)) + gain * (rng.random((n, runs)) < share)
    wide = pd.DataFrame(d, columns=[f"m{i}" for i in range(runs)])
    frames = {"a": (wide * 0).assign(user_id=range(n)), "b": wide.assign(user_id=range(n))}
    margin = 0.01 + gain * share
    table = rd.compare_models(frames, margin=margin, family="metric", details=True)
    said = table["verdict"].str.contains("within the margin").sum()
    assert said <= stats.binom.ppf(0.99, runs, 0.05)
    assert (table["p_equivalence_adj"] <= 0.05).sum() > stats.binom.ppf(0.99, runs, 0.05)


@pytest.mark.long
def test_equivalence_of_many_metrics_is_adjusted(rng):
    # Ten metrics whose difference is the margin itself: some "equivalent" in 38 % of the runs.
    runs, any_raw, any_adjusted = 1000, 0, 0
    units = arm(rng.normal(0.1, 0.2, (runs, 10, 60)))
    for p in equivalence_p(units.mean, np.sqrt(units.var), units.df, 0.1):
        any_raw += (p <= 0.05).any()
        any_adjusted += (adjust(p, "holm") <= 0.05).any()
    assert any_adjusted <= stats.binom.ppf(0.995, runs, 0.05)
    assert any_raw > 0.3 * runs
    # The table decides by the adjusted p.
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    wide = pd.DataFrame(rng.normal(0.05, 0.2, (60, 10)), columns=[f"m{i}" for i in range(10)])
    frames = {"a": (wide * 0).assign(user_id=range(60)), "b": wide.assign(user_id=range(60))}
    table = rd.compare_models(frames, margin=0.1, details=True)
    np.testing.assert_allclose(
        table["p_equivalence_adj"],
        multitest.multipletests(table["p_equivalence"], method="holm")[1],
    )
    equivalent = (
        table["verdict"]
        .str.partition(", unless")[0]
        .isin(["equivalent", "better, within the margin", "worse, within the margin"])
    )
    assert equivalent.tolist() == (table["p_equivalence_adj"] <= 0.05).tolist()
    assert (table["p_equivalence"] <= 0.05).sum() > equivalent.sum() > 0


def test_huge_differences_are_named():
    found = pair(np.r_[1e200, np.ones(50)])
    # Beside 1e200 a difference of 1 is rounding, so that one user alone differs.
    assert found["remarks"].split("; ") == ["huge_values", "few_lists_differ"]
    assert np.isnan(found["p_value"])


def test_zero_for_a_model_that_lacks_users_is_no_gift():
    # missing="zero" gave the model without a list the best rank there is.
    frames = {
        name: pd.DataFrame(
            {"user_id": range(n), "first_rank@5": np.arange(n) % 5 + 1.0, "mrr@5": 0.5}
        )
        for name, n in (("a", 40), ("b", 60))
    }
    with pytest.raises(OptionError, match=r"'first_rank@5' a 0 for 20 users.*missing=\"drop\""):
        rd.compare_models(frames, missing="zero")
    with pytest.raises(rd.DataError, match=r'pass missing="drop" to leave them out$'):
        rd.compare_models(frames, "first_rank@5")
    assert rd.compare_models(frames, "mrr@5", missing="zero")["verdict"].tolist() == ["better"]
    inner = rd.compare_models(frames, missing="drop")
    assert inner["n_users"].tolist() == [40, 40]


def test_bootstrap_of_huge_values_is_named():
    frame = pd.DataFrame({"user_id": range(30), "m": np.r_[1e200, np.ones(29)]})
    found = rd.experiments.bootstrap_ci(frame, "m", n_resamples=50).iloc[0]
    assert found["remarks"] == "huge_values"
    assert found[["value", "se", "ci_low"]].isna().all()


BAD = [
    ("proportion of a mean", {"test": "proportion"}, DataError, "other than 0 and 1"),
    (
        "proportion with covariates",
        {"test": "proportion", "covariates": "m"},
        OptionError,
        "takes no covariates=: it compares the shares",
    ),
    ("test", {"test": "z"}, OptionError, "valid are 't', 'permutation', 'bootstrap', 'proportion'"),
    ("test of a metric", {"test": {"m": "z"}}, OptionError, r"test\['m'\]"),
    ("cap of another", {"cap": {"x": 0.9}}, OptionError, "not compared"),
    ("cap", {"cap": {"m": 99.9}}, OptionError, r"cap\['m'\]=99.9"),
    ("cap number", {"cap": 0.99}, OptionError, "mapping of metrics to quantiles"),
    ("relative", {"relative": "delta"}, OptionError, "'fieller', 'log'"),
    (
        "permutation of strata",
        {"test": "permutation", "strata": "s"},
        OptionError,
        "takes no strata=: it draws all users alike",
    ),
    ("time", {"time_col": "day"}, KeyError, "time_col"),
]


@pytest.mark.parametrize(
    ("options", "error", "words"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_bad_options(options, error, words):
    data = arms(np.arange(30.0), np.arange(30.0), s=np.arange(60) % 2)
    with pytest.raises(error, match=words):
        compare(data, **options)


def test_bad_ratio_options():
    data = arms(np.arange(30.0), np.arange(30.0), n=1.0)
    with pytest.raises(OptionError, match="a cap is for means"):
        compare(data, {"r": ("m", "n")}, cap={"r": 0.9})


def test_small_differences_of_large_values_are_no_ties(rng):
    both = rng.normal([[0.0], [0.4]], 1, (2, 300))
    for far, unit in ((1e12, 1.0), (1e7, 1e-3), (1e-12, 1e-18)):
        old, new = far + unit * both
        users = pd.DataFrame({"user_id": np.tile(range(300), 2), "model": np.repeat([*"ab"], 300)})
        users["m"] = np.concatenate([old, new])
        found = rd.compare_models(users, "m", baseline="a", details=True).iloc[0]
        wins = int((new > old).sum())
        assert [found[name] for name in ("wins", "ties", "losses")] == [wins, 0, 300 - wins]
        assert found["p_value"] == pytest.approx(stats.ttest_rel(new, old).pvalue, rel=1e-6)
        assert found["verdict"].startswith("better")
    # What equal sums of many parts differ by still is a tie.
    parts = rng.random((300, 50))
    users["m"] = np.concatenate([parts.sum(axis=1), parts[:, ::-1].cumsum(axis=1)[:, -1]])
    assert (rd.compare_models(users, "m", baseline="a", details=True)["ties"] == 300).all()
