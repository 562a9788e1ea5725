"""`Evaluation.join_experiment`, `.compare_models` and `recdf compare`; experiments/ tests the
numbers."""

from contextlib import nullcontext
from pathlib import Path

import pandas as pd
import pytest
from cli.command import fails, run
from cli.shop import GROUPS, METRICS, SHOP, models, sessions, shown, written

import recdf as rd

# -- methods of
# Evaluation


def test_join_is_that_of_the_frames():
    result = shown()
    joined = result.join_experiment(GROUPS, missing="zero")
    pd.testing.assert_frame_equal(
        joined, rd.join_experiment(result.per_user, GROUPS, missing="zero")
    )


def test_join_takes_the_lists_of_the_users_own_variant():
    """Evaluated by variant, over the users shown (one row each) or over all (a row of zeros for the
    other variant)."""
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
        variant=groups["variant"].where(
            groups.index != stray, "AB".replace(groups.variant[stray], "")
        )
    )
    result = shown(by="variant")
    with pytest.raises(
        rd.DataError,
        match=f"1 users of per_user have lists of other variants .* only \\('{stray}'\\)",
    ):
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


def test_sessions_join_to_users():
    """Lists by (user, session): the assignment has the user alone, and `how` says what becomes of
    the sessions."""
    result = rd.evaluate(
        sessions(SHOP.true),
        sessions(SHOP.shown),
        METRICS,
        user_col=["user_id", "session"],
        users="pred",
        value_col="value",
    )
    with pytest.raises(rd.DuplicateError, match="roll them up"):
        result.join_experiment(GROUPS)
    joined = result.join_experiment(GROUPS, missing="zero", how="sum")
    rolled = rd.experiments.roll_up(result.per_user, "user_id", "sum")
    pd.testing.assert_frame_equal(
        joined, rd.join_experiment(rolled, GROUPS, missing="zero"), check_like=True
    )
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


@pytest.mark.long
def test_compare_pairs_within_what_is_left_of_keys_and_by():
    true, pred = sessions(SHOP.true), sessions(SHOP.pred)
    pred = pd.concat([pred.assign(day="mon"), pred.assign(day="tue")])
    result = rd.evaluate(
        true, pred, "ndcg@10", by=["model", "day"], user_col=["user_id", "session"]
    )
    with pytest.raises(
        rd.OptionError, match=r"by \['model', 'day'\]; name the one of the models in model_col="
    ):
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


@pytest.mark.long
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
        result.join_experiment(GROUPS, missing="zero"),
        METRICS,
        control="A",
        covariates="pre_spend",
        by="segment",
    )
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "table.parquet"), direct)
    assert len(direct) == len(METRICS) * GROUPS["segment"].nunique()


# -- recdf compare


@pytest.mark.long
def test_compare_prints_what_report_table_says(capsys, folder):
    code, out, err = run(
        capsys, "compare", "models", "--baseline", "popularity", "--model", "knn", "--out", "out"
    )
    assert (code, err) == (0, "")
    of_two = rd.Evaluation(*(getattr(models(), name) for name in ("per_user", "summary", "spec")))
    kept = of_two.per_user[of_two.per_user["model"] != "random"]
    want = rd.compare_models(kept, baseline="popularity")
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)
    lines = out.splitlines()
    n = SHOP.true["user_id"].nunique()
    assert lines[0] == f"{n:,} users, test t, p adjusted by Holm's method for 2 tests"
    assert lines[2].split("  ")[0] == "metric"
    report = rd.experiments.report_table(want).frame
    for line, cells in zip(lines[3:5], report.to_dict("records"), strict=True):
        for name in ("metric", "comparison", "effect (95% CI)", "relative", "p", "verdict"):
            assert cells[name].replace("−", "-") in line
    assert f"wrote {Path('out/comparison.parquet')}" in out
    assert out.isascii()


@pytest.mark.long
def test_compare_options_reach_the_comparison(capsys, folder):
    options = {
        "test": "bootstrap",
        "missing": "drop",
        "alternative": "greater",
        "confidence": 0.9,
        "n_resamples": 200,
        "seed": 7,
        "correction": "bh",
        "family": "metric",
        "smaller_is_better": "recall@10",
        "margin": 0.05,
    }
    arguments = [
        part for name, value in options.items() for part in ("--" + name.replace("_", "-"), value)
    ]
    code, out, err = run(
        capsys, "compare", "models", "--metric", "recall@10", *arguments, "--out", "out"
    )
    assert (code, err) == (0, "")
    want = rd.compare_models(models().per_user, "recall@10", **options)
    pd.testing.assert_frame_equal(written("out/comparison.parquet"), want, check_dtype=False)
    assert "90% CI" in out
    attrs = written("out/comparison.parquet").attrs
    assert attrs["recdf_comparison"]["correction"] == "bh"
    assert attrs["recdf"] == models().spec
    assert "effect (90% CI)" in rd.experiments.report_table(written("out/comparison.parquet")).frame


@pytest.mark.long
def test_compare_finds_labels_that_are_not_strings(capsys, folder):
    numbered = SHOP.pred.assign(
        model=SHOP.pred["model"].map({"knn": 1, "popularity": 2, "random": 10})
    )
    rd.evaluate(SHOP.true, numbered, "ndcg@10", by="model").to_parquet("numbered")
    code, out, _ = run(
        capsys, "compare", "numbered", "--model", 1, 10, "--baseline", "2", "--out", "out"
    )
    assert code == 0
    assert "10 vs. 2" in out
    assert written("out/comparison.parquet")["model"].tolist() == [1, 10]


@pytest.mark.long
def test_compare_by_model_and_day(capsys, folder):
    pred = pd.concat([SHOP.pred.assign(day=day) for day in ("mon", "tue")])
    rd.evaluate(SHOP.true, pred, "ndcg@10", by=["model", "day"]).to_parquet("days")
    assert "in --model-col" in fails(capsys, "compare", "days")
    assert (
        run(capsys, "compare", "days", "--model-col", "model", "--model", "knn", "random")[0] == 0
    )


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["absent"], "per_user.parquet does not exist; expected a folder written by"),
        (["groups.csv"], "groups.csv"),
        (
            ["models", "--baseline", "popularty"],
            "no such model; the result has knn, popularity, random; did you mean",
        ),
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


@pytest.mark.long
def test_out_is_kept_unless_overwrite(capsys, folder):
    call = [
        "compare",
        "models",
        "--metric",
        "ndcg@10",
        "--out",
        "models",
    ]  # beside the result: other names
    assert run(capsys, *call)[0] == 0
    assert "already holds comparison.parquet; pass --overwrite" in fails(capsys, *call)
    assert run(capsys, *call, "--overwrite")[0] == 0
    assert rd.read_parquet("models") == models()


@pytest.mark.long
def test_compare_within_segments_names_the_segment_of_each_sentence(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    true = {user: ["a"] for user in range(80)}
    better = pd.DataFrame({"user_id": range(80), "item_id": ["a", "b"] * 40, "model": "new"})
    lacking = pd.DataFrame(
        {"user_id": range(40, 80), "item_id": ["b", "a", "a", "b"] * 10, "model": "old"}
    )
    result = rd.evaluate(true, pd.concat([better, lacking]), ["hitrate"], k=1, by="model")
    per_user = result.per_user.assign(
        half=result.per_user["user_id"].map(lambda user: "low" if user < 40 else "high")
    )
    rd.Evaluation(per_user, result.summary, result.spec).to_parquet("result")
    code, out, _ = run(
        capsys, "compare", "result", "--baseline", "old", "--by", "half", "--out", "out"
    )
    assert code == 0
    assert "half = low: new vs. old: old lacks 40 of 40 lists that the other has" in out
    written_table = pd.read_parquet("out/comparison.parquet")
    assert written_table["half"].tolist() == ["high", "low"]
    want = rd.compare_models(per_user, baseline="old", by="half")
    pd.testing.assert_frame_equal(written_table, want, check_dtype=False)
