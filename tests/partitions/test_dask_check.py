"""Findings of frames of Dask: those of `rd.check` that add up over users."""

import pandas as pd
import pytest

import recdf as rd

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

from partitions.check_cases import CASES_OF_CHECKS, assert_same_check  # noqa: E402
from partitions.engine_cases import frames  # noqa: E402


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def to_dask(frame):
    return dd.from_pandas(frame.reset_index(drop=True), npartitions=2, sort=False)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES_OF_CHECKS)
def test_findings_are_those_of_check(name):
    true, pred, options = CASES_OF_CHECKS[name]()
    log = options.pop("log", None)
    own = [None if one is None else to_dask(one) for one in (true, pred, log)]
    assert_same_check(rd.dask.check, *own, options, (true, pred, log))


def test_help_names_the_engine_and_the_call():
    assert "log : DataFrame of Dask" in rd.dask.check.__doc__
    assert "rd.dask.check(true, pred" in rd.dask.check.__doc__


def test_what_an_engine_cannot_know_is_refused():
    true, pred = map(to_dask, frames())
    with pytest.raises(rd.OptionError, match="a Dask frame has no order of rows"):
        rd.dask.check(true, pred.drop(columns="score"), by="model")
    with pytest.raises(TypeError, match="true is a DataFrame of pandas"):
        rd.dask.check(frames()[0], pred)
    with pytest.raises(rd.ColumnError, match="pred has no column 'modle'"):
        rd.dask.check(true, pred, by="modle")


@pytest.mark.long
def test_frames_without_rows_are_findings():
    true, pred = frames()
    found = rd.dask.check(to_dask(true), to_dask(pred).query("user_id > 99"), by="model")
    assert found[["finding", "count"]].to_numpy().tolist() == [["pred is empty", 1]]
    found = pd.DataFrame(rd.dask.check(to_dask(true[:0]), to_dask(pred), by="model"))
    assert "true is empty" in found["finding"].tolist()
