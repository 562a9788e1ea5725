"""A/A splits of past users: how often a test finds a difference where there is none."""

import numpy as np
import pandas as pd
import pytest
from quick import few

import recdf as rd
from recdf.stats.resampling import split_sums

stats = pytest.importorskip("scipy.stats")
aa_test = rd.experiments.aa_test


def users(n=400, seed=0):
    rng = np.random.default_rng(seed)
    found = pd.DataFrame(
        {"user_id": np.arange(n), "revenue": rng.lognormal(0, 1, n), "shown": rng.poisson(5, n) + 1}
    )
    return found.assign(clicks=rng.binomial(found["shown"], 0.3), bought=rng.random(n) < 0.3)


def splits_of(n_units, n, share=0.5, seed=0):
    """Who is in the treatment of each split, by the sums of columns that each have a single
    unit."""
    return split_sums(list(np.eye(n_units)), share, n, seed).astype(bool)


def p_of(table, metrics, n=60, **options):
    """p of `compare_variants` for every split."""
    chosen = splits_of(len(table), n, options.pop("share", 0.5))
    compared = (
        rd.compare_variants(
            table.assign(variant=np.where(one, "B", "A")), metrics, control="A", **options
        )
        for one in chosen
    )
    return np.array([one["p_value"].iloc[0] for one in compared])


@pytest.mark.long
@pytest.mark.parametrize("metric", few(["revenue", "bought", {"ctr": ("clicks", "shown")}], 1))
def test_each_split_is_tested_as_compare_variants_does(metric):
    table = users()
    row = aa_test(table, metric, n=30, shares={"A": 0.7, "B": 0.3}).iloc[0]
    p = p_of(table, metric, n=30, share=0.3)
    assert (row["n_splits"], row["n_rejected"]) == (30, (p <= 0.05).sum())
    expected = stats.kstest(p, "uniform", method="asymp")
    assert row["ks"] == pytest.approx(expected.statistic, rel=1e-9)
    assert row["p_ks"] == pytest.approx(expected.pvalue, rel=1e-6)
    share = stats.binomtest(int(row["n_rejected"]), 30).proportion_ci(0.99, method="wilson")
    assert (row["rejected_low"], row["rejected_high"]) == pytest.approx(
        (share.low, share.high), rel=1e-9
    )


def test_more_units_than_are_summed_at_a_time():
    table = aa_test(users(5000), "revenue", n=4)
    assert table["n_units"].tolist() == [5000] * 4


@pytest.mark.long
def test_clusters_are_split_as_wholes():
    sessions = users().assign(
        region=lambda frame: frame["user_id"] % 120, user_id=lambda frame: frame["user_id"] // 3
    )
    row = aa_test(sessions, "revenue", n=60, cluster="region").iloc[0]
    assert row["n_units"] == 120
    chosen = splits_of(120, 60)
    p = [
        rd.compare_variants(
            sessions.assign(variant=np.where(one[sessions["region"]], "B", "A")),
            "revenue",
            control="A",
            cluster="region",
            user_col="region",
        )["p_value"].iloc[0]
        for one in chosen
    ]
    assert row["ks"] == pytest.approx(stats.kstest(p, "uniform").statistic, rel=1e-9)
    assert (
        aa_test(sessions, "revenue", n=20, cluster="region", shares=(0.9, 0.1))["remarks"][0]
        == "few_clusters"
    )
    with pytest.raises(rd.DuplicateError, match="cluster='user_id'"):
        aa_test(sessions, "revenue")


def test_a_skewed_metric_in_unequal_arms_is_found_and_a_cap_recommended():
    table = pd.DataFrame(
        {"user_id": range(2000), "revenue": np.random.default_rng(1).lognormal(0, 2, 2000)}
    )
    found = aa_test(table, "revenue", shares=(0.9, 0.1))
    assert found["verdict"].iloc[0] == "rejects too often"
    assert found["n_rejected_low"].iloc[0] > 20 * found["n_rejected_high"].iloc[0]
    assert set(found["recommended"]) == {"t, cap=0.98"}
    small = table.assign(revenue=table["revenue"] ** 2)
    assert set(aa_test(small, "revenue", shares=(0.98, 0.02))["recommended"]) == {"permutation"}
    equal = aa_test(table.assign(revenue=np.log(table["revenue"])), "revenue")
    assert (equal["verdict"].iloc[0], equal["recommended"].iloc[0]) == ("holds", "t")


def test_the_order_of_rows_does_not_matter_and_the_seed_does():
    table = users()
    pd.testing.assert_frame_equal(
        aa_test(table, "revenue", n=50), aa_test(table.sample(frac=1), "revenue", n=50)
    )
    assert (
        aa_test(table, "revenue", n=50)["ks"][0] != aa_test(table, "revenue", n=50, seed=1)["ks"][0]
    )


def test_nulls_caps_and_constants(tmp_path):
    table = users().assign(nothing=0.0)
    with pytest.raises(rd.DataError, match="null in 1 of 400"):
        aa_test(table.assign(revenue=table["revenue"].where(table["user_id"] > 0)), "revenue")
    some = table.assign(revenue=table["revenue"].where(table["user_id"] >= 100))
    dropped = aa_test(some, "revenue", n=30, nan="drop")
    assert dropped["n_units"].tolist() == [300] * 4
    capped = aa_test(table, ["revenue", "nothing"], n=30, cap={"revenue": 0.9})
    assert capped["cap"].tolist()[0] == 0.9 and np.isnan(capped["cap"][1])  # noqa: PT018
    assert capped["cap_value"][0] == pytest.approx(table["revenue"].quantile(0.9))
    assert capped.loc[1, ["n_splits", "verdict", "recommended"]].tolist() == [
        0,
        "not tested",
        "",
    ]
    capped.to_parquet(tmp_path / "aa.parquet")


def test_bad_options_are_refused():
    table = users(50)
    for wrong in (
        {"shares": (1,)},
        {"shares": (1, 0)},
        {"n": 1},
        {"confidence": 1.0},
        {"alternative": "up"},
    ):
        with pytest.raises(rd.OptionError):
            aa_test(table, "revenue", **wrong)
    with pytest.raises(rd.ColumnError):
        aa_test(table, "income")


def test_sessions_of_users_are_no_units():
    table = users(200).assign(session=range(200), user_id=lambda one: one["user_id"] // 2)
    found = aa_test(table, "revenue", n=20, user_col="session")
    assert set(found["withheld"]) == {"repeated_units"}
    with pytest.raises(rd.DuplicateError, match="pass cluster='user_id'"):
        aa_test(table, "revenue", n=20)
