"""Raw logs in frames of Dask: the lists, the counts and the findings are those of pandas."""

import pandas as pd
import pytest

import recdf as rd

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

from partitions.log_cases import (  # noqa: E402
    CASES_OF_LOGS,
    REFUSED_LOGS,
    assert_same_findings,
    assert_same_lists,
    persons_of_another_kind,
    refused_log,
    said_of,
)

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _one_thread():
    # Python objects stay what they are, such as Decimals.
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        yield


def to_dask(frame, npartitions=2):
    return dd.from_pandas(frame.reset_index(drop=True), npartitions=npartitions, sort=False)


def given_to(log, frames):
    """The frames of Dask, and the rows that they have."""
    of_dask = {role: one if role == "persons" else to_dask(one, 2) for role, one in frames.items()}
    rows = {role: one if role == "persons" else one.compute() for role, one in of_dask.items()}
    return to_dask(log), of_dask, to_dask(log).compute(), rows


@pytest.mark.parametrize("name", CASES_OF_LOGS)
def test_the_lists_are_those_of_from_impressions(name):
    log, frames, options = CASES_OF_LOGS[name]()
    of_dask, events, log, frames = given_to(log, frames)
    expected, said = said_of(rd.from_impressions, log, **frames, **options)
    found, told = said_of(rd.dask.from_impressions, of_dask, **events, **options)
    assert_same_lists(found, expected, lambda frame: frame.compute())
    assert told == said


@pytest.mark.parametrize("name", CASES_OF_LOGS)
def test_the_findings_are_those_of_check_log(name):
    log, frames, options = CASES_OF_LOGS[name]()
    of_dask, events, log, frames = given_to(log, frames)
    taken = ("time_col", "value_col", "window", "rank_col", "session_gap", "person_col")
    options = {name: options[name] for name in taken if name in options}
    found = rd.dask.check_log(of_dask, **events, **options)
    assert_same_findings(found, rd.logs.check_log(log, **frames, **options))


@pytest.mark.parametrize("name", REFUSED_LOGS)
def test_a_refused_log_is_refused_by_argument_and_column(name):
    log, clicks, options, error, words = refused_log(name)
    if clicks is not None:
        with pytest.raises(error, match=words):
            rd.from_impressions(log, clicks=clicks, **options)
        clicks = to_dask(clicks)
    with pytest.raises(error, match=words):
        rd.dask.from_impressions(to_dask(log), clicks=clicks, **options)


def test_the_lists_go_into_evaluate():
    log, frames, options = CASES_OF_LOGS["persons_with_several_devices"]()
    of_dask, events, log, frames = given_to(log, frames)
    persons = to_dask(frames["persons"], 1)
    found = rd.dask.from_impressions(of_dask, **{**events, "persons": persons}, **options)
    expected = rd.from_impressions(log, **frames, **options)
    metrics = ["hits@3", "revenue@3"]
    summary = rd.dask.evaluate(*found, metrics, **found.options).summary
    of_pandas = rd.evaluate(*expected, metrics, **expected.options).summary
    pd.testing.assert_frame_equal(summary, of_pandas, rtol=1e-12)
    assert repr(found).splitlines() == [
        line for line in repr(expected).splitlines() if not line.startswith("true ")
    ]


def test_a_frame_of_pandas_is_refused():
    log = CASES_OF_LOGS["sessions_by_gaps"]()[0]
    with pytest.raises(TypeError, match="log is a DataFrame of pandas"):
        rd.dask.from_impressions(log, clicked_col="clicked")
    with pytest.raises(rd.ColumnError, match="index"):
        rd.dask.from_impressions(to_dask(log).set_index("user_id"), clicked_col="clicked")


def test_devices_beside_persons_of_another_kind_are_refused():
    log, clicks, persons, options = persons_of_another_kind()
    words = r"persons\['person_id'\] holds integer ids .* and clicks\['user_id'\] string ids"
    with pytest.raises(rd.IdTypeError, match=words):
        rd.from_impressions(log, clicks=clicks, persons=persons, **options)
    given = {"clicks": to_dask(clicks), "persons": to_dask(persons, 1)}
    with pytest.raises(rd.IdTypeError, match=words):
        rd.dask.from_impressions(to_dask(log), **given, partitions=4, **options)
    found = rd.dask.check_log(to_dask(log), **given, partitions=4, **options)
    assert_same_findings(found, rd.logs.check_log(log, clicks=clicks, persons=persons, **options))
