"""evaluate_parquet: the same answer as in memory, whatever the files' layout, and nothing left
behind."""

import numpy as np
import pandas as pd
import pytest
from partitions.parquet_files import USUAL, as_dtype, assert_equal, check, data, write
from quick import few

import recdf as rd
from recdf.partitions import source

pytestmark = [
    pytest.mark.usefixtures("small_pieces", "nothing_left_behind"),
    pytest.mark.filterwarnings("ignore::recdf.RecdfWarning"),
]


@pytest.mark.long
@pytest.mark.parametrize("by", few(["model", None], 1))
@pytest.mark.parametrize("users", ["true", "pred", "both", "all", "ids"])
def test_each_population(tmp_path, users, by):
    true, pred = data()
    if users == "ids":
        users = pd.Index(
            [*true["user_id"].unique()[40:2:-1], 100_000, *pred["user_id"].unique()[:9]]
        ).unique()
    check(write(tmp_path, true, pred), users=users, by=by, parts=(1, 3))


@pytest.mark.long
@pytest.mark.parametrize(("duplicates", "judged_only"), [("drop", True), ("keep", False)])
@pytest.mark.parametrize("ties", few(["item_desc", "worst", "item_asc", "row"], 2))
def test_duplicates_ties_and_condensed_lists(tmp_path, duplicates, judged_only, ties):
    options = {"duplicates": duplicates, "judged_only": judged_only, "ties": ties, "users": "both"}
    check(
        write(tmp_path, *data(2)), ["ndcg", "mar", "arhr"], by="model", min_relevance=1.0, **options
    )


@pytest.mark.long
@pytest.mark.parametrize(
    "options", [{"rank_col": "rank"}, {"like": "trec_eval"}, {"value_col": "value"}]
)
def test_other_orders_and_values(tmp_path, options):
    metrics = ["ndcg", "money_recall", "revenue"] if "value_col" in options else ["ndcg", "mapr"]
    check(write(tmp_path, *data(3)), metrics, **{"score_col": None, "by": "model"} | options)


def test_default_order_and_no_grades(tmp_path):
    true, pred = data()
    paths = write(tmp_path, true.drop(columns="relevance"), pred.drop(columns=["rank", "score"]))
    check(paths, ["ndcg", "err"], score_col=None, relevance_col=None)


@pytest.mark.few(1)
@pytest.mark.parametrize("layout", ["sorted", "reversed", "grouped"])
def test_order_of_rows(tmp_path, layout):
    true, pred = data()
    order = {
        "sorted": lambda ids: ids,
        "reversed": lambda ids: -ids,
        "grouped": lambda ids: ids * 7919 % 1009,
    }[layout]
    true, pred = (frame.sort_values("user_id", key=order, kind="stable") for frame in (true, pred))
    check(write(tmp_path, true, pred), by="model", users="all")


KINDS = [
    "int32",
    "Int64",
    "float",
    "big",
    "string",
    "category",
    "int category",
    "time",
    "zone",
    "date",
    "bytes",
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "users"),
    few(
        [*((kind, "all") for kind in KINDS), ("category", "true"), ("date", "pred")],
        [("string", "all"), ("big", "all"), ("category", "true"), ("date", "pred")],
    ),
)
def test_each_kind_of_id(tmp_path, kind, users):
    true, pred = data()
    for frame in (true, pred):
        frame["user_id"] = as_dtype(kind)(frame["user_id"])
    check(write(tmp_path, true, pred), users=users, by="model", parts=(1, 3))


@pytest.mark.long
@pytest.mark.parametrize("users", few(["pred", "all"], ["all"]))
@pytest.mark.parametrize(
    ("one", "two"), [("int32", "Int64"), ("float", "int32"), ("category", "large_string")]
)
def test_ids_of_one_kind_in_two_types(tmp_path, one, two, users):
    true, pred = data()
    true["user_id"], pred["user_id"] = (
        as_dtype(one)(true["user_id"]),
        as_dtype(two)(pred["user_id"]),
    )
    check(write(tmp_path, true, pred), users=users)


@pytest.mark.long
@pytest.mark.parametrize("users", ["true", "all", "frame"])
def test_composite_keys(tmp_path, users):
    true, pred = data()
    for frame in (true, pred):
        frame["session"] = (frame["user_id"] % 3).map("s{}".format).astype("category")
        frame["user_id"] //= 3
    if users == "frame":
        users = pd.concat([true, pred])[["session", "user_id"]].drop_duplicates()[::-2]
    check(write(tmp_path, true, pred), user_col=["user_id", "session"], users=users, by="model")


@pytest.mark.long
def test_several_by_columns_of_categories(tmp_path):
    true, pred = data()
    pred["variant"] = pd.Categorical(
        np.where(pred["item_id"] % 2, "x", "y"), ["never", "y", "x"], ordered=True
    )
    check(write(tmp_path, true, pred), by=["variant", "model"], users="both")


@pytest.mark.long
def test_null_ids_and_scores_dropped(tmp_path):
    true, pred = data()
    true = true.astype({"user_id": "Int64"}).mask(
        np.arange(len(true))[:, None] % 11 == [3, 5, 99, 99]
    )
    pred = pred.astype({"user_id": "Int64", "rank": "Int64"})
    pred.loc[::13, "item_id"] = None
    pred.loc[::7, "model"] = None
    options = {
        "null_keys": "drop",
        "nan_score": "drop",
        "by": "model",
        "users": "all",
        "items": None,
    }
    expected = check(write(tmp_path, true, pred), "ndcg", **options)
    assert {"true_null_keys", "pred_null_keys", "pred_null_scores"} <= set(expected.spec["counts"])


@pytest.mark.long
def test_files_folders_globs_and_folder_columns(tmp_path):
    true, pred = data()
    for name, frame in (("true", true), ("pred", pred)):
        folder = tmp_path / name
        folder.mkdir()
        for number, start in enumerate(range(0, len(frame), 50)):
            part = frame.iloc[start : start + 50]
            if number % 2:
                part = part.astype({"user_id": "int32"})
            part.to_parquet(folder / f"part-{number:03d}.parquet", index=False)
        (folder / "_SUCCESS").touch()
    expected = rd.evaluate(true, pred, "ndcg@5", by="model", **USUAL)
    listed = sorted((tmp_path / "pred").glob("*.parquet"))
    for path in (tmp_path / "pred", str(tmp_path / "pre*" / "*.parquet"), listed):
        assert_equal(
            rd.evaluate_parquet(tmp_path / "true", path, "ndcg@5", by="model", buckets=5, **USUAL),
            expected,
        )
    pred.to_parquet(tmp_path / "by_model", partition_cols=["model"])
    whole = pd.read_parquet(tmp_path / "by_model")
    expected = rd.evaluate(true, whole, "ndcg@5", by="model", **USUAL)
    found = rd.evaluate_parquet(
        tmp_path / "true", tmp_path / "by_model", "ndcg@5", by="model", buckets=5, **USUAL
    )
    assert_equal(found, expected)


@pytest.mark.long
@pytest.mark.parametrize("statistics", ["min and max", "none"])
def test_ids_of_any_width_and_encoding_in_files_of_one_frame(tmp_path, statistics):
    true, pred = data()
    for width in (2**31 - 200, 2**40):  # some ids fit into 32 bits, or only those of the first file
        for name, frame in (("true", true), ("pred", pred)):
            folder = tmp_path / f"{name}_{width}"
            folder.mkdir()
            for number, start in enumerate(range(0, len(frame), 60)):
                part = frame.iloc[start : start + 60].copy()
                part["item_id"] = "i" + part["item_id"].astype(str)
                if number:
                    part["user_id"] += width
                if number == 2:
                    part.loc[part.index[:3], ["user_id", "item_id"]] = None
                    part = part.astype({"user_id": "Int64"})
                to_file = folder / f"part-{number:03d}.parquet"
                part.to_parquet(
                    to_file,
                    index=False,
                    row_group_size=17,
                    use_dictionary=number % 2 == 0,
                    write_statistics=statistics != "none",
                )
        paths = [tmp_path / f"{name}_{width}" for name in ("true", "pred")]
        check(paths, ["ndcg", "mapr"], by="model", users="all", null_keys="drop", items=None)


def test_a_column_that_was_an_index_is_a_column(tmp_path):
    true, pred = data()
    paths = write(tmp_path, true, pred)
    true.set_index("user_id").to_parquet(paths[0])
    assert_equal(
        rd.evaluate_parquet(*paths, "ndcg@5", **USUAL), rd.evaluate(true, pred, "ndcg@5", **USUAL)
    )


@pytest.mark.long
def test_an_empty_pred_scores_zero(tmp_path):
    true, pred = data()
    check(write(tmp_path, true, pred.iloc[:0]), users="true", metrics="recall")
    check(write(tmp_path, true, pred.iloc[:0]), users="all", metrics="recall")


@pytest.mark.long
def test_the_summary_of_values_far_from_zero_keeps_its_digits(tmp_path):
    true, pred = data()
    pred["value"] = 1e9 + pred["item_id"] * 1e-3
    true["value"] = 1.0
    paths = write(tmp_path, true, pred)
    check(paths, ["revenue"], value_col="value")


@pytest.mark.long
def test_a_file_is_read_once_whatever_is_needed_of_all_its_rows(tmp_path, monkeypatch):
    """`by` values and the largest gain are found while the rows are dealt; before, only the first
    rows are read."""
    read, pieces = {"true": 0, "pred": 0}, source.Source._pieces

    def counted(self, names, read_rows):
        for piece in pieces(self, names, read_rows):
            read[self.role] += len(piece)
            yield piece

    monkeypatch.setattr(source.Source, "_pieces", counted)
    true, pred = data()
    rd.evaluate_parquet(
        *write(tmp_path, true, pred), ["err", "ndcg"], by="model", buckets=5, **USUAL
    )
    for role, frame in (("true", true), ("pred", pred)):
        assert len(frame) <= read[role] <= len(frame) + 300


def test_progress_is_silent_unless_asked_for(tmp_path, capsys):
    paths = write(tmp_path, *data())
    rd.evaluate_parquet(*paths, "ndcg", **USUAL)
    assert capsys.readouterr().err == ""
    rd.evaluate_parquet(*paths, "ndcg", progress=True, **USUAL)
    assert capsys.readouterr().err.splitlines()[-1] == "recdf: 100% of evaluate_parquet done"


EIGHT = pd.DataFrame({"user_id": range(8), "item_id": range(8)})


@pytest.mark.few(3)
@pytest.mark.parametrize("buckets", [1, 5])
@pytest.mark.parametrize("users", ["true", "pred", "all"])
@pytest.mark.parametrize("model", [[0.0, -0.0], [True, False], [0.5, 1.0], [1.0, 2.0]])
def test_by_values_of_any_kind(model, users, buckets, tmp_path):
    """Zeros of both signs are one recommender; a bucket may hold only the whole ones among
    fractions."""
    pred = EIGHT.assign(model=model * 4)
    EIGHT.to_parquet(tmp_path / "true.parquet")
    pred.to_parquet(tmp_path / "pred.parquet")
    options = {"by": "model", "users": users}
    streamed = rd.evaluate_parquet(
        tmp_path / "true.parquet", tmp_path / "pred.parquet", "recall@1", buckets=buckets, **options
    )
    whole = rd.evaluate(EIGHT, pred, "recall@1", **options)
    pd.testing.assert_frame_equal(streamed.per_user, whole.per_user)
    pd.testing.assert_frame_equal(streamed.summary, whole.summary)
