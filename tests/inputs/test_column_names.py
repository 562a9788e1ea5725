"""`true_cols=` and `pred_cols=` say how columns are called in one of the two frames."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cli.command import run

import recdf as rd

TRUE = pd.DataFrame(
    {"user_id": [1, 1, 2, 3], "item_id": ["a", "b", "c", "a"], "relevance": [2, 1, 3, 1]}
)
PRED = pd.DataFrame(
    {"user_id": [1, 1, 2, 2, 3], "item_id": list("xbcay"), "score": [5.0, 4, 3, 2, 1]}
)
IN_TRUE = {"user_id": "customer", "relevance": "stars"}
IN_PRED = {"user_id": "uid", "item_id": "sku", "score": "yhat"}
OTHER_TRUE = TRUE.rename(columns=IN_TRUE)
OTHER_PRED = PRED.rename(columns=IN_PRED)
NAMES = {"true_cols": IN_TRUE, "pred_cols": IN_PRED}


def calls(true, pred):
    return {
        "evaluate": lambda **how: rd.evaluate(true, pred, ["ndcg", "recall"], k=2, **how),
        "metric": lambda **how: rd.ndcg(true, pred, k=2, **how),
        "by keyword": lambda **how: rd.ndcg(pred=pred, true=true, **how),
        "per_user": lambda **how: rd.ndcg.per_user(true, pred, k=2, **how),
        "check": lambda **how: rd.check(true, pred, **how),
        "compare_conventions": lambda **how: rd.diagnostics.compare_conventions(
            true, pred, "recall", 2, **how
        ),
        "hit_table": lambda **how: rd.diagnostics.hit_table(true, pred, k=2, **how),
        "exposure_table": lambda **how: rd.diagnostics.exposure_table(pred, k=2, **how),
    }


def same(one, two):
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, two)
    else:
        assert one == two


@pytest.mark.few(3)
@pytest.mark.parametrize("call", calls(TRUE, PRED))
def test_the_numbers_and_the_names_are_those_of_standard_frames(call):
    before = OTHER_TRUE.copy(), OTHER_PRED.copy()
    same(calls(OTHER_TRUE, OTHER_PRED)[call](**NAMES), calls(TRUE, PRED)[call]())
    same(OTHER_TRUE, before[0])
    same(OTHER_PRED, before[1])


@pytest.mark.parametrize(
    "kind", [pl.from_pandas, pl.LazyFrame, pa.Table.from_pandas], ids=["polars", "lazy", "arrow"]
)
def test_frames_of_other_libraries(kind):
    found = rd.ndcg(kind(OTHER_TRUE), kind(OTHER_PRED), k=2, **NAMES)
    assert found == rd.ndcg(TRUE, PRED, k=2)


def test_a_project_states_them():
    project = rd.Options(**NAMES, ties="row")
    found = rd.evaluate(OTHER_TRUE, OTHER_PRED, "ndcg@2", options=project)
    assert found == rd.evaluate(TRUE, PRED, "ndcg@2", ties="row")
    assert rd.ndcg(TRUE, OTHER_PRED, k=2, options=project, true_cols=None) == rd.ndcg(
        TRUE, PRED, k=2
    )


def test_names_are_those_that_options_give():
    true, pred = (
        TRUE.rename(columns={"user_id": "customer"}),
        PRED.rename(columns={"user_id": "uid"}),
    )
    found = rd.evaluate(true, pred, "ndcg@2", user_col="customer", pred_cols={"customer": "uid"})
    assert found == rd.evaluate(
        true, pred.rename(columns={"uid": "customer"}), "ndcg@2", user_col="customer"
    )
    assert next(iter(found.per_user.columns)) == "customer"


def test_two_columns_may_swap_their_names():
    swapped = PRED.rename(columns={"user_id": "item_id", "item_id": "user_id"})
    found = rd.ndcg(TRUE, swapped, k=2, pred_cols={"user_id": "item_id", "item_id": "user_id"})
    assert found == rd.ndcg(TRUE, PRED, k=2)


def test_no_column_is_copied():
    scores = np.arange(5.0)[::-1].copy()
    seen = []

    @rd.metric
    def my_addresses(lists):
        "Nothing."
        return lists.n_pred * 0.0

    pred = pd.DataFrame(
        {"uid": PRED["user_id"], "item_id": PRED["item_id"], "score": scores}, copy=False
    )
    from recdf.inputs.door import renamed_columns

    found = renamed_columns(pred, {"user_id": "uid"}, "pred")
    assert list(found) == ["user_id", "item_id", "score"]
    assert np.shares_memory(found["score"].to_numpy(), pred["score"].to_numpy())
    assert list(pred) == ["uid", "item_id", "score"]
    assert not seen
    rd.METRICS.pop(my_addresses.name)


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        (
            {"pred_cols": {"user_id": "uuid"}},
            rd.ColumnError,
            ["pred has no column 'uuid'", "did you mean 'uid'"],
        ),
        (
            {"true_cols": {"user_id": "clientele"}},
            rd.ColumnError,
            ["true has no column 'clientele'", "true_cols"],
        ),
        (
            {"pred_cols": {"user_id": "uid", "item_id": "uid"}},
            rd.OptionError,
            ["'user_id' and 'item_id'", "'uid'"],
        ),
        (
            {"pred_cols": {"yhat": "uid"}},
            rd.ColumnError,
            ["'yhat'", "'uid'", "pred has a column 'yhat' too"],
        ),
        ({"pred_cols": ["uid"]}, rd.OptionError, ["pred_cols", "{'user_id': 'uid'}"]),
        ({"pred_cols": {"user_id": 3.5}}, rd.OptionError, ["pred_cols"]),
        ({"pred_col": {"user_id": "uid"}}, rd.OptionError, ["did you mean 'pred_cols'"]),
    ],
)
@pytest.mark.parametrize("call", ["evaluate", "metric", "check"])
def test_mistakes_are_named(how, error, words, call):
    with pytest.raises(error) as found:
        calls(OTHER_TRUE, OTHER_PRED)[call](**{**NAMES, **how})
    for word in words:
        assert word in str(found.value)


ROUND = [
    ("pred", {"sku": "item_id"}, "⟦pred_cols={'item_id': 'sku'}⟧"),
    (
        "pred",
        {"user_id": "uid", "sku": "item_id", "score": "yhat"},
        "⟦pred_cols={'user_id': 'uid', 'item_id': 'sku', 'score': 'yhat'}⟧",
    ),
    ("pred", {"yhat": "score"}, "⟦pred_cols={'score': 'yhat'}⟧"),
    ("true", {"customer": "user_id"}, "⟦true_cols={'user_id': 'customer'}⟧"),
]


@pytest.mark.parametrize(("role", "names", "right"), ROUND)
@pytest.mark.parametrize("call", ["evaluate", "metric", "check"])
def test_a_mapping_that_is_the_wrong_way_round_is_shown_the_right_way_round(
    role, names, right, call
):
    with pytest.raises(rd.ColumnError) as found:
        calls(OTHER_TRUE, OTHER_PRED)[call](**{**NAMES, f"{role}_cols": names})
    assert f"{role}_cols={names!r}" in str(found.value)
    assert "wrong way round" in str(found.value)
    assert right.strip("⟦⟧") in str(found.value)


@pytest.mark.parametrize(("role", "names", "right"), ROUND)
def test_so_it_is_for_files_and_on_the_command_line(capsys, paths, role, names, right):
    with pytest.raises(rd.ColumnError, match="wrong way round") as found:
        rd.evaluate_parquet(*paths, "ndcg@2", **{**NAMES, f"{role}_cols": names})
    assert right.strip("⟦⟧") in str(found.value)
    words = [f"--{role}-cols", *(f"{name}={own}" for name, own in names.items())]
    for more in ([], ["--stream"]):
        call = ["evaluate", "--true", paths[0], "--pred", paths[1], "-m", "ndcg@2", *words, *more]
        if role == "pred":
            call += ["--true-cols", *(f"{name}={own}" for name, own in IN_TRUE.items())]
        code, _, err = run(capsys, *call)
        assert code == 2
        turned = (
            right.partition("{")[2]
            .replace("'", "")
            .replace(": ", "=")
            .replace(",", "")
            .rstrip("}⟧")
        )
        assert f"--{role}-cols {turned}" in err


def test_a_standard_name_is_not_taken_away():
    """Here the frame has the column of the key, and the mapping would give it another name."""
    words = "true_cols={'sku': 'item_id'} is the wrong way round"
    with pytest.raises(rd.ColumnError, match=re.escape(words)):
        rd.evaluate(TRUE, PRED, "ndcg@2", true_cols={"sku": "item_id"})
    with pytest.raises(rd.ColumnError, match="wrong way round"):
        rd.evaluate(TRUE, PRED, "ndcg@2", options=rd.Options(pred_cols={"uid": "user_id"}))
    shop = TRUE.rename(columns={"item_id": "sku"})
    found = rd.evaluate(
        shop, PRED, "ndcg@2", item_col="sku", pred_cols={"sku": "item_id"}
    )  # the standard is sku
    assert (
        found.summary["value"].tolist()
        == rd.evaluate(TRUE, PRED, "ndcg@2").summary["value"].tolist()
    )


def test_a_mapping_has_no_columns_to_name():
    with pytest.raises(
        rd.ColumnError, match="pred is a mapping, which has no columns; pred_cols= is for frames"
    ):
        rd.ndcg(TRUE, {1: ["a"]}, pred_cols={"user_id": "uid"})


def test_without_true_its_names_do_not_matter():
    assert rd.evaluate(None, OTHER_PRED, "entropy@2", **NAMES).summary["value"].notna().all()
    assert rd.entropy(OTHER_PRED, k=2, **NAMES) == rd.entropy(PRED, k=2)


@pytest.fixture
def paths(tmp_path):
    found = [tmp_path / "true.parquet", tmp_path / "pred.parquet"]
    OTHER_TRUE.to_parquet(found[0])
    OTHER_PRED.to_parquet(found[1])
    return found


@pytest.mark.parametrize("buckets", [1, 3])
def test_files(paths, buckets):
    found = rd.evaluate_parquet(*paths, ["ndcg@2", "recall@2"], buckets=buckets, **NAMES)
    assert found == rd.evaluate(TRUE, PRED, ["ndcg@2", "recall@2"])
    with pytest.raises(rd.ColumnError, match="pred has no column 'uuid'"):
        rd.evaluate_parquet(
            *paths, "ndcg@2", buckets=buckets, true_cols=IN_TRUE, pred_cols={"user_id": "uuid"}
        )


def test_files_with_folder_columns(tmp_path, paths):
    for model in "mn":
        (tmp_path / f"pred/algo={model}").mkdir(parents=True)
        OTHER_PRED.to_parquet(tmp_path / f"pred/algo={model}/part.parquet")
    names = {"true_cols": IN_TRUE, "pred_cols": {**IN_PRED, "model": "algo"}}
    both = pd.concat([PRED.assign(model="m"), PRED.assign(model="n")])
    found = rd.evaluate_parquet(paths[0], tmp_path / "pred", "ndcg@2", by="model", **names)
    assert (
        found.summary["value"].tolist()
        == rd.evaluate(TRUE, both, "ndcg@2", by="model").summary["value"].tolist()
    )
    assert found.per_user["model"].tolist() == ["m"] * 3 + ["n"] * 3


def as_text(names):
    return [f"{name}={own}" for name, own in names.items()]


@pytest.mark.few(2)
@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("stream", [[], ["--stream"]], ids=["whole", "stream"])
def test_the_command(tmp_path, capsys, ending, stream):
    if stream and ending == "csv":
        pytest.skip("--stream reads parquet files")
    files = [tmp_path / f"{name}.{ending}" for name in ("true", "pred")]
    for frame, file in zip((OTHER_TRUE, OTHER_PRED), files, strict=True):
        frame.to_parquet(file) if ending == "parquet" else frame.to_csv(file, index=False)
    words = ["evaluate", "--true", files[0], "--pred", files[1], "-m", "ndcg@2", *stream]
    names = ["--true-cols", *as_text(IN_TRUE), "--pred-cols", *as_text(IN_PRED)]
    code, _, err = run(capsys, *words, *names, "--out", tmp_path / "out")
    assert code == 0, err
    found, plain = rd.read_parquet(tmp_path / "out"), rd.evaluate(TRUE, PRED, "ndcg@2")
    assert found.summary["value"].tolist() == plain.summary["value"].tolist()
    assert list(found.per_user) == list(plain.per_user)
    assert found.per_user["user_id"].tolist() == [1, 2, 3]
    code, _, err = run(capsys, *words, *names[:-1], "yhat")
    assert (code, "--pred-cols yhat; expected" in err) == (2, True), err
    code, _, err = run(capsys, *words, *names[:-1], "score=yhatt")
    assert (code, "has no column 'yhatt'" in err, "--pred-cols" in err) == (2, True, True), err


def test_check_and_a_config_file(tmp_path, capsys, paths):
    config = tmp_path / "job.toml"
    config.write_text(f"true_cols = {as_text(IN_TRUE)}\npred-cols = {as_text(IN_PRED)}\n")
    code, out, err = run(
        capsys, "check", "--true", paths[0], "--pred", paths[1], "--config", config
    )
    assert code in (0, 1), err
    assert "found: 0 errors" in out or "nothing odd" in out
