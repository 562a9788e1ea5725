"""Rows that hold a whole list (in a cell, in a text, in columns) give what the long frame of a slow
loop gives."""

import decimal
import re
import uuid
import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.command import run
from hypothesis import example, given
from hypothesis import strategies as st
from quick import few

import recdf as rd

METRICS = ["ndcg@2", "recall@3", "mrr@3"]
TRUE = pd.DataFrame({"user_id": [1, 2, 3, 5], "item_id": [[10, 11], [12], [10], []]})
TRUE["relevance"] = [[1.0, 2.0], [1.0], [3.0], []]
PRED = pd.DataFrame(
    {
        "model": ["a", "a", "b", "b", "b"],
        "user_id": [1, 2, 1, 3, 4],
        "item_id": [[11, 20, 10], [13, 12], [20, 10], [], None],
        "score": [[0.1, 0.8, 0.9], [0.7, 0.6], [0.2, 0.3], [], None],
    }
)
LIST = pa.list_(pa.int64())


def long(frame):
    """One row per item, by a slow loop; columns whose cells are lists go together."""
    lists = [
        name
        for name in frame.columns
        if any(isinstance(one, list | tuple | np.ndarray) for one in frame[name])
    ]
    rows = []
    for row in frame.to_dict("records"):
        items = row["item_id"]
        for place in range(0 if items is None else len(items)):
            rows.append(
                {name: value[place] if name in lists else value for name, value in row.items()}
            )
    return pd.DataFrame(rows, columns=frame.columns)


def plain(true, pred, metrics=METRICS, **options):
    return rd.evaluate(long(true), long(pred), metrics, **options)


def same(found, expected):
    assert found.summary["value"].tolist() == pytest.approx(
        expected.summary["value"].tolist(), abs=1e-12
    )
    pd.testing.assert_frame_equal(found.per_user, expected.per_user, check_dtype=False)
    assert found.spec["order"] == expected.spec["order"]
    assert found.spec["counts"] == expected.spec["counts"]


def table(frame):
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()


def with_lists(frame, kind):
    """A table whose lists are of another type of Arrow, made of Python lists."""
    columns = {}
    for name in frame.columns:
        array = table(frame)[name]
        if pa.types.is_list(array.type):
            array = pa.chunked_array([pa.array(array.to_pylist(), kind(array.type.value_type))])
        columns[name] = array
    return pa.table(columns)


def of_cells(make):
    def change(frame):
        lists = [name for name in ("item_id", "score", "relevance") if name in frame]
        return frame.assign(
            **{
                name: pd.Series(
                    [None if one is None else make(one) for one in frame[name]], dtype=object
                )
                for name in lists
            }
        )

    return change


CARRIERS = {
    "pandas list": lambda frame: frame,
    "pandas tuple": of_cells(tuple),
    "pandas array": of_cells(np.array),
    "pandas NaN for no list": lambda frame: frame.assign(
        **{
            name: frame[name].where(frame[name].notna(), np.nan)
            for name in ("item_id", "score")
            if name in frame
        }
    ),
    "pandas Arrow": lambda frame: table(frame).to_pandas(types_mapper=pd.ArrowDtype),
    "Arrow list": table,
    "Arrow large_list": lambda frame: with_lists(frame, pa.large_list),
    "Arrow in chunks": lambda frame: pa.concat_tables([table(frame[:1]), table(frame[1:])]),
    "Arrow stream": lambda frame: pa.RecordBatchReader.from_batches(
        table(frame).schema, table(frame).to_batches()
    ),
    "Polars": lambda frame: pl.from_arrow(table(frame)),
    "Polars lazy": lambda frame: pl.from_arrow(table(frame)).lazy(),
    "DuckDB": lambda frame: duckdb.from_arrow(table(frame)),
}
if hasattr(pa, "list_view"):
    CARRIERS["Arrow list_view"] = lambda frame: with_lists(frame, pa.list_view)
    CARRIERS["Arrow large_list_view"] = lambda frame: with_lists(frame, pa.large_list_view)


@pytest.mark.few(3)
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("users", ["true", "pred", "all"])
def test_carriers(carrier, users):
    found = rd.evaluate(
        CARRIERS[carrier](TRUE), CARRIERS[carrier](PRED), METRICS, by="model", users=users
    )
    same(found, plain(TRUE, PRED, by="model", users=users))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "labels", [{}, {"user_id": str, "item_id": lambda items: items and list(map(str, items))}]
)
@pytest.mark.parametrize(
    "carrier", ["pandas list", "pandas array", "Arrow list", "Polars", "DuckDB"]
)
def test_ids_of_strings_and_order_of_the_list(carrier, labels):
    """Without scores the order of the items in a list is that of the list."""
    true, pred = (frame.copy() for frame in (TRUE, PRED.drop(columns="score")))
    for frame in (true, pred):
        for name, change in labels.items():
            frame[name] = pd.Series(list(map(change, frame[name])), dtype=object)
    found = rd.evaluate(CARRIERS[carrier](true), CARRIERS[carrier](pred), METRICS, by="model")
    same(found, plain(true, pred, by="model"))


def test_lists_of_a_fixed_size():
    pred = pa.table(
        {
            "user_id": [1, 2, 3],
            "item_id": pa.array([[10, 20], None, [10, 11]], pa.list_(pa.int64(), 2)),
        }
    )
    expected = rd.evaluate(
        long(TRUE), pd.DataFrame({"user_id": [1, 1, 3, 3], "item_id": [10, 20, 10, 11]}), METRICS
    )
    for carrier in (
        pred,
        pl.from_arrow(pred),
        pred.to_pandas(types_mapper=pd.ArrowDtype),
        pred.slice(0),
    ):
        same(rd.evaluate(TRUE, carrier, METRICS), expected)


def test_a_slice_of_a_table_has_its_own_rows():
    whole = table(pd.concat([PRED, PRED]))
    same(
        rd.evaluate(table(TRUE), whole.slice(len(PRED)), METRICS, by="model"),
        plain(TRUE, PRED, by="model"),
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("fields", [["item_id", "score"], ["movie", "score"]])
def test_lists_of_records(fields):
    """As Spark's `recommendForAllUsers` gives them: the item is the field of its name, or the first
    one."""
    cells = [
        None
        if items is None
        else [dict(zip(fields, pair, strict=True)) for pair in zip(items, scores, strict=True)]
        for items, scores in zip(PRED["item_id"], PRED["score"], strict=True)
    ]
    frame = PRED[["model", "user_id"]].assign(item_id=pd.Series(cells, dtype=object))
    for pred in (frame, table(frame), pl.from_arrow(table(frame))):
        same(rd.evaluate(TRUE, pred, METRICS, by="model"), plain(TRUE, PRED, by="model"))


def test_items_that_arrow_has_no_column_for():
    ids = [uuid.UUID(int=10**37 + i) for i in range(30)]
    true, pred = (frame.copy() for frame in (TRUE, PRED))
    for frame in (true, pred):
        cells = [items and [ids[one] for one in items] for items in frame["item_id"]]
        frame["item_id"] = pd.Series(cells, dtype=object)
    same(rd.evaluate(true, pred, METRICS, by="model"), plain(TRUE, PRED, by="model"))
    huge = TRUE.assign(item_id=[[10**30], [2], [3], []], relevance=[[1.0], [1.0], [1.0], []])
    assert (
        rd.recall(
            huge, huge.assign(user_id=[1, 2, 3, 9]).rename(columns={"relevance": "score"}), k=1
        )
        == 1.0
    )
    decimals = pd.DataFrame({"user_id": [1], "item_id": [[decimal.Decimal("1.5")]]})
    assert rd.recall(decimals, decimals, k=1) == 1.0


def test_integers_stay_exact_and_a_tuple_of_several_types_is_an_id():
    large = pd.DataFrame({"user_id": [1, 2], "item_id": [[2**53 + 1, 2**53], [1]]})
    assert rd.precision(large, large.assign(item_id=[[2**53 + 1], [2]]), k=1) == 0.5
    assert rd.precision(large, large.assign(item_id=[[2**53 + 2], [1]]), k=1) == 0.5
    of_shop = pd.DataFrame({"user_id": [1, 2], "item_id": [("shop", 1), ("shop", 2)]})
    assert rd.evaluate(of_shop, of_shop, "recall@1").per_user["n_true"].tolist() == [1, 1]


RAGGED = st.lists(
    st.one_of(st.none(), st.lists(st.integers(0, 6), max_size=5, unique=True)),
    min_size=1,
    max_size=8,
)


@given(
    RAGGED,
    RAGGED,
    st.sampled_from(["pandas list", "pandas array", "Arrow list", "Arrow large_list", "Polars"]),
)
@example([[1, 2], None, []], [None, [3], [1]], "pandas list")
@example([[1, 2], None, [0]], [[], [3], [0, 1]], "pandas array")
@example([[], None, [4, 5]], [[6, 4], [1], None], "Arrow list")
@example([None, [2], []], [[2], [2, 3], None], "Arrow large_list")
@example([[5], [], None, [1]], [None, [5], [1]], "Polars")
def test_ragged_lists(relevant, recommended, carrier):
    true, pred = (
        pd.DataFrame({"user_id": range(len(cells)), "item_id": pd.Series(cells, dtype=object)})
        for cells in (relevant, recommended)
    )
    if not len(long(true)) or not len(long(pred)):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rd.NoOverlapWarning)
        expected = plain(true, pred, users="all")
        if carrier.startswith("pandas"):
            found = rd.evaluate(
                CARRIERS[carrier](true), CARRIERS[carrier](pred), METRICS, users="all"
            )
        else:
            kind = pa.large_list if "large" in carrier else pa.list_
            both = [
                pa.table(
                    {"user_id": range(len(cells)), "item_id": pa.array(cells, kind(pa.int64()))}
                )
                for cells in (relevant, recommended)
            ]
            both = map(pl.from_arrow, both) if carrier == "Polars" else both
            found = rd.evaluate(*both, METRICS, users="all")
    same(found, expected)


# ---------------------------------------------------------------------------------------------
# other doors


@pytest.mark.long
def test_metrics_side_tables_check_and_tables_of_lists():
    true, pred = long(TRUE), long(PRED)
    seen = pd.DataFrame({"user_id": [1], "item_id": [[20, 19]]})
    same(
        rd.evaluate(TRUE, PRED, METRICS, by="model", exclude=table(seen)),
        rd.evaluate(true, pred, METRICS, by="model", exclude=long(seen)),
    )
    assert rd.ndcg(TRUE, PRED[:2], k=2) == rd.ndcg(true, pred[:5], k=2)
    one = PRED[:2].drop(columns="model")
    expected = rd.diagnostics.hit_table(true, long(one), 2)
    pd.testing.assert_frame_equal(
        rd.diagnostics.hit_table(TRUE, one, 2), expected, check_dtype=False
    )
    assert (
        rd.check(TRUE, one)
        .drop(columns="examples")
        .equals(rd.check(true, long(one)).drop(columns="examples"))
    )
    base = {"base": one, "items": [10, 11, 12, 13, 20]}
    expected = rd.evaluate(true, long(one), "coverage@2", **base | {"base": long(one)})
    assert rd.evaluate(TRUE, one, "coverage@2", **base).summary.equals(expected.summary)
    names = {"item_id": "recs", "score": "p"}
    renamed = one.rename(columns=names)
    assert rd.ndcg(TRUE, renamed, k=2, pred_cols=names) == rd.ndcg(true, long(one), k=2)


@pytest.mark.few(1)
@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize("form", ["lists", "texts", "wide"])
def test_files(tmp_path, buckets, form):
    true, pred, options = FORMS[form]
    pq.write_table(table(true), tmp_path / "true.parquet")
    pq.write_table(table(pred), tmp_path / "pred.parquet", row_group_size=2)
    paths = tmp_path / "true.parquet", tmp_path / "pred.parquet"
    found = rd.evaluate_parquet(*paths, METRICS, buckets=buckets, **options)
    expected = rd.evaluate(true, pred, METRICS, **options)
    assert found.summary["value"].tolist() == pytest.approx(
        expected.summary["value"].tolist(), abs=1e-12
    )
    assert found.per_user.to_dict("list") == expected.per_user.to_dict("list")


@pytest.mark.long
def test_a_metric_that_needs_the_largest_gain_of_files(tmp_path):
    for name, frame in (("true", TRUE), ("pred", PRED)):
        pq.write_table(table(frame), tmp_path / name)
    paths = tmp_path / "true", tmp_path / "pred"
    for metrics in (["err@2"], ["coverage@2", "gini@2"]):
        options = {"by": "model", "items": [10, 11, 12, 13, 20]}
        expected = plain(TRUE, PRED, metrics, **options).summary["value"].tolist()
        found = rd.evaluate_parquet(*paths, metrics, buckets=3, **options).summary["value"].tolist()
        assert found == pytest.approx(expected)


TEXTS = pd.DataFrame({"user_id": [1, 2, 3], "item_id": [" 11  20 10 ", "13\t12", ""]})
WIDE = pd.DataFrame({"user_id": [1, 2, 3], "top_1": [11, 13, None], "top_2": [20, 12, None]})
WIDE["top_10"] = [10, None, None]
LONG_TRUE = long(TRUE).drop(columns="relevance").astype({"user_id": "int64", "item_id": "int64"})
LONG = pd.DataFrame({"user_id": [1, 1, 1, 2, 2], "item_id": [11, 20, 10, 13, 12]})
FORMS = {
    "lists": (TRUE, PRED, {"by": "model"}),
    "texts": (LONG_TRUE, TEXTS, {"items_sep": " "}),
    "wide": (LONG_TRUE, WIDE, {"wide": "top"}),
}


@pytest.mark.long
@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("stream", few([[], ["--stream"]], 1), ids=["whole", "stream"])
@pytest.mark.parametrize("form", FORMS)
def test_the_command(tmp_path, capsys, ending, stream, form):
    if ending == "csv" and (stream or form == "lists"):
        return
    true, pred, options = FORMS[form]
    files = [tmp_path / f"{name}.{ending}" for name in ("true", "pred")]
    for frame, file in zip((true, pred), files, strict=True):
        pq.write_table(table(frame), file) if ending == "parquet" else frame.astype(
            {name: "Int64" for name in frame if name.startswith("top")}
        ).to_csv(file, index=False)
    flags = {"lists": ["--by", "model"], "texts": ["--items-sep", " "], "wide": ["--wide", "top"]}[
        form
    ]
    words = ["--true", files[0], "--pred", files[1]]
    code, _, err = run(
        capsys, "evaluate", *words, "-m", "ndcg@2", *flags, *stream, "--out", tmp_path / "out"
    )
    assert code == 0, err
    expected = rd.evaluate(true, pred, "ndcg@2", **options).summary["value"].tolist()
    assert rd.read_parquet(tmp_path / "out").summary["value"].tolist() == pytest.approx(expected)
    if not stream:
        for name in ("check", "audit"):
            code, _, err = run(capsys, name, *words, *flags, "-q")
            assert code in (0, 1), err
    if form == "texts" and ending == "parquet":  # an empty field of a CSV file is a null id
        code, _, err = run(capsys, "evaluate", *words, "-m", "ndcg@2", *stream)
        assert (code, "pass --items-sep ' ' to split them" in err) == (2, True), err


# -- texts and wide tables


def joined(frame, sep, form="{}"):
    texts = frame.groupby("user_id")["item_id"].agg(
        lambda items: form.format(sep.join(map(str, items)))
    )
    return texts.reset_index()


TEXT_FORMS = [(" ", "{}"), (",", "{}"), ("|", "{}"), (";", "{};"), (", ", "[{}]"), ("  ", "[{}]")]


@pytest.mark.few(1)
@pytest.mark.parametrize(("sep", "form"), TEXT_FORMS)
@pytest.mark.parametrize("which", ["pred", "both"])
@pytest.mark.parametrize("text", few([False, True], [True]))
def test_texts_of_items(sep, form, which, text):
    ids = {"item_id": str} if text else {}
    true, pred = LONG_TRUE.astype(ids), LONG.astype(ids)
    expected = rd.evaluate(true, pred, METRICS)
    given = joined(true, sep, form) if which == "both" else true, joined(pred, sep, form)
    found = rd.evaluate(*given, METRICS, items_sep=sep if sep.strip() else " ")
    assert found.per_user.to_dict("list") == expected.per_user.to_dict("list")
    for dtype in (object, "string[pyarrow]", "category", pd.ArrowDtype(pa.string())):
        pred = given[1].astype({"item_id": dtype})
        with pytest.raises(
            rd.DataError,
            match=r"holds several items in one text.*'11', '20', '10'; pass items_sep='",
        ):
            rd.evaluate(given[0], pred, METRICS)
        assert rd.recall(given[0], pred, k=3, items_sep=sep) == expected.summary["value"][1]
    found = rd.check(*given)
    assert "pass items_sep=" in found.loc[found["severity"] == "error", "examples"].iloc[0]


def test_quoted_texts_are_lists_as_csv_files_have_them():
    pred = pd.DataFrame({"user_id": [1, 2], "item_id": ["['a b', 'c']", "['c']"]})
    true = pd.DataFrame({"user_id": [1, 2], "item_id": ["a b", "x"]})
    assert rd.recall(true, pred, k=1, items_sep=",") == 0.5


@pytest.mark.filterwarnings("ignore::recdf.NoOverlapWarning")
def test_ids_with_blanks_stay_ids():
    true = pd.DataFrame({"user_id": [1, 2], "item_id": ["The Matrix", "Sense and Sensibility"]})
    pred = pd.DataFrame(
        {"user_id": [1, 1, 2], "item_id": ["The Matrix", "The Sting, Part 2", "The Godfather"]}
    )
    assert rd.recall(true, pred, k=2) == 0.5
    none = pd.DataFrame({"user_id": [1, 1, 2], "item_id": ["The Sting", "A b", "The Godfather"]})
    assert rd.recall(true, none, k=2) == 0.0
    numbered = pred.assign(item_id=["Alien 3", "Alien 4", "Up 2"])
    assert rd.recall(true.assign(item_id=["Matrix", "Sense"]), numbered, k=2) == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("wide", ["top", "top_", ["top_1", "top_2", "top_10"]])
def test_a_wide_table(wide):
    expected = rd.evaluate(LONG_TRUE, LONG, METRICS)
    for pred in (
        WIDE,
        WIDE[WIDE.columns[::-1]],
        table(WIDE),
        pl.from_pandas(WIDE),
        WIDE.astype("Int64"),
    ):
        found = rd.evaluate(LONG_TRUE, pred, METRICS, wide=wide)
        assert found.per_user.to_dict("list") == expected.per_user.to_dict("list")
    text = {"item_id": str}
    words = WIDE.astype("Int64").astype("string").astype({"user_id": "int64"})
    assert rd.mrr(LONG_TRUE.astype(text), words, k=2, wide=wide) == rd.mrr(LONG_TRUE, LONG, k=2)
    assert rd.Options(wide=wide).replace(items_sep=",").items_sep == ","
    assert rd.mrr(LONG_TRUE, WIDE, k=2, options=rd.Options(wide=wide)) == rd.mrr(
        LONG_TRUE, LONG, k=2
    )


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::recdf.NoOverlapWarning")
def test_a_part_of_the_users_may_have_no_id_in_common(tmp_path):
    """Ids of two parts, one per user: the parts of ids meet in every bucket, and whole ids only in
    a late row."""
    users = range(300)
    true = pd.DataFrame({"user_id": users, "item_id": [f"12|{user}" for user in users]})
    pred = pd.DataFrame(
        {"user_id": users, "item_id": [f"12|{user + 1000 * (user < 299)}" for user in users]}
    )
    for name, frame in (("true", true), ("pred", pred)):
        frame.to_parquet(tmp_path / name)
    for buckets in (1, 40):
        found = rd.evaluate_parquet(
            tmp_path / "true", tmp_path / "pred", "recall@1", buckets=buckets
        )
        assert found.summary["value"].tolist() == [1 / 300]


@pytest.mark.long
def test_an_engine_tells_of_texts_before_it_asks_for_an_order():
    dd = pytest.importorskip("dask.dataframe")
    true, pred = (dd.from_pandas(frame, npartitions=1) for frame in (LONG_TRUE, TEXTS[:2]))
    with pytest.raises(rd.DataError, match="pass items_sep=' ' to split them"):
        rd.dask.evaluate(true, pred, "recall@2")
    expected = rd.evaluate(LONG_TRUE, LONG, "recall@2").summary["value"].tolist()
    assert (
        rd.dask.evaluate(true, pred, "recall@2", items_sep=" ").summary["value"].tolist()
        == expected
    )
    with pytest.raises(rd.OptionError, match="no order of rows"):
        rd.dask.evaluate(true, dd.from_pandas(LONG, npartitions=1), "recall@2")


# -- bad input


def pred_with(**columns):
    return PRED.drop(columns="model")[:2].assign(**columns)


BAD = {
    "set": (
        pred_with(item_id=[{1, 2, 3}, {1, 2}]),
        {},
        rd.IdTypeError,
        "['item_id'] holds sets, which have no order",
    ),
    "lengths": (
        pred_with(score=[[1.0, 2.0], [1.0, 2.0]]),
        {},
        rd.DataError,
        "pred: the row with user_id=1 has 3 values in 'item_id' and 2 in 'score'",
    ),
    "no scores": (
        pred_with(score=[None, [1.0, 2.0]]),
        {},
        rd.DataError,
        "has 3 values in 'item_id' and 0 in 'score'",
    ),
    "score of a name": (
        pred_with(p=[1.0, 2.0]),
        {"score_col": "p"},
        rd.DataError,
        "pred['p'] has one number for",
    ),
    "rank of a name": (
        pred_with(p=[1, 2]),
        {"rank_col": "p"},
        rd.DataError,
        "pred['p'] has one number for a list",
    ),
    "one score": (
        pred_with(score=[1.0, 2.0]),
        {},
        rd.DataError,
        "pred['score'] has one number for a list of items",
    ),
    "scores alone": (
        pred_with(item_id=[1, 2]),
        {},
        rd.DataError,
        "lists of numbers need a list of items in their row",
    ),
    "lists of lists": (
        pred_with(item_id=[[[1], [2], [3]], [[2], [3]]]),
        {},
        rd.IdTypeError,
        "holds lists of lists",
    ),
    "no list": (
        pred_with(item_id=[[1, 2, 3], 5]),
        {},
        rd.IdTypeError,
        "holds lists, and 5, which is none",
    ),
    "types": (
        pred_with(item_id=[["a", 1, 2], [1, 2]]),
        {},
        rd.IdTypeError,
        "mixes ids of several types: int, str",
    ),
    "null": (
        pred_with(item_id=[[None, 1, 2], [1, 2]]),
        {},
        rd.NullKeyError,
        'pass null_keys="drop"',
    ),
    "user": (
        pd.DataFrame({"user_id": [[1], [2]], "item_id": [1, 2]}),
        {},
        rd.IdTypeError,
        "expected one id in a row",
    ),
    "sep": (TEXTS, {"items_sep": ""}, rd.OptionError, "items_sep=''; expected a text or None"),
    "no text": (TEXTS, {"items_sep": 3}, rd.OptionError, "items_sep=3; expected a text or None"),
    "wide": (
        WIDE,
        {"wide": ["top_1", "topp"]},
        rd.ColumnError,
        "no columns 'topp' for wide=; it has 'user_id'",
    ),
    "prefix": (
        WIDE,
        {"wide": "rank"},
        rd.ColumnError,
        "no columns 'rank' for wide=; it has 'user_id', 'top_1'",
    ),
    "both": (
        WIDE.assign(item_id=1),
        {"wide": "top"},
        rd.ColumnError,
        "'item_id' beside the columns of wide='top'",
    ),
    "kinds": (
        WIDE.assign(top_2=["a", "b", "c"]),
        {"wide": "top"},
        rd.IdTypeError,
        "several types: float, str",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    pred, options, error, words = BAD[case]
    with pytest.raises(error) as raised:
        rd.evaluate(LONG_TRUE, pred, "recall@2", **options)
    assert words in str(raised.value)
    assert "explode" not in str(raised.value)


def test_null_items_are_dropped_if_the_call_says_so():
    pred = pd.DataFrame({"user_id": [1], "item_id": [[None, 11]]})
    assert rd.recall(LONG_TRUE, pred, k=2, null_keys="drop", users=[1]) == 0.5


def test_a_set_is_fine_in_true_and_inputs_are_not_changed():
    true, pred = TRUE.drop(columns="relevance"), PRED.copy(deep=True)
    sets = true.assign(item_id=pd.Series([set(items) for items in true["item_id"]], dtype=object))
    before = pred.to_dict("list")
    same(rd.evaluate(sets, pred, METRICS, by="model"), plain(true, PRED, by="model"))
    assert pred.to_dict("list") == before


@pytest.mark.long
def test_files_of_lists_of_texts_of_several_writers(tmp_path):
    """Texts of a row group are read as positions in its dictionary, under whatever name the writer
    gave the items."""
    true, pred = (
        frame.drop(columns=["relevance", "score"], errors="ignore") for frame in (TRUE, PRED)
    )
    for frame in (true, pred):
        cells = [items and [f"i{one}" for one in items] for items in frame["item_id"]]
        frame["item_id"] = pd.Series(cells, dtype=object)
    expected = plain(true, pred, by="model").summary["value"].tolist()
    for name in ("arrow", "polars", "duckdb", "large"):
        (tmp_path / name).mkdir()
        for part, rows in enumerate((slice(0, 2), slice(2, 3), slice(3, None))):
            made, path = table(pred[rows]), tmp_path / name / f"{part}.parquet"
            if name == "polars":
                pl.from_arrow(made).write_parquet(path)
            elif name == "duckdb":
                duckdb.from_arrow(made).write_parquet(str(path))
            else:
                kind = pa.large_list if name == "large" and part else pa.list_
                cells = pa.array(made["item_id"].to_pylist(), kind(pa.string()))
                pq.write_table(made.set_column(2, "item_id", cells), path, row_group_size=1)
        table(true).to_pandas().to_parquet(tmp_path / "true.parquet")
        for buckets in (1, 3):
            options = {"by": "model", "buckets": buckets}
            found = rd.evaluate_parquet(
                tmp_path / "true.parquet", tmp_path / name, METRICS, **options
            )
            assert found.summary["value"].tolist() == pytest.approx(expected), (name, buckets)


@pytest.mark.parametrize(
    "carry", [pa.Table.from_pandas, pl.from_pandas, lambda frame: pl.from_pandas(frame).lazy()]
)
def test_one_number_for_a_list_does_not_order_it_in_other_libraries(carry):
    with pytest.raises(rd.DataError, match="has one number for a list"):
        rd.evaluate(LONG_TRUE, carry(pred_with(p=[1.0, 2.0])), "recall@2", score_col="p")


@pytest.mark.parametrize("sep", [",", ";"])
def test_texts_that_a_blank_does_not_split_whole(sep):
    """Otherwise "12," would be an item that is in no list of `true`, beside the last one of each
    text, which is."""
    texts = pd.DataFrame({"user_id": [1, 2], "item_id": [f"12{sep} 11", f"7{sep} 8"]})
    for true in (LONG_TRUE, LONG_TRUE.assign(item_id=LONG_TRUE["item_id"].astype(str))):
        with pytest.raises(
            rd.DataError, match=f"items_sep=' ' leaves '12{sep}'.*pass items_sep='{sep}'"
        ):
            rd.recall(true, texts, k=2, items_sep=" ")


@pytest.mark.parametrize("order", ["score_col", "rank_col"])
def test_one_number_does_not_order_a_list_under_any_name(order, tmp_path):
    pred, options = pred_with(est=[1.0, 2.0], score=1), {order: "est"}
    words = re.escape("pred['est'] has one number for a list of items")
    pred = pred.drop(columns="score")
    path = tmp_path / "pred.parquet"
    pq.write_table(pa.Table.from_pandas(pred, preserve_index=False), path)
    for call in (
        lambda: rd.evaluate(LONG_TRUE, pred, "recall@2", **options),
        lambda: rd.recall(LONG_TRUE, pl.from_pandas(pred).lazy(), k=2, **options),
        lambda: rd.evaluate_parquet(LONG_TRUE, path, "recall@2", **options),
        lambda: rd.evaluate_parquet(LONG_TRUE, path, "recall@2", memory_limit=1000, **options),
        lambda: rd.check(LONG_TRUE, pred, **options),
        lambda: rd.diagnostics.position_table(LONG_TRUE, pred, 2, **options),
    ):
        with pytest.raises(rd.DataError, match=words):
            call()


def test_a_user_in_the_index_of_lists_is_named():
    lists = LONG_TRUE.groupby("user_id")[["item_id"]].agg(list)
    with pytest.raises(
        rd.ColumnError,
        match=r"'user_id' in its index, which is not read; pass pred.reset_index\(\)",
    ):
        rd.recall(LONG_TRUE, lists, k=2)
