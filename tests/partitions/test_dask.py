"""Frames of Dask: every answer, error and warning is that of `rd.evaluate` on the same rows."""

import sys

import numpy as np
import pandas as pd
import pytest

import recdf as rd

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

from partitions import engine_cases  # noqa: E402
from partitions.engine_cases import CASES, ERRORS, WARNINGS, assert_same, frames, outcome, without_part  # noqa: E402


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(autouse=True)
def _registry():
    """Metrics that a test registers do not stay."""
    known = dict(rd.METRICS)
    yield
    for name in rd.METRICS.keys() - known.keys():
        del rd.METRICS[name]


def to_dask(frame, npartitions=3):
    return None if frame is None else dd.from_pandas(frame.reset_index(drop=True), npartitions=npartitions, sort=False)


def both(true, pred, metrics, options, **more):
    """The outcome of Dask and that of `rd.evaluate`."""
    found = outcome(rd.dask.evaluate, to_dask(true, 2), to_dask(pred), metrics, [2, 5], **options, **more)
    return found, outcome(rd.evaluate, true, pred, metrics, [2, 5], **options)


@pytest.mark.parametrize("name", CASES)
def test_the_tables_are_those_of_evaluate(name):
    objects = name == "keys_of_decimals_and_of_instants"  # Dask would make strings of them
    with dask.config.set({"dataframe.convert-string": not objects}):
        (result, said), (expected, expected_said) = both(*CASES[name](), partitions=4)
    if not isinstance(expected, rd.Evaluation):
        raise expected
    if isinstance(result, Exception):
        raise result
    assert_same(result, expected)
    assert said == expected_said


@pytest.mark.parametrize("name", ERRORS)
def test_the_error_is_that_of_evaluate(name):
    (error, _), (expected, _) = both(*ERRORS[name]())
    assert isinstance(error, Exception), "nothing was raised"
    assert type(error) is type(expected)
    assert str(error).partition(" has no option")[2] == str(expected).partition(" has no option")[2]
    assert str(error).partition("evaluate has")[2] or without_part(error) == str(expected)


@pytest.mark.parametrize("name", WARNINGS)
def test_the_warnings_are_those_of_evaluate(name):
    change, options = WARNINGS[name]
    with dask.config.set({"dataframe.convert-string": name != "a day as by"}):  # Dask would make strings of dates
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
    assert_same(result, rd.evaluate(true.astype({"user_id": "category"}), pred, "recall", 5, by="model"))


def test_strings_as_objects_categories_and_arrow():
    true, pred = frames(13)
    true, pred = (frame.astype({"user_id": "str"}) for frame in (true, pred))
    with dask.config.set({"dataframe.convert-string": False}):
        given = to_dask(true.astype({"user_id": object})), to_dask(pred.astype({"user_id": "category"}))
        result = rd.dask.evaluate(*given, "mrr", 5, by="model", partitions=2)
        expected = rd.evaluate(true.astype({"user_id": object}), pred, "mrr", 5, by="model")
        assert_same(result, expected)


def test_side_tables_and_users_may_be_frames_of_dask():
    true, pred = frames(14)
    items, users = pd.DataFrame({"item_id": range(12)}), pd.DataFrame({"user_id": [3, 4, 8]})
    given = {"items": to_dask(items), "users": to_dask(users)}
    found = rd.dask.evaluate(to_dask(true), to_dask(pred), "coverage", 5, by="model", **given)
    expected = rd.evaluate(true, pred, "coverage", 5, by="model", items=items, users=users)
    pd.testing.assert_frame_equal(found.summary, expected.summary, rtol=1e-12)


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
    with pytest.raises(AttributeError, match=r"result\.to_pandas\(\)\.compare_models"):
        result.compare_models()
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
        ({"ties": "row"}, rd.OptionError, 'ties="row" needs the order of the rows, which a Dask frame does not keep'),
        ({"like": rd.Convention("x", order="row")}, rd.OptionError, "pred has no column that orders it, and a Dask"),
        ({"partitions": 0}, rd.OptionError, "partitions=0; expected an integer from 1 to 65,535"),
        ({"item_by": "category"}, rd.OptionError, "item_by='category' needs items="),
    ],
)
def test_what_an_engine_cannot_do_is_refused(options, error, words):
    true, pred = frames(18)
    with pytest.raises(error) as caught:
        rd.dask.evaluate(to_dask(true), to_dask(pred), "mrr", 5, **options)
    assert str(caught.value).startswith(words)


def test_other_frames_are_refused():
    true, pred = frames(19)
    with pytest.raises(TypeError, match=r"^pred is a DataFrame; expected a Dask DataFrame$"):
        rd.dask.evaluate(to_dask(true), pred, "mrr")


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

    result = rd.dask.evaluate(to_dask(true), to_dask(pred[pred["model"] == "als"]), ["shifted_half(half=0.125)"], 5)
    assert result.summary["value"].tolist() == [0.375]
