"""evaluate_parquet: the same answer as in memory, whatever the files' layout, and nothing left behind."""

import json
import os
import pickle
import tempfile
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from registry.seeded import ITEMS, frames, side_tables

import recdf as rd
from recdf.cli import main
from recdf.evaluation import exposure_sums as merging
from recdf.evaluation import part as measuring
from recdf.evaluation import storage
from recdf.metrics import __all__ as NAMES
from recdf.metrics import call as calling
from recdf.partitions import dealt_files as dealing
from recdf.partitions import results, source, whole_columns
from recdf.partitions import store as parts

METRICS = ["ndcg(gain=exp2)", "recall", "mapr(normalizer=achievable)", "err", "mrr", "confusion@3", "precision"]
USUAL = {"relevance_col": "relevance", "nan_score": "last", "score_col": "score"}
N_USERS = 60


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    """Cut where large files would be cut: batches, chunks and blocks of a few rows."""
    monkeypatch.setattr(source, "READ_ROWS", 64)
    monkeypatch.setattr(whole_columns, "TOGETHER_ROWS", 64)
    monkeypatch.setattr(results, "CHUNK_ROWS", (4, 4))
    monkeypatch.setattr(results, "BLOCK_ROWS", 32)


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """The folder where temporary files are made, which must be empty at the end."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture(autouse=True)
def _ignored():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rd.RecdfWarning)
        yield


def data(seed=1):
    """Frames with holes, ties, repeats, grades and null scores."""
    true, pred = frames(seed, top=3.0, n_users=N_USERS)
    return true.copy(), pred.copy()


def write(folder, true, pred, rows=100):
    """Write both frames, in row groups that cut lists."""
    for name, frame in (("true", true), ("pred", pred)):
        frame.to_parquet(folder / f"{name}.parquet", index=False, row_group_size=rows)
    return folder / "true.parquet", folder / "pred.parquet"


def assert_equal(found, expected):
    for name in ("per_user", "summary"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-12)
    assert found.spec == expected.spec


def check(paths, metrics=METRICS, k=(2,), **options):
    """Streamed in one part and in many, the result is that of the frames that pandas reads."""
    options = USUAL | {"items": ITEMS} | options
    whole = [pd.read_parquet(path) for path in paths]
    expected = rd.evaluate(*whole, metrics, k=list(k), **options)
    for buckets in (1, 3):
        assert_equal(rd.evaluate_parquet(*paths, metrics, k=list(k), buckets=buckets, **options), expected)
    return expected


# ------------------------------------------------------------------------------------------ the same answer


@pytest.mark.parametrize("by", [None, "model"])
@pytest.mark.parametrize("users", ["true", "pred", "both", "all", "ids"])
def test_each_population(tmp_path, users, by):
    true, pred = data()
    if users == "ids":
        users = pd.Index([*true["user_id"].unique()[40:2:-1], 100_000, *pred["user_id"].unique()[:9]]).unique()
    check(write(tmp_path, true, pred), users=users, by=by)


@pytest.mark.parametrize(("duplicates", "judged_only"), [("drop", True), ("keep", False)])
@pytest.mark.parametrize("ties", ["item_desc", "item_asc", "row", "worst"])
def test_duplicates_ties_and_condensed_lists(tmp_path, duplicates, judged_only, ties):
    options = {"duplicates": duplicates, "judged_only": judged_only, "ties": ties, "users": "both"}
    check(write(tmp_path, *data(2)), ["ndcg", "mar", "arhr"], by="model", min_relevance=1.0, **options)


@pytest.mark.parametrize("options", [{"rank_col": "rank"}, {"like": "trec_eval"}, {"value_col": "value"}])
def test_other_orders_and_values(tmp_path, options):
    metrics = ["ndcg", "money_recall", "revenue"] if "value_col" in options else ["ndcg", "mapr"]
    check(write(tmp_path, *data(3)), metrics, **{"score_col": None, "by": "model"} | options)


def test_default_order_and_no_grades(tmp_path):
    true, pred = data()
    paths = write(tmp_path, true.drop(columns="relevance"), pred.drop(columns=["rank", "score"]))
    check(paths, ["ndcg", "err"], score_col=None, relevance_col=None)


@pytest.mark.parametrize("layout", ["sorted", "reversed", "grouped"])
def test_order_of_rows(tmp_path, layout):
    true, pred = data()
    order = {"sorted": lambda ids: ids, "reversed": lambda ids: -ids, "grouped": lambda ids: ids * 7919 % 1009}[layout]
    true, pred = (frame.sort_values("user_id", key=order, kind="stable") for frame in (true, pred))
    check(write(tmp_path, true, pred), by="model", users="all")


def as_dtype(kind):
    """Turn a column of integers into another kind."""
    return {
        "int32": lambda ids: ids.astype("int32"),
        "Int64": lambda ids: ids.astype("Int64"),
        "float": lambda ids: ids.astype("float64"),
        "big": lambda ids: ids.astype("int64") * 2**45,
        "string": lambda ids: ids.map("a fairly long id of a user: {}".format),
        "category": lambda ids: ids.map("u{}".format).astype("category"),
        "int category": lambda ids: ids.astype("category"),
        "time": lambda ids: pd.Timestamp("2026-01-01") + pd.to_timedelta(ids, unit="h"),
        "zone": lambda ids: pd.Timestamp("2026-01-01", tz="Asia/Tokyo") + pd.to_timedelta(ids, unit="h"),
        "date": lambda ids: (pd.Timestamp("2026-01-01") + pd.to_timedelta(ids, unit="D")).dt.date,
        "large_string": lambda ids: ids.map("u{}".format).astype(pd.ArrowDtype(pa.large_string())),
        "bytes": lambda ids: ids.map(lambda i: b"\0" * (i % 5) + b"%d" % i),
    }[kind]


KINDS = ["int32", "Int64", "float", "big", "string", "category", "int category", "time", "zone", "date", "bytes"]


@pytest.mark.parametrize(
    ("kind", "users"), [*((kind, "all") for kind in KINDS), ("category", "true"), ("date", "pred")]
)
def test_each_kind_of_id(tmp_path, kind, users):
    true, pred = data()
    for frame in (true, pred):
        frame["user_id"] = as_dtype(kind)(frame["user_id"])
    check(write(tmp_path, true, pred), users=users, by="model")


@pytest.mark.parametrize("users", ["true", "pred", "all", "both"])
@pytest.mark.parametrize(("one", "two"), [("int32", "Int64"), ("float", "int32"), ("category", "large_string")])
def test_ids_of_one_kind_in_two_types(tmp_path, one, two, users):
    true, pred = data()
    true["user_id"], pred["user_id"] = as_dtype(one)(true["user_id"]), as_dtype(two)(pred["user_id"])
    check(write(tmp_path, true, pred), users=users)


@pytest.mark.parametrize("users", ["true", "all", "frame"])
def test_composite_keys(tmp_path, users):
    true, pred = data()
    for frame in (true, pred):
        frame["session"] = (frame["user_id"] % 3).map("s{}".format).astype("category")
        frame["user_id"] //= 3
    if users == "frame":
        users = pd.concat([true, pred])[["session", "user_id"]].drop_duplicates()[::-2]
    check(write(tmp_path, true, pred), user_col=["user_id", "session"], users=users, by="model")


def test_several_by_columns_of_categories(tmp_path):
    true, pred = data()
    pred["variant"] = pd.Categorical(np.where(pred["item_id"] % 2, "x", "y"), ["never", "y", "x"], ordered=True)
    check(write(tmp_path, true, pred), by=["variant", "model"], users="both")


def test_null_ids_and_scores_dropped(tmp_path):
    true, pred = data()
    true = true.astype({"user_id": "Int64"}).mask(np.arange(len(true))[:, None] % 11 == [3, 5, 99, 99])
    pred = pred.astype({"user_id": "Int64", "rank": "Int64"})
    pred.loc[::13, "item_id"] = None
    pred.loc[::7, "model"] = None
    options = {"null_keys": "drop", "nan_score": "drop", "by": "model", "users": "all", "items": None}
    expected = check(write(tmp_path, true, pred), "ndcg", **options)
    assert {"true_null_keys", "pred_null_keys", "pred_null_scores"} <= set(expected.spec["counts"])


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
        assert_equal(rd.evaluate_parquet(tmp_path / "true", path, "ndcg@5", by="model", buckets=5, **USUAL), expected)
    pred.to_parquet(tmp_path / "by_model", partition_cols=["model"])
    whole = pd.read_parquet(tmp_path / "by_model")
    expected = rd.evaluate(true, whole, "ndcg@5", by="model", **USUAL)
    found = rd.evaluate_parquet(tmp_path / "true", tmp_path / "by_model", "ndcg@5", by="model", buckets=5, **USUAL)
    assert_equal(found, expected)


@pytest.mark.parametrize("statistics", ["min and max", "none", "wrong"])
def test_ids_of_any_width_and_encoding_in_files_of_one_frame(tmp_path, monkeypatch, statistics):
    true, pred = data()
    if statistics == "wrong":
        monkeypatch.setattr(whole_columns._WholeRead, "_is_narrow", lambda self, name: True)
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
    assert_equal(rd.evaluate_parquet(*paths, "ndcg@5", **USUAL), rd.evaluate(true, pred, "ndcg@5", **USUAL))


def test_an_empty_pred_scores_zero(tmp_path):
    true, pred = data()
    check(write(tmp_path, true, pred.iloc[:0]), users="true", metrics="recall")
    check(write(tmp_path, true, pred.iloc[:0]), users="all", metrics="recall")


def test_the_summary_of_values_far_from_zero_keeps_its_digits(tmp_path):
    true, pred = data()
    pred["value"] = 1e9 + pred["item_id"] * 1e-3
    true["value"] = 1.0
    paths = write(tmp_path, true, pred)
    check(paths, ["revenue"], value_col="value")


# ------------------------------------------------------------------- metrics of exposure, side tables

EXPOSURE = [name for name in NAMES if rd.METRICS[name].per == "item"]
BEYOND = [name for name in NAMES if rd.METRICS[name].family not in ("relevance", "ranking", "money")]
VARIANTS = ["entropy(normalize=True)", "exposure_share(discount=none)", "exposure_ratio(relative_to=catalogue)"]
VARIANTS += ["pop_reo(group_col=group)", "pop_rsp(group_col=group)"]


@pytest.mark.parametrize(
    ("users", "by"), [("true", None), *((users, "model") for users in ("true", "pred", "both", "all", "ids"))]
)
def test_every_metric_beyond_accuracy(tmp_path, users, by):
    true, pred = data(4)
    if users == "ids":
        users = [*true["user_id"].unique()[30:], 100_000]
    expected = check(write(tmp_path, true, pred), [*BEYOND, *VARIANTS], (2, 40), users=users, by=by, **side_tables(4))
    assert {"pred_outside_items", "lists_without_log", "pred_without_group"} <= set(expected.spec["counts"])
    assert expected.summary["value"].notna().any()


def test_every_metric_of_true_and_pred(tmp_path):
    metrics = [name for name in NAMES if name not in BEYOND]
    true, pred = data(5)
    paths = write(tmp_path, true.assign(relevance=true["relevance"] / 3), pred)  # rbp takes gains up to 1
    check(paths, metrics, (3,), by="model", value_col="value")


@pytest.mark.parametrize("options", [{"duplicates": "keep"}, {"judged_only": True}, {"undefined": "zero"}])
def test_exposure_under_options(tmp_path, options):
    assert len(EXPOSURE) > 10
    metrics = [*EXPOSURE, *VARIANTS]
    paths = write(tmp_path, *data(6))
    check(paths, metrics, (1, 5), by="model", ties="row", min_relevance=1.0, **side_tables(6), **options)


@pytest.mark.parametrize(("one", "two"), [("string", "category"), ("int32", "Int64"), ("date", "date"), ("big", "big")])
def test_exposure_of_each_kind_of_item(tmp_path, one, two):
    true, pred = data(7)
    tables = {name: side_tables(7)[name].copy() for name in ("items", "log")}
    if one == "string":
        kinds = [lambda ids: ids.map("i{}".format), lambda ids: ids.map("i{}".format).astype("category")]
    else:
        kinds = list(map(as_dtype, (one, two)))
    for frame, kind in zip((true, pred, *tables.values()), kinds * 2, strict=True):
        frame["item_id"] = kind(frame["item_id"])
    check(write(tmp_path, true, pred), [*EXPOSURE, *VARIANTS], (2,), by="model", users="all", **tables)


@pytest.mark.parametrize("users", ["all", "pred", "frame"])
def test_side_tables_beside_composite_keys(tmp_path, users):
    true, pred = data(10)
    for frame in (true, pred):
        frame["session"] = (frame["user_id"] % 3).map("s{}".format)
    if users == "frame":
        users = pd.concat([true, pred])[["session", "user_id"]].drop_duplicates()[::-2]
    tables = {name: side_tables(10)[name] for name in ("items", "log", "aspects")}
    metrics = ["pop_rsp", "unseen", "subtopic_recall", "exposure_ratio"]
    check(write(tmp_path, true, pred), metrics, user_col=["user_id", "session"], users=users, **tables)


def test_exposure_of_lists_that_are_not_there(tmp_path):
    true, pred = data()
    tables = {name: side_tables(1)[name] for name in ("items", "log")}
    check(write(tmp_path, true, pred.iloc[:0]), EXPOSURE, users="true", **tables)
    check(write(tmp_path, true.iloc[:0], pred), EXPOSURE, users="pred", by="model", **tables)
    check(write(tmp_path, true.iloc[:0], pred.iloc[:0]), EXPOSURE, users=[1, 2], **tables)


def test_exposure_beside_a_recommender_without_lists(tmp_path):
    true, pred = data()
    first = pred["model"].iloc[0]
    pred["item_id"] = pred["item_id"].astype("Int64").mask(pred["model"] == first)
    options = {"null_keys": "drop", "users": "both", "by": "model", "items": None}
    expected = check(write(tmp_path, true, pred), ["ndcg", "hhi"], **options)
    assert list(expected.summary["model"]) == [({"a", "b"} - {first}).pop()] * 2


def test_nulls_and_repeats_of_side_tables_count_once(tmp_path):
    true, pred = data(8)
    tables = {name: table.copy() for name, table in side_tables(8).items() if name not in ("popular", "items")}
    for name in ("log", "aspects", "base"):
        tables[name] = pd.concat([tables[name], tables[name].head(9)], ignore_index=True).astype({"item_id": "Int64"})
        tables[name].loc[::7, "item_id"] = None
    expected = check(
        write(tmp_path, true, pred),
        ["popularity", "unexpectedness", "a_ndcg", "unseen", "pop_reo"],
        null_keys="drop",
        items=None,
        **tables,
    )
    assert {"log_null_keys", "aspects_null_keys", "base_null_keys"} <= set(expected.spec["counts"])


def test_side_tables_may_be_read_once_only(tmp_path):
    paths, tables = write(tmp_path, *data(9)), side_tables(9)
    once = {name: pa.RecordBatchReader.from_stream(pa.table(tables[name])) for name in ("log", "base")}
    once |= {"popular": iter(tables["popular"]), "items": iter(tables["items"]["item_id"].tolist())}
    once["features"] = pa.table(tables["features"].reset_index())
    aspects = {user: [set(part["item_id"])] for user, part in tables["aspects"].groupby("user_id")}
    metrics = ["serendipity", "coverage", "unexpectedness", "subtopic_recall"]
    found = rd.evaluate_parquet(*paths, metrics, k=3, buckets=5, aspects=aspects, **USUAL, **once)
    tables = tables | {"aspects": aspects, "items": tables["items"]["item_id"].tolist()}
    expected = rd.evaluate(*map(pd.read_parquet, paths), metrics, k=3, **USUAL, **tables)
    assert_equal(found, expected)


@pytest.fixture
def own_metrics():
    """Metrics of exposure as a caller may write them."""

    def at_rank_2(counts):
        return np.bincount(counts.item[counts.rank == 2], minlength=counts.n_items)

    @rd.metric(per="item", arguments=("pred",), bounds=(0.0, None), sums=[("at rank 2", at_rank_2)])
    def my_sum(counts):
        """Largest number of lists that show one item at rank 2."""
        return counts.summed("at rank 2", at_rank_2).max()

    @rd.metric(per="item", arguments=("pred",), bounds=(0.0, None))
    def my_lists(counts):
        """Hits of all lists."""
        return counts.lists.n_hits.sum()

    @rd.metric(per="item", arguments=("pred",), bounds=(0.0, None))
    def my_whim(counts):
        """Reads the hits where many lists are."""
        return counts.hits.sum() if counts.n_lists > 2 else counts.shown.sum()

    @rd.metric(per="item", arguments=("pred",), bounds=(0.0, None))
    def my_secret(counts):
        """Sums what its record does not name."""
        return counts.summed("at rank 2", at_rank_2).max()

    @rd.metric(per="item", arguments=("pred",))
    def my_share(counts):
        """Largest share of one item, with a warning where nothing is shown."""
        return (counts.shown / counts.shown.sum()).max()

    yield
    for name in ("my_sum", "my_lists", "my_whim", "my_secret", "my_share"):
        del rd.METRICS[name]


@pytest.mark.usefixtures("own_metrics")
def test_a_metric_of_exposure_of_ones_own(tmp_path):
    paths = write(tmp_path, *data())
    check(paths, ["my_sum", "my_whim", "hhi"], (1, 5), by="model")
    with pytest.raises(rd.OptionError, match=r"^my_lists@3: reads 'lists', which does not add up"):
        rd.evaluate_parquet(*paths, "my_lists@3", buckets=3, **USUAL)
    with pytest.raises(rd.OptionError, match=r"^my_secret@3: reads the sum 'at rank 2', which it does not name"):
        rd.evaluate_parquet(*paths, "my_secret@3", buckets=8, **USUAL)
    few = write(tmp_path, *(frame[frame["user_id"] < 25] for frame in data()))  # some parts show nothing
    expected = rd.evaluate(*map(pd.read_parquet, few), "my_share", **USUAL)
    assert_equal(rd.evaluate_parquet(*few, "my_share", buckets=20, **USUAL), expected)


def test_an_undefined_metric_of_exposure_is_refused_for_the_whole_alone(tmp_path):
    true, pred = data()
    paths = write(tmp_path, true, pred)
    options = {"metrics": "pop_reo", "log": side_tables(1)["log"], "undefined": "raise"} | USUAL
    rd.evaluate_parquet(*paths, buckets=20, **options)  # most parts have no hit in the head
    paths = write(tmp_path, true, pred.assign(item_id=-1))
    with pytest.raises(rd.UndefinedMetricError, match="pop_reo@10 has no value"):
        rd.evaluate_parquet(*paths, buckets=5, **options)


def test_a_missing_side_table_is_named(tmp_path):
    paths = write(tmp_path, *data())
    for metric, name in (("coverage", "items"), ("popularity", "log"), ("a_ndcg", "aspects"), ("ild", "features")):
        one, two = both(paths, metric, catch=rd.OptionError)
        assert one == two
        assert f"needs {name}=" in one


# ------------------------------------------------------------------------------------- memory and buckets


def test_a_small_memory_limit_makes_many_buckets(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(dealing, "Store", lambda *given: made.append(given[1]) or parts.Store(*given))
    paths = write(tmp_path, *data())
    expected = rd.evaluate(*map(pd.read_parquet, paths), METRICS, items=ITEMS, by="model", **USUAL)
    for limit in (60_000, "60KB", "60 kib", 10**9):
        found = rd.evaluate_parquet(*paths, METRICS, items=ITEMS, by="model", memory_limit=limit, **USUAL)
        assert_equal(found, expected)
    assert len(made) == 6  # three calls; in the last one all fits, and nothing is dealt
    assert min(made) > 5


def test_a_list_beyond_the_limit_is_an_error(tmp_path):
    true, pred = data()
    pred["user_id"] = 7
    with pytest.raises(rd.OptionError, match=r"memory_limit=10,000: one of .* buckets of lists has"):
        rd.evaluate_parquet(*write(tmp_path, true, pred), "ndcg", memory_limit=10_000, by="model", **USUAL)


@pytest.mark.parametrize("limit", [0, -1, "1XB", "big", True, "1.2.3GB", ""])
def test_a_memory_limit_that_is_none(tmp_path, limit):
    with pytest.raises(rd.OptionError, match="memory_limit="):
        rd.evaluate_parquet("t", "p", "ndcg", memory_limit=limit)


@pytest.mark.parametrize("buckets", [0, True, 2.0])
def test_a_number_of_buckets_that_is_none(buckets):
    with pytest.raises(rd.OptionError, match="buckets="):
        rd.evaluate_parquet("t", "p", "ndcg", buckets=buckets)


def test_keys_are_dealt_by_value():
    numbers = np.arange(-500, 500)
    forms = [pa.array(numbers, kind) for kind in (pa.int16(), pa.int32(), pa.int64(), pa.float64())]
    forms.append(pa.array(numbers).dictionary_encode())
    dealt = [parts.part_of([form], 13) for form in forms]
    assert all((one == dealt[0]).all() for one in dealt)
    assert np.bincount(dealt[0], minlength=13).min() > 40
    texts = [f"{'x' * (number % 30)}{number}" for number in numbers]
    texts = [pa.array(["", *texts, "é"], kind) for kind in (pa.string(), pa.large_string(), pa.binary())]
    texts += [texts[0].dictionary_encode(), pa.concat_arrays([pa.array(["junk"]), texts[0]]).slice(1)]
    dealt = [parts.part_of([form], 13) for form in texts]
    assert all((one == dealt[0]).all() for one in dealt)
    assert np.bincount(dealt[0], minlength=13).min() > 40


# ------------------------------------------------------------------------------------------ what is written


def test_out_holds_what_to_parquet_writes(tmp_path):
    paths = write(tmp_path, *data())
    expected = check(paths, by="model")
    options = USUAL | {"items": ITEMS, "by": "model", "buckets": 7}
    stored = rd.evaluate_parquet(*paths, METRICS, k=[2], out=tmp_path / "out", **options)
    expected.to_parquet(tmp_path / "expected")
    for name in ("per_user", "summary"):
        one, two = (pq.read_table(tmp_path / folder / f"{name}.parquet") for folder in ("out", "expected"))
        assert one.schema.equals(two.schema)
        specs = [json.loads(table.schema.metadata[b"recdf"]) for table in (one, two)]
        assert specs[0] == specs[1]
        assert one.schema.metadata[b"recdf_dtypes"] == two.schema.metadata[b"recdf_dtypes"]
    assert sorted(os.listdir(tmp_path / "out")) == ["per_user.parquet", "summary.parquet"]
    assert_equal(stored, expected)
    assert_equal(rd.read_parquet(tmp_path / "out"), expected)
    assert stored == rd.read_parquet(tmp_path / "out")


def test_a_stored_result_reads_its_rows_once_when_they_are_asked_for(tmp_path, monkeypatch):
    paths, calls = write(tmp_path, *data()), []
    monkeypatch.setattr(results, "read_tables", lambda *given: calls.append(given) or storage.read_tables(*given))
    stored = rd.evaluate_parquet(*paths, "ndcg@5", out=tmp_path / "out", **USUAL)
    assert isinstance(stored, rd.Evaluation)
    assert "per_user.parquet" in repr(stored)
    assert "<table" in stored._repr_html_()
    assert not stored.summary.empty
    assert not calls
    assert stored.per_user is stored.per_user
    assert len(calls) == 1


@pytest.mark.parametrize("read_before", [False, True])
def test_a_stored_result_can_be_pickled(tmp_path, monkeypatch, read_before):
    """Its folder is found from wherever the other process stands."""
    monkeypatch.chdir(tmp_path)
    paths = write(tmp_path, *data())
    stored = rd.evaluate_parquet(*paths, "ndcg@5", out="out", **USUAL)
    expected = rd.read_parquet("out")
    assert not read_before or stored == expected
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    copy = pickle.loads(pickle.dumps(stored))
    assert copy == expected
    assert repr(copy) == repr(stored)


def test_a_stored_result_is_not_mixed_with_one_that_was_written_over_it(tmp_path):
    paths = write(tmp_path, *data())
    stored = rd.evaluate_parquet(*paths, "ndcg@5", out=tmp_path / "out", **USUAL)
    rd.evaluate_parquet(*paths, "recall@5", out=tmp_path / "out", overwrite=True, **USUAL)
    with pytest.raises(rd.DataError, match="was overwritten since; read the new result"):
        _ = stored.per_user


@pytest.mark.parametrize("name", ["per_user", "summary", "spec"])
def test_the_tables_of_a_result_cannot_be_replaced(tmp_path, name):
    stored = rd.evaluate_parquet(*write(tmp_path, *data()), "ndcg@5", out=tmp_path / "out", **USUAL)
    for one in (stored, rd.read_parquet(tmp_path / "out")):
        with pytest.raises(AttributeError, match=name):
            setattr(one, name, None)


def test_a_result_is_not_replaced_unasked(tmp_path):
    paths = write(tmp_path, *data())
    rd.evaluate_parquet(*paths, "ndcg@5", out=tmp_path / "out", **USUAL)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        rd.evaluate_parquet(*paths, "recall@5", out=tmp_path / "out", **USUAL)
    assert list(rd.read_parquet(tmp_path / "out").summary["metric"]) == ["ndcg"]
    rd.evaluate_parquet(*paths, "recall@5", out=tmp_path / "out", overwrite=True, **USUAL)
    assert list(rd.read_parquet(tmp_path / "out").summary["metric"]) == ["recall"]


@pytest.mark.parametrize(
    ("module", "where"),
    [(calling, "match"), (measuring, "compute"), (dealing, "part_of"), (merging, "encode"), (storage, "to_table")],
)
@pytest.mark.parametrize("earlier", [False, True])
def test_an_interrupted_run_leaves_nothing(tmp_path, monkeypatch, module, where, earlier):
    paths, out = write(tmp_path, *data()), tmp_path / "out"
    before = {}
    if earlier:
        rd.evaluate_parquet(*paths, "recall@5", out=out, **USUAL)
        before = {path.name: path.read_bytes() for path in out.iterdir()}
    real, calls = getattr(module, where), []

    def interrupted(*given, **named):
        calls.append(where)
        if len(calls) == (1 if module is merging else 2):
            raise KeyboardInterrupt
        return real(*given, **named)

    monkeypatch.setattr(module, where, interrupted)
    for folder in (out, None):
        calls.clear()
        with pytest.raises(KeyboardInterrupt):
            rd.evaluate_parquet(*paths, ["ndcg@5", "hhi@5"], out=folder, overwrite=True, buckets=5, **USUAL)
    assert out.exists() == earlier
    assert before == ({path.name: path.read_bytes() for path in out.iterdir()} if earlier else {})


# ----------------------------------------------------------------------------------- warnings and errors


def both(paths, *arguments, catch=Exception, **options):
    """The message of an error, or of the one warning, in memory and streamed in several buckets."""
    found = []
    for function, given in ((rd.evaluate, map(pd.read_parquet, paths)), (rd.evaluate_parquet, paths)):
        extra = {"buckets": 5} if function is rd.evaluate_parquet else {}
        if issubclass(catch, Warning):
            with pytest.warns(catch) as caught:
                function(*given, *arguments, **USUAL | options | extra)
            assert len(caught) == 1
            assert caught[0].filename == __file__
            found.append(str(caught[0].message))
        else:
            with pytest.raises(catch) as raised:
                function(*given, *arguments, **USUAL | options | extra)
            found.append(str(raised.value))
    return found


@pytest.mark.parametrize(
    ("change", "error", "options"),
    [
        ({"true": ("user_id", None)}, rd.NullKeyError, {}),
        ({"pred": ("item_id", None)}, rd.NullKeyError, {"by": "model"}),
        ({"pred": ("model", None)}, rd.NullKeyError, {"by": "model"}),
        ({"pred": ("score", np.nan)}, rd.DataError, {"nan_score": "raise"}),
        ({"true": ("relevance", -1.0)}, rd.DataError, {}),
        ({"true": ("relevance", np.inf)}, rd.DataError, {}),
        ({"true": ("relevance", np.nan)}, rd.DataError, {}),
    ],
)
def test_errors_count_over_all_rows(tmp_path, change, error, options):
    given = dict(zip(("true", "pred"), data(), strict=True))
    for role, (name, value) in change.items():
        given[role].loc[::17, name] = value
    one, two = both(write(tmp_path, **given), "ndcg", catch=error, **options)
    assert one == two


def test_errors_of_columns_and_types(tmp_path):
    true, pred = data()
    paths = write(tmp_path, true, pred)
    for options in ({"item_col": "itemid"}, {"by": "modell"}, {"value_col": "price"}, {"relevance_col": "gain"}):
        one, two = both(paths, "ndcg", catch=rd.ColumnError, **options)
        assert one == two
    one, two = both(paths, "ndcg", catch=rd.ColumnError, user_col=["user_id", "user_id"])
    assert one == two
    pred["item_id"] = pred["item_id"].astype(str)
    one, two = both(write(tmp_path, true, pred), "ndcg", catch=rd.IdTypeError)
    assert one.split(" (")[0] == two.split(" (")[0]
    pred["item_id"] = pred["item_id"] == "1"
    one, two = both(write(tmp_path, true, pred), "ndcg", catch=rd.IdTypeError)
    assert one == two
    with pytest.raises(rd.ColumnError, match="name of a result column"):
        rd.evaluate_parquet(*write(tmp_path, true, data()[1].rename(columns={"model": "n_true"})), "ndcg", by="n_true")


def test_errors_of_one_bucket_say_so(tmp_path):
    one, two = both(write(tmp_path, *data()), "ndcg", catch=rd.DuplicateError, duplicates="raise")
    assert one.split()[0:2] == two.split()[0:2]
    assert "found in one of 5 buckets" in two


def test_empty_population(tmp_path):
    true, pred = data()
    pred["user_id"] += 10**6
    one, two = both(write(tmp_path, true, pred), "ndcg", catch=rd.EmptyPopulationError, users="both")
    assert one == two


def test_one_warning_of_duplicates_counts_all(tmp_path):
    paths = write(tmp_path, *data())
    for users in ("true", "pred", "both", "all"):
        one, two = both(paths, "ndcg", catch=rd.DuplicateWarning, users=users)
        assert one == two


@pytest.mark.parametrize("name", ["user_id", "item_id"])
def test_one_warning_of_no_overlap_over_all(tmp_path, name):
    true, pred = (frame.drop_duplicates(["user_id", "item_id"]) for frame in data())
    pred[name] += 10**6
    one, two = both(write(tmp_path, true, pred), "ndcg", catch=rd.NoOverlapWarning)
    assert one == two


def distinct_data():
    return (frame.drop_duplicates(["user_id", "item_id"]).copy() for frame in data())


@pytest.mark.parametrize("users", ["true", "pred", "both", "all", "ids"])
def test_one_warning_of_recommenders_that_share_nothing(tmp_path, users):
    true, pred = distinct_data()
    strange = pred[pred["model"] == "a"].copy()
    strange["item_id"] += 10**6
    others = strange.assign(model="c", user_id=strange["user_id"] + 10**6, item_id=strange["item_id"] % 14)
    pred = pd.concat([pred, strange.assign(model="s"), strange.assign(model="t"), others], ignore_index=True)
    options = {"users": list(true["user_id"].unique()[:30]) if users == "ids" else users, "by": "model"}
    one, two = both(write(tmp_path, true, pred), ["ndcg", "hhi"], catch=rd.NoOverlapWarning, **options)
    assert one == two
    assert one.startswith(("2 of 5", "3 of 5"))
    if users == "true":  # "c" recommends to others, so nothing to the users of true
        assert ": 's', 't', 'c';" in one
        paths = write(tmp_path, true, pred.assign(group=7))
        one, two = both(paths, "ndcg", catch=rd.NoOverlapWarning, **options | {"by": ["model", "group"]})
        assert one == two
        assert ": ('s', 7), ('t', 7), ('c', 7);" in one


def test_no_warning_of_a_recommender_that_shares_items_but_no_hit(tmp_path):
    true, pred = distinct_data()
    pairs = pd.MultiIndex.from_frame(true[["user_id", "item_id"]])
    missed = ~pd.MultiIndex.from_frame(pred[["user_id", "item_id"]]).isin(pairs)
    paths = write(tmp_path, true, pred[missed | (pred["model"] == "a")])
    for function, given in ((rd.evaluate, map(pd.read_parquet, paths)), (rd.evaluate_parquet, paths)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            function(*given, "ndcg", by="model", **USUAL | ({"buckets": 30} if function is rd.evaluate_parquet else {}))


def test_no_warning_of_items_that_true_has_where_nothing_is_recommended(tmp_path):
    users = np.arange(10)
    true = pd.DataFrame({"user_id": users, "item_id": np.where(users < 5, 1, 2)})
    pred = pd.concat([pd.DataFrame({"model": m, "user_id": users[:5], "item_id": i}) for m, i in (("a", 1), ("b", 2))])
    paths = write(tmp_path, true, pred)
    for function, given in ((rd.evaluate, (true, pred)), (rd.evaluate_parquet, paths)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            more = {} if function is rd.evaluate else {"buckets": 15}
            function(*given, "ndcg", by="model", users="pred", **more)


@pytest.mark.parametrize(
    ("reason", "options"),
    [
        ("true has no rows", {"users": "pred"}),
        ("no row of true is relevant", {"min_relevance": 99.0}),
        ("none of the given users is in true", {"users": [10**6, 10**6 + 1]}),
    ],
)
def test_one_warning_of_no_truth(tmp_path, reason, options):
    true, pred = distinct_data()
    if reason.startswith("true"):
        true = true.iloc[:0]
    if "users" in options:
        pred = pd.concat([pred, pred.assign(user_id=10**6)]).drop_duplicates(["user_id", "item_id"])
    one, two = both(write(tmp_path, true, pred), "recall", catch=rd.NoOverlapWarning, **options)
    assert one == two
    assert one.startswith(reason)


def test_no_warning_when_only_single_buckets_lack_overlap(tmp_path):
    true, pred = (frame.drop_duplicates(["user_id", "item_id"]) for frame in data())
    true = true[true["user_id"] < 9]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rd.evaluate_parquet(*write(tmp_path, true, pred), "ndcg", buckets=12, **USUAL)


def test_paths_that_are_none(tmp_path):
    true, pred = write(tmp_path, *data())
    with pytest.raises(FileNotFoundError, match="nothing"):
        rd.evaluate_parquet(true, tmp_path / "nothing*.parquet", "ndcg")
    with pytest.raises(TypeError, match="pred_path is a DataFrame"):
        rd.evaluate_parquet(true, pd.DataFrame(), "ndcg")
    (tmp_path / "text.parquet").write_text("no parquet")
    with pytest.raises(rd.DataError, match="cannot be read as parquet"):
        rd.evaluate_parquet(true, tmp_path / "text.parquet", "ndcg")
    (tmp_path / "empty").mkdir()
    with pytest.raises(rd.DataError, match="holds no parquet file"):
        rd.evaluate_parquet(true, tmp_path / "empty", "ndcg")
    with pytest.raises(rd.OptionError, match="no option 'user_cols'"):
        rd.evaluate_parquet(true, pred, "ndcg", user_cols="u")


# --------------------------------------------------------------------------------- progress, command line


def test_progress_is_silent_unless_asked_for(tmp_path, capsys, monkeypatch):
    paths = write(tmp_path, *data())
    rd.evaluate_parquet(*paths, "ndcg", **USUAL)
    assert capsys.readouterr().err == ""
    monkeypatch.setitem(__import__("sys").modules, "tqdm.auto", None)
    rd.evaluate_parquet(*paths, "ndcg", progress=True, **USUAL)
    assert capsys.readouterr().err.splitlines()[-1] == "recdf: 100% of evaluate_parquet done"


def test_command_line(tmp_path, capsys):
    true, pred = write(tmp_path, *data())
    arguments = ["evaluate", "--true", str(true), "--pred", str(pred), "-m", "ndcg@5", "--by", "model"]
    arguments += ["--relevance-col", "relevance", "--score-col", "score", "--nan-score", "last"]
    assert main([*arguments, "--out", str(tmp_path / "one")]) == 0
    printed = capsys.readouterr()
    streamed = [*arguments, "--out", str(tmp_path / "two"), "--memory-limit", "20KB"]
    assert main(streamed) == 0
    again = capsys.readouterr()
    assert again.out.replace("two", "one") == printed.out
    assert again.err == printed.err
    assert_equal(rd.read_parquet(tmp_path / "two"), rd.read_parquet(tmp_path / "one"))
    assert main(streamed) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert main([*arguments, "--stream"]) == 0
    assert capsys.readouterr().out + "\n" == printed.out[: printed.out.index("wrote")]
    assert main([*arguments, "--memory-limit", "20XB"]) == 2
    assert "--memory-limit" in capsys.readouterr().err
    (tmp_path / "true.csv").write_text("user_id,item_id\n1,2\n")
    arguments[2] = str(tmp_path / "true.csv")
    assert main([*arguments, "--stream"]) == 2
    assert "--stream reads parquet" in capsys.readouterr().err


def test_command_line_with_a_glob_and_files_of_items_and_users(tmp_path, capsys):
    true, pred = data()
    paths = write(tmp_path, true, pred)
    pd.DataFrame({"item_id": ITEMS}).to_csv(tmp_path / "items.csv", index=False)
    true[["user_id"]].drop_duplicates().head(20).to_csv(tmp_path / "users.csv", index=False)
    arguments = [
        "evaluate",
        "--true",
        *map(str, [tmp_path / "tru*.parquet"]),
        "--pred",
        str(paths[1]),
        "-m",
        *(metrics := ["fallout@5", "coverage@5", "gini@2"]),
    ]
    arguments += ["--items", str(tmp_path / "items.csv"), "--users", str(tmp_path / "users.csv")]
    assert main([*arguments, "--stream", "--nan-score", "last", "--score-col", "score"]) == 0
    expected = rd.evaluate(
        true, pred, metrics, items=ITEMS, users=true["user_id"].unique()[:20], nan_score="last", score_col="score"
    )
    assert capsys.readouterr().out == expected.summary.to_string(index=False) + "\n"


# ------------------------------------------------------------------------------------- found by a reviewer

EIGHT = pd.DataFrame({"user_id": range(8), "item_id": range(8)})


@pytest.mark.parametrize("buckets", [1, 5])
@pytest.mark.parametrize("users", ["true", "pred", "all"])
@pytest.mark.parametrize("model", [[0.0, -0.0], [True, False], [0.5, 1.0], [1.0, 2.0]])
def test_by_values_of_any_kind(model, users, buckets, tmp_path):
    """Zeros of both signs are one recommender; a bucket may hold only the whole ones among fractions."""
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


@pytest.mark.parametrize("duplicates", ["keep", "drop"])
@pytest.mark.parametrize("buckets", [1, 2, 4])
def test_zeros_of_both_signs_are_one_item(buckets, duplicates, tmp_path):
    frame = pd.DataFrame({"user_id": [0, 1, 2, 3], "item_id": [0.0, -0.0, 1.0, -0.0]})
    frame.to_parquet(tmp_path / "frame.parquet")
    paths = [tmp_path / "frame.parquet"] * 2
    options = {"items": [0, 1, 2], "duplicates": duplicates}
    streamed = rd.evaluate_parquet(*paths, "gini@2", buckets=buckets, **options)
    assert streamed.summary["value"].item() == rd.evaluate(frame, frame, "gini@2", **options).summary["value"].item()


@pytest.mark.parametrize(("first", "where"), [(0, "in the first 100 rows"), (200, "in one of 4 buckets of lists")])
def test_a_count_that_is_not_of_all_rows_says_so(first, where, tmp_path):
    frame = pd.DataFrame({"user_id": range(400), "item_id": np.arange(400) / 1.0})
    frame.to_parquet(tmp_path / "true.parquet")
    frame.loc[first:, "item_id"] += 0.5
    frame.to_parquet(tmp_path / "pred.parquet")
    with pytest.raises(rd.IdTypeError, match=f"not whole numbers.*found {where}"):
        rd.evaluate_parquet(tmp_path / "true.parquet", tmp_path / "pred.parquet", "recall@1", buckets=4)
