"""Means and ratios within strata, with clusters and covariates: against statsmodels, a slow loop,
and by simulation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import recdf as rd

METRICS = {"y": "y", "ctr": ("clicks", "views")}


def ramped(rng, n=600, rows=3, span=False, phases=3):
    """Users assigned in phases of growing treatment shares; with `span`, the rows of a user are in
    several phases."""
    user = np.repeat(np.arange(n), rows)
    phase = rng.integers(0, phases, n)
    treated = rng.random(n) < np.linspace(0.2, 0.7, phases)[phase]
    of_row = rng.integers(0, phases, n * rows) if span else phase[user]
    views = rng.poisson(3 + of_row) + 1.0
    level = rng.normal(size=n)[user]
    x = level + rng.normal(size=n * rows)
    clicks = rng.binomial(
        views.astype(int), 1 / (1 + np.exp(2 - 0.5 * level - 0.3 * of_row))
    ).astype(float)
    y = 2.0 * of_row + level + 0.3 * treated[user] + rng.normal(size=n * rows)
    variant = np.where(treated, "B", "A")[user]
    columns = {
        "y": y,
        "clicks": clicks,
        "views": views,
        "x": x,
        "z": rng.normal(size=n * rows) + 0.2 * clicks,
    }
    return pd.DataFrame({"user_id": user, "variant": variant, "phase": of_row, **columns})


def compared(data, metrics=METRICS, **options):
    options = {"control": "A", "strata": "phase", "cluster": "user_id", **options}
    return rd.compare_variants(data, metrics, **options, details=True).set_index("metric")


def by_wls(data, num, den):
    """Effect and variance by regression on dummies of arm and stratum, with the factor G/(G − 1) of
    each of them."""
    linear = pytest.importorskip("statsmodels.regression.linear_model")
    phases = sorted(data["phase"].unique())
    share = np.array([data.loc[data["phase"] == h, den].sum() for h in phases]) / data[den].sum()
    effect = var = 0.0
    for variant, sign in (("A", -1), ("B", 1)):
        own = data[data["variant"] == variant]
        dummies = (own["phase"].to_numpy()[:, None] == phases).astype(float)
        fit = linear.WLS(own[num] / own[den], dummies, weights=own[den]).fit(
            cov_type="cluster", cov_kwds={"groups": own["user_id"], "use_correction": False}
        )
        clusters = own.groupby("phase")["user_id"].nunique().to_numpy()
        factor = share * np.sqrt(clusters / (clusters - 1))
        effect += sign * float(share @ fit.params)
        var += float(factor @ fit.cov_params() @ factor)
    return effect, np.sqrt(var)


@pytest.mark.few(2)
@pytest.mark.parametrize("span", [False, True], ids=["nested", "in several strata"])
@pytest.mark.parametrize("rows", [1, 3])
def test_strata_and_clusters_are_the_regression_on_dummies(rng, rows, span):
    data = ramped(rng, rows=rows, span=span).assign(one=1.0)
    found = compared(data)
    for metric, (num, den) in {"y": ("y", "one"), "ctr": ("clicks", "views")}.items():
        effect, se = by_wls(data, num, den)
        assert found.loc[metric, "diff"] == pytest.approx(effect, rel=1e-10)
        assert found.loc[metric, "se"] == pytest.approx(se, rel=1e-10)
        assert (
            found.loc[metric, "n_control"] == data.loc[data["variant"] == "A", "user_id"].nunique()
        )
        assert found.loc[metric, "method"] == "welch+strata+cluster"


def test_one_row_a_cluster_is_no_cluster(rng):
    data = ramped(rng, rows=1)
    columns = [
        "diff",
        "se",
        "ci_low",
        "ci_high",
        "rel_ci_low",
        "df",
        "p_value",
        "variance_reduction",
    ]
    pd.testing.assert_frame_equal(
        compared(data)[columns], compared(data, cluster=None)[columns], rtol=1e-10
    )
    one = data.assign(phase=0)
    plain = compared(one, cluster=None, strata=None)
    pd.testing.assert_frame_equal(
        compared(one, cluster=None)[columns[:-1]], plain[columns[:-1]], rtol=1e-10
    )


def slow_ratio(data, num, den, covariates):
    """Effect and variance of a ratio within strata by loops over users, with θ by least squares
    over both arms."""
    phases = sorted(data["phase"].unique())
    total = data[den].sum()
    share = {h: data.loc[data["phase"] == h, den].sum() / total for h in phases}

    def parts(frame, column, below):
        """The estimate, and by user what it adds; `below` None is the number of rows."""
        value, by_user = 0.0, {}
        for h in phases:
            own = frame[frame["phase"] == h]
            size = own["user_id"].nunique()
            down = own[below] if below else pd.Series(1.0, own.index)
            ratio = own[column].sum() / down.sum()
            value += share[h] * ratio
            for user, n, d in zip(own["user_id"], own[column], down, strict=True):
                add = share[h] * (n - ratio * d) / down.sum()
                plain, spread = by_user.get(user, (0.0, 0.0))
                by_user[user] = plain + add, spread + add * np.sqrt(size / (size - 1))
        return value, by_user

    pooled = [parts(data, num, den), *[parts(data, *x) for x in covariates]]
    users = list(pooled[0][1])
    columns = np.array([[of[user][0] for user in users] for _, of in pooled])
    theta = np.linalg.lstsq(columns[1:].T, columns[0], rcond=None)[0] if covariates else []
    effect = var = 0.0
    for variant, sign in (("A", -1), ("B", 1)):
        own = data[data["variant"] == variant]
        found = [parts(own, num, den), *[parts(own, *x) for x in covariates]]
        effect += sign * (
            found[0][0] - sum(t * one[0] for t, one in zip(theta, found[1:], strict=True))
        )
        for user in found[0][1]:
            adds = found[0][1][user][1] - sum(
                t * one[1][user][1] for t, one in zip(theta, found[1:], strict=True)
            )
            var += adds**2
    return effect, np.sqrt(var)


X, XZ, RATIO = [("x", None)], [("x", None), ("z", None)], [("x", "views"), ("z", None)]


@pytest.mark.long
@pytest.mark.parametrize("span", [False, True], ids=["nested", "in several strata"])
def test_covariates_of_ratios_in_strata_and_clusters(rng, span):
    data = ramped(rng, 240, span=span)
    for given, columns in ((None, []), ("x", X), (["x", "z"], XZ), ([("x", "views"), "z"], RATIO)):
        covariates = given and {"ctr": given}
        found = compared(data, {"ctr": ("clicks", "views")}, covariates=covariates).loc["ctr"]
        effect, se = slow_ratio(data, "clicks", "views", columns)
        assert found["diff"] == pytest.approx(effect, rel=1e-9)
        assert found["se"] == pytest.approx(se, rel=1e-9)
        assert found["method"] == "welch+" + "cuped+" * bool(columns) + "strata+cluster"
        assert np.isfinite(found["theta"]) == (len(columns) == 1)


@pytest.mark.long
def test_a_covariate_that_says_nothing_new_changes_nothing(rng):
    data = ramped(rng).assign(same=1.0, twice=lambda d: 2 * d["x"])
    columns = ["diff", "se", "variance_reduction", "p_value"]
    for options in ({}, {"strata": None}, {"cluster": None, "strata": None, "user_col": "row"}):
        frame = data.assign(row=range(len(data))) if "user_col" in options else data
        one = compared(frame, {"ctr": ("clicks", "views")}, covariates={"ctr": "x"}, **options)[
            columns
        ]
        both = compared(
            frame,
            {"ctr": ("clicks", "views")},
            covariates={"ctr": ["x", "same", "twice"]},
            **options,
        )
        pd.testing.assert_frame_equal(one, both[columns], rtol=1e-9)


@pytest.mark.long
def test_few_clusters_in_strata_have_the_jackknife(rng):
    data = ramped(rng, 36, phases=2)
    found = compared(data).loc["ctr"]
    total = data["views"].sum()
    share = data.groupby("phase")["views"].sum() / total

    def estimate(frame):
        sums = frame.groupby("phase")[["clicks", "views"]].sum()
        return sums["clicks"] / sums["views"]

    var = 0.0
    for _, own in data.groupby("variant"):
        whole, size = estimate(own), own.groupby("phase")["user_id"].nunique()
        for user in own["user_id"].unique():
            moved = (
                share * (estimate(own[own["user_id"] != user]) - whole) * np.sqrt((size - 1) / size)
            )
            var += moved.sum() ** 2
    assert found["se"] == pytest.approx(np.sqrt(var), rel=1e-9)


def test_weights_within_strata_are_a_ratio(rng):
    data = ramped(rng, rows=1).assign(w=lambda d: 1 + d["views"])
    found = compared(data, {"y": "y"}, cluster=None, weight_col="w").loc["y"]
    want = compared(data.assign(wy=data["w"] * data["y"]), {"y": ("wy", "w")}, cluster=None).loc[
        "y"
    ]
    assert found["diff"] == pytest.approx(want["diff"], rel=1e-12)
    assert found["se"] == pytest.approx(want["se"], rel=1e-12)


def test_a_ramp_up_needs_its_strata(rng):
    """Pooled, a later phase with more clicks and more of the treatment looks like an effect of the
    treatment."""
    data = ramped(rng, 4000, rows=1)
    pooled, within = (
        compared(data, {"ctr": ("clicks", "views")}, strata=one).loc["ctr"]
        for one in (None, "phase")
    )
    assert pooled["ci_low"] > 0
    assert within["ci_low"] < 0 < within["ci_high"]
    # A denominator that grows over the phases does not differ between the arms of a phase.
    assert pooled["p_denominator"] < 1e-6
    assert within["p_denominator"] > 0.001
    assert "denominator_differs" not in within["remarks"]


@pytest.mark.parametrize("left", [0, 1])
def test_too_few_clusters_in_a_stratum(rng, left):
    data = ramped(rng)
    users = data.loc[(data["phase"] == 0) & (data["variant"] == "B"), "user_id"].unique()
    with pytest.raises(
        rd.DataError, match="1 of 3 strata have fewer than 2 clusters in an arm of 'A' and 'B' for"
    ):
        compared(data[~data["user_id"].isin(users[left:])])


def test_a_stratum_of_one_arm_without_a_denominator_has_no_ratio(rng):
    data = ramped(rng, rows=1)
    none = data["phase"] == 1
    both = data.assign(views=data["views"].where(~none, 0), clicks=data["clicks"].where(~none, 0))
    rest = compared(data[~none], {"ctr": ("clicks", "views")}, cluster=None).loc["ctr"]
    found = compared(both, {"ctr": ("clicks", "views")}, cluster=None).loc["ctr"]
    assert found["diff"] == pytest.approx(rest["diff"], rel=1e-12)
    assert found["se"] == pytest.approx(rest["se"], rel=1e-12)
    none &= data["variant"] == "B"
    one = data.assign(views=data["views"].where(~none, 0), clicks=data["clicks"].where(~none, 0))
    found = compared(one, {"ctr": ("clicks", "views")}, cluster=None).loc["ctr"]
    assert "zero_denominator" in found["remarks"]
    assert np.isnan(found["se"])


def test_the_order_of_rows_says_nothing(rng):
    data = ramped(rng, span=True)
    want, found = (
        compared(one, covariates=["x", "z"]) for one in (data, data.sample(frac=1, random_state=1))
    )
    pd.testing.assert_frame_equal(found, want, rtol=1e-11)


@pytest.mark.long
def test_what_changes_over_the_phases_is_no_fault(rng):
    """Covariates, missing values and missing covariates that follow the phase do not differ between
    the arms of it."""
    data = ramped(rng, 4000, rows=1)
    later = data["phase"] / 2
    late = rng.random(len(data)) < 0.2 * later
    unknown = rng.random(len(data)) < later / 3
    trend = data.assign(x=data["x"] + later, y=data["y"].mask(late), z=data["z"].mask(unknown))
    options = {
        "cluster": None,
        "covariates": {"y": ["x", "z"]},
        "nan": "drop",
        "expected": {"A": 0.55, "B": 0.45},
    }
    pooled, within = (
        compared(trend, {"y": "y"}, **options, strata=one).loc["y"] for one in (None, "phase")
    )
    for word in ("covariate_differs", "unequal_missing", "unequal_covariate_missing"):
        assert word in pooled["remarks"]
        assert word not in within["remarks"]
    treated = data["variant"] == "B"
    # What differs within the phases is found.
    for column, word in (("y", "unequal_missing"), ("z", "unequal_covariate_missing")):
        fewer = trend.assign(
            **{column: trend[column].mask(treated & (rng.random(len(data)) < 0.1))}
        )
        assert word in compared(fewer, {"y": "y"}, **options).loc["y", "remarks"].split("; ")
    for cluster in (None, "user_id"):
        moved = compared(
            trend.assign(x=trend["x"] + 0.4 * treated), {"y": "y"}, **options | {"cluster": cluster}
        )
        assert "covariate_differs" in moved.loc["y", "remarks"]
        assert "x" in moved.loc["y", "unbalanced"].split(", ")


@pytest.mark.long
def test_coverage_over_ten_phases(rng):
    """Ten phases from 15 to 60 per cent, in which clicks rise; the true difference of the ratios is
    0.02."""
    draws, of_draw, n, phases, covered, naive = 5, 50, 1000, 10, 0, 0
    for _ in range(draws):
        phase = rng.integers(0, phases, n)
        treated = rng.random(n) < np.linspace(0.15, 0.6, phases)[phase]
        data = pd.DataFrame({"variant": np.where(treated, "B", "A"), "phase": phase})
        mean = (0.1 + 0.03 * phase + 0.02 * treated)[:, None]
        views = rng.poisson(4, (n, of_draw)) + 1
        clicks = rng.binomial(views, np.clip(mean + rng.normal(0, 0.05, views.shape), 0, 1))
        runs = [pd.DataFrame(one).add_prefix(name) for name, one in (("v", views), ("c", clicks))]
        data, metrics = (
            pd.concat([data, *runs], axis=1),
            {f"r{i}": (f"c{i}", f"v{i}") for i in range(of_draw)},
        )
        for strata in ("phase", None):
            found = rd.compare_variants(
                data, metrics, control="A", strata=strata, correction="none", details=True
            )
            inside = ((found["ci_low"] <= 0.02) & (found["ci_high"] >= 0.02)).sum()
            covered, naive = (
                covered + inside * (strata is not None),
                naive + inside * (strata is None),
            )
    assert 0.92 <= covered / draws / of_draw <= 0.98
    assert naive / draws / of_draw < 0.5


def test_a_thin_stratum_of_a_segment_is_named_with_its_arms(rng):
    data = ramped(rng).assign(land="fi")
    more = data.assign(land="se", user_id=data["user_id"] + 10**6)
    more = more[(more["phase"] > 0) | (more["variant"] == "A")]
    said = r"1 of 3 strata .* in an arm of 'A' and 'B' where \['land'\] is 'se' for metric"
    with pytest.raises(rd.DataError, match=said):
        compared(pd.concat([data, more]), by="land")


@pytest.mark.parametrize(("n_treated", "withheld"), [(20, "skewed"), (500, "")])
def test_a_thin_cell_of_a_skewed_metric_is_asked_for_by_itself(n_treated, withheld):
    """A tenth of the users have two clicks, but none of the first week's treated ones. Of 20 of
    them that is chance (0.9^20 = 0.12), and their variance of 0 makes it look sure."""
    week = np.repeat([0, 1], 1000)
    number = np.tile(np.arange(1000), 2)
    treated = number < np.where(week == 0, n_treated, 500)
    clicks = 2.0 * ((number % 10 == 0) & ~(treated & (week == 0)))
    data = pd.DataFrame({"week": week, "variant": np.where(treated, "B", "A"), "clicks": clicks})
    row = compared(data, "clicks", strata="week", cluster=None, time_col="week").iloc[0]
    assert row["p_value"] < 1e-4
    assert row["withheld"] == withheld
    # The test of shares gives the cell the variance of both arms.
    data["clicked"] = data["clicks"] / 2
    row = compared(data, "clicked", strata="week", cluster=None, time_col="week").iloc[0]
    assert "skewed" not in row["remarks"]
