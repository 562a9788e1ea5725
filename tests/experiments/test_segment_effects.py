"""Whether effects differ between segments, and the shrunken effects of single segments."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import recdf as rd
from recdf.experiments import segment_effects

EQUAL = {"A": 1, "B": 1}
DIFFERS, SAME = "differs between segments", "no difference between segments shown"


def table_of(diff, se, **more):
    return pd.DataFrame(
        {
            "segment": range(len(diff)),
            "metric": "m",
            "control": "A",
            "treatment": "B",
            "diff": diff,
            "se": se,
        }
    ).assign(**more)


def users_of(rng, effects, n=300, sizes=None):
    segment = np.repeat(list(effects), [n] * len(effects) if sizes is None else sizes)
    users = pd.DataFrame({"user_id": range(len(segment)), "segment": segment})
    users["variant"] = np.where(rng.permutation(len(users)) % 2, "A", "B")
    users["x"] = rng.gamma(2, 1 + (segment == next(iter(effects))), len(users))
    users["x"] += np.where(users["variant"] == "B", [effects[name] for name in segment], 0.0)
    return users


def test_three_segments_by_hand():
    # Weights 4, 4, 1: the mean is (4·1 + 4·0 − 1·2)/9 = 2/9.
    found = segment_effects(table_of([1.0, 0.0, -2.0], [0.5, 0.5, 1.0]), details=True)
    q = 4 * (1 - 2 / 9) ** 2 + 4 * (2 / 9) ** 2 + (2 + 2 / 9) ** 2
    spread = (q - 2) / (9 - 33 / 9)
    v = np.array([1 / (0.25 + spread), 1 / (0.25 + spread), 1 / (1 + spread)])
    centre = (v[0] - 2 * v[2]) / v.sum()
    part = spread / (spread + np.array([0.25, 0.25, 1.0]))
    assert found["q"].tolist() == pytest.approx([q] * 3)
    assert found["mean_effect"].tolist() == pytest.approx([2 / 9] * 3)
    assert found["tau"].tolist() == pytest.approx([spread**0.5] * 3)
    assert found["p_value"].tolist() == pytest.approx([stats.chi2.sf(q, 2)] * 3, rel=1e-12)
    shrunken = centre + part * (np.array([1.0, 0.0, -2.0]) - centre)
    assert found["shrunken"].tolist() == pytest.approx(shrunken.tolist())
    reach = 1.959963984540054 * np.sqrt(part * [0.25, 0.25, 1.0] + (1 - part) ** 2 / v.sum())
    assert (found["shrunken_high"] - found["shrunken"]).tolist() == pytest.approx(reach.tolist())
    assert found["verdict"].unique().tolist() == [DIFFERS]


def test_equal_effects_are_shrunken_to_their_mean():
    found = segment_effects(table_of([0.3, 0.1, 0.2, 0.25], [0.2, 0.1, 0.2, 0.3]), details=True)
    assert found["tau"].eq(0).all()
    assert found["shrunken"].nunique() == 1
    assert found["shrunken"].iloc[0] == pytest.approx(found["mean_effect"].iloc[0])
    assert found["verdict"].unique().tolist() == [SAME]
    half = (found["shrunken_high"] - found["shrunken_low"]).iloc[0] / 2
    assert half == pytest.approx(
        1.959963984540054 / np.sqrt(sum(1 / np.square([0.2, 0.1, 0.2, 0.3])))
    )


@pytest.mark.long
@pytest.mark.parametrize("scale", [1e-160, 1.0, 1e140])
def test_q_is_the_wald_test_of_the_interaction(rng, scale):
    sm = pytest.importorskip("statsmodels.api")
    users = users_of(rng, {"new": 0.6, "old": 0.1, "none": 0.2}, sizes=[150, 400, 250])
    users["x"] *= scale if scale != 1e-160 else 1e-6
    found = segment_effects(
        rd.compare_variants(users, "x", control="A", by="segment", expected=EQUAL, details=True),
        details=True,
    )
    dummies = pd.get_dummies(users["segment"], dtype=float)
    treated = (users["variant"] == "B").to_numpy(float)[:, None]
    design = np.hstack([dummies.to_numpy(), dummies.to_numpy() * treated])
    size = users["x"].std()
    fit = sm.OLS(users["x"].to_numpy() / size, design).fit(cov_type="HC2", use_t=False)
    wald = fit.wald_test(np.array([[0, 0, 0, 1, -1, 0], [0, 0, 0, 1, 0, -1.0]]), scalar=True)
    assert found["q"].tolist() == pytest.approx([wald.statistic] * 3, rel=1e-9)
    assert found["p_value"].tolist() == pytest.approx([wald.pvalue] * 3, rel=1e-9)


def test_a_segment_has_no_verdict_of_its_own(rng):
    users = users_of(rng, {"new": 1.5, "old": 0.0, "other": 0.0})
    compared = rd.compare_variants(
        users,
        {"x": "x", "same": "user_id"},
        control="A",
        by="segment",
        expected=EQUAL,
        details=True,
    )
    found = segment_effects(compared, details=True).set_index(["metric", "segment"])
    unless = f"{DIFFERS}, unless {np.log(6 / 0.05):.0f} in "  # of two metrics in three segments
    assert found.loc["x", "verdict"].str.startswith(unless).all()
    assert found.loc["same", "verdict"].unique().tolist() == [SAME]
    assert found.loc["same", "p_adj"].iloc[0] == min(
        1, max(found.loc["same", "p_value"].iloc[0], found.loc["x", "p_adj"].iloc[0])
    )
    assert found["srm_p"].notna().all()
    both = compared.set_index(["metric", "segment"]).loc[found.index]
    assert found["diff"].tolist() == both["diff"].tolist()


@pytest.mark.long
def test_a_broken_sample_ratio_in_one_segment_withholds_the_verdict(rng):
    users = users_of(rng, {"new": 1.5, "old": 0.0, "other": 0.0}, n=2000)
    lost = (users["segment"] == "new") & (users["variant"] == "B") & (rng.random(len(users)) < 0.3)
    compared = rd.compare_variants(
        users[~lost], "x", control="A", by="segment", expected=EQUAL, details=True
    )
    found = segment_effects(compared, details=True)
    assert found["verdict"].unique().tolist() == ["invalid: sample ratio"]
    assert found.set_index("segment").loc["new", "srm_p"] < 0.001
    unchecked = segment_effects(
        rd.compare_variants(users, "x", control="A", by="segment", details=True), details=True
    )
    unless = f"{DIFFERS}, unless {np.log(3 / 0.05):.0f} in "  # of three segments
    assert unchecked["verdict"].str.startswith(unless).all()
    assert unchecked["verdict"].str.endswith(" (sample ratio not checked)").all()


@pytest.mark.long
def test_a_difference_that_rests_on_a_tiny_segment_is_withheld(rng):
    users = users_of(rng, {"tiny": 6.0, "old": 0.0, "other": 0.0}, sizes=[16, 500, 500])
    found = segment_effects(
        rd.compare_variants(users, "x", control="A", by="segment", expected=EQUAL, details=True),
        details=True,
    )
    assert found["p_value"].iloc[0] < 0.01
    assert found["verdict"].unique().tolist() == ["check: tiny arms"]
    sound = users_of(rng, {"new": 2.0, "tiny": 0.0, "other": 0.0}, sizes=[500, 16, 500])
    found = segment_effects(
        rd.compare_variants(sound, "x", control="A", by="segment", expected=EQUAL, details=True),
        details=True,
    )
    assert found["effect"].unique().tolist() == ["differs"]
    assert found["remarks"].unique().tolist() == ["tiny; unbounded"]
    assert found["n_segments"].unique().tolist() == [3]


def test_segments_without_an_error_do_not_count():
    found = segment_effects(table_of([1.0, 0.0, 5.0], [0.5, 0.5, np.nan]), details=True)
    alone = segment_effects(table_of([1.0, 0.0], [0.5, 0.5]), details=True)
    assert found["q"].iloc[0] == alone["q"].iloc[0] == pytest.approx(2.0)
    assert found["n_segments"].iloc[0] == 2
    assert np.isnan(found["shrunken"].iloc[2])
    one = segment_effects(table_of([1.0, 0.0], [0.5, 0.0]), details=True)
    assert np.isnan(one["q"]).all()
    assert one["verdict"].unique().tolist() == ["not tested"]


def test_models_by_segment_and_several_treatments(rng):
    users = pd.concat(
        [
            pd.DataFrame(
                {
                    "user_id": range(400),
                    "model": model,
                    "age": np.repeat(["a", "b"], 200),
                    "ndcg@10": rng.uniform(0, 0.7, 400) + lift,
                }
            )
            for model, lift in {"base": 0.0, "one": np.repeat([0.3, 0.0], 200), "two": 0.1}.items()
        ]
    )
    compared = rd.compare_models(users, "ndcg@10", baseline="base", by="age", details=True)
    found = segment_effects(compared, details=True).set_index(["model", "age"])
    assert found.loc["one", "verdict"].unique().tolist() == [DIFFERS]
    assert found.loc["two", "verdict"].unique().tolist() == [SAME]
    own = compared[compared["model"] == "one"]
    z = (own["diff"].iloc[0] - own["diff"].iloc[1]) ** 2 / (own["se"] ** 2).sum()
    assert found.loc["one", "q"].iloc[0] == pytest.approx(z, rel=1e-12)


@pytest.mark.long
def test_without_a_difference_q_rejects_as_often_as_it_says(rng):
    runs, tables = 300, []
    for run in range(runs):
        n = np.array([60, 100, 200, 400])
        values = [rng.gamma(2, 1 + h, (2, k)) + np.array([[0.0], [0.5]]) for h, k in enumerate(n)]
        diff = [one[1].mean() - one[0].mean() for one in values]
        se = [np.sqrt(one.var(axis=1, ddof=1).sum() / k) for one, k in zip(values, n, strict=True)]
        tables.append(table_of(diff, se, metric=f"m{run}"))
    of_runs = segment_effects(pd.concat(tables), details=True).groupby("metric")["p_value"].first()
    rejected = (of_runs < 0.05).sum()
    assert len(of_runs) == runs
    assert stats.binom.cdf(rejected, runs, 0.05) > 0.001
    assert stats.binom.sf(rejected - 1, runs, 0.05) > 0.001


@pytest.mark.long
def test_shrunken_effects_are_nearer_to_the_truth(rng):
    truth = rng.normal(0.2, 0.1, (200, 12))
    diff = truth + rng.normal(0, 0.2, truth.shape)
    tables = [table_of(one, 0.2, metric=f"m{run}") for run, one in enumerate(diff)]
    found = segment_effects(pd.concat(tables), details=True)
    shrunken = found["shrunken"].to_numpy().reshape(diff.shape)
    assert found["metric"].tolist() == [f"m{run}" for run in range(200) for _ in range(12)]
    assert np.square(shrunken - truth).mean() < 0.6 * np.square(diff - truth).mean()
    best = diff.argmax(axis=1), np.arange(200)
    assert (diff - truth)[best[1], best[0]].mean() > 0.15  # the winner's curse
    assert abs((shrunken - truth)[best[1], best[0]].mean()) < 0.05


@pytest.mark.long
@pytest.mark.parametrize("metric", ["coverage@10", "gini@10", "entropy@10", "personalization@10"])
def test_metrics_of_exposure_by_segment_are_those_of_its_lists(metric):
    """The oracle evaluates the lists of each segment alone; such metrics have no error, so nothing
    is tested."""
    shop = rd.sample_shop()
    users = shop.users[["user_id", "segment"]]
    by = ["model", "segment"]
    found = rd.evaluate(shop.true, shop.pred.merge(users), metric, by=by, items=shop.items).summary
    for segment, own in users.groupby("segment")["user_id"]:
        parts = [frame[frame["user_id"].isin(own)] for frame in (shop.true, shop.pred)]
        want = rd.evaluate(*parts, metric, by="model", items=shop.items).summary.set_index("model")[
            "value"
        ]
        here = found[found["segment"] == segment].set_index("model")["value"]
        assert here.to_dict() == pytest.approx(want.to_dict(), rel=1e-12)
    base = found[found["model"] == "popularity"].set_index("segment")["value"]
    knn = found[found["model"] == "knn"].set_index("segment")
    table = pd.DataFrame(
        {
            "segment": knn.index,
            "metric": metric,
            "baseline": "popularity",
            "model": "knn",
            "diff": knn["value"].to_numpy() - base[knn.index].to_numpy(),
            "se": knn["se"].to_numpy(),
        }
    )
    effects = segment_effects(table, details=True)
    assert set(effects["n_segments"]) == {0}
    assert not effects["verdict"].str.contains("differs").any()
    assert effects["diff"].tolist() == table["diff"].tolist()


def test_what_cannot_be_is_an_error():
    table = table_of([1.0, 0.0], [0.5, 0.5])
    with pytest.raises(rd.OptionError, match="no column of segments"):
        segment_effects(table.drop(columns="segment"), details=True)
    with pytest.raises(rd.OptionError, match="1 rows too many"):
        segment_effects(table.assign(segment="x"), details=True)
    with pytest.raises(rd.ColumnError, match="se"):
        segment_effects(table.drop(columns="se"), details=True)
    with pytest.raises(rd.OptionError, match="correction"):
        segment_effects(table, correction="fdr", details=True)
    with pytest.raises(rd.OptionError, match="confidence"):
        segment_effects(table, confidence=95, details=True)


@pytest.mark.long
def test_the_table_is_drawn_and_goes_to_parquet(rng, tmp_path):
    users = users_of(rng, {"new": 1.5, "old": 0.0, "other": 0.0})
    compared = rd.compare_variants(
        users, "x", control="A", by="segment", expected=EQUAL, details=True
    )
    before = compared.copy()
    found = segment_effects(compared, details=True)
    pd.testing.assert_frame_equal(compared, before)
    found.to_parquet(tmp_path / "s.parquet")
    ax = rd.plot.forest(pd.read_parquet(tmp_path / "s.parquet"))
    data = rd.plot.forest.data(found)
    assert data["label"].tolist() == ["new", "old", "other"]
    assert data["sign"].tolist() == ["open"] * 3
    crosses = [line for line in ax.lines if line.get_marker() == "x"]
    drawn = [float(x) for line in crosses for x in line.get_xdata()]
    assert drawn == found["shrunken"].tolist()


@pytest.mark.parametrize("column", ["segment", "metric", "control", "treatment"])
@pytest.mark.parametrize("cells", [[["a"], ["b"]], [(["a"],), (["b"],)], ["\ud800", "b"]])
def test_labels_that_tell_no_rows_apart_are_named(column, cells):
    table = table_of([1.0, 0.0], [0.5, 0.5], **{column: pd.Series(cells, dtype=object)})
    with pytest.raises(rd.IdTypeError, match=rf"comparison\['{column}'\] "):
        segment_effects(table)


def test_codes_of_a_comparison_are_read_or_named():
    table = table_of([1.0, 0.0], [0.5, 0.5])
    plain = segment_effects(table)
    for nothing in (None, np.nan, pd.NA):
        empty = pd.Series([nothing, nothing], dtype=object)
        found = segment_effects(table.assign(withheld=empty, remarks=empty))
        pd.testing.assert_frame_equal(found, plain)
    with pytest.raises(rd.DataError, match=r"comparison\['withheld'\] holds 'later'"):
        segment_effects(table.assign(withheld="later"))


def test_quantiles_that_jump_do_not_tell_segments_apart():
    """Of 400 users an arm, 9 or 11 % take the slow path: p90 is 100 or 1,000 by chance."""
    slow = {("fi", "A"): 36, ("fi", "B"): 44, ("no", "A"): 44, ("no", "B"): 36}
    rows = [
        {"country": country, "variant": variant, "ms": 1000.0 * (i < n) + 100 + i / 1000}
        for (country, variant), n in slow.items()
        for i in range(400)
    ]
    given = {"control": "A", "quantiles": 0.9, "by": "country", "expected": {"A": 1, "B": 1}}
    table = rd.experiments.compare_quantiles(pd.DataFrame(rows), "ms", **given)
    assert table["remarks"].tolist() == ["gap", "gap"]
    found = rd.experiments.segment_effects(table, details=True).iloc[0]
    assert found["reject"]
    assert (found["withheld"], found["effect"]) == ("gap", "")
    assert found["verdict"] == "check: ms p90 lies between two groups of values"


def test_one_segment_differs_from_nothing():
    one = segment_effects(table_of([1.0], [0.5]), details=True)
    assert one[["effect", "withheld", "remarks", "verdict"]].iloc[0].tolist() == [
        "",
        "not_tested",
        "not_tested",
        "not tested",
    ]
    assert segment_effects(table_of([1.0, 0.9], [0.5, 0.5]))["verdict"].unique().tolist() == [SAME]
