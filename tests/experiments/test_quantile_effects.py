"""Quantiles of variants, and metrics of which most users have none."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd

compare_quantiles, compare_zero_inflated = (
    rd.experiments.compare_quantiles,
    rd.experiments.compare_zero_inflated,
)
PLAN = {"A": 1, "B": 1}


def requests(n=600, seed=0, slower=1.0):
    """Requests of users who differ in speed and in how many they make."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(n), rng.poisson(5, n) + 1)
    ms = rng.lognormal(4, 0.7, n)[user] * rng.lognormal(0, 0.7, len(user))
    found = pd.DataFrame({"user_id": user, "variant": np.where(user % 2, "B", "A"), "ms": ms})
    return found.assign(ms=found["ms"].where(found["variant"] == "A", found["ms"] * slower))


def bootstrap_se(frame, p, n=600):
    """Standard deviation of a quantile when whole users are drawn again."""
    rng = np.random.default_rng(1)
    groups = [own["ms"].to_numpy() for _, own in frame.groupby("user_id")]
    drawn = (
        np.concatenate([groups[i] for i in rng.integers(0, len(groups), len(groups))])
        for _ in range(n)
    )
    return np.std([np.quantile(values, p) for values in drawn], ddof=1)


@pytest.mark.long
@pytest.mark.parametrize("p", [0.5, 0.9])
def test_quantiles_and_their_spread_by_users(p):
    frame = requests()
    row = compare_quantiles(
        frame, "ms", control="A", quantiles=p, cluster="user_id", details=True
    ).iloc[0]
    arms = [frame[frame["variant"] == name] for name in "AB"]
    for arm, name in zip(arms, ("mean_control", "mean_treatment"), strict=True):
        assert row[name] == pytest.approx(np.quantile(arm["ms"], p), rel=1e-12)
    assert row["diff"] == pytest.approx(row["mean_treatment"] - row["mean_control"])
    assert row["se"] == pytest.approx(np.hypot(*(bootstrap_se(arm, p) for arm in arms)), rel=0.15)
    assert row[["n_control", "n_treatment"]].tolist() == [300, 300]
    assert (row["metric"], row["quantile"]) == (f"ms p{100 * p:g}", p)


def test_of_independent_rows_it_is_the_textbook_error():
    """√(p(1 − p)/n)/f, with the density of a normal distribution at its median."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"variant": ["A", "B"] * 20_000, "x": rng.normal(10, 1, 40_000)})
    row = compare_quantiles(frame, "x", control="A", quantiles=0.5, details=True).iloc[0]
    assert row["se"] == pytest.approx(
        np.sqrt(2) * np.sqrt(0.25 / 20_000) * np.sqrt(2 * np.pi), rel=0.06
    )


@pytest.mark.long
def test_intervals_hold():
    inside = [
        (table["ci_low"] <= 0) & (table["ci_high"] >= 0)
        for table in (
            compare_quantiles(
                requests(300, seed),
                "ms",
                control="A",
                quantiles=[0.5, 0.95],
                cluster="user_id",
                correction="none",
                details=True,
            )
            for seed in range(120)
        )
    ]
    assert 0.89 <= np.mean([one.iloc[0] for one in inside]) <= 0.99
    assert 0.89 <= np.mean([one.iloc[1] for one in inside]) <= 1.0


@pytest.mark.long
def test_directions_segments_and_checks_are_those_of_compare_variants(tmp_path):
    frame = requests(slower=1.4).assign(
        country=lambda own: np.where(own["user_id"] % 4 < 2, "x", "y")
    )
    options = {
        "control": "A",
        "quantiles": [0.5],
        "cluster": "user_id",
        "smaller_is_better": "ms",
        "expected": PLAN,
    }
    most = frame["user_id"].value_counts().max()
    said = f"worse, for clusters with a size of up to {most}"
    assert compare_quantiles(frame, "ms", **options, details=True)["verdict"].tolist() == [said]
    table = compare_quantiles(frame, "ms", by="country", **options, details=True)
    assert table["country"].tolist() == ["x", "y"]
    for country, row in zip("xy", table.to_dict("records"), strict=True):
        own = frame[(frame["country"] == country) & (frame["variant"] == "B")]
        assert row["mean_treatment"] == pytest.approx(own["ms"].median())
    lost = frame[(frame["variant"] == "A") | (frame["user_id"] % 3 > 0)]
    assert compare_quantiles(lost, "ms", **options, details=True)["verdict"].tolist() == [
        "invalid: sample ratio"
    ]
    shuffled = compare_quantiles(
        frame.sample(frac=1, random_state=3), "ms", **options, details=True
    )
    pd.testing.assert_frame_equal(
        pd.DataFrame(shuffled),
        pd.DataFrame(compare_quantiles(frame, "ms", **options, details=True)),
    )
    table.to_parquet(tmp_path / "quantiles.parquet")
    assert "worse" in repr(compare_quantiles(frame, "ms", **options, details=True))


def test_what_the_values_cannot_tell_is_said():
    rng = np.random.default_rng(6)
    n = 2000
    frame = pd.DataFrame(
        {
            "variant": np.array(["A", "B"])[np.arange(n) % 2],
            "price": rng.choice([4.99, 9.99, 19.99], n, p=[0.2, 0.3, 0.5]),
            "ms": np.where(rng.random(n) < 0.05, 900.0, 100.0) + rng.normal(0, 10, n),
            "few": rng.normal(size=n),
        }
    )
    options = {"control": "A", "expected": PLAN}
    row = compare_quantiles(frame, "price", quantiles=0.25, **options, details=True).iloc[0]
    assert row[["remarks", "ci_low", "ci_high", "p_value"]].tolist() == ["ties", 0, 0, 1]
    steps = "; price p25 stands on steps, compare the share at or below 9.99"
    assert row["verdict"] == f"no difference shown{steps}"
    row = compare_quantiles(frame, "ms", quantiles=0.95, **options, details=True).iloc[0]
    assert (row["remarks"], row["withheld"]) == ("gap", "")
    assert "; ms p95 lies between two groups of values (1" in row["verdict"]
    row = compare_quantiles(frame.head(300), "few", quantiles=0.99, **options, details=True).iloc[0]
    assert (row["effect"], row["withheld"], row["ci_high"]) == ("", "few_values", np.inf)
    assert row["verdict"] == "check: fewer rows lie beyond few p99 than an interval needs"
    far = frame[(frame["variant"] == "A") | (frame.index < 300)]
    far = far.assign(few=far["few"] + 9 * (far["variant"] == "B"))
    row = compare_quantiles(far, "few", control="A", quantiles=0.99, details=True).iloc[0]
    assert (row["effect"], row["withheld"], row["remarks"].split("; ")[0]) == (
        "better",
        "",
        "few_values",
    )
    assert (row["ci_low"] > 0, row["ci_high"]) == (True, np.inf)
    tiny = frame.groupby("variant").head(1)
    row = compare_quantiles(tiny, "few", quantiles=0.5, **options, details=True).iloc[0]
    assert row["withheld"] == "too_few_users"
    assert np.isnan(row["p_value"])


@pytest.mark.few(1)
@pytest.mark.parametrize("correction", ["none", "holm", "holm_sidak", "bh"])
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_interval_and_verdict_never_disagree(correction, alternative):
    frame = requests(400).assign(
        price=lambda own: own["ms"].round(-2), slow=lambda own: own["ms"] * (1 + (own.index % 2))
    )
    for scale in (1.0, 1.15, 1.4):
        own = frame.assign(ms=frame["ms"].where(frame["variant"] == "A", frame["ms"] * scale))
        table = compare_quantiles(
            own,
            ["ms", "price", "slow"],
            control="A",
            cluster="user_id",
            correction=correction,
            alternative=alternative,
            details=True,
        )
        outside = (table["ci_low"] > 0) | (table["ci_high"] < 0)
        assert outside.tolist() == table["reject"].tolist()
        ratios = (table["rel_ci_low"] > 0) | (table["rel_ci_high"] < 0)
        assert ratios.tolist() == table["reject"].tolist()


def test_rows_of_a_user_without_cluster_are_named():
    frame = requests(200).rename(columns={"user_id": "person"})
    table = compare_quantiles(frame, "ms", control="A", quantiles=0.5, details=True)
    assert table["withheld"].tolist() == ["repeated_units"]
    assert table["design_effect"].iloc[0] > 2


def test_bad_calls_are_refused():
    frame = requests(60)
    with pytest.raises(rd.DuplicateError, match="cluster='user_id'"):
        compare_quantiles(frame, "ms", control="A", details=True)
    for wrong in ({"quantiles": 1.5}, {"quantiles": [0.5, 0]}, {"primary": "latency"}):
        with pytest.raises(rd.OptionError):
            compare_quantiles(frame, "ms", control="A", cluster="user_id", **wrong, details=True)
    with pytest.raises(TypeError, match="test"):
        compare_quantiles(
            frame, "ms", control="A", cluster="user_id", test="bootstrap", details=True
        )
    with pytest.raises(rd.OptionError, match="latency"):
        compare_quantiles(
            frame, "ms", control="A", cluster="user_id", smaller_is_better="latency", details=True
        )
    with pytest.raises(rd.DataError, match="null in 1"):
        compare_quantiles(
            frame.assign(ms=frame["ms"].where(frame.index > 0)),
            "ms",
            control="A",
            cluster="user_id",
            details=True,
        )


# -- payers


def buyers(n=2000, share=0.3):
    rng = np.random.default_rng(4)
    treated = np.arange(n) % 2 == 1
    pays = rng.random(n) < np.where(treated, share, 0.2)
    spent = pays * rng.lognormal(3, 0.5, n)
    return pd.DataFrame(
        {"user_id": np.arange(n), "variant": np.where(treated, "B", "A"), "spent": spent}
    )


def test_the_total_is_the_product_of_its_parts():
    stats = pytest.importorskip("scipy.stats")
    frame = buyers()
    table = compare_zero_inflated(
        frame, "spent", control="A", expected=PLAN, details=True
    ).set_index("metric")
    for arm in ("mean_control", "mean_treatment"):
        share, mean = table[arm]["spent: share above 0"], table[arm]["spent: mean above 0"]
        assert table[arm]["spent"] == pytest.approx(share * mean)
    a, b = (frame.loc[frame["variant"] == name, "spent"] for name in "AB")
    assert table["p_value"]["spent"] == pytest.approx(stats.ttest_ind(b, a, equal_var=False).pvalue)
    shares = stats.ttest_ind(b > 0, a > 0, equal_var=False).pvalue
    assert table["p_value"]["spent: share above 0"] == pytest.approx(shares)
    assert table["mean_treatment"]["spent: mean above 0"] == pytest.approx(b[b > 0].mean())
    # The delta method of a ratio of sums is that of the mean of the payers, but for 1/n.
    payers = stats.ttest_ind(b[b > 0], a[a > 0], equal_var=False)
    assert table["statistic"]["spent: mean above 0"] == pytest.approx(payers.statistic, rel=0.01)
    assert table["effect"].tolist() == ["better", "better", ""]
    assert table["withheld"].iloc[2] == "denominator_differs"


def test_directions_and_nulls_go_to_all_parts():
    frame = buyers(share=0.2)
    null = frame.assign(spent=frame["spent"].where(frame["user_id"] >= 10))
    table = compare_zero_inflated(
        null, "spent", control="A", nan="drop", smaller_is_better="spent", details=True
    )
    assert table["n_dropped"].tolist() == [10] * 3
    worse = frame.assign(spent=frame["spent"] * np.where(frame["variant"] == "B", 1.5, 1))
    table = compare_zero_inflated(
        worse, "spent", control="A", smaller_is_better="spent", expected=PLAN, details=True
    )
    assert table["effect"].tolist() == ["worse", "none", "worse"]
    with pytest.raises(rd.DataError, match="negative in 1 "):
        compare_zero_inflated(
            frame.assign(spent=frame["spent"] - (frame["user_id"] == 0) * 1e6),
            "spent",
            control="A",
            details=True,
        )


def test_orders_are_named_apart_and_once():
    frame = requests(40)
    table = compare_quantiles(
        frame, "ms", control="A", quantiles=[1 / 3, 0.9999999], cluster="user_id"
    )
    assert table["metric"].tolist() == ["ms p33.3333", "ms p99.99999"]
    for twice in ([0.5, 0.5], [0.5, 0.5 + 1e-10]):
        with pytest.raises(rd.OptionError, match="names the same order twice: p50, p50"):
            compare_quantiles(frame, "ms", control="A", quantiles=twice)


def test_a_capped_total_is_not_the_product_of_its_parts():
    with pytest.raises(rd.OptionError, match=r"cap=.* not the product of its parts; compare it"):
        compare_zero_inflated(buyers(), "spent", control="A", cap={"spent": 0.9})
    assert len(compare_zero_inflated(buyers(), "spent", control="A", cap=None)) == 3
