"""Frames of Dask: every answer, error and warning is that of `rd.evaluate` on the same rows."""

import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import recdf as rd

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

from partitions import engine_cases  # noqa: E402
from partitions.engine_cases import (  # noqa: E402
    CASES,
    ERRORS,
    WARNINGS,
    assert_same,
    frames,
    in_key_order,
    outcome,
    without_part,
)

from recdf.inputs.machine import Sizes, sized  # noqa: E402
from recdf.partitions import dask as engine  # noqa: E402
from recdf.partitions.engine_contract import check_frames  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def to_dask(frame, npartitions=2):
    return (
        None
        if frame is None
        else dd.from_pandas(frame.reset_index(drop=True), npartitions=npartitions, sort=False)
    )


def both(true, pred, metrics, options, **more):
    """The outcome of Dask and that of `rd.evaluate` on the rows of the same frames."""
    given = to_dask(true, 2), to_dask(pred)
    found = outcome(rd.dask.evaluate, *given, metrics, [2, 5], **options, **more)
    return found, outcome(rd.evaluate, *map(of_dask, given), metrics, [2, 5], **options)


def test_users_in_a_frame_of_dask_are_compared_as_those_of_pandas():
    rng, n = np.random.default_rng(1), 400
    users = pd.DataFrame({"user_id": rng.permutation(n), "variant": rng.choice(["A", "B"], n)})
    clicks, views = rng.poisson(1, n), rng.integers(1, 9, n)
    users = users.assign(clicks=clicks, views=views, before=rng.random(n))
    metrics, given = {"ctr": ("clicks", "views"), "clicks": "clicks"}, {"control": "A"}
    given |= {"covariates": "before", "expected": {"A": 1, "B": 1}}
    found = rd.compare_variants(to_dask(users.assign(unused=1)), metrics, **given)
    expected = rd.compare_variants(users, metrics, **given)
    pd.testing.assert_frame_equal(pd.DataFrame(found), pd.DataFrame(expected), check_dtype=False)
    with pytest.raises(rd.ColumnError, match="no column 'nope'"):
        rd.compare_variants(to_dask(users), "nope", control="A")


@pytest.mark.long
def test_a_result_of_dask_is_compared_as_that_of_pandas():
    shop = rd.sample_shop(n_users=400, n_items=100)
    options = {"k": 10, "by": "model"}
    of_dask = rd.dask.evaluate(to_dask(shop.true), to_dask(shop.pred), "ndcg", **options)
    of_pandas = rd.evaluate(shop.true, shop.pred, "ndcg", **options)
    found, expected = rd.compare_models(of_dask), rd.compare_models(of_pandas)
    pd.testing.assert_frame_equal(pd.DataFrame(found), pd.DataFrame(expected), rtol=1e-9)
    assert str(rd.leaderboard(of_dask)) == str(rd.leaderboard(of_pandas))


def of_dask(frame):
    """The rows of a frame of Dask, in the dtypes that it has."""
    return None if frame is None else frame.compute()


@pytest.mark.parametrize("name", CASES)
def test_the_tables_are_those_of_evaluate(name):
    objects = name == "keys_of_decimals_and_of_instants"  # Dask would make strings of them
    with dask.config.set({"dataframe.convert-string": not objects}):
        (result, said), (expected, expected_said) = both(*CASES[name](), partitions=3)
    if not isinstance(expected, rd.Evaluation):
        raise expected
    if isinstance(result, Exception):
        raise result
    assert_same(result, expected)
    assert said == expected_said


@sized(Sizes(summed_buckets=2))
def test_the_workers_add_up_the_results_of_many_buckets(monkeypatch):
    added = []

    def counted(self, frame):
        added.append(len(found := collect(self, frame)))
        return found

    collect = engine.DaskEngine.collect
    monkeypatch.setattr(engine.DaskEngine, "collect", counted)
    (result, _), (expected, _) = both(*CASES["side_tables_exposure_and_groups"](), partitions=5)
    assert added[-1] == 2  # the last job brings two sums here, of five buckets
    assert_same(result, expected)


@pytest.mark.parametrize("name", ERRORS)
def test_the_error_is_that_of_evaluate(name):
    (error, _), (expected, _) = both(*ERRORS[name]())
    assert isinstance(error, Exception), "nothing was raised"
    assert type(error) is type(expected)
    if " has no option" in str(expected):  # the same options, and the one that Dask has beside them
        words = (
            str(expected)
            .replace("evaluate", "rd.dask.evaluate")
            .replace("are k, ", "are k, partitions, ")
        )
        assert str(error) == words
    else:
        assert without_part(error) == str(expected)


@pytest.mark.parametrize("name", WARNINGS)
def test_the_warnings_are_those_of_evaluate(name):
    change, options = WARNINGS[name]
    with dask.config.set(
        {"dataframe.convert-string": name != "a day as by"}
    ):  # Dask would make strings of dates
        (result, said), (expected, expected_said) = both(*change(*frames(11)), "ndcg", options)
    assert said
    assert said == expected_said
    assert_same(result, expected)


def test_dtypes_that_differ_between_partitions_and_frames():
    true, pred = frames(12)
    first, second = pred[:100].astype({"user_id": float}), pred[100:].astype({"item_id": "int16"})
    drifting = dd.concat([to_dask(first, 1), to_dask(second, 1)])
    words = true.astype({"user_id": "category"})
    result = rd.dask.evaluate(to_dask(words), drifting, "recall", 5, by="model")
    expected = rd.evaluate(
        words, pred.astype({"model": result.per_user["model"].dtype}), "recall", 5, by="model"
    )
    assert_same(result, expected)


def test_strings_as_objects_categories_and_arrow():
    true, pred = frames(13)
    true, pred = (frame.astype({"user_id": "str"}) for frame in (true, pred))
    with dask.config.set({"dataframe.convert-string": False}):
        given = (
            to_dask(true.astype({"user_id": object})),
            to_dask(pred.astype({"user_id": "category"})),
        )
        result = rd.dask.evaluate(*given, "mrr", 5, by="model", partitions=2)
        expected = rd.evaluate(true.astype({"user_id": object}), pred, "mrr", 5, by="model")
        assert_same(result, expected)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("users", ["true", "all"])
def test_no_label_is_lost_where_categories_are_unknown_or_differ(users, known, tmp_path):
    labels = dict.fromkeys(["model", "user_id"], "category")
    true, pred = (frame.astype({"user_id": str}) for frame in frames(15))
    made = true.astype({"user_id": "category"}), pred.astype(labels)
    groups = made[1][["user_id"]].drop_duplicates().assign(variant="A").astype("category")
    given = [to_dask(frame) if known else of_unknown_categories(frame) for frame in (*made, groups)]
    assert given[0]["user_id"].cat.known == known
    result = rd.dask.evaluate(*given[:2], "mrr", 5, by="model", users=users, partitions=3)
    result.to_parquet(tmp_path)
    expected = rd.evaluate(*made, "mrr", 5, by="model", users=users)
    for found in (
        result.to_pandas().per_user,
        result.per_user.compute(),
        rd.read_parquet(tmp_path).per_user,
    ):
        if known:
            assert found["user_id"].dtype == expected.per_user["user_id"].dtype
        pd.testing.assert_frame_equal(as_text(found), as_text(expected.per_user))
    moments = result.variant_moments(given[2], missing="zero", nan="drop")
    rows = rd.experiments.variant_moments(
        expected.join_experiment(groups, missing="zero"), "mrr@5", by="model", nan="drop"
    )
    labels = ["model", "variant"]
    pd.testing.assert_frame_equal(
        moments.astype(dict.fromkeys(labels, str)), rows.astype(dict.fromkeys(labels, str))
    )


def of_unknown_categories(frame):
    """A frame of Dask that does not know its categories, as `dd.read_parquet` makes it."""
    names = list(frame.select_dtypes("category"))
    return to_dask(frame.astype(dict.fromkeys(names, str))).astype(dict.fromkeys(names, "category"))


def as_text(per_user):
    """Rows with labels that are strings, in the order of the labels."""
    return per_user.astype({"model": str, "user_id": str}).sort_values(
        ["model", "user_id"], ignore_index=True
    )


def test_side_tables_and_users_may_be_frames_of_dask():
    true, pred = frames(14)
    items, users = pd.DataFrame({"item_id": range(12)}), pd.DataFrame({"user_id": [3, 4, 8]})
    given = {"items": to_dask(items), "users": to_dask(users)}
    found = rd.dask.evaluate(to_dask(true), to_dask(pred), "coverage", 5, by="model", **given)
    expected = rd.evaluate(true, pred, "coverage", 5, by="model", items=items, users=users)
    pd.testing.assert_frame_equal(
        found.summary, expected.summary.astype(found.summary.dtypes), rtol=1e-12
    )


def test_columns_of_dask_are_taken_where_a_list_of_ids_is():
    true, pred = frames(14)
    series = dd.from_pandas(pd.Series(range(12), name="item_id"), npartitions=2)
    index = dd.from_pandas(pd.DataFrame({"a": 1}, index=[3, 4, 8]), npartitions=1).index
    found = rd.dask.evaluate(
        to_dask(true), to_dask(pred), "coverage", 5, by="model", items=series, users=index
    )
    expected = rd.evaluate(true, pred, "coverage", 5, by="model", items=range(12), users=[3, 4, 8])
    assert found.summary["value"].tolist() == expected.summary["value"].tolist()


@pytest.mark.parametrize("convert", [True, False])
def test_strings_have_one_dtype(convert, tmp_path):
    true, pred = (frame.astype({"user_id": str}) for frame in frames(34))
    with dask.config.set({"dataframe.convert-string": convert}):
        result = rd.dask.evaluate(
            to_dask(true),
            to_dask(pred),
            "mrr",
            5,
            by="model",
            users=["3", "5"] if convert else "true",
        )
        in_memory, computed = result.to_pandas().per_user, result.per_user.compute()
        pd.testing.assert_frame_equal(in_memory, in_key_order(computed, result))
        assert result.per_user.dtypes.to_dict() == in_memory.dtypes.to_dict()
        result.to_parquet(tmp_path)
        assert rd.read_parquet(tmp_path) == result.to_pandas()


MAP = pa.map_(pa.string(), pa.int64())
TYPES = {
    "list": pd.array(pa.array([[1], [2]]), pd.ArrowDtype(pa.list_(pa.int64()))),
    "struct": pd.array(
        pa.array([{"a": 1}, {"a": 2}]), pd.ArrowDtype(pa.struct([("a", pa.int64())]))
    ),
    "map": pd.array(pa.array([[("a", 1)], []], MAP), pd.ArrowDtype(MAP)),
    "complex128": np.array([1j, 2j]),
}


@pytest.mark.parametrize("kind", TYPES)
def test_columns_whose_values_cannot_be_compared(kind):
    frame = pd.DataFrame(
        {"user_id": [1, 2], "item_id": [1, 2], "score": [1.0, 2.0], "x": TYPES[kind]}
    )
    given = to_dask(frame, 1)
    of_items = [] if kind == "list" else [{"item_col": "x"}]  # a list of items is fine
    for options in ({"user_col": ["user_id", "x"]}, *of_items, {"by": "x"}, {"carry": "x"}):
        with pytest.raises(
            rd.IdTypeError, match=rf"\['x'\] is .*{kind}.*, whose values cannot tell rows apart"
        ):
            rd.dask.evaluate(given, given, "mrr", **options)
    with pytest.raises(
        rd.DataError,
        match=r"carry\['x'\]='min': pred\['x'\] is .*, which has no order; take \"first\"",
    ):
        rd.dask.evaluate(given, given, "mrr", carry={"x": "min"})
    with pytest.raises(rd.DataError, match=r"pred\['x'\] holds .* values; expected numbers"):
        rd.dask.evaluate(given, given, "mrr", score_col="x")
    assert rd.dask.evaluate(given, given, "mrr").summary["value"].tolist() == [
        1.0
    ]  # unused columns may be of any type


def test_periods_and_intervals_are_carried_as_in_memory():
    frame = pd.DataFrame(
        {"user_id": [1, 1, 2, 2], "item_id": [1, 2, 1, 2], "score": [1.0, 2.0, 3.0, 4.0]}
    )
    frame["month"] = pd.period_range("2026-01", periods=2, freq="M").take([0, 1, 0, 1])
    frame["age"] = pd.arrays.IntervalArray.from_breaks([0, 18, 99]).take([0, 0, 1, 1])
    options = {"by": "month", "by_in_true": False, "carry": {"age": "constant"}}
    found = rd.dask.evaluate(to_dask(frame, 2), to_dask(frame, 2), "mrr", **options)
    pd.testing.assert_frame_equal(
        found.to_pandas().per_user, rd.evaluate(frame, frame, "mrr", **options).per_user
    )


def test_a_score_of_another_name_is_named():
    frame = pd.DataFrame({"user_id": [1], "item_id": [1], "est": [1.0]})
    with pytest.raises(rd.OptionError, match=r"no order of rows; pass score_col='est'$"):
        rd.dask.evaluate(to_dask(frame, 1), to_dask(frame, 1), "mrr")


def test_a_column_of_several_types_is_named():
    frame = pd.DataFrame(
        {
            "user_id": [1, 2],
            "item_id": [1, 2],
            "score": [1.0, 2.0],
            "x": pd.Series([1, "a"], dtype=object),
        }
    )
    with (
        dask.config.set({"dataframe.convert-string": False}),
        pytest.raises(rd.DataError, match="the column 'x' is string"),
    ):
        rd.dask.evaluate(to_dask(frame, 2), to_dask(frame, 2), "mrr", carry="x")


def test_a_task_has_the_rows_of_one_bucket(monkeypatch):
    seen = []
    on_buckets = engine._on_buckets

    def watched(schema, rows, work):
        seen.append(set(rows.index))
        return on_buckets(schema, rows, work)

    monkeypatch.setattr(engine, "_on_buckets", watched)
    true, pred = frames(35)
    rd.dask.evaluate(to_dask(true), to_dask(pred), "mrr", 5, by="model", partitions=9)
    assert max(map(len, seen)) == 1
    assert set().union(*seen) == set(range(9))


def test_a_result_is_written_by_the_workers_and_read_back(tmp_path):
    true, pred = frames(15)
    result = rd.dask.evaluate(to_dask(true), to_dask(pred), ["ndcg", "hhi"], 5, by="model")
    result.to_parquet(tmp_path / "out")
    stored = rd.read_parquet(tmp_path / "out")
    assert stored == result.to_pandas()
    with pytest.raises(FileExistsError, match=r"per_user\.parquet"):
        result.to_parquet(tmp_path / "out")
    result.to_parquet(tmp_path / "out", overwrite=True)  # parts in place of parts
    stored.to_parquet(tmp_path / "out", overwrite=True)  # a file in place of parts
    result.to_parquet(tmp_path / "out", overwrite=True)  # parts in place of a file
    assert rd.read_parquet(tmp_path / "out") == stored
    plain = pd.read_parquet(tmp_path / "out" / "per_user.parquet")
    assert len(plain) == len(stored.per_user)


def test_functions_of_memory_say_how_to_bring_the_rows_there():
    true, pred = frames(15)
    result = rd.dask.evaluate(to_dask(true), to_dask(pred), "ndcg", 5, by="model")
    with pytest.raises(AttributeError, match=r"result\.to_pandas\(\)\.summarize"):
        result.summarize()
    for call in (
        lambda: rd.evaluate(to_dask(true), to_dask(pred), "ndcg"),
        lambda: rd.compare_models(result.per_user, "ndcg@5"),
        lambda: rd.summarize(result.per_user),
        lambda: rd.summarize(result),
    ):
        with pytest.raises(TypeError, match=r"frame of Dask; .* result\.to_pandas\(\)"):
            call()


def test_a_part_that_is_missing_or_foreign_is_no_result(tmp_path):
    true, pred = frames(15)
    result = rd.dask.evaluate(to_dask(true), to_dask(pred), "ndcg", 5, by="model", partitions=3)
    result.to_parquet(tmp_path)
    rows = tmp_path / "per_user.parquet"
    first, *others = sorted(rows.glob("*.parquet"))
    kept = first.read_bytes()
    (rows / "more.parquet").write_bytes(kept)
    with pytest.raises(rd.DataError, match=r"1 differ, more\.parquet \(not of this result\)"):
        rd.read_parquet(tmp_path)
    (rows / "more.parquet").unlink()
    first.unlink()
    with pytest.raises(rd.DataError, match=rf"{first.name} \(missing\)"):
        rd.read_parquet(tmp_path)
    first.write_bytes(kept[:-1])
    with pytest.raises(rd.DataError, match=f"{len(kept) - 1:,} bytes for {len(kept):,}"):
        rd.read_parquet(tmp_path)
    first.write_bytes(kept)
    assert others
    assert rd.read_parquet(tmp_path) == result.to_pandas()


def test_the_result_in_memory_is_compared_and_joined():
    true, pred = frames(16)
    result = rd.dask.evaluate(to_dask(true), to_dask(pred), "ndcg", 5, by="model").to_pandas()
    assert len(result.compare_models()) == 1
    groups = pd.DataFrame({"user_id": range(23), "variant": np.resize(["A", "B"], 23)})
    assert len(result.join_experiment(groups, missing="zero")) == 46


def test_per_user_is_lazy_and_has_a_text(monkeypatch):
    true, pred = frames(17)
    result = rd.dask.evaluate(to_dask(true), to_dask(pred), "mrr", 5, by="model")
    assert isinstance(result.per_user, dd.DataFrame)
    expected = to_dask(rd.evaluate(true, pred, "mrr", 5, by="model").per_user)
    assert result.per_user.dtypes.to_dict() == expected.dtypes.to_dict()
    assert result.per_user.compute().dtypes.to_dict() == expected.dtypes.to_dict()
    assert "per_user is lazy" in repr(result)
    assert "<table" in result._repr_html_()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (
            {"ties": "row"},
            rd.OptionError,
            'ties="row" needs the order of the rows, which a Dask frame does not keep',
        ),
        (
            {"like": "ranx"},
            rd.OptionError,
            'like="ranx" uses ties="row": this needs the order of the rows, which a Dask frame '
            "does not keep; pass "
            'another rule, such as ties="item_desc". Where scores are equal, the numbers may then '
            "differ from those of",
        ),
        (
            {"like": "ranx", "ties": "row"},
            rd.OptionError,
            'ties="row" needs the order of the rows, which a Dask frame',
        ),
        (
            {"like": "rs_metrics"},
            rd.OptionError,
            'like="rs_metrics" takes pred in the order of its rows, and a Dask frame has no order '
            "of rows; pass score_col='score'. Where scores are equal, the numbers may then differ "
            "from those of rs_metrics",
        ),
        ({"partitions": 0}, rd.OptionError, "partitions=0; expected an integer from 1 to 65,535"),
        ({"item_by": "category"}, rd.OptionError, "item_by='category' needs items="),
        (
            {"partition": 3},
            rd.OptionError,
            "rd.dask.evaluate has no option 'partition'; did you mean 'partitions'?",
        ),
        (
            {"carri": "a"},
            rd.OptionError,
            "rd.dask.evaluate has no option 'carri'; did you mean 'carry'?",
        ),
    ],
)
def test_what_an_engine_cannot_do_is_refused(options, error, words):
    true, pred = frames(18)
    with pytest.raises(error) as caught:
        rd.dask.evaluate(to_dask(true), to_dask(pred), "mrr", 5, **options)
    assert str(caught.value).startswith(words)


def test_other_frames_are_refused():
    true, pred = frames(19)
    with pytest.raises(
        TypeError,
        match=r"^pred is a DataFrame of pandas.*; expected a Dask .*dd\.from_.* makes one, and rd",
    ):
        rd.dask.evaluate(to_dask(true), pred, "mrr")
    with pytest.raises(TypeError, match=r"^pred is None; expected a Dask DataFrame: "):
        rd.dask.evaluate(to_dask(true), None, "mrr")
    like_spark = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe"})()
    with pytest.raises(
        TypeError,
        match=r"^true is a DataFrame of pyspark; expected a Dask DataF",
    ):
        rd.dask.evaluate(like_spark, to_dask(pred), "mrr")
    with pytest.raises(TypeError, match=r"^true is a DataFrame of dask.*; expected a Spark DataF"):
        check_frames({"true": to_dask(true)}, pd.DataFrame, "Spark", "")
    indexed = to_dask(true).set_index("user_id")
    with pytest.raises(
        rd.ColumnError, match=r"^true has 'user_id' in its index, .* pass true\.reset_index\(\)$"
    ):
        rd.dask.evaluate(indexed, to_dask(pred), "mrr")
    result = rd.dask.evaluate(to_dask(true), to_dask(pred), "mrr", by="model")
    for folder in ("s3a://bucket/today", "dbfs:/today"):
        with pytest.raises(
            rd.OptionError, match=rf"^{folder} is an .* result\.per_user\.to_parquet\('{folder}'\)"
        ):
            result.to_parquet(folder)
    result.unpersist()  # Dask keeps nothing; the result stays as it is
    assert len(result.per_user) == len(result.to_pandas().per_user)


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.dataframe", None)
    with pytest.raises(rd.MissingExtraError, match=r"pip install 'recdf\[dask\]'"):
        rd.dask.evaluate(None, None, "mrr")
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(rd.MissingExtraError, match=r"pip install 'recdf\[spark\]'"):
        rd.spark.evaluate(None, None, "mrr")


def test_a_metric_of_ones_own_goes_by_value():
    assert engine_cases.divides_by_zero.__module__ == "partitions.engine_cases"
    true, pred = frames(20)
    shift = 0.25

    @rd.metric
    def shifted_half(lists, *, half: float = 0.5):
        """A constant; larger is better, in [0, 1]."""
        return np.full(len(lists), half + shift)

    result = rd.dask.evaluate(
        to_dask(true), to_dask(pred[pred["model"] == "als"]), ["shifted_half(half=0.125)"], 5
    )
    assert result.summary["value"].tolist() == [0.375]
