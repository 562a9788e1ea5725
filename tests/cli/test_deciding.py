"""From a result to a decision: `Evaluation.join_experiment`, `.compare_models`, and the commands that do the same.

What the numbers are is tested in test_experiment.py and test_compare.py; here, that the commands give them.
"""

import re
import shlex
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli.command import fails, run

import recdf as rd

SHOP = rd.sample_shop(n_users=400, n_items=100)
GROUPS = SHOP.assignment.merge(SHOP.users[["user_id", "segment"]])
METRICS = ["revenue@10", "hits@10"]


def shown(**options):
    """Metrics of the lists that the experiment showed."""
    return rd.evaluate(SHOP.true, SHOP.shown, METRICS, **{"users": "pred", "value_col": "value", **options})


def models(metrics=("ndcg@10", "recall@10"), **options):
    return rd.evaluate(SHOP.true, SHOP.pred, list(metrics), **{"by": "model", **options})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with the results `ab` and `models` and the assignment."""
    monkeypatch.chdir(tmp_path)
    shown().to_parquet("ab")
    models().to_parquet("models")
    GROUPS.to_parquet("groups.parquet")
    GROUPS.to_csv("groups.csv", index=False)
    return tmp_path


def written(path):
    return pd.read_parquet(path)


# ------------------------------------------------------------------------------------- methods of Evaluation


def test_join_is_that_of_the_frames():
    result = shown()
    joined = result.join_experiment(GROUPS, missing="zero")
    pd.testing.assert_frame_equal(joined, rd.join_experiment(result.per_user, GROUPS, missing="zero"))


def test_join_takes_the_lists_of_the_users_own_variant():
    """Evaluated by variant, over the users shown (one row each) or over all (a row of zeros for the other variant)."""
    want = shown().join_experiment(GROUPS, missing="zero")
    for users in ("pred", "all"):
        with pytest.warns(rd.ByWarning) if users == "all" else nullcontext():
            result = shown(by="variant", users=users)
        before = result.per_user.copy()
        joined = result.join_experiment(GROUPS, missing="zero")
        pd.testing.assert_frame_equal(joined[METRICS], want[METRICS])
        assert len(joined) == len(GROUPS)
        pd.testing.assert_frame_equal(result.per_user, before)


def test_join_of_variants_counts_and_refuses_strays():
    groups = GROUPS.set_index("user_id")
    stray = SHOP.shown["user_id"].iloc[0]
    other = groups.assign(
        variant=groups["variant"].where(groups.index != stray, "AB".replace(groups.variant[stray], ""))
    )
    result = shown(by="variant")
    with pytest.raises(rd.DataError, match=f"1 users of per_user have lists of other variants .* only \\('{stray}'\\)"):
        result.join_experiment(other.reset_index(), missing="zero")
    joined = result.join_experiment(GROUPS[GROUPS["user_id"] != stray], missing="zero")
    assert joined.attrs["recdf_experiment"]["n_unassigned"] == 1
    twice = pd.concat([GROUPS, other.reset_index()[lambda x: x["user_id"] == stray]])
    with pytest.raises(rd.DataError, match="1 users of assignment are in more than one variant"):
        result.join_experiment(twice, missing="zero")
    joined = result.join_experiment(twice, missing="zero", multi_variant="drop")
    assert len(joined) == len(GROUPS) - 1
    with pytest.raises(rd.IdTypeError, match="variant"):
        result.join_experiment(GROUPS.assign(variant=(GROUPS["variant"] == "B").astype(int)))


def test_join_by_model_and_variant():
    shown_models = pd.concat([SHOP.shown.assign(model=name) for name in ("old", "new")])
    result = rd.evaluate(SHOP.true, shown_models, "hits@10", by=["model", "variant"], users="pred")
    joined = result.join_experiment(GROUPS, missing="zero")
    assert len(joined) == 2 * len(GROUPS)
    table = rd.compare_variants(joined, "hits@10", control="A", by="model")
    assert table["diff"].nunique() == 1
    assert table["model"].tolist() == ["new", "old"]


def sessions(frame):
    return frame.assign(session=np.where(frame["item_id"].str[-1].isin(list("02468")), 1, 2))


def test_sessions_join_to_users():
    """Lists by (user, session): the assignment has the user alone, and `how` says what becomes of the sessions."""
    result = rd.evaluate(
        sessions(SHOP.true), sessions(SHOP.shown), METRICS, user_col=["user_id", "session"], users="pred",
        value_col="value",
    )  # fmt: skip
    with pytest.raises(rd.DuplicateError, match="roll them up"):
        result.join_experiment(GROUPS)
    joined = result.join_experiment(GROUPS, missing="zero", how="sum")
    rolled = rd.roll_up(result.per_user, "user_id", "sum")
    pd.testing.assert_frame_equal(joined, rd.join_experiment(rolled, GROUPS, missing="zero"), check_like=True)
    both = sessions(SHOP.shown)[["user_id", "session"]].drop_duplicates().merge(GROUPS)
    assert len(result.join_experiment(both)) == len(both)


def test_join_names_what_is_wrong():
    with pytest.raises(rd.ColumnError, match=r"assignment has no column 'user_id'.*'usr'"):
        shown().join_experiment(GROUPS.rename(columns={"user_id": "usr"}))
    with pytest.raises(rd.ColumnError, match="did you mean 'variant'"):
        shown().join_experiment(GROUPS, variant_col="varian")
    with pytest.raises(TypeError, match="assignment is a dict"):
        shown().join_experiment({"ann": "A"})
    with pytest.raises(TypeError, match="mising"):
        shown().join_experiment(GROUPS, mising="zero")


def test_compare_is_that_of_the_frames():
    result = models()
    pd.testing.assert_frame_equal(result.compare_models(), rd.compare_models(result.per_user))
    one = result.compare_models("ndcg@10", baseline="popularity", test="wilcoxon")
    want = rd.compare_models(result.per_user, "ndcg@10", baseline="popularity", test="wilcoxon")
    pd.testing.assert_frame_equal(one, want)


def test_compare_pairs_within_what_is_left_of_keys_and_by():
    true, pred = sessions(SHOP.true), sessions(SHOP.pred)
    pred = pd.concat([pred.assign(day="mon"), pred.assign(day="tue")])
    result = rd.evaluate(true, pred, "ndcg@10", by=["model", "day"], user_col=["user_id", "session"])
    with pytest.raises(rd.OptionError, match=r"by \['model', 'day'\]; name the one of the models in model_col="):
        result.compare_models()
    lists = result.compare_models(model_col="model")
    want = rd.compare_models(result.per_user, user_col=["user_id", "session"], fold="day")
    pd.testing.assert_frame_equal(lists, want)
    users = result.compare_models(model_col="model", user_col="user_id")
    want = rd.compare_models(result.per_user, user_col="user_id", fold=["day", "session"])
    pd.testing.assert_frame_equal(users, want)
    assert users["n_users"].iloc[0] == true["user_id"].nunique()


def test_compare_needs_models():
    with pytest.raises(rd.OptionError, match="evaluate with by="):
        shown().compare_models()


def test_chain_from_lists_through_parquet_to_a_decision(tmp_path):
    result = shown(by="variant")
    result.to_parquet(tmp_path / "result")
    again = rd.read_parquet(tmp_path / "result")
    joined = again.join_experiment(GROUPS, missing="zero")
    joined.to_parquet(tmp_path / "joined.parquet")
    joined = pd.read_parquet(tmp_path / "joined.parquet")
    table = rd.compare_variants(joined, METRICS, control="A", covariates="pre_spend", by="segment")
    table.to_parquet(tmp_path / "table.parquet")
    direct = rd.compare_variants(
        result.join_experiment(GROUPS, missing="zero"), METRICS, control="A", covariates="pre_spend", by="segment"
    )
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "table.parquet"), direct)
    assert len(direct) == len(METRICS) * GROUPS["segment"].nunique()


# ------------------------------------------------------------------------------------------ recdf compare


def test_compare_prints_what_report_table_says(capsys, folder):
    code, out, err = run(capsys, "compare", "models", "--baseline", "popularity", "--model", "knn", "--out", "out")
    assert (code, err) == (0, "")
    of_two = rd.Evaluation(*(getattr(models(), name) for name in ("per_user", "summary", "spec")))
    kept = of_two.per_user[of_two.per_user["model"] != "random"]
    want = rd.compare_models(kept, baseline="popularity")
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)
    lines = out.splitlines()
    n = SHOP.true["user_id"].nunique()
    assert lines[0] == f"{n:,} users, test t, p adjusted by holm for 2 tests"
    assert lines[2].split("  ")[0] == "metric"
    report = rd.report_table(want).frame
    for line, cells in zip(lines[3:5], report.to_dict("records"), strict=True):
        for name in ("metric", "comparison", "effect (95% CI)", "relative", "p", "verdict"):
            assert cells[name].replace("−", "-") in line
    assert f"wrote {Path('out/comparison.parquet')}" in out
    assert out.isascii()


def test_compare_options_reach_the_comparison(capsys, folder):
    options = {
        "test": "bootstrap",
        "users": "inner",
        "alternative": "greater",
        "confidence": 0.9,
        "n_resamples": 200,
        "seed": 7,
        "correction": "bh",
        "family": "metric",
        "smaller_is_better": "recall@10",
        "margin": 0.05,
    }
    arguments = [part for name, value in options.items() for part in ("--" + name.replace("_", "-"), value)]
    code, out, err = run(capsys, "compare", "models", "--metric", "recall@10", *arguments, "--out", "out")
    assert (code, err) == (0, "")
    want = rd.compare_models(models().per_user, "recall@10", **options)
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)
    assert "90% CI" in out
    attrs = written("out/comparison.parquet").attrs
    assert attrs["recdf_comparison"]["correction"] == "bh"
    assert attrs["recdf"] == models().spec
    assert "effect (90% CI)" in rd.report_table(written("out/comparison.parquet")).frame


def test_compare_finds_labels_that_are_not_strings(capsys, folder):
    numbered = SHOP.pred.assign(model=SHOP.pred["model"].map({"knn": 1, "popularity": 2, "random": 10}))
    rd.evaluate(SHOP.true, numbered, "ndcg@10", by="model").to_parquet("numbered")
    code, out, _ = run(capsys, "compare", "numbered", "--model", 1, 10, "--baseline", "2", "--out", "out")
    assert code == 0
    assert "10 vs. 2" in out
    assert written("out/comparison.parquet")["model"].tolist() == [1, 10]


def test_compare_by_model_and_day(capsys, folder):
    pred = pd.concat([SHOP.pred.assign(day=day) for day in ("mon", "tue")])
    rd.evaluate(SHOP.true, pred, "ndcg@10", by=["model", "day"]).to_parquet("days")
    assert "in --model-col" in fails(capsys, "compare", "days")
    assert run(capsys, "compare", "days", "--model-col", "model", "--model", "knn", "random")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["absent"], "per_user.parquet does not exist; expected a folder written by"),
        (["groups.csv"], "groups.csv"),
        (["models", "--baseline", "popularty"], "--baseline popularty: no such model; did you mean 'popularity'?"),
        (["models", "--model", "knn", "als"], "--model als: no such model"),
        (["models", "--model", "knn"], "a comparison needs at least two"),
        (["models", "--metric", "ndgc@10"], "did you mean 'ndcg@10'?"),
        (["models", "--test", "z"], "invalid choice: 'z'"),
        (["models", "--margin", "-1"], "--margin -1.0"),
        (["models", "--confidence", "95"], "--confidence 95.0; expected a number between 0 and 1"),
        (["models", "--model-col", "mdl"], "did you mean 'model'?"),
        (["models", "--family", "metrc"], "did you mean 'metric'?"),
        (["ab"], "evaluate with --by"),
        (["models", "--out", "groups.csv"], "groups.csv is a file"),
        (["models", "--mode", "knn"], "unrecognized arguments: --mode"),
        ([], "required: RESULTS"),
    ],
)
def test_compare_fails_in_one_line(capsys, folder, arguments, expected):
    assert expected in fails(capsys, "compare", *arguments)


def test_out_is_kept_unless_overwrite(capsys, folder):
    call = ["compare", "models", "--metric", "ndcg@10", "--out", "models"]  # beside the result: other names
    assert run(capsys, *call)[0] == 0
    assert "already holds comparison.parquet; pass --overwrite" in fails(capsys, *call)
    assert run(capsys, *call, "--overwrite")[0] == 0
    assert rd.read_parquet("models") == models()


# --------------------------------------------------------------------------------------- recdf experiment


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_experiment_writes_what_the_functions_give(capsys, folder, kind):
    code, out, err = run(
        capsys, "experiment", "ab", "--assignment", f"groups.{kind}", "--control", "A", "--missing", "zero",
        "--metric", "revenue@10", "ctr=hits@10/n_pred", "--covariate", "pre_spend", "--expected", "A=0.5", "B=0.5",
        "--segment", "segment", "--out", "out",
    )  # fmt: skip
    assert (code, err) == (0, "")
    result = shown()
    joined = result.join_experiment(GROUPS, missing="zero")
    metrics = {"revenue@10": "revenue@10", "ctr": ("hits@10", "n_pred")}
    options = {"control": "A", "covariates": "pre_spend", "expected": {"A": 0.5, "B": 0.5}}
    wanted = {
        "health": rd.experiment_health(result.per_user, GROUPS),
        "comparison": rd.compare_variants(joined, metrics, **options),
        "segments": rd.compare_variants(joined, metrics, by="segment", **options),
    }
    for name, want in wanted.items():
        pd.testing.assert_frame_equal(written(f"out/{name}.parquet"), want, check_dtype=False)
    assert out.index("sample ratio: fits planned shares") < out.index("All users") < out.index("By segment")
    assert "B vs. A" in out
    assert "missing metrics: alike" in out
    assert out.isascii()


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
    call = ["experiment", "ab", "--assignment", "groups.csv", "--control", "A", "--out", "out", "--overwrite"]
    assert run(capsys, *call, *arguments, "--missing", "nan")[0] == 0
    joined = shown().join_experiment(GROUPS, missing="nan")
    want = rd.compare_variants(joined, METRICS, control="A", expected={"A": 1, "B": 1}, **options)
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)
    boot = ["--method", "bootstrap", "--n-resamples", 100, "--seed", 3, "--cluster", "user_id", "--missing", "zero"]
    assert run(capsys, *call, *boot, "--covariate", "hits@10=pre_spend")[0] == 0
    joined = shown().join_experiment(GROUPS, missing="zero")
    want = rd.compare_variants(
        joined, METRICS, control="A", method="bootstrap", n_resamples=100, seed=3, cluster="user_id",
        covariates={"hits@10": "pre_spend"}, expected={"A": 1, "B": 1},
    )  # fmt: skip
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)


def test_experiment_options_of_skew_shares_and_covariates(capsys, folder):
    week = np.arange(len(GROUPS)) % 3
    groups = GROUPS.assign(week=week, past=GROUPS["pre_spend"] ** 2)
    groups.to_csv("groups.csv", index=False)
    rd.evaluate(SHOP.true, SHOP.shown, ["revenue@10", "hitrate@10"], users="pred", value_col="value").to_parquet("both")
    call = ["experiment", "both", "--assignment", "groups.csv", "--control", "A", "--out", "out", "--overwrite"]
    call += ["--missing", "zero", "--relative", "log", "--larger-is-better", "hitrate@10", "--period-col", "week"]
    expected = {"A": 1, "B": 1}
    assert run(capsys, *call, "--cap", "revenue@10=0.99", "--proportion", "hitrate@10")[0] == 0
    result = rd.read_parquet("both")
    joined = result.join_experiment(groups, missing="zero")
    options = {"relative": "log", "larger_is_better": ["hitrate@10"], "time_col": "week", "expected": expected}
    want = rd.compare_variants(
        joined, ["revenue@10", "hitrate@10"], control="A", cap={"revenue@10": 0.99}, test={"hitrate@10": "proportion"},
        **options,
    )  # fmt: skip
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)
    assert want["method"].tolist() == ["welch", "proportion"]
    several = ["--covariate", "pre_spend", "revenue@10=past", "--method", "permutation", "--n-resamples", "50"]
    assert run(capsys, *call, *several)[0] == 0
    covariates = {"revenue@10": ["pre_spend", "past"], "hitrate@10": "pre_spend"}
    want = rd.compare_variants(
        joined, ["revenue@10", "hitrate@10"], control="A", covariates=covariates, method="permutation", n_resamples=50,
        **options,
    )  # fmt: skip
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)


def test_experiment_takes_times_of_exposure(capsys, folder):
    """Lists by user and day; a CSV file has its times as text, and a user who was never exposed has none."""
    day = pd.Series(pd.to_datetime("2026-03-01") + pd.to_timedelta(np.arange(len(SHOP.shown)) % 5, unit="D"))
    dated = SHOP.shown.assign(day=day.to_numpy())
    result = rd.evaluate(
        SHOP.true.merge(dated[["user_id", "day"]].drop_duplicates()), dated, "hits@10", user_col=["user_id", "day"],
        users="pred",
    )  # fmt: skip
    result.to_parquet("days")
    seen = pd.Series(pd.to_datetime("2026-03-03"), index=GROUPS.index).where(np.arange(len(GROUPS)) % 4 > 0)
    GROUPS.assign(seen=seen).to_csv("groups.csv", index=False)
    call = ["experiment", "days", "--assignment", "groups.csv", "--control", "A", "--missing", "zero", "--how", "sum"]
    call += ["--exposure-col", "seen", "--time-col", "day", "--out", "out"]
    found = run(capsys, *call)
    assert found[0] == 0, found[2]
    options = {"missing": "zero", "how": "sum", "exposure_col": "seen", "time_col": "day"}
    joined = result.join_experiment(GROUPS.assign(seen=seen), **options)
    assert len(joined) == int(seen.notna().sum())
    want = rd.compare_variants(joined, "hits@10", control="A", expected={"A": 1, "B": 1})
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)
    assert "were never exposed" in fails(capsys, *call, "--overwrite", "--unexposed", "raise")


def test_experiment_says_that_the_sample_ratio_is_wrong(capsys, folder):
    call = ["experiment", "ab", "--assignment", "groups.parquet", "--control", "A", "--missing", "zero"]
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
    n = shown().per_user["user_id"].nunique() - few["user_id"].isin(shown().per_user["user_id"]).sum()
    assert f"{n} users with metrics but no variant, left out" in out


def test_experiment_by_variant_model_and_with_integer_variants(capsys, folder):
    numbers = {"A": 0, "B": 1}
    lists = SHOP.shown.assign(variant=SHOP.shown["variant"].map(numbers), model="m")
    rd.evaluate(SHOP.true, lists, "hits@10", by=["model", "variant"], users="pred").to_parquet("by")
    GROUPS.assign(variant=GROUPS["variant"].map(numbers)).to_csv("groups.csv", index=False)
    call = ["experiment", "by", "--assignment", "groups.csv", "--control", "0", "--missing", "zero", "--out", "out"]
    code, _, err = run(capsys, *call, "--expected", "0=1", "1=1")
    assert (code, err) == (0, "")
    table = written("out/comparison.parquet")
    assert table[["model", "control", "treatment"]].to_numpy().tolist() == [["m", 0, 1]]
    want = rd.compare_variants(shown().join_experiment(GROUPS, missing="zero"), "hits@10", control="A")
    assert table["diff"].item() == pytest.approx(want["diff"].item())


def test_experiment_rolls_sessions_up(capsys, folder):
    keys = ["user_id", "session"]
    result = rd.evaluate(sessions(SHOP.true), sessions(SHOP.shown), "hits@10", user_col=keys, users="pred")
    result.to_parquet("sessions")
    call = ["experiment", "sessions", "--assignment", "groups.csv", "--control", "A", "--missing", "zero"]
    assert "pass --how," in fails(capsys, *call)
    assert run(capsys, *call, "--how", "sum", "--metric", "ctr=hits@10/n_pred", "--out", "out")[0] == 0
    joined = result.join_experiment(GROUPS, missing="zero", how="sum")
    want = rd.compare_variants(joined, {"ctr": ("hits@10", "n_pred")}, control="A", expected={"A": 1, "B": 1})
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)


def test_ids_of_a_text_assignment_follow_the_result(capsys, folder):
    """The same digits, as integers and as text, in the result; the CSV file cannot tell."""
    number = {user: i + 1 for i, user in enumerate(GROUPS["user_id"])}
    GROUPS.assign(user_id=GROUPS["user_id"].map(number)).to_csv("groups.csv", index=False)
    for kind in (int, str):
        frames = [frame.assign(user_id=frame["user_id"].map(number).astype(kind)) for frame in (SHOP.true, SHOP.shown)]
        rd.evaluate(*frames, "hits@10", users="pred").to_parquet("ids", overwrite=True)
        call = ["experiment", "ids", "--assignment", "groups.csv", "--control", "A", "--missing", "zero"]
        assert run(capsys, *call)[0] == 0
    GROUPS.assign(user_id=GROUPS["user_id"].map(number)).to_parquet("groups.parquet")
    call[call.index("groups.csv")] = "groups.parquet"
    assert "can never match" in fails(capsys, *call)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--missing", "raise"], "pass --missing zero if no list means no value"),
        (["--control", "C"], "--control C: no such variant; the result has"),
        (["--metric", "revnue@10"], "did you mean 'revenue@10'?"),
        (["--metric", "ctr=hits@10/n_prd"], "did you mean 'n_pred'?"),
        (["--covariate", "pre_spent"], "did you mean 'pre_spend'?"),
        (["--covariate", "hit=pre_spend"], "covariates names ['hit']"),
        (["--cap", "revenue@10"], "--cap revenue@10; expected a metric and a quantile, as revenue@10=0.999"),
        (["--cap", "revenue@10=99"], "expected a number between 0 and 1"),
        (["--proportion", "hits@10"], "has values other than 0 and 1"),
        (["--exposure-col", "at"], "go together"),
        (["--period-col", "week"], "data has no column 'week'"),
        (["--segment", "variant"], "is the column of the variant"),
        (["--segment", "segmnt"], "did you mean 'segment'?"),
        (["--segment", "metric"], "no column 'metric'"),
        (["--variant-col", "variants"], "did you mean 'variant'?"),
        (["--user-col", "usr_id"], "did you mean 'user_id'?"),
        (["--expected", "A"], "--expected A; expected a variant and its share, as A=0.5"),
        (["--expected", "A=0.5"], "expected has no share for variant 'B'"),
        (["--expected", "A=0", "B=1"], "a planned share is a number above 0"),
        (["--assignment", "absent.csv"], "absent.csv: no such file"),
        (["--assignment", "groups.xls"], "groups.xls"),
        (["--strata", "segment", "--cluster", "segment"], "not both"),
        (["--how", "median"], "invalid choice"),
        (["--sequential-n", "many"], "invalid int value"),
    ],
)
def test_experiment_fails_in_one_line(capsys, folder, arguments, expected):
    call = ["experiment", "ab", "--assignment", "groups.csv", "--control", "A", "--missing", "zero", *arguments]
    assert expected in fails(capsys, *call)


@pytest.mark.parametrize("command", ["compare models", "experiment ab --assignment groups.csv --control A"])
def test_without_scipy_the_extra_is_named(capsys, folder, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.delitem(sys.modules, "scipy.special", raising=False)
    call = [*command.split(), *(["--missing", "zero"] if "ab" in command.split() else [])]
    assert "pip install 'recdf[stats]'" in fails(capsys, *call)


# ------------------------------------------------------------------------------------------- recdf check


@pytest.fixture
def lists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    users = [user for user in range(1, 31) for _ in range(12)]
    pred = pd.DataFrame({"user_id": users, "item_id": list(range(12)) * 30, "rank": list(range(1, 13)) * 30})
    pred.to_csv("pred.csv", index=False)
    pred[pred["rank"] == 2][["user_id", "item_id"]].to_csv("true.csv", index=False)
    pred[["item_id"]].drop_duplicates().to_csv("items.csv", index=False)
    return pred


def check(capsys, *arguments):
    return run(capsys, "check", "--true", "true.csv", "--pred", "pred.csv", *arguments)


def test_check_of_clean_data(capsys, lists):
    assert check(capsys, "--items", "items.csv") == (0, "nothing odd found at k = 10\n", "")


def test_check_prints_findings_and_a_warning_is_no_error(capsys, lists):
    lists.assign(rank=lists["rank"] - 1, model="m").to_csv("pred.csv", index=False)
    lists[lists["rank"] == 1].to_parquet("log.parquet")
    code, out, err = check(capsys, "-k", "5", "--log", "log.parquet", "--by", "model", "--rank-col", "rank")
    assert (code, err) == (0, "")
    found = rd.check(
        pd.read_csv("true.csv"), pd.read_csv("pred.csv"), 5, log=pd.read_parquet("log.parquet"), by="model"
    )
    assert set(found["finding"]) == {"ranks that do not start at 1", "recommendations already in the log"}
    for row in found.itertuples():
        assert re.search(rf"^{row.severity} +{row.finding}: {row.count} \(", out, flags=re.M)
        assert row.effect in out
    assert out.splitlines()[-1] == "found: 0 errors, 2 warnings, 0 notes"


def test_check_of_errors_is_exit_code_1(capsys, lists):
    lists.assign(user_id=lists["user_id"].map("u{}".format)).to_csv("pred.csv", index=False)
    code, out, err = check(capsys)
    assert (code, err) == (1, "")
    assert out.startswith(
        "error    no user in common: 30 (100.0%)\n         seen: true ['1', '2'], pred ['u1', 'u1']\n"
    )
    assert out.endswith("found: 1 errors, 0 warnings, 0 notes\n")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--item-col", "itm_id"], "did you mean 'item_id'?"),
        (["-k", "0"], "-k 0; expected a positive integer"),
        (["--log", "absent.csv"], "absent.csv: no such file"),
        (["--like", "trec"], "did you mean 'trec_eval'?"),
        (["--users", "pred"], "unrecognized arguments: --users"),
        (["--score-col", "rank", "--rank-col", "rank"], "both given"),
    ],
)
def test_check_misused_is_exit_code_2(capsys, lists, arguments, expected):
    assert expected in fails(capsys, "check", "--true", "true.csv", "--pred", "pred.csv", *arguments)


def test_help_lists_the_conventions(capsys):
    for command in ("evaluate", "check"):
        assert ",".join(rd.CONVENTIONS) in "".join(run(capsys, command, "--help")[1].split())


# --------------------------------------------------------------------------------- README's commands


def test_commands_of_the_readme_run(capsys, tmp_path, monkeypatch, demo):
    """In order, in an empty folder, as a reader would type them; the demo has run already."""
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    section = text.split("\n## Command line\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```$", section, flags=re.S | re.M)
    commands = [shlex.split(line) for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    assert {command[1] for command in commands} == {"demo", "evaluate", "check", "compare", "experiment"}
    for command in commands:
        assert command[0] == "recdf"
        if command[1:] == ["demo"]:
            demo.copy_to(tmp_path)
            code, out, err = demo.code, demo.out, demo.err
        else:
            code, out, err = run(capsys, *command[1:])
        assert (code, err) == (0, ""), command
        assert out
