"""What was fixed before an experiment is alike in its variants: covariates, weights, strata, times
of assignment."""

import numpy as np
import pandas as pd
import pytest
from cli.command import run
from experiments.verdicts import arms, compare
from scipy import stats

import recdf as rd
from recdf.errors import OptionError
from recdf.experiments.decide.balance import p_of_balance
from recdf.judge.users import ExperimentRows
from recdf.stats.arms import Sample

EQUAL = {"A": 1, "B": 1}


def random_split_p(values, arm):
    """p of the balance of one covariate, of users that each stand for themselves."""
    one_group = pd.DataFrame(index=[0]), 0 * arm
    rows = ExperimentRows(
        pd.DataFrame(index=range(len(arm))), pd.Series(["A", "B"]), arm, *one_group, *[None] * 3
    )
    return p_of_balance([Sample(values)], rows, rows.both(0, (0, 1)))[0]


def covered(rng, shift=0.0, n=1000, **columns):
    """Equal arms, and a covariate that explains the metric and was logged `shift` higher in B."""
    pre = rng.normal(size=2 * n)
    data = arms(*np.split(pre + rng.normal(0, 0.5, 2 * n), 2), **columns)
    return data.assign(pre=pre + shift * (data["variant"] == "B"))


def withheld(found, *names, warning="covariate_differs", verdict="check: covariate differs"):
    assert warning in found["remarks"].split("; ")
    assert found["verdict"] == verdict
    assert found["unbalanced"] == ", ".join(names)


# -- covariates


def test_a_covariate_that_differs_withholds_the_verdict(rng):
    data = covered(rng, 0.3)
    plain = compare(data, expected=EQUAL)
    assert plain["verdict"] == "no difference shown"
    assert plain["unbalanced"] == ""
    assert np.isnan(plain["balance_p"])
    found = compare(data, covariates="pre", expected=EQUAL)
    assert found["p_value"] < 1e-6  # what was a verdict
    withheld(found, "pre")
    pre = data.groupby("variant")["pre"].apply(list)
    assert found["balance_p"] == pytest.approx(stats.ttest_ind(pre["A"], pre["B"]).pvalue, rel=0.2)
    for options in (
        {"test": "permutation", "n_resamples": 200},
        {"test": "bootstrap", "n_resamples": 200},
        {"sequential_n": 4000},
        {"strata": "half"},
    ):
        withheld(compare(data.assign(half=data["user_id"] % 2), covariates="pre", **options), "pre")
    fine = covered(rng)
    assert compare(fine, covariates="pre", expected=EQUAL)["remarks"] == "covariate_not_timed"


def test_only_the_metric_and_the_pair_of_the_covariate_are_withheld(rng):
    data = covered(rng, 0.3)
    third = covered(rng).assign(user_id=lambda one: one["user_id"] + 5000)
    third = third[third["variant"] == "B"].assign(variant="C")
    data = pd.concat([data, third]).assign(other=lambda one: rng.normal(size=len(one)))
    data["half"] = data["user_id"] % 2
    table = rd.compare_variants(
        data,
        ["m", "other"],
        control="A",
        covariates={"m": ["pre", "half"]},
        expected={"A": 1, "B": 1, "C": 1},
        details=True,
    ).set_index(["metric", "treatment"])
    assert table["unbalanced"].to_dict() == {
        ("m", "B"): "pre",
        ("m", "C"): "",
        ("other", "B"): "",
        ("other", "C"): "",
    }
    assert table["balance_p"].isna().tolist() == [False, False, True, True]
    shown = rd.experiments.report_table(table.reset_index()).frame
    assert shown["notes"].tolist()[0] == "covariate differs: pre"
    segments = rd.compare_variants(
        data, "m", control="A", covariates="pre", by="half", details=True
    ).set_index(["half", "treatment"])
    assert segments["unbalanced"].to_dict() == {
        (0, "B"): "pre",
        (0, "C"): "",
        (1, "B"): "pre",
        (1, "C"): "",
    }


def test_a_mild_difference_is_a_remark_and_counts_all_tests(rng):
    # Two arms of 200 with means that are exactly 3 standard errors apart: p .0027.
    x = stats.norm.ppf((np.arange(200) + 0.5) / 200)
    both = np.concatenate([x, x])
    data = arms(rng.permutation(x), rng.permutation(x) + 3)
    shift = 3.05 * np.sqrt(2 / 200) * both.std()
    data["pre"] = np.concatenate([x, x + shift])
    found = compare(data, covariates="pre", expected=EQUAL)
    assert 0.001 < found["balance_p"] < 0.01
    assert (found["remarks"], found["unbalanced"], found["effect"]) == (
        "covariate_differs; unbounded; covariate_not_timed",
        "pre",
        "better",
    )
    assert found["verdict"].endswith(" or more (covariate time not checked)")
    for i in range(10):
        data[f"x{i}"] = rng.permutation(x.repeat(2))
    many = compare(data, covariates=["pre", *(f"x{i}" for i in range(10))], expected=EQUAL)
    # Each of the 11 is tested twice: as it is, and after a regression on the others.
    others = np.column_stack([np.ones(400), *(data[f"x{i}"] for i in range(10))])
    rest = data["pre"] - others @ np.linalg.lstsq(others, data["pre"], rcond=None)[0]
    after = random_split_p(rest.to_numpy(), (data["variant"] == "B").to_numpy(np.int64))
    assert many["balance_p"] == pytest.approx(22 * min(found["balance_p"], after))
    assert many["unbalanced"] == ""


@pytest.mark.long
def test_clusters_ratios_and_gaps(rng):
    # Shops differ much: by users the covariate would differ in most experiments.
    shop = np.arange(3000) % 60
    of_shop = rng.normal(0, 2, 60)
    flagged = 0
    for _ in range(40):
        variant = np.where(rng.permutation(60)[shop] < 30, "B", "A")
        data = pd.DataFrame(
            {"user_id": range(3000), "variant": variant, "shop": shop, "pre": of_shop[shop]}
        )
        data["m"] = data["pre"] + rng.normal(size=3000)
        flagged += compare(data, covariates="pre", cluster="shop")["unbalanced"] != ""
    assert flagged <= 3
    data["pre"] += 5 * (data["variant"] == "B")
    withheld(compare(data, covariates="pre", cluster="shop", expected=EQUAL), "pre")
    n = 4000
    views, before = rng.poisson(8, n) + 1, rng.poisson(8, n)
    data = pd.DataFrame(
        {"user_id": range(n), "variant": ["A", "B"] * (n // 2), "views": views, "pre_views": before}
    )
    data["clicks"], treated = rng.binomial(views, 0.2), data["variant"] == "B"
    for rate, names in ((0.2, []), (0.26, ["pre_clicks/pre_views"])):
        data["pre_clicks"] = rng.binomial(before, np.where(treated, rate, 0.2))
        options = {"covariates": {"ctr": ("pre_clicks", "pre_views")}, "expected": EQUAL}
        found = compare(data, {"ctr": ("clicks", "views")}, **options)
        assert found["unbalanced"] == ", ".join(names)
    gaps = covered(rng, 0.5)
    gaps["pre"] = gaps["pre"].where(rng.random(len(gaps)) > 0.2)
    withheld(compare(gaps, covariates="pre", expected=EQUAL), "pre")


def test_weights_and_strata_that_differ(rng):
    data = covered(rng)
    data["w"] = np.exp(0.3 * data["m"])
    assert compare(data, weight_col="w", expected=EQUAL)["unbalanced"] == ""
    data["w"] = data["w"] ** (1 + (data["variant"] == "B"))
    withheld(compare(data, weight_col="w", expected=EQUAL), "w")
    # Strata into which the treatment moves users withhold; of unequal shares alone they may be a
    # ramp-up, and are a remark.
    data["s"] = np.where(data["m"] + (data["variant"] == "B") > 0.5, "x", "y")
    assert compare(data, strata="s", expected=EQUAL)["withheld"] == "strata_moved"
    data["s"] = np.where(rng.random(len(data)) + 0.3 * (data["variant"] == "B") > 0.6, "x", "y")
    found = compare(data, strata="s", expected=EQUAL)
    assert (found["remarks"], found["unbalanced"], found["withheld"]) == ("strata_differ", "s", "")
    assert compare(data.assign(s=data["user_id"] % 3), strata="s")["remarks"] == "ratio_not_checked"


def test_a_covariate_measured_after_the_exposure_is_named(rng):
    day = pd.Timestamp("2026-09-01")
    data = covered(rng, exposed_at=day, measured_at=day - pd.Timedelta("1D"))
    options = {
        "covariates": "pre",
        "time_col": "exposed_at",
        "covariate_time_col": "measured_at",
        "expected": EQUAL,
    }
    assert compare(data, **options)["remarks"] == ""
    data.loc[3, "measured_at"] = day + pd.Timedelta("1h")
    withheld(
        compare(data, **options),
        "measured_at",
        warning="covariate_after",
        verdict="check: covariate after exposure",
    )
    with pytest.raises(OptionError, match="needs time_col="):
        compare(data, covariates="pre", covariate_time_col="measured_at")
    with pytest.raises(OptionError, match="cannot be compared"):
        compare(data.assign(measured_at=1), **options)
    texts = data.assign(exposed_at="2026-09-30", measured_at="2026-10-02")
    assert "covariate_after" in compare(texts, **options)["remarks"]
    with pytest.raises(OptionError, match="cannot be compared"):  # "1" is before "9"
        compare(data.assign(exposed_at="9/30/2026", measured_at="10/02/2026"), **options)


@pytest.mark.long
@pytest.mark.parametrize(
    ("n", "values"),
    [
        ((1000, 1000), "payers"),
        ((950, 50), "payers"),
        ((950, 50), "rare"),
        ((190, 10), "normal"),
        ((190, 10), "payers"),
        ((190, 10), "rare"),
    ],
)
def test_p_of_a_random_split_holds(n, values):
    rng = np.random.default_rng(5)
    total = sum(n)
    p = []
    arm = np.repeat([0, 1], n)
    for _ in range(1000):
        x = {
            "normal": rng.normal(size=total),
            "payers": (rng.random(total) < 0.05) * rng.lognormal(0, 1.5, total),
            "rare": (rng.random(total) < 0.02) * 1.0,
        }[values]
        p.append(random_split_p(x, arm))
    p = np.array(p)
    assert (p < 0.01).mean() < 0.02
    assert (p < 0.001).mean() <= 0.004
    shifted = np.r_[rng.normal(size=n[0]), rng.normal(size=n[1]) + 3]
    assert random_split_p(shifted, arm) < 1e-6
    assert np.isnan(random_split_p(np.ones(10), np.repeat([0, 1], 5)))


# -- times of the assignment


def ramp_up(rng, n=2000):
    """B has 10 % of the users of the first week and 50 % of the second, whose users are worth
    more."""
    day = rng.integers(0, 14, n)
    treated = rng.random(n) < np.where(day < 7, 0.1, 0.5)
    groups = pd.DataFrame({"user_id": range(n), "variant": np.where(treated, "B", "A")})
    groups["assigned_at"] = pd.Timestamp("2026-09-01") + pd.to_timedelta(
        24 * day + rng.integers(0, 24, n), unit="h"
    )
    groups["week"] = day // 7
    return pd.DataFrame({"user_id": range(n), "m": (day >= 7) + rng.normal(size=n)}), groups


CHANGES = {"warning": "shares_change", "verdict": "check: shares of the variants change"}


@pytest.mark.long
def test_dates_of_assignment_show_a_ramp_up_without_time_col(rng):
    metrics, groups = ramp_up(rng)
    shares = groups["variant"].value_counts(normalize=True).to_dict()
    users = rd.join_experiment(metrics, groups, missing="zero")
    withheld(compare(users, expected=shares), "assigned_at", **CHANGES)
    health = rd.experiments.experiment_health(metrics, groups, expected=shares)
    withheld(compare(users, health=health), "assigned_at", **CHANGES)
    for dates in (
        users["assigned_at"].astype(str),
        users["assigned_at"].dt.date,
        users["assigned_at"].dt.tz_localize("Europe/Berlin"),
        users["assigned_at"].astype("datetime64[s]"),
    ):
        withheld(
            compare(users.assign(assigned_at=dates), expected=shares), "assigned_at", **CHANGES
        )
    withheld(
        compare(users.assign(by_text=users["assigned_at"].astype(str)), time_col="by_text"),
        "by_text",
        **CHANGES,
    )
    # Within the weeks the shares stay the same, so that weeks as strata mend it, and half-weeks of
    # days do not.
    assert compare(users, strata="week", time_col="week", expected=shares)["remarks"] == ""
    assert (
        compare(users, strata="week", time_col="assigned_at", expected=shares)["remarks"]
        == "strata_differ"
    )
    mixed = users.assign(other=rng.integers(0, 2, len(users)))
    withheld(compare(mixed, strata="other", expected=shares), "assigned_at", **CHANGES)
    visits = pd.concat([users, users])
    withheld(compare(visits, cluster="user_id", expected=shares), "assigned_at", **CHANGES)


@pytest.mark.long
def test_other_dates_are_no_ramp_up(rng):
    metrics, groups = ramp_up(rng)
    groups["variant"] = rng.choice(["A", "B"], len(groups))
    users = rd.join_experiment(metrics, groups, missing="zero").assign(
        born="1990-01-01", code="2026"
    )
    assert compare(users, expected=EQUAL)["remarks"] == ""
    # Times of visits, and times that some users lack, follow from the variant.
    treated = users["variant"] == "B"
    users["bought_at"] = (users["assigned_at"] + pd.to_timedelta(treated * 3, unit="D")).where(
        users["m"] > 0
    )
    assert compare(users, expected=EQUAL)["remarks"] == ""
    visits = pd.concat([users.assign(visit=i) for i in range(3)])
    visits["time"] = visits["assigned_at"] + pd.to_timedelta(
        visits["visit"] * np.where(visits["variant"] == "B", 1, 9), unit="D"
    )
    assert compare(visits, cluster="user_id", expected=EQUAL)["remarks"] == ""


# -- where a reader sees it


@pytest.mark.long
@pytest.mark.usefixtures("without_pictures")
def test_report_and_command_say_it(rng, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shop = rd.sample_shop(n_users=400, n_items=100)
    result = rd.evaluate(shop.true, shop.shown, "revenue@10", users="pred", value_col="value")
    result.to_parquet("ab")
    groups = shop.assignment.assign(measured_at="2026-09-01 12:00", assigned_at="2026-09-01 13:00")
    groups["pre_spend"] += 300 * (groups["variant"] == "B")
    groups.to_csv("groups.csv", index=False)
    call = ["experiment", "ab", "--assignment", "groups.csv", "--control", "A", "--missing", "zero"]
    call += ["--covariate", "pre_spend"]
    for fail_on, code in (((), 0), (("--fail-on", "invalid"), 1), (("--fail-on", "warning"), 1)):
        got, out, _ = run(capsys, *call, *fail_on)
        assert got == code
        assert "check: covariate differs" in out
        assert "covariate differs: pre_spend" in out
    users = result.join_experiment(groups, missing="zero")
    table = rd.compare_variants(
        users, "revenue@10", control="A", covariates="pre_spend", expected=EQUAL, details=True
    )
    page = rd.report(result, "r.html", experiment=table).read_text(encoding="utf-8")
    assert "The verdict is withheld" in page
    assert page.count("check: covariate differs") >= 2
    assert "covariate differs: pre_spend" in page
    late = groups.assign(pre_spend=shop.assignment["pre_spend"], assigned_at="2026-09-01 11:00")
    late.to_csv("groups.csv", index=False)
    times = ["--period-col", "assigned_at", "--covariate-time-col", "measured_at"]
    got, out, _ = run(capsys, *call, *times, "--fail-on", "invalid")
    assert got == 1
    assert "covariate after: measured_at" in out
