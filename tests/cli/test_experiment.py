"""`recdf experiment` gives the tables of `compare_variants`; experiments/ tests the numbers."""

import shutil
import sys

import numpy as np
import pandas as pd
import pytest
from cli.command import fails, instead, run
from cli.shop import GROUPS, METRICS, SHOP, sessions, shown, written
from quick import few

import recdf as rd
from recdf.cli.deciding import compact

# -- recdf experiment


@pytest.mark.long
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_experiment_writes_what_the_functions_give(capsys, folder, kind):
    code, out, err = run(
        capsys,
        "experiment",
        "ab",
        "--assignment",
        f"groups.{kind}",
        "--control",
        "A",
        "--missing",
        "zero",
        "--metric",
        "revenue@10",
        "ctr=hits@10/n_pred",
        "--covariate",
        "pre_spend",
        "--expected",
        "A=0.5",
        "B=0.5",
        "--segment",
        "segment",
        "--out",
        "out",
    )
    assert (code, err) == (0, "")
    result = shown()
    joined = result.join_experiment(GROUPS, missing="zero")
    metrics = {"revenue@10": "revenue@10", "ctr": ("hits@10", "n_pred")}
    options = {"control": "A", "covariates": "pre_spend", "expected": {"A": 0.5, "B": 0.5}}
    wanted = {
        "health": rd.experiments.experiment_health(result.per_user, GROUPS),
        "comparison": rd.compare_variants(joined, metrics, **options),
        "segments": rd.compare_variants(joined, metrics, by="segment", **options),
    }
    for name, want in wanted.items():
        pd.testing.assert_frame_equal(written(f"out/{name}.parquet"), want, check_dtype=False)
    assert (
        out.index("sample ratio: fits planned shares")
        < out.index("All users")
        < out.index("By segment")
    )
    assert "B vs. A" in out
    for row in (
        rd.experiments.segment_effects(wanted["segments"])
        .drop_duplicates("metric")
        .to_dict("records")
    ):
        assert (
            f"{row['metric']}, B against A: {row['verdict']} (Q = {row['q']:.4g} of 3 segments"
            in out
        )
    assert "missing metrics: alike" in out
    assert out.isascii()


@pytest.mark.long
def test_experiment_options_reach_the_comparison(capsys, folder):
    options = {
        "nan": "drop",
        "primary": ["hits@10"],
        "strata": ["segment"],
        "alternative": "two-sided",
        "confidence": 0.9,
        "sequential_n": 400,
        "correction": "bonferroni",
        "smaller_is_better": ["hits@10"],
    }
    arguments = [
        part
        for name, value in options.items()
        for part in ("--" + name.replace("_", "-"), value[0] if isinstance(value, list) else value)
    ]
    call = [
        "experiment",
        "ab",
        "--assignment",
        "groups.csv",
        "--control",
        "A",
        "--out",
        "out",
        "--overwrite",
    ]
    options["bounds"] = {"revenue@10": (0, 90_000)}
    arguments += ["--bounds", "revenue@10=0,90000"]
    assert run(capsys, *call, *arguments, "--missing", "nan")[0] == 0
    joined = shown().join_experiment(GROUPS, missing="nan")
    want = rd.compare_variants(joined, METRICS, control="A", expected={"A": 1, "B": 1}, **options)
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)
    boot = [
        "--test",
        "bootstrap",
        "--n-resamples",
        100,
        "--seed",
        3,
        "--cluster",
        "user_id",
        "--missing",
        "zero",
    ]
    assert run(capsys, *call, *boot, "--covariate", "hits@10=pre_spend")[0] == 0
    joined = shown().join_experiment(GROUPS, missing="zero")
    want = rd.compare_variants(
        joined,
        METRICS,
        control="A",
        test="bootstrap",
        n_resamples=100,
        seed=3,
        cluster="user_id",
        covariates={"hits@10": "pre_spend"},
        expected={"A": 1, "B": 1},
    )
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)


@pytest.mark.long
def test_experiment_asks_which_share_of_the_assigned_users_is_compared(capsys, folder):
    """As many users of both variants have lists, of whom A has 60 more."""
    more = pd.DataFrame({"user_id": [f"more {i}" for i in range(60)], "variant": "A"})
    groups = pd.concat([GROUPS, more], ignore_index=True)
    groups.to_parquet("more.parquet")
    call = ["experiment", "ab", "--assignment", "more.parquet", "--control", "A", "--out", "out"]
    assert run(capsys, *call, "--missing", "drop", "--metric", "revenue@10")[0] == 0
    result = shown()
    with pytest.warns(rd.RecdfWarning, match="these shares differ by more than chance"):
        joined = result.join_experiment(groups, missing="drop")
    health = rd.experiments.experiment_health(result.per_user, groups, expected={"A": 1, "B": 1})
    want = rd.compare_variants(joined, "revenue@10", control="A", health=health)
    assert want["withheld"].tolist() == ["sample_ratio"]
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)


@pytest.mark.long
def test_experiment_options_of_skew_shares_and_covariates(capsys, folder):
    week = np.arange(len(GROUPS)) % 3
    groups = GROUPS.assign(week=week, past=GROUPS["pre_spend"] ** 2)
    groups.to_csv("groups.csv", index=False)
    rd.evaluate(
        SHOP.true, SHOP.shown, ["revenue@10", "hitrate@10"], users="pred", value_col="value"
    ).to_parquet("both")
    call = [
        "experiment",
        "both",
        "--assignment",
        "groups.csv",
        "--control",
        "A",
        "--details",
        "--out",
        "out",
        "--overwrite",
    ]
    call += [
        "--missing",
        "zero",
        "--relative",
        "log",
        "--larger-is-better",
        "hitrate@10",
        "--period-col",
        "week",
    ]
    expected = {"A": 1, "B": 1}
    assert run(capsys, *call, "--cap", "revenue@10=0.99", "--proportion", "hitrate@10")[0] == 0
    result = rd.read_parquet("both")
    joined = result.join_experiment(groups, missing="zero")
    options = {
        "relative": "log",
        "larger_is_better": ["hitrate@10"],
        "time_col": "week",
        "expected": expected,
    }
    want = rd.compare_variants(
        joined,
        ["revenue@10", "hitrate@10"],
        control="A",
        cap={"revenue@10": 0.99},
        test={"hitrate@10": "proportion"},
        **options,
        details=True,
    )
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)
    assert want["method"].tolist() == ["welch", "proportion"]
    several = [
        "--covariate",
        "pre_spend",
        "revenue@10=past",
        "--test",
        "permutation",
        "--n-resamples",
        "50",
    ]
    assert run(capsys, *call, *several)[0] == 0
    covariates = {"revenue@10": ["pre_spend", "past"], "hitrate@10": "pre_spend"}
    want = rd.compare_variants(
        joined,
        ["revenue@10", "hitrate@10"],
        control="A",
        covariates=covariates,
        test="permutation",
        n_resamples=50,
        **options,
        details=True,
    )
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["daily", "cumulative", "since_exposure"])
def test_experiment_shows_the_effect_over_time(capsys, folder, kind):
    rng = np.random.default_rng(1)
    people = pd.DataFrame({"user_id": range(60), "variant": ["A", "B"] * 30, "seen": 0})
    lists = people[["user_id"]].merge(pd.DataFrame({"session_id": range(8)}), how="cross")
    true = lists.assign(item_id=1)
    pred = lists.assign(
        item_id=np.where(rng.random(len(lists)) < 0.5, 1, 2), rank=1, day=lists["session_id"]
    )
    rd.evaluate(
        true, pred, "hitrate@1", user_col=["user_id", "session_id"], carry="day"
    ).to_parquet("visits")
    people.to_csv("people.csv", index=False)
    call = ["experiment", "visits", "--assignment", "people.csv", "--control", "A", "--how", "mean"]
    call += ["--user-col", "user_id", "--missing", "zero", "--over-time", kind, "--out", "out"]
    assert "--exposure-col" in fails(capsys, *call)
    code, out, err = run(capsys, *call, "--exposure-col", "seen", "--time-col", "day")
    assert (code, err) == (0, "")
    want = rd.experiments.effect_over_time(
        pd.read_parquet("visits/per_user.parquet"),
        "hitrate@1",
        control="A",
        time_col="day",
        exposure_col="seen",
        assignment=people,
        kind=kind,
        expected={"A": 1, "B": 1},
    )
    pd.testing.assert_frame_equal(written("out/over_time.parquet"), want, check_dtype=False)
    assert f"hitrate@1, B vs. A: trend: {want['trend_verdict'].iloc[0]}" in out
    assert out.isascii()


@pytest.mark.long
def test_experiment_takes_times_of_exposure(capsys, folder):
    """Lists by user and day; a CSV file has its times as text, and a user who was never exposed has
    none."""
    day = pd.Series(
        pd.to_datetime("2026-03-01") + pd.to_timedelta(np.arange(len(SHOP.shown)) % 5, unit="D")
    )
    dated = SHOP.shown.assign(day=day.to_numpy())
    result = rd.evaluate(
        SHOP.true.merge(dated[["user_id", "day"]].drop_duplicates()),
        dated,
        "hits@10",
        user_col=["user_id", "day"],
        users="pred",
    )
    result.to_parquet("days")
    seen = pd.Series(pd.to_datetime("2026-03-03"), index=GROUPS.index).where(
        np.arange(len(GROUPS)) % 4 > 0
    )
    GROUPS.assign(seen=seen).to_csv("groups.csv", index=False)
    call = [
        "experiment",
        "days",
        "--assignment",
        "groups.csv",
        "--control",
        "A",
        "--missing",
        "zero",
        "--how",
        "sum",
    ]
    call += ["--exposure-col", "seen", "--time-col", "day", "--out", "out"]
    found = run(capsys, *call)
    assert found[0] == 0, found[2]
    options = {"missing": "zero", "how": "sum", "exposure_col": "seen", "time_col": "day"}
    joined = result.join_experiment(GROUPS.assign(seen=seen), **options)
    assert len(joined) == int(seen.notna().sum())
    want = rd.compare_variants(joined, "hits@10", control="A", expected={"A": 1, "B": 1})
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)


@pytest.mark.long
def test_experiment_says_that_the_sample_ratio_is_wrong(capsys, folder):
    call = [
        "experiment",
        "ab",
        "--assignment",
        "groups.parquet",
        "--control",
        "A",
        "--missing",
        "zero",
    ]
    code, out, _ = run(capsys, *call, "--expected", "A=0.9", "B=0.1")
    assert code == 0
    assert "sample ratio: DOES NOT FIT planned shares, p < 0.001" in out
    assert "invalid: sample ratio" in out
    few = pd.concat([GROUPS[GROUPS["variant"] == "A"], GROUPS[GROUPS["variant"] == "B"].head(40)])
    few.to_parquet("few.parquet")
    call[call.index("groups.parquet")] = "few.parquet"
    out = run(capsys, *call)[1]
    assert "DOES NOT FIT equal shares (say otherwise with --expected)" in out
    assert "invalid: sample ratio" in out
    n = (
        shown().per_user["user_id"].nunique()
        - few["user_id"].isin(shown().per_user["user_id"]).sum()
    )
    assert f"{n} users with metrics but no variant, left out" in out


def test_a_failing_row_of_a_result_of_several_models_is_named(capsys, folder):
    rd.evaluate(SHOP.true, SHOP.pred, "ndcg@10", by="model").to_parquet("several")
    few = pd.concat([GROUPS[GROUPS["variant"] == "A"], GROUPS[GROUPS["variant"] == "B"].head(40)])
    few.to_parquet("few.parquet")
    call = ["experiment", "several", "--assignment", "few.parquet", "--control", "A"]
    call += ["--missing", "zero", "--metric", "ndcg@10", "--fail-on", "invalid"]
    code, _, err = run(capsys, *call)
    assert code == 1
    assert "--fail-on invalid: model knn, ndcg@10, B vs. A: invalid: sample ratio" in err


@pytest.mark.long
def test_experiment_tests_the_users_whom_it_compares(capsys, folder):
    """All assigned users fit the plan; of those with lists, the only ones compared, B has few."""
    light = GROUPS.loc[GROUPS["variant"] == "B", "user_id"].head(120)
    table = SHOP.shown[~SHOP.shown["user_id"].isin(light)]
    result = rd.evaluate(SHOP.true, table, METRICS, users="pred", value_col="value")
    result.to_parquet("fewer")
    call = [
        "experiment",
        "fewer",
        "--assignment",
        "groups.parquet",
        "--control",
        "A",
        "--missing",
        "drop",
    ]
    code, out, _ = run(capsys, *call, "--fail-on", "invalid", "--out", "out", "--details")
    assert code == 1
    health = written("out/health.parquet")
    assert not health["srm_flag"].any()
    n = table["user_id"].nunique()
    assert f"sample ratio of the {n} users compared: DOES NOT FIT equal shares" in out
    assert "invalid: sample ratio" in out
    assert (written("out/comparison.parquet")["srm_p"] < 0.001).all()
    path = rd.report(result, "r.html", experiment=written("out/comparison.parquet"), health=health)
    page = path.read_text(encoding="utf-8")
    assert "The users who are compared do not fit the plan" in page
    assert "Sample ratio as planned" not in page


@pytest.mark.long
def test_experiment_by_variant_model_and_with_integer_variants(capsys, folder):
    numbers = {"A": 0, "B": 1}
    lists = SHOP.shown.assign(variant=SHOP.shown["variant"].map(numbers), model="m")
    rd.evaluate(SHOP.true, lists, "hits@10", by=["model", "variant"], users="pred").to_parquet("by")
    GROUPS.assign(variant=GROUPS["variant"].map(numbers)).to_csv("groups.csv", index=False)
    call = [
        "experiment",
        "by",
        "--assignment",
        "groups.csv",
        "--control",
        "0",
        "--missing",
        "zero",
        "--out",
        "out",
    ]
    code, _, err = run(capsys, *call, "--expected", "0=1", "1=1")
    assert (code, err) == (0, "")
    table = written("out/comparison.parquet")
    assert table[["model", "control", "treatment"]].to_numpy().tolist() == [["m", 0, 1]]
    want = rd.compare_variants(
        shown().join_experiment(GROUPS, missing="zero"), "hits@10", control="A"
    )
    assert table["diff"].item() == pytest.approx(want["diff"].item())


@pytest.mark.long
def test_experiment_rolls_sessions_up(capsys, folder):
    keys = ["user_id", "session"]
    result = rd.evaluate(
        sessions(SHOP.true), sessions(SHOP.shown), "hits@10", user_col=keys, users="pred"
    )
    result.to_parquet("sessions")
    call = [
        "experiment",
        "sessions",
        "--assignment",
        "groups.csv",
        "--control",
        "A",
        "--missing",
        "zero",
    ]
    assert "pass --how," in fails(capsys, *call)
    assert (
        run(capsys, *call, "--how", "sum", "--metric", "ctr=hits@10/n_pred", "--out", "out")[0] == 0
    )
    joined = result.join_experiment(GROUPS, missing="zero", how="sum")
    want = rd.compare_variants(
        joined, {"ctr": ("hits@10", "n_pred")}, control="A", expected={"A": 1, "B": 1}
    )
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)


@pytest.mark.long
def test_ids_of_a_text_assignment_follow_the_result(capsys, folder):
    """The same digits, as integers and as text, in the result; the CSV file cannot tell."""
    number = {user: i + 1 for i, user in enumerate(GROUPS["user_id"])}
    GROUPS.assign(user_id=GROUPS["user_id"].map(number)).to_csv("groups.csv", index=False)
    for kind in (int, str):
        frames = [
            frame.assign(user_id=frame["user_id"].map(number).astype(kind))
            for frame in (SHOP.true, SHOP.shown)
        ]
        rd.evaluate(*frames, "hits@10", users="pred").to_parquet("ids", overwrite=True)
        call = [
            "experiment",
            "ids",
            "--assignment",
            "groups.csv",
            "--control",
            "A",
            "--missing",
            "zero",
        ]
        assert run(capsys, *call)[0] == 0
    GROUPS.assign(user_id=GROUPS["user_id"].map(number)).to_parquet("groups.parquet")
    call[call.index("groups.csv")] = "groups.parquet"
    assert "can never match" in fails(capsys, *call)


@pytest.mark.few(10)
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--missing", "raise"], "pass --missing zero if no list means no value"),
        (["--control", "C"], "--control C: no such variant; the result has"),
        (["--metric", "revnue@10"], "did you mean 'revenue@10'?"),
        (["--metric", "ctr=hits@10/n_prd"], "did you mean 'n_pred'?"),
        (["--covariate", "pre_spent"], "did you mean 'pre_spend'?"),
        (["--covariate", "hit=pre_spend"], "--covariate names ['hit']"),
        (
            ["--cap", "revenue@10"],
            "--cap revenue@10; expected a metric and a quantile, as revenue@10=0.999",
        ),
        (["--cap", "revenue@10=99"], "expected a number between 0 and 1"),
        (["--proportion", "hits@10"], "has values other than 0 and 1"),
        (["--proportion", "nope"], "--proportion names ['nope'], which are not compared"),
        (["--cap", "nope=0.9"], "--cap names ['nope']"),
        (["--primary", "nope"], "--primary names ['nope']"),
        (["--smaller-is-better", "nope"], "--smaller-is-better names ['nope']"),
        (["--exposure-col", "at"], "assignment has no column 'at'"),
        (
            ["--exposure-col", "pre_spend"],
            "--exposure-col (of assignment) and --time-col (of per_user) go together",
        ),
        (["--period-col", "week"], "assignment has no column 'week'"),
        (["--segment", "variant"], "is the column of the variant"),
        (["--segment", "segmnt"], "did you mean 'segment'?"),
        (["--segment", "metric"], "no column 'metric'"),
        (["--variant-col", "variants"], "did you mean 'variant'?"),
        (["--user-col", "usr_id"], "did you mean 'user_id'?"),
        (["--expected", "A"], "--expected A; expected a variant and its share, as A=0.5"),
        (["--expected", "A=0.5"], "--expected has no share for variant 'B'"),
        (["--expected", "A=0", "B=1"], "--expected A=0.0; expected a number above 0"),
        (["--assignment", "absent.csv"], "absent.csv: no such file"),
        (["--assignment", "groups.xls"], "groups.xls"),
        (["--how", "median"], "invalid choice"),
        (["--sequential-n", "many"], "invalid int value"),
    ],
)
def test_experiment_fails_in_one_line(capsys, folder, arguments, expected):
    call = ["experiment", "ab", "--assignment", "groups.csv", "--control", "A", "--missing", "zero"]
    assert expected in fails(capsys, *instead(call, arguments))


@pytest.mark.long
def test_experiment_compares_all_pairs(capsys, folder):
    groups = GROUPS.assign(variant=np.where(np.arange(len(GROUPS)) % 3, GROUPS["variant"], "C"))
    groups.to_csv("groups.csv", index=False)
    call = [
        "experiment",
        "ab",
        "--assignment",
        "groups.csv",
        "--missing",
        "zero",
        "--metric",
        "hits@10",
    ]
    call += ["--expected", "A=1", "B=1", "C=1"]
    _, out, _ = run(capsys, *call, "--all-pairs", "--segment", "segment", "--out", "out")
    assert "All users, p adjusted by Holm's method for 3 tests" in out
    for pair in ("B vs. A", "C vs. A", "C vs. B"):
        assert pair in out
    assert "hits@10, C against B: " in out
    joined = shown().join_experiment(groups, missing="zero")
    want = rd.compare_variants(joined, "hits@10", control=None, expected=dict.fromkeys("ABC", 1))
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)
    assert "all pairs of variants" in fails(
        capsys, *call, "--all-pairs", "--role", "hits@10=success"
    )


@pytest.mark.parametrize(
    "command", ["compare models", "experiment ab --assignment groups.csv --control A"]
)
def test_without_scipy_the_extra_is_named(capsys, folder, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.delitem(sys.modules, "scipy.special", raising=False)
    call = [*command.split(), *(["--missing", "zero"] if "ab" in command.split() else [])]
    assert "pip install 'recdf[stats]'" in fails(capsys, *call)


# -- what a ratio hides


@pytest.mark.long
def test_a_moved_denominator_is_seen_everywhere(capsys, folder):
    # B shows five items where A shows ten.
    few = SHOP.shown[(SHOP.shown["variant"] == "A") | (SHOP.shown["rank"] <= 5)]
    rd.evaluate(SHOP.true, few, METRICS, users="pred", value_col="value").to_parquet("few")
    call = [
        "experiment",
        "few",
        "--assignment",
        "groups.csv",
        "--control",
        "A",
        "--missing",
        "zero",
    ]
    call += ["--metric", "ctr=hits@10/n_pred", "--out", "out", "--overwrite", "--details"]
    code, out, _ = run(capsys, *call)
    assert code == 0
    assert "check: denominator differs" in out
    assert "denominator differs (4." in out
    assert run(capsys, *call, "--fail-on", "warning")[0] == 1
    assert run(capsys, *call, "--fail-on", "invalid")[0] == 0
    table = written("out/comparison.parquet")
    assert (
        table["mean_denominator_treatment"].iloc[0]
        < 0.6 * table["mean_denominator_control"].iloc[0]
    )
    whole = [*call[:6], "--missing", "zero", "--metric", "revenue@10", "--fail-on", "warning"]
    assert run(capsys, *whole)[0] == 0


def test_ten_users_decide_and_the_command_says_so(capsys, folder):
    groups = GROUPS.assign(gift=np.arange(len(GROUPS)) % 7 * 1.0)
    groups.loc[groups.index[groups["variant"] == "B"][:8], "gift"] = 1000.0
    groups.to_csv("gifts.csv", index=False)
    call = [
        "experiment",
        "ab",
        "--assignment",
        "gifts.csv",
        "--control",
        "A",
        "--missing",
        "zero",
        "--metric",
        "gift",
    ]
    code, out, _ = run(capsys, *call, "--fail-on", "warning")
    assert code == 1
    assert "check: few units decide" in out
    assert "few units (" in out
    assert "without them)" in out


@pytest.mark.long
def test_a_covariate_of_a_ratio_is_a_pair(capsys, folder):
    rng = np.random.default_rng(0)
    groups = GROUPS.assign(
        pre_clicks=rng.poisson(2, len(GROUPS)), pre_shown=rng.poisson(9, len(GROUPS)) + 1
    )
    groups.to_csv("past.csv", index=False)
    call = ["experiment", "ab", "--assignment", "past.csv", "--control", "A", "--missing", "zero"]
    call += ["--metric", "ctr=hits@10/n_pred"]
    assert run(capsys, *call, "--covariate", "ctr=pre_clicks/pre_shown", "--out", "out")[0] == 0
    joined = shown().join_experiment(groups, missing="zero")
    options = {"covariates": ("pre_clicks", "pre_shown"), "expected": {"A": 1, "B": 1}}
    want = rd.compare_variants(joined, {"ctr": ("hits@10", "n_pred")}, control="A", **options)
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)
    assert run(capsys, *call, "--covariate", "pre_clicks", "pre_shown", "--out", "several")[0] == 0
    several = rd.compare_variants(
        joined,
        {"ctr": ("hits@10", "n_pred")},
        control="A",
        **options | {"covariates": ["pre_clicks", "pre_shown"]},
    )
    pd.testing.assert_frame_equal(written("several/comparison.parquet"), several, check_dtype=False)


# -- roles and the decision

ROLE_CALL = (
    "experiment",
    "ab",
    "--assignment",
    "groups.csv",
    "--control",
    "A",
    "--details",
    "--missing",
    "zero",
    "--metric",
    "revenue@10",
    "ctr=hits@10/n_pred",
    "hits@10",
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("roles", "decided", "fail_on"),
    few(
        [
            (("--role", "ctr=success", "--guardrail", "revenue@10=-2%"), "ship", ""),
            (("--role", "ctr=success", "--guardrail", "revenue@10=-0.5"), "ship", ""),
            (
                ("--role", "ctr=success", "--smaller-is-better", "ctr", "--missing", "drop"),
                "do not ship",
                "worse",
            ),
            (
                (
                    "--role",
                    "ctr=success",
                    "--guardrail",
                    "hits@10=+2%",
                    "--smaller-is-better",
                    "hits@10",
                    "--missing",
                    "drop",
                ),
                "do not ship",
                "worse",
            ),
            (("--role", "ctr=success", "--expected", "A=0.8", "B=0.2"), "invalid", "invalid"),
            (
                ("--role", "ctr=success", "--confidence", "0.99999999999"),
                "keep running",
                "undecided",
            ),
        ],
        2,
    ),
)
def test_experiment_decides_by_roles(capsys, folder, roles, decided, fail_on):
    call = instead(ROLE_CALL, roles)
    code, out, err = run(capsys, *call, "--out", "out")
    assert (code, err) == (0, "")
    assert out.isascii()
    assert f"Decision, B vs. A: {decided.upper()}" in out
    decision, judged = written("out/decision.parquet"), written("out/roles.parquet")
    assert decision["decision"].tolist() == [decided]
    assert set(judged["role"]) <= {"success", "guardrail", "diagnostic"}
    for word in ("worse", "undecided", "invalid"):
        code = run(capsys, *call, "--fail-on", word)[0]
        assert code == int(word == fail_on), (word, fail_on)


@pytest.mark.long
def test_success_metrics_are_the_family_that_decides(capsys, folder):
    run(capsys, *ROLE_CALL, "--role", "ctr=success", "--out", "out")
    table = written("out/comparison.parquet").set_index("metric")
    assert table.loc["ctr", "p_adj"] == table.loc["ctr", "p_value"]
    assert (
        written("out/roles.parquet").set_index("metric").loc["ctr", "p_adj"]
        == table.loc["ctr", "p_value"]
    )


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("roles", "said"),
    [
        (("--role", "ctr"), "--role ctr; expected a metric and its role, as ctr=success"),
        (("--role", "ctr=goal"), "--role ctr=goal; valid are"),
        (
            ("--role", "ctr=guardrail"),
            "--role ctr=guardrail has no margin; pass --guardrail ctr=-2%",
        ),
        (
            ("--role", "ctr=success", "--guardrail", "ctr=-2%"),
            "ctr has a --role and is a --guardrail",
        ),
        (
            ("--guardrail", "revenue@10=-2%"),
            "only one that is better ships; name one, as in --role ctr=success",
        ),
        (
            ("--role", "ctr=success", "--guardrail", "revenue@10=+2%"),
            "--guardrail revenue@10=+2% allows what is better",
        ),
        (
            ("--role", "ctr=success", "--guardrail", "revenue@10=some"),
            "--guardrail revenue@10=some; expected a share",
        ),
        (("--role", "ctr=success", "--guardrail", "cvr=-2%"), "--guardrail names ['cvr']"),
        (("--role", "cvr=success"), "--role names ['cvr']"),
    ],
)
def test_wrong_roles_are_refused(capsys, folder, roles, said):
    code, _, err = run(capsys, *ROLE_CALL, *roles)
    assert code == 2
    assert said in err


@pytest.mark.long
def test_a_report_takes_the_roles_of_its_experiment(capsys, folder):
    roles = ("--role", "ctr=success", "--guardrail", "revenue@10=-2%")
    run(capsys, *ROLE_CALL, *roles, "--out", "out")
    assert (
        run(capsys, "report", "--experiment", "out/comparison.parquet", *roles, "--out", "r.html")[
            0
        ]
        == 0
    )
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "ship. ctr: better, unless 3 in " in page
    assert run(capsys, "report", "ab", *roles, "--out", "s.html")[0] == 2


@pytest.mark.long
def test_a_plan_binds_the_experiment(capsys, folder):
    plan = (
        "hypothesis = 'more clicks'\nprimary = 'ctr'\nn = {}\nunit = 'user_id'\nsegments = "
        "'segment'\n"
    )
    (folder / "plan.toml").write_text(plan.format(400) + "[guardrails]\n'revenue@10' = '-2%'\n")
    code, out, err = run(capsys, *ROLE_CALL, "--plan", "plan.toml", "--out", "out")
    assert (code, err) == (0, "")
    decision = written("out/decision.parquet").iloc[0]
    assert decision["deviations"] == ""
    assert f"Plan {decision['plan'][:12]}: as planned" in out
    assert "By segment" in out
    assert run(capsys, "report", "--experiment", "out", "--out", "folder.html")[0] == 0
    page = (folder / "folder.html").read_text(encoding="utf-8")
    assert "Effects, segments: differences from A" in page
    assert "Users without metrics: " in page
    shutil.copytree("out", "again")
    assert run(capsys, "report", "--experiment", "out", "again", "--out", "two.html")[0] == 0
    assert "Users without metrics: " not in (folder / "two.html").read_text(encoding="utf-8")
    (folder / "plan.toml").write_text(plan.format(400) + "looks = 1\n")
    call = *ROLE_CALL, "--plan", "plan.toml", "--fail-on", "deviation"
    for looks, code, said in (
        ((), 0, "not known: looks"),
        (("--looks", "1"), 0, ": as planned"),
        (("--looks", "3"), 1, "not as planned: 3 looks instead of 1"),
    ):
        ended, out, _ = run(capsys, *call, *looks)
        assert ended == code
        assert said in out
    report = "report", "--experiment", "out/comparison.parquet", "--plan", "plan.toml"
    assert run(capsys, *report, "--looks", "3", "--out", "looks.html")[0] == 0
    assert "3 looks instead of 1" in (folder / "looks.html").read_text(encoding="utf-8")
    (folder / "plan.toml").write_text(plan.format(900).replace("'segment'", "'country'"))
    code, out, _ = run(capsys, *ROLE_CALL, "--plan", "plan.toml", "--segment", "segment")
    assert "not as planned: segments segment instead of country" in out
    assert "stopped early" in out
    (folder / "plan.toml").write_text(plan.format(900))
    only = [*ROLE_CALL[:-3], "ctr=hits@10/n_pred", "--plan", "plan.toml", "--fail-on", "warning"]
    assert run(capsys, *only)[0] == 1
    (folder / "plan.toml").write_text("hypothesis = 'more clicks'\nprimary = 'ctr'")
    assert run(capsys, *only)[0] == 0
    (folder / "plan.toml").write_text(plan.format(900))
    report = "report", "--experiment", "out/comparison.parquet", "--out", "r.html"
    assert run(capsys, *report, "--plan", "plan.toml")[0] == 0
    assert "stopped early" in (folder / "r.html").read_text(encoding="utf-8")
    assert "leave out --role" in fails(
        capsys, *ROLE_CALL, "--plan", "plan.toml", "--role", "ctr=success"
    )


@pytest.mark.long
def test_a_ramp_up_has_the_shares_of_each_period(capsys, folder):
    from experiments.test_shares_by_period import PLAN, ramped

    users = ramped(n=3000)
    users[["user_id", "variant", "period", "browser"]].to_csv("ramp.csv", index=False)
    own = pd.DataFrame({"user_id": users["user_id"], "item_id": 1, "rank": 1})
    own.to_parquet("shown.parquet")
    own[::3].drop(columns="rank").to_parquet("wanted.parquet")
    call = [
        "evaluate",
        "--true",
        "wanted.parquet",
        "--pred",
        "shown.parquet",
        "--users",
        "pred",
        "-m",
        "hits@1",
    ]
    assert run(capsys, *call, "--out", "ramp", "-q")[0] == 0
    planned = [
        f"{period}:{name}={share}" for period, plan in PLAN.items() for name, share in plan.items()
    ]
    call = [
        "experiment",
        "ramp",
        "--assignment",
        "ramp.csv",
        "--control",
        "A",
        "--strata",
        "period",
        "--period-col",
        "period",
        "--missing",
        "zero",
        "--smaller-is-better",
        "hits@1",
    ]
    code, out, err = run(
        capsys,
        *call,
        "--expected",
        *planned,
        "--fail-on",
        "invalid",
        "--details",
        "--out",
        "decided",
    )
    assert (code, err) == (0, "")
    assert "sample ratio: fits planned shares" in out
    joined = rd.read_parquet("ramp").join_experiment(
        users[["user_id", "variant", "period"]], missing="zero"
    )
    want = rd.compare_variants(
        joined,
        "hits@1",
        control="A",
        strata="period",
        time_col="period",
        expected=PLAN,
        details=True,
    )
    assert written("decided/comparison.parquet")["srm_p"].tolist() == pytest.approx(
        want["srm_p"].tolist()
    )
    assert written("decided/health.parquet")["period"].tolist() == ["one"] * 3 + ["two"] * 3
    assert run(capsys, *call, "--fail-on", "invalid")[0] == 1  # equal shares were never planned
    seen = users.assign(seen=np.where(users["period"] == "one", 0, 2))
    seen[["user_id", "variant", "period", "seen"]].to_csv("seen.csv", index=False)
    dated = own.assign(day=3)
    dated.to_parquet("dated.parquet")
    late = [
        "evaluate",
        "--true",
        "wanted.parquet",
        "--pred",
        "dated.parquet",
        "--users",
        "pred",
        "-m",
        "hits@1",
    ]
    assert run(capsys, *late, "--carry", "day", "--out", "late", "-q")[0] == 0
    timed = [
        "experiment",
        "late",
        "--assignment",
        "seen.csv",
        *call[4:],
        "--over-time",
        "cumulative",
        "--exposure-col",
        "seen",
        "--time-col",
        "day",
    ]
    code, out, err = run(
        capsys,
        *timed,
        "--expected",
        *planned,
        "--fail-on",
        "invalid",
        "--details",
        "--out",
        "timed",
    )
    assert (code, err) == (0, "")
    assert "not checked" not in out
    over = written("timed/over_time.parquet")
    assert over["srm_p"].iloc[-1] == pytest.approx(want["srm_p"].iloc[0])
    assert "no such period" in fails(
        capsys, *call, "--expected", *(text.replace("one", "zero") for text in planned)
    )
    srm = [
        "srm",
        "--assignment",
        "ramp.csv",
        "--column",
        "browser",
        "--fail-on",
        "invalid",
        "--strata",
        "period",
    ]
    assert run(capsys, *srm, "--expected", *planned)[0] == 0


@pytest.mark.long
def test_a_guardrail_that_is_worse_within_its_margin_ships_and_does_not_fail(capsys, folder):
    n = 4000
    rng = np.random.default_rng(0)
    groups = pd.DataFrame(
        {"user_id": range(n), "variant": ["A", "B"] * (n // 2), "day": rng.integers(0, 2, n)}
    )
    lists = pd.DataFrame({"user_id": range(n), "item_id": 1, "rank": 1, "extra": 1.0})
    lists.to_parquet("pred.parquet")
    lists[["user_id", "item_id"]].to_parquet("true.parquet")
    result = rd.evaluate(lists[["user_id", "item_id"]], lists, "hits@1", users="pred")
    b = (groups["variant"] == "B").to_numpy()
    result.per_user["ctr"] = rng.normal(1 + 0.1 * b, 0.1)
    result.per_user["load"] = rng.normal(1 - 0.02 * b, 0.05)
    result.to_parquet("within")
    groups.to_csv("within.csv", index=False)
    call = [
        "experiment",
        "within",
        "--assignment",
        "within.csv",
        "--control",
        "A",
        "--metric",
        "ctr",
        "load",
        "--larger-is-better",
        "ctr",
        "load",
    ]
    roles = ["--role", "ctr=success", "--guardrail", "load=-5%", "--segment", "day"]
    code, out, _ = run(capsys, *call, *roles, "--fail-on", "worse")
    assert "SHIP" in out
    assert "worse, within the margin" in out
    assert code == 0
    assert run(capsys, *call, "--fail-on", "worse")[0] == 1


def test_segments_have_the_name_of_their_flag(capsys, folder):
    given = ["experiment", "ab", "--assignment", "groups.parquet", "--control", "A"]
    message = fails(capsys, *given, "--missing", "zero", "--segment", "variant")
    assert "--segment variant is the column of the variant" in message


@pytest.mark.parametrize("name", ["labels", "MDE"])
def test_segments_of_any_name_are_shown_in_a_terminal(name):
    draw = np.random.default_rng(1)
    users = pd.DataFrame({"variant": ["A", "B"] * 300, name: np.repeat(["north", "south"], 300)})
    users["spend"] = draw.normal(10, 1, 600)
    said = compact(rd.compare_variants(users, "spend", control="A", by=name))
    assert said.split()[0] == name
    assert [line.split()[0] for line in said.splitlines()[-2:]] == ["north", "south"]


ALL_USERS = ("--expected", "A=1", "B=1", "--metric", "hits@10", "--role", "hits@10=success")


@pytest.mark.long
def test_a_table_beside_an_experiment_leaves_its_decision(capsys, folder):
    roles = ("--role", "hits@10=success", "--guardrail", "revenue@10=-0.01%")
    call = instead(ROLE_CALL, (*roles, "--expected", "A=1", "B=1"))
    assert run(capsys, *call, "--out", "k")[0] == 0
    assert written("k/decision.parquet")["decision"].tolist() == ["keep running"]
    levels = rd.experiments.find_srm(GROUPS, ["segment"], expected={"A": 1, "B": 1})
    levels.to_parquet("levels.parquet")
    shutil.copytree("k", "again")
    for tables, there in ((["k"], True), (["k", "levels.parquet"], True), (["k", "again"], False)):
        assert (
            run(capsys, "report", "--experiment", *tables, "--out", "r.html", "--overwrite")[0] == 0
        )
        page = (folder / "r.html").read_text(encoding="utf-8")
        assert ("Keep the experiment running" in page) == there


@pytest.mark.long
def test_metrics_that_one_variant_lacks_are_a_warning(capsys, folder):
    groups = GROUPS.assign(variant=np.where(np.arange(len(GROUPS)) % 2, "A", "B"))
    of_b = groups.loc[groups["variant"] == "B", "user_id"]
    result = rd.evaluate(
        SHOP.true,
        SHOP.shown[~SHOP.shown["user_id"].isin(of_b[::4])],
        METRICS,
        users="pred",
        value_col="value",
    )
    result.to_parquet("lost")
    groups.to_csv("lost.csv", index=False)
    call = ("experiment", "lost", "--assignment", "lost.csv", "--control", "A", "--missing", "zero")
    code, out, err = run(capsys, *call, *ALL_USERS, "--fail-on", "warning")
    assert code == 1
    assert "Users without metrics differ between the variants: find out why" in out
    assert "--fail-on warning: Users without metrics differ between the variants" in err


@pytest.mark.long
def test_a_planned_variant_without_users_gives_the_p_of_its_sentence(capsys, folder):
    code, out, _ = run(capsys, *instead(ROLE_CALL, ("--expected", "A=1", "B=1", "C=1")))
    assert code == 0
    assert "sample ratio: DOES NOT FIT planned shares, p < 0.001" in out


@pytest.mark.long
def test_clusters_are_no_users(capsys, folder):
    groups = GROUPS.assign(region=np.arange(len(GROUPS)) // 10 % 20)
    groups["variant"] = np.where(groups["region"] % 2, "A", "B")
    groups.to_csv("regions.csv", index=False)
    call = (
        "experiment",
        "ab",
        "--assignment",
        "regions.csv",
        "--control",
        "A",
        "--missing",
        "zero",
    )
    code, out, _ = run(capsys, *call, *ALL_USERS, "--cluster", "region", "--out", "k")
    assert code == 0
    assert "clusters would" in out
    assert "users" not in out.partition("All users")[0]
    assert run(capsys, "report", "--experiment", "k", "--out", "r.html")[0] == 0
    page = (folder / "r.html").read_text(encoding="utf-8")
    for said in ("Clusters per variant", "Clusters without metrics: ", "clusters would"):
        assert said in page
    assert "sers without metrics" not in page


def test_a_decision_about_several_recommenders_is_refused(capsys, folder):
    rd.evaluate(SHOP.true, SHOP.pred, "ndcg@10", by="model").to_parquet("two")
    GROUPS.to_csv("users.csv", index=False)
    words = ("--assignment", "users.csv", "--control", "A", "--missing", "zero")
    words += ("--role", "ndcg@10=success")
    said = fails(capsys, "experiment", "two", *words)
    assert "compares within ['model']; a decision is of one recommender" in said
    assert "--segment" not in said
