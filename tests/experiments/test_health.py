"""experiment_health: the sample ratio, missing values, and what else makes an experiment
invalid."""

import decimal
from html import unescape

import numpy as np
import pandas as pd
import pytest
from experiments.variants import GOLDEN, GROUPS, METRICS
from scipy import stats

import recdf as rd
from recdf.errors import OptionError

# -- health


def test_health_golden(log):
    table = rd.experiments.experiment_health(
        log[["user_id", "ndcg"]],
        log[["user_id", "variant"]],
        expected={"A": 0.4, "B": 0.35, "C": 0.25},
    )
    assert table["variant"].tolist() == ["A", "B", "C"]
    assert table["n_assigned"].tolist() == list(GOLDEN["srm"]["counts"].values())
    assert table["srm_chi2"].tolist() == [pytest.approx(GOLDEN["srm"]["chi2"], abs=1e-9)] * 3
    assert table["srm_p"].tolist() == [pytest.approx(GOLDEN["srm"]["p"], abs=1e-9)] * 3
    equal = rd.experiments.experiment_health(log[["user_id"]], log[["user_id", "variant"]])
    assert equal["srm_p"].iloc[0] == pytest.approx(GOLDEN["srm"]["p_equal_split"], abs=1e-9)
    assert (equal["srm_flag"] == "sample_ratio").all()
    assert (table["srm_flag"] == "").all()
    assert table["missing_p"].isna().all()


def test_health_counts():
    groups = pd.DataFrame(
        {
            "user_id": [*range(100), *range(100), 0, 100],
            "variant": ["A"] * 100 + ["A"] * 100 + ["B", "B"],
        }
    )
    metrics = pd.DataFrame({"user_id": [*range(1, 60), 500, 501], "m": 1.0})
    table = rd.experiments.experiment_health(metrics, groups, expected={"A": 1, "B": 1, "C": 2})
    assert table["variant"].tolist() == ["A", "B", "C"]
    assert table["n_assigned"].tolist() == [99, 1, 0]  # user 0 is in two variants
    assert table["n_multi_variant"].tolist() == [1, 1, 0]
    assert table["n_with_metrics"].tolist() == [59, 0, 0]
    assert table["n_missing"].tolist() == [40, 1, 0]
    assert table["n_unassigned"].tolist() == [2, 2, 2]
    assert table["expected_share"].tolist() == [0.25, 0.25, 0.5]
    assert table["srm_flag"].tolist() == ["sample_ratio"] * 3


def test_health_missing_is_chi2_contingency():
    groups = pd.DataFrame(
        {"user_id": range(400), "variant": ["A", "B"] * 200, "country": ["x"] * 200 + ["y"] * 200}
    )
    metrics = pd.DataFrame({"user_id": [u for u in range(400) if u % 2 or u % 3]})
    table = rd.experiments.experiment_health(metrics, groups)
    want = stats.chi2_contingency([table["n_with_metrics"], table["n_missing"]], correction=False)
    assert table["missing_chi2"].iloc[0] == pytest.approx(want.statistic)
    assert table["missing_p"].iloc[0] == pytest.approx(want.pvalue)
    assert (table["missing_flag"] == "missing_metrics").all()
    split = rd.experiments.experiment_health(metrics, groups, by="country")
    assert split["country"].tolist() == ["x", "x", "y", "y"]
    one = rd.experiments.experiment_health(metrics, groups[groups.country == "x"])
    assert split["missing_p"].iloc[0] == one["missing_p"].iloc[0]


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ({"A": 1}, "no share for variant 'B'"),
        ({"A": 1, "B": 0}, "above 0"),
        ({"A": 1, "B": float("nan")}, "above 0"),
    ],
)
def test_health_bad_shares(expected, words):
    with pytest.raises(OptionError, match=words):
        rd.experiments.experiment_health(METRICS, GROUPS, expected=expected)


def test_persons_with_several_devices_are_counted_once():
    # What is assigned are persons: 500 of A with one device each, 430 of B with two or one.
    person = np.r_[np.arange(500), np.repeat(np.arange(500, 930), np.arange(430) % 3 % 2 + 1)]
    variant = np.where(person < 500, "A", "B")
    groups = pd.DataFrame({"device": np.arange(len(person)), "person": person, "variant": variant})
    with_metrics = groups[["device"]][groups["person"] % 50 > 0]
    devices = rd.experiments.experiment_health(with_metrics, groups, user_col="device")
    persons = rd.experiments.experiment_health(
        with_metrics, groups, user_col="device", cluster="person"
    )
    assert devices["n_assigned"].tolist() == groups["variant"].value_counts().sort_index().tolist()
    assert persons["n_assigned"].tolist() == [500, 430]
    assert persons["n_with_metrics"].tolist() == [490, 421]
    assert persons["srm_p"].iloc[0] == pytest.approx(stats.chisquare([500, 430]).pvalue)
    assert persons["missing_p"].iloc[0] == pytest.approx(
        stats.chi2_contingency([[490, 421], [10, 9]], correction=False).pvalue
    )
    assert devices["srm_p"].iloc[0] != pytest.approx(persons["srm_p"].iloc[0])
    # Users who were assigned one by one within regions are still counted as users.
    region = rd.experiments.experiment_health(
        with_metrics,
        groups.assign(region=groups["device"] % 7),
        user_col="device",
        cluster="region",
    )
    pd.testing.assert_frame_equal(region, devices)
    # A user in two variants is left out, and does not make the persons users.
    twice = pd.concat([groups, groups[:1].assign(variant="B")])
    found = rd.experiments.experiment_health(
        with_metrics, twice, user_col="device", cluster="person"
    )
    assert found["n_assigned"].tolist() == [499, 430]
    assert found["n_multi_variant"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("shares", "n"), [([0.5, 0.5], 40_000), ([0.9, 0.1], 40_000), ([0.4, 0.3, 0.3], 60_000)]
)
def test_the_loss_that_is_said_to_be_seen_is_seen_in_8_of_10_tests(shares, n):
    rng = np.random.default_rng(0)
    planned = np.array(shares)
    variants = list("ABC")[: len(shares)]
    groups = pd.DataFrame(
        {"user_id": range(n), "variant": np.repeat(variants, (planned * n).astype(int))}
    )
    health = rd.experiments.experiment_health(
        groups[["user_id"]], groups, expected=dict(zip(variants, shares, strict=True))
    )
    loss = health["seen_loss"].iloc[-1]
    counts = rng.multinomial(n, planned, 1000)
    counts[:, -1] = rng.binomial(counts[:, -1], 1 - loss)
    expected = counts.sum(axis=1, keepdims=True) * planned
    chi2 = ((counts - expected) ** 2 / expected).sum(axis=1)
    seen = (stats.chi2.sf(chi2, len(shares) - 1) < 0.001).mean()
    assert seen == pytest.approx(0.8, abs=4 * np.sqrt(0.16 / 1000))


def test_a_ratio_that_fits_says_what_it_would_have_seen(tmp_path):
    n = 20_000
    rng = np.random.default_rng(1)
    users = pd.DataFrame(
        {"user_id": range(n), "variant": ["A", "B"] * (n // 2), "m": rng.normal(size=n)}
    )
    table = rd.compare_variants(users, "m", control="A", expected={"A": 1, "B": 1}, details=True)
    # 4.13/√(n s_A s_B)
    assert table["seen_loss"].iloc[0] == pytest.approx(4.132 / np.sqrt(n / 4), rel=1e-3)
    page = rd.report(path=tmp_path / "r.html", experiment=table).read_text(encoding="utf-8")
    assert "a loss of 5.8% of B's users would have been seen in 8 of 10 tests" in unescape(page)
    unchecked = rd.compare_variants(users, "m", control="A", details=True)
    assert unchecked["seen_loss"].isna().all()
    few = rd.compare_variants(
        users.head(40), "m", control="A", expected={"A": 1, "B": 1}, details=True
    )
    assert few["seen_loss"].tolist() == [pytest.approx(1.0)]


def test_decimals_of_a_file_are_those_of_a_frame(tmp_path):
    ids = [decimal.Decimal(i) / 4 for i in range(200)]
    groups = pd.DataFrame({"user_id": ids, "variant": ["A", "B"] * 100})
    users = pd.DataFrame({"user_id": ids, "m": np.arange(200) % 7 * 1.0})
    groups.to_parquet(tmp_path / "a.parquet")
    users.to_parquet(tmp_path / "p.parquet")
    health = rd.experiments.experiment_health(
        tmp_path / "p.parquet", tmp_path / "a.parquet", expected={"A": 1, "B": 1}
    )
    table = rd.compare_variants(groups.merge(users), "m", control="A", health=health)
    assert table["withheld"].tolist() == [""]


def test_rows_that_a_join_added_are_no_metrics(tmp_path):
    groups = pd.DataFrame({"user_id": range(4000), "variant": ["A", "B"] * 2000})
    metrics = pd.DataFrame({"user_id": [u for u in range(4000) if u % 2 == 0 or u % 5], "ctr": 0.5})
    joined = rd.join_experiment(metrics, groups, missing="zero", larger_is_better="ctr")
    want = rd.experiments.experiment_health(metrics, groups)
    assert want["n_missing"].tolist() == [0, 400]
    assert (want["missing_flag"] == "missing_metrics").all()
    paths = [str(tmp_path / name) for name in ("joined.parquet", "groups.parquet")]
    joined.to_parquet(paths[0])
    groups.to_parquet(paths[1])
    for given in ((joined, groups), paths, (joined.astype({"has_metrics": int}), groups)):
        pd.testing.assert_frame_equal(rd.experiments.experiment_health(*given), want)
    with pytest.raises(rd.DataError, match=r"per_user\['has_metrics'\]"):
        rd.experiments.experiment_health(joined.astype({"has_metrics": str}), groups)
