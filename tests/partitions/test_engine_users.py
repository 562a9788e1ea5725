"""Tables of users, and of users and days, in frames of Dask: experiments read the columns that they
name, and say what they say of the same rows in memory."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.diagnostics import gate_records

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

from partitions.engine_cases import frames  # noqa: E402

from recdf.partitions.dask import DaskEngine  # noqa: E402

EXPERIMENTS = rd.experiments


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def users(n=600, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "user_id": rng.permutation(n),
            "variant": rng.choice(["A", "B"], n, p=[0.45, 0.55]),
            "country": rng.choice(["fi", "se", "no"], n),
            "clicks": rng.poisson(2.0, n),
            "unused": rng.random(n),
        }
    )


def days():
    of_users = users().assign(first=pd.Timestamp("2026-09-01"), store=np.arange(600) // 10)
    of_users["variant"] = np.where(of_users["store"] % 2, "A", "B")
    each = pd.DataFrame({"day": pd.date_range("2026-09-01", periods=4)})
    rows = of_users.merge(each, how="cross")
    return rows.assign(clicks=np.random.default_rng(1).poisson(2.0, len(rows)))


def to_dask(frame):
    return dd.from_pandas(frame, npartitions=3, sort=False)


CASES = {
    "health": lambda own: EXPERIMENTS.experiment_health(
        own(users()[:500]), own(users()), by="country"
    ),
    "sample ratio": lambda own: EXPERIMENTS.find_srm(own(users()), "country"),
    "A/A": lambda own: EXPERIMENTS.aa_test(own(users()), "clicks", n=50),
    # A store is assigned whole, which no argument says.
    "over time": lambda own: EXPERIMENTS.effect_over_time(
        own(days()), "clicks", control="A", time_col="day", exposure_col="first", details=True
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_users_of_an_engine_are_those_of_memory(name, monkeypatch):
    expected, seen = CASES[name](lambda frame: to_dask(frame).compute()), []
    compute = dd.DataFrame.compute

    def watched(frame, **options):
        found = compute(frame, **options)
        if len(found) > 1:  # and not the first row, which tells the columns
            seen.append(found)
        return found

    monkeypatch.setattr(dd.DataFrame, "compute", watched)
    found = CASES[name](to_dask)
    pd.testing.assert_frame_equal(pd.DataFrame(found), pd.DataFrame(expected), rtol=1e-9)
    assert len(seen) == 1  # of health and sample ratio what was counted in each bucket
    assert not any("unused" in one.columns for one in seen)


def test_a_function_that_needs_all_columns_still_refuses_an_engine():
    with pytest.raises(TypeError, match="per_user is a frame of Dask"):
        rd.summarize(to_dask(users()[:5]))
    more = {"list_cols": (), "time_col": "time"}
    log = to_dask(users()[:5])
    for function in (rd.from_impressions, rd.logs.check_log):
        with pytest.raises(TypeError, match=r"call rd\.dask\.\w+, from_impressions or check_log"):
            function(log, clicks=log, **more)


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(rd.ColumnError, match="assignment has no column 'county'"):
        EXPERIMENTS.find_srm(to_dask(users()[:5]), "county")


@pytest.mark.long
def test_a_gate_reads_the_columns_of_its_budgets(monkeypatch):
    true, pred = frames(country="fi")
    pred["country"] = np.where(pred["user_id"] % 2, "fi", "no")
    results = {
        name: rd.dask.evaluate(
            *(to_dask(one.reset_index(drop=True)) for one in (true, rows.drop(columns="model"))),
            ["ndcg", "recall"],
            5,
            carry="country",
        )
        for name, rows in pred.groupby("model")
    }
    budgets = {"ndcg@5": "-50%", "ndcg@5[country=fi]": -0.5}
    asked = {"budgets": budgets, "min_lists": 5}
    expected = rd.gate(*(one.to_pandas() for one in results.values()), **asked)
    seen = []
    needed = gate_records.needed_frame
    monkeypatch.setattr(
        gate_records, "needed_frame", lambda *given: seen.append(needed(*given)) or seen[-1]
    )
    found = rd.gate(*results.values(), **asked)
    pd.testing.assert_frame_equal(found.table, expected.table, rtol=1e-9, atol=1e-12)
    pd.testing.assert_frame_equal(found.checks, expected.checks)
    assert len(found.table) == 3
    assert [[*one.columns] for one in seen] == [["user_id", "country", "n_true", "ndcg@5"]] * 2
    with pytest.raises(
        rd.ColumnError, match=r"no column 'countri'; .*'n_pred'.*'recall@5'.*mean 'c"
    ):
        rd.gate(*results.values(), {"ndcg@5": -0.5}, by="countri")


def test_whole_numbers_among_python_objects_keep_their_names_beside_a_null():
    rows = users().assign(shop=lambda own: (own["user_id"] % 3 + 10).astype(object))
    rows.loc[::7, "shop"] = None
    with dask.config.set({"dataframe.convert-string": False}):
        found = EXPERIMENTS.find_srm(to_dask(rows), "shop")
    pd.testing.assert_frame_equal(found, EXPERIMENTS.find_srm(rows, "shop"))
    assert sorted(found["level"]) == ["(null)", "10", "11", "12"]


def test_an_engine_is_asked_once_for_the_columns_of_a_frame(monkeypatch):
    asked = []
    schema = DaskEngine.schema
    monkeypatch.setattr(
        DaskEngine, "schema", lambda own, frame: (asked.append(frame), schema(own, frame))[1]
    )
    EXPERIMENTS.find_srm(to_dask(users()), "country")
    assert len(asked) == 1
    bought = to_dask(users()[["user_id", "country"]].rename(columns={"country": "item_id"}))
    result = rd.dask.evaluate(bought, bought.assign(score=1.0), "recall@10")
    asked.clear()
    result.variant_moments(to_dask(users()), "recall@10")
    assert len(asked) == 2  # the rows per list, and the assignment
