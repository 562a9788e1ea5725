"""Lazy frames, datasets, readers and relations: the numbers of the pandas frames, from the needed
columns alone."""

import functools
import re

import duckdb
import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from quick import crossed, few

import recdf as rd
from recdf.inputs import lazy_frames

SHOP = rd.sample_shop(n_users=400, n_items=100)
USERS = SHOP.true["user_id"].unique()[:30]
TRUE = SHOP.true[SHOP.true["user_id"].isin(USERS)].reset_index(drop=True)
PRED = SHOP.pred[SHOP.pred["user_id"].isin(USERS)].reset_index(drop=True)
ONE = PRED[PRED["model"] == "knn"].drop(columns="model").reset_index(drop=True)


def arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)


def of_ibis(frame):
    ibis = pytest.importorskip("ibis")
    return ibis.memtable(arrow(frame))


CARRIERS = {
    "LazyFrame": lambda frame: pl.from_arrow(arrow(frame)).lazy(),
    "dataset": lambda frame: ds.dataset(arrow(frame)),
    "scanner": lambda frame: ds.dataset(arrow(frame)).scanner(),
    "reader": lambda frame: arrow(frame).to_reader(max_chunksize=100),
    "duckdb": lambda frame: duckdb.from_arrow(arrow(frame)),
    "ibis": of_ibis,
    "narwhals of a LazyFrame": lambda frame: narwhals.from_native(
        pl.from_arrow(arrow(frame)).lazy()
    ),
    "narwhals of duckdb": lambda frame: narwhals.from_native(duckdb.from_arrow(arrow(frame))),
    "narwhals of polars": lambda frame: narwhals.from_native(pl.from_arrow(arrow(frame))),
    "narwhals of pandas": narwhals.from_native,
}
LAZY = [one for one in CARRIERS if one not in ("narwhals of polars", "narwhals of pandas")]
# One of each library, for rules that begin when its rows are here.
EACH = ["dataset", "LazyFrame", "reader", "duckdb"]

CALLS = {
    "evaluate": lambda true, pred: (
        rd.evaluate(true, pred, ["ndcg", "recall"], [5, 10], by="model").summary
    ),
    "per_user": lambda true, pred: rd.evaluate(true, pred, "mrr@10", by="model").per_user,
    "metric": lambda true, pred: rd.ndcg.per_user(true, pred, 5, by="model"),
    "check": lambda true, pred: rd.check(true, pred, by="model"),
    "hit_table": lambda true, pred: rd.diagnostics.hit_table(true, pred, 5, by="model"),
    "position_table": lambda true, pred: rd.diagnostics.position_table(true, pred, 5, by="model"),
    "exposure_table": lambda true, pred: rd.diagnostics.exposure_table(pred, 5, by="model"),
    "compare_conventions": lambda true, pred: rd.diagnostics.compare_conventions(
        true, pred, "recall", 5, duplicates="keep"
    ),
    "ceiling": lambda true, pred: rd.ceiling(true, pred, "recall@5", by="model"),
    "audit": lambda true, pred: rd.audit(true, pred, "recall@5", by="model"),
    "chance_level": lambda true, pred: rd.chance_level(
        true, ["recall"], 5, items=SHOP.items["item_id"]
    ),
    "sample_to_judge": lambda true, pred: rd.diagnostics.sample_to_judge(
        pred, 5, 3, by="model", seed=1
    ),
}


@functools.cache
def of_pandas(call):
    return CALLS[call](TRUE, PRED)


def same(found, expected):
    found, expected = (
        pd.DataFrame(found).reset_index(drop=True),
        pd.DataFrame(expected).reset_index(drop=True),
    )
    for name in [one for one in found if not pd.api.types.is_float_dtype(found[one])]:
        for frame in (found, expected):
            frame[name] = frame[name].astype(object).where(frame[name].notna(), None)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


@pytest.mark.few(3)
@pytest.mark.parametrize(("call", "kind"), crossed(CALLS, CARRIERS))
def test_every_call_takes_every_carrier(kind, call):
    same(CALLS[call](CARRIERS[kind](TRUE), CARRIERS[kind](PRED)), of_pandas(call))


# -- only needed columns


def broken_dataset(frame, folder, name="boom"):
    """A dataset of a parquet file in which the bytes of one column are no data, so that reading it
    raises."""
    table = arrow(frame).append_column(name, pa.array([f"text {i}" * 5 for i in range(len(frame))]))
    file = folder / "broken.parquet"
    pq.write_table(table, file, compression="none", use_dictionary=False, write_statistics=False)
    column = pq.ParquetFile(file).metadata.row_group(0).column(table.num_columns - 1)
    data = bytearray(file.read_bytes())
    data[column.data_page_offset : column.data_page_offset + 12] = b"\xff" * 12
    file.write_bytes(bytes(data))
    return ds.dataset(file)


PLANTED = {
    "LazyFrame": lambda frame, _: (
        pl.from_arrow(arrow(frame))
        .lazy()
        .with_columns(
            pl.col("user_id")
            .cast(pl.String)
            .add("x")
            .cast(pl.Int64, strict=True)
            .cast(pl.String)
            .alias("boom")
        )
    ),
    "duckdb": lambda frame, _: duckdb.from_arrow(arrow(frame)).project(
        "*, error('it was read')::varchar as boom"
    ),
    "dataset": broken_dataset,
}


@pytest.mark.long
@pytest.mark.parametrize("kind", PLANTED)
def test_a_column_that_no_argument_names_is_not_read(kind, tmp_path):
    (tmp_path / "true").mkdir()
    true, pred = PLANTED[kind](TRUE, tmp_path / "true"), PLANTED[kind](PRED, tmp_path)
    with pytest.raises(Exception, match=r"(?s).+"):
        lazy_frames.lazy_rows(pred).table(["boom"], "pred")  # it is planted well
    for name, call in CALLS.items():
        if name != "compare_conventions":
            same(call(true, pred), of_pandas(name))
    expected = rd.evaluate(TRUE, PRED, "ndcg@10", by="model")
    for how in ({}, {"buckets": 3}):
        same(
            rd.evaluate_parquet(true, pred, "ndcg@10", by="model", **how).summary, expected.summary
        )


COLUMNS = {
    "relevance_col": (
        lambda t: t.assign(stars=np.arange(len(t)) % 5),
        None,
        {"relevance_col": "stars"},
        "ndcg@10",
    ),
    "a column named relevance": (
        lambda t: t.assign(relevance=np.arange(len(t)) % 5),
        None,
        {},
        "ndcg@10",
    ),
    "weight_col": (lambda t: t.assign(heavy=2.5), None, {"weight_col": "heavy"}, "recall@5"),
    "propensity_col": (lambda t: t.assign(seen=0.5), None, {"propensity_col": "seen"}, "recall@5"),
    "value_col": (
        lambda t: t.assign(eur=1.5),
        lambda p: p.assign(eur=2.5),
        {"value_col": "eur"},
        "revenue@5",
    ),
    "rank_col": (
        None,
        lambda p: p.assign(place=p.groupby(["model", "user_id"]).cumcount()),
        {"rank_col": "place"},
        "mrr",
    ),
    "a column named rank": (
        None,
        lambda p: p.assign(rank=p.groupby(["model", "user_id"]).cumcount()),
        {},
        "mrr",
    ),
    "carry": (None, lambda p: p.assign(night="mon"), {"carry": ["night"]}, "mrr"),
    "carry with rules": (
        None,
        lambda p: p.assign(night=p.index),
        {"carry": {"night": "min"}},
        "mrr",
    ),
    "user_col": (
        lambda t: t.assign(day=1),
        lambda p: p.assign(day=1),
        {"user_col": ["user_id", "day"]},
        "mrr",
    ),
}


def with_columns(name):
    of_true, of_pred, *_ = COLUMNS[name]
    return (
        (TRUE if of_true is None else of_true(TRUE)),
        (PRED if of_pred is None else of_pred(PRED)),
    )


@functools.cache
def expected_of_columns(name):
    *_, how, metric = COLUMNS[name]
    return rd.evaluate(*with_columns(name), metric, by="model", **how)


@pytest.mark.long
@pytest.mark.parametrize(("name", "kind"), crossed(COLUMNS, ["dataset", "LazyFrame", "duckdb"]))
def test_columns_that_arguments_name_are_read(name, kind):
    (*_, how, metric), (true, pred) = COLUMNS[name], with_columns(name)
    expected = expected_of_columns(name)
    found = rd.evaluate(CARRIERS[kind](true), CARRIERS[kind](pred), metric, by="model", **how)
    same(found.per_user, expected.per_user)
    found = rd.evaluate_parquet(
        CARRIERS[kind](true), CARRIERS[kind](pred), metric, by="model", buckets=2, **how
    )
    same(found.per_user, expected.per_user)


ITEMS = SHOP.items.assign(group=np.where(np.arange(len(SHOP.items)) % 2, "a", "b"), heavy="x" * 100)
SIDES = {
    "items": ("coverage@5", {"items": ITEMS}),
    "a default group": ("item_gap@5", {"items": ITEMS}),
    "a parameter of a metric": (
        "item_gap(group_col=kind)@5",
        {"items": ITEMS.rename(columns={"group": "kind"})},
    ),
    "item_by": ("recall@5", {"items": ITEMS, "item_by": "group"}),
    "features of items": ("ild@5", {"items": ITEMS, "features": ["group"]}),
    "features": ("ild@5", {"features": ITEMS[["item_id", "group"]]}),
    "log": ("surprisal@5", {"log": TRUE.assign(other=1)}),
    "exclude": ("recall@5", {"exclude": TRUE.iloc[::3].assign(other=1)}),
    "base": ("unexpectedness@5", {"base": ONE}),
    "popular": ("overlap@5", {"base": ONE, "popular": ITEMS[["item_id"]].head(3)}),
    "users": (
        "recall@5",
        {"users": pd.DataFrame({"user_id": USERS[:9], "w": 2.0}), "weight_col": "w"},
    ),
    "aspects": (
        "subtopic_recall@5",
        {"aspects": ITEMS[["item_id", "group"]].rename(columns={"group": "aspect"})},
    ),
}


@functools.cache
def expected_of_sides(name):
    metric, sides = SIDES[name]
    return rd.evaluate(TRUE, ONE, metric, **sides).summary


@pytest.mark.long
@pytest.mark.parametrize(("name", "kind"), crossed(SIDES, LAZY))
@pytest.mark.filterwarnings("ignore::recdf.UnknownWarning")
def test_side_tables(name, kind):
    metric, sides = SIDES[name]
    lazy = {
        one: CARRIERS[kind](value) if isinstance(value, pd.DataFrame) else value
        for one, value in sides.items()
    }
    again = {
        one: CARRIERS[kind](value) if isinstance(value, pd.DataFrame) else value
        for one, value in sides.items()
    }
    expected = expected_of_sides(name)
    same(rd.evaluate(TRUE, ONE, metric, **lazy).summary, expected)
    same(
        rd.evaluate_parquet(
            CARRIERS[kind](TRUE), CARRIERS[kind](ONE), metric, buckets=2, **again
        ).summary,
        expected,
    )


@pytest.mark.long
@pytest.mark.parametrize("kind", EACH)
def test_names_that_differ(kind):
    true, pred = (
        TRUE.rename(columns={"user_id": "customer"}),
        PRED.rename(columns={"user_id": "uid", "score": "yhat"}),
    )
    names = {"true_cols": {"user_id": "customer"}, "pred_cols": {"user_id": "uid", "score": "yhat"}}
    expected = rd.evaluate(TRUE, PRED, "ndcg@10", by="model").summary
    lazy = CARRIERS[kind]
    same(rd.evaluate(lazy(true), lazy(pred), "ndcg@10", by="model", **names).summary, expected)
    for how in ({}, {"buckets": 2}):
        same(
            rd.evaluate_parquet(
                lazy(true), lazy(pred), "ndcg@10", by="model", **names, **how
            ).summary,
            expected,
        )


@pytest.mark.long
@pytest.mark.parametrize("kind", EACH)
def test_a_score_of_another_name_is_named(kind):
    pred = PRED[::-1].rename(columns={"score": "prediction"})
    for call, how in (
        (rd.evaluate, {}),
        (rd.evaluate_parquet, {}),
        (rd.evaluate_parquet, {"buckets": 2}),
    ):
        with pytest.warns(rd.OrderWarning, match="score_col='prediction'") as found:
            call(CARRIERS[kind](TRUE), CARRIERS[kind](pred), "ndcg@10", by="model", **how)
        assert len([one for one in found if issubclass(one.category, rd.OrderWarning)]) == 1


# -------------------------------------------------------------------------------------------------
# errors


MISTAKES = [
    (
        {"item_col": "itemid"},
        rd.ColumnError,
        "true has no column 'itemid'; it has 'user_id', 'item_id'",
    ),
    (
        {"by": "modell"},
        rd.ColumnError,
        "pred has no column 'modell'; it has .*'other'.*did you mean 'model'",
    ),
    (
        {"score_col": "othr"},
        rd.ColumnError,
        "pred has no column 'othr'; it has .*did you mean 'other'",
    ),
]


@pytest.mark.few(4)
@pytest.mark.parametrize(("how", "error", "words"), MISTAKES)
@pytest.mark.parametrize("kind", LAZY)
def test_a_wrong_column_is_named_beside_all_columns(kind, how, error, words):
    pred = PRED.assign(other="x")
    for call in (rd.evaluate, rd.evaluate_parquet):
        with pytest.raises(error, match=words):
            call(CARRIERS[kind](TRUE), CARRIERS[kind](pred), "mrr", **({"by": "model"} | how))


def test_a_column_that_no_argument_names_is_an_error_where_it_is_asked_for():
    """A metric of one's own may read a column whose name stands in its default parameter alone."""

    @rd.metric(bounds=(0, None))
    def my_lazy_categories(lists, category_col="kind"):
        "Nothing."
        return lists.n_pred + float(len(lists.sides.items.labels(category_col).length))

    items = ITEMS.rename(columns={"group": "kind"})
    try:
        with pytest.raises(
            rd.ColumnError,
            match=r"items\['kind'\] was not read, since no argument names it; name it in",
        ):
            rd.evaluate(TRUE, ONE, "my_lazy_categories@5", items=CARRIERS["dataset"](items))
        for metric in (my_lazy_categories, "my_lazy_categories(category_col=kind)@5"):
            rd.evaluate(TRUE, ONE, metric, items=CARRIERS["dataset"](items))
    finally:
        rd.METRICS.pop("my_lazy_categories")


def test_a_reader_that_was_read_before_is_an_error():
    reader = arrow(PRED).to_reader()
    assert rd.evaluate(TRUE, reader, "mrr", by="model").summary["n"].gt(0).all()
    for call in (rd.evaluate, rd.evaluate_parquet):
        with pytest.raises(
            rd.DataError, match="pred is a RecordBatchReader, which has no rows: it was read before"
        ):
            call(arrow(TRUE), reader, "mrr", by="model")
    both = arrow(TRUE).to_reader()
    with pytest.raises(rd.DataError, match="log is a RecordBatchReader, which has no rows"):
        rd.evaluate(both, PRED, "surprisal", by="model", log=both)


@pytest.mark.long
@pytest.mark.parametrize("kind", few(LAZY, ["dataset"]))
def test_rows_beyond_the_memory_go_in_parts(kind, monkeypatch, tmp_path):
    monkeypatch.setattr(lazy_frames, "memory_bytes", lambda limit: 20_000)
    expected = rd.evaluate(TRUE, PRED, "mrr@10", by="model")
    with pytest.raises(
        rd.DataError, match=r"of more than 2e-05 GB.*rd.evaluate_parquet takes it in parts"
    ) as error:
        rd.evaluate(TRUE, CARRIERS[kind](PRED), "mrr@10", by="model")
    assert "memory_limit" in str(error.value)
    true, pred, out = CARRIERS[kind](TRUE), CARRIERS[kind](PRED), tmp_path / kind.replace(" ", "_")
    found = rd.evaluate_parquet(true, pred, "mrr@10", by="model", memory_limit="100KB", out=out)
    same(found.summary, expected.summary)
    same(rd.read_parquet(out).per_user, expected.per_user)
    assert sorted(file.name for file in out.iterdir()) == ["per_user.parquet", "summary.parquet"]


@pytest.mark.long
def test_files_frames_and_lazy_rows_side_by_side(tmp_path):
    TRUE.to_parquet(tmp_path / "true.parquet")
    expected = rd.evaluate(TRUE, PRED, "mrr@10", by="model")
    for true in (
        tmp_path / "true.parquet",
        TRUE,
        arrow(TRUE),
        pl.from_arrow(arrow(TRUE)),
        duckdb.from_arrow(arrow(TRUE)),
    ):
        for how in ({}, {"buckets": 2}):
            same(
                rd.evaluate_parquet(
                    true, ds.dataset(arrow(PRED)), "mrr@10", by="model", **how
                ).summary,
                expected.summary,
            )
    pandas = rd.evaluate_parquet(TRUE, PRED, "mrr@10", by="model")
    assert pandas == expected
    for wrong in (7, {"u": ["a"]}, TRUE["user_id"]):
        with pytest.raises(TypeError, match=r"true_path is .*; expected a file, a folder"):
            rd.evaluate_parquet(wrong, PRED, "mrr@10", by="model")


@pytest.mark.long
def test_datasets_of_several_files_and_formats(tmp_path):
    for name in ("parquet", "feather", "csv"):
        for model, rows in PRED.groupby("model"):
            options = {"format": name, "partitioning": ["model"], "partitioning_flavor": "hive"}
            options["existing_data_behavior"] = "overwrite_or_ignore"
            ds.write_dataset(arrow(rows), tmp_path / name / str(model), **options)
        data = ds.dataset(tmp_path / name, format=name, partitioning="hive")
        expected = rd.evaluate(TRUE, PRED[PRED["model"] != "knn"], "mrr@10", by="model").summary
        for given in (
            data.filter(ds.field("model") != "knn"),
            data.scanner(filter=ds.field("model") != "knn"),
        ):
            same(rd.evaluate(TRUE, given, "mrr@10", by="model").summary, expected)
            same(
                rd.evaluate_parquet(TRUE, given, "mrr@10", by="model", buckets=2).summary, expected
            )


@pytest.mark.parametrize("kind", LAZY)
def test_no_rows_are_no_pred(kind):
    if kind != "reader":
        same(
            rd.evaluate(TRUE, CARRIERS[kind](PRED.head(0)), "recall@5").summary[["value"]],
            pd.DataFrame({"value": [0.0]}),
        )


def test_types_that_pandas_has_not():
    views = pa.table(
        {
            "user_id": pa.array(["u", "v"]).dictionary_encode(),
            "item_id": pa.array(["a", "b"], pa.large_string()),
        }
    )
    views = (
        views.set_column(1, "item_id", views["item_id"].cast(pa.string_view()))
        if hasattr(pa, "string_view")
        else views
    )
    for pred in (ds.dataset(views), views.to_reader()):
        assert rd.evaluate({"u": ["a"], "v": ["a"]}, pred, "recall@1").summary[
            "value"
        ].tolist() == [0.5]
    for how in ({}, {"buckets": 2}):
        assert rd.evaluate_parquet(ds.dataset(views), views.to_reader(), "recall@1", **how).summary[
            "value"
        ].tolist() == [1.0]


LISTS = {
    "a list of items in a cell": (
        lambda frame: frame.groupby("user_id", as_index=False, sort=False).agg(
            {"item_id": list, "score": list}
        ),
        {},
    ),
    "items in one text": (
        lambda frame: frame.groupby("user_id", as_index=False, sort=False).agg(
            {"item_id": " ".join}
        ),
        {"items_sep": " "},
    ),
    "a column for each rank": (
        lambda frame: (
            frame.assign(place=frame.groupby("user_id").cumcount())
            .pivot(index="user_id", columns="place", values="item_id")
            .add_prefix("top")
            .reset_index()
        ),
        {"wide": "top"},
    ),
}


@pytest.mark.few(1)
@pytest.mark.parametrize(("form", "kind"), crossed(LISTS, LAZY))
def test_rows_that_hold_lists(kind, form):
    make, how = LISTS[form]
    ordered = ONE.sort_values(["user_id", "score"], ascending=[True, False], ignore_index=True)
    expected = rd.evaluate(TRUE, ordered, "ndcg@10", ties="row").summary
    pred = make(ordered).assign(heavy="x")
    same(rd.evaluate(TRUE, CARRIERS[kind](pred), "ndcg@10", ties="row", **how).summary, expected)
    for parts in ({}, {"buckets": 2}):
        found = rd.evaluate_parquet(
            CARRIERS[kind](TRUE), CARRIERS[kind](pred), "ndcg@10", ties="row", **how, **parts
        )
        same(found.summary, expected)


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", few([*EACH, "narwhals of polars"], ["duckdb", "narwhals of polars"])
)
def test_tables_of_users(kind):
    lazy = CARRIERS[kind]
    result = rd.evaluate(TRUE, PRED, "recall@5", by="model")
    groups = pd.DataFrame(
        {"user_id": USERS, "variant": np.where(np.arange(len(USERS)) % 2, "A", "B")}
    )
    one = rd.evaluate(TRUE, ONE, "recall@5")
    same(
        rd.compare_models(lazy(result.per_user), "recall@5"),
        rd.compare_models(result.per_user, "recall@5"),
    )
    summary = rd.summarize(result.per_user, "model", metrics="recall@5")
    same(rd.summarize(lazy(result.per_user), "model", metrics="recall@5"), summary)
    joined = one.join_experiment(groups)
    same(one.join_experiment(lazy(groups)), joined)
    same(
        rd.join_experiment(lazy(one.per_user), lazy(groups)),
        rd.join_experiment(one.per_user, groups),
    )
    found = rd.compare_variants(lazy(joined), "recall@5", control="A")
    same(found, rd.compare_variants(joined, "recall@5", control="A"))


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", LAZY)
def test_a_population_of_a_project(kind):
    some = pd.DataFrame({"user_id": USERS[:9]})
    expected = rd.evaluate(TRUE, ONE, "recall@5", users=some).summary
    same(
        rd.evaluate(TRUE, ONE, "recall@5", options=rd.Options(users=CARRIERS[kind](some))).summary,
        expected,
    )
    same(rd.evaluate(TRUE, ONE, "recall@5", users=CARRIERS[kind](some)).summary, expected)


def test_a_series_is_no_frame():
    with pytest.raises(TypeError, match="pred is a Series; expected a DataFrame"):
        rd.evaluate(TRUE, pl.from_pandas(PRED)["item_id"], "mrr")


def gate_and_cells(make, path):
    """A gate of frames that `make` makes, and the cells of the first table of their report."""
    sides = [
        rd.evaluate(make(TRUE), make(ONE.assign(score=ONE["score"] * sign)), "ndcg@5")
        for sign in (1, -1)
    ]
    result = rd.evaluate(make(TRUE), make(PRED), ["ndcg", "recall"], 5, by="model")
    page = rd.report(result, path).read_text(encoding="utf-8")
    cells = re.findall(r"<td[^>]*>(.*?)</td>", page[: page.index("</table>")])
    return rd.gate(*sides, {"ndcg@5": "-2%"}), cells


@pytest.fixture(scope="module")
def of_frames(tmp_path_factory):
    return gate_and_cells(lambda frame: frame, tmp_path_factory.mktemp("page") / "frame.html")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["LazyFrame", "reader", "narwhals of duckdb"])
@pytest.mark.usefixtures("without_pictures")
def test_gate_and_report_of_lazy_rows(kind, of_frames, tmp_path):
    found, cells = gate_and_cells(CARRIERS[kind], tmp_path / "lazy.html")
    expected, expected_cells = of_frames
    assert found.verdict == expected.verdict
    same(found.table, expected.table)
    assert cells == expected_cells
    assert cells


def test_gate_takes_per_user_tables_of_other_libraries():
    sides = [rd.evaluate(TRUE, ONE.assign(score=ONE["score"] * sign), "ndcg@5") for sign in (1, -1)]
    expected = rd.gate(*(one.per_user for one in sides), {"ndcg@5": "-2%"})
    for made in ([one.to_polars() for one in sides], [one.to_arrow() for one in sides]):
        found = rd.gate(*made, {"ndcg@5": "-2%"})
        same(
            found.table[["metric", "verdict", "change"]],
            expected.table[["metric", "verdict", "change"]],
        )
