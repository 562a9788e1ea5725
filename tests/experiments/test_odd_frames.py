"""Frames that are empty, huge or mixed: a named error, and never one of Python, NumPy or pandas."""

import datetime
import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import dataset

import recdf as rd

X = rd.experiments
N = 60
USERS = pd.DataFrame(
    {
        "user_id": range(N),
        "variant": ["A", "B"] * (N // 2),
        "x": np.random.default_rng(0).random(N),
        "g": ["p", "q", "r"] * (N // 3),
        "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(N) % 10, "D"),
    }
)
MODELS = pd.concat([USERS.assign(model=name) for name in "ab"])


@pytest.mark.parametrize("options", [{"strata": "g"}, {"by": "g", "time_col": "day"}, {}])
@pytest.mark.parametrize("function", [rd.compare_variants, X.compare_quantiles])
def test_no_rows(function, options):
    options = {
        name: one for name, one in options.items() if name != "strata" or "var" in str(function)
    }
    with pytest.raises(rd.OptionError, match="its variants are"):
        function(USERS.head(0), "x", control="A", **options)


def test_models_within_segments_without_models():
    with pytest.raises(rd.ColumnError, match="per_user has no column 'model'"):
        rd.compare_models(USERS, "x", by="g")
    with pytest.raises(rd.OptionError, match="per_user has 0 models"):
        rd.compare_models({}, "x", by="g")
    with pytest.raises(rd.IdTypeError, match=r"per_user\['model'\]"):
        rd.compare_models(USERS.assign(model=[["a"]] * N), "x", by="g")


@pytest.mark.parametrize(
    "call",
    [
        lambda users: rd.compare_variants(users, "x", control="A"),
        lambda users: X.compare_quantiles(users, "x", control="A"),
        lambda users: rd.compare_models({"a": USERS, "b": users}, "x"),
        lambda users: X.aa_test(users, "x", n=10),
        lambda users: X.plan_experiment(users, "x", rel_effect=0.1),
        lambda users: X.bootstrap_ci(users, "x", n_resamples=10),
    ],
)
@pytest.mark.parametrize("all_rows", [True, False])
def test_values_whose_sums_are_no_numbers(call, all_rows):
    values = USERS["x"].where(USERS["user_id"] != 1, 1e308) if not all_rows else 1e308
    with pytest.raises(rd.DataError, match=r"holds values above 1e\+300 in size"):
        call(USERS.assign(x=values))


def test_values_whose_squares_are_no_numbers():
    users = USERS.assign(x=USERS["x"].where(USERS["user_id"] != 1, 1e200))
    for call in (
        lambda: X.plan_experiment(users, "x", rel_effect=0.1),
        lambda: X.plan_experiment(users, "x", rel_effect=0.1, sequential=True),
        lambda: X.aa_test(users, "x", n=10),
        lambda: X.aa_test(users, {"ratio": ("user_id", "x")}, n=10),
    ):
        with pytest.raises(rd.DataError, match=r"values of 1e\+150 or more"):
            call()


@pytest.mark.parametrize("value", [0.1, 1 / 3, 7e12, 0.5])
def test_a_plan_of_a_constant(value):
    with pytest.raises(rd.DataError, match="has the same value for all"):
        X.plan_experiment(USERS.assign(x=value), "x", n=100)


def test_dates_beside_a_number_are_no_dates():
    plain = rd.compare_variants(USERS, "x", control="A")
    mixed = USERS.assign(seen=[datetime.date(2026, 1, 1)] * (N - 1) + [3])
    pd.testing.assert_frame_equal(rd.compare_variants(mixed, "x", control="A"), plain)


def test_levels_with_lone_surrogates():
    with pytest.raises(rd.IdTypeError, match=r"assignment\['g'\] has .*lone surrogate"):
        X.find_srm(USERS.assign(g=pd.Series(["\ud800"] * N, dtype=object)), "g")


def test_arrivals_of_ids_of_every_kind():
    rng = np.random.default_rng(0)
    user, hour = rng.integers(0, 20, 90), pd.to_timedelta(rng.integers(0, 400, 90), "h")
    log = pd.DataFrame({"user_id": user, "at": pd.Timestamp("2026-01-01") + hour})
    found = X.arrivals_by_day(log, time_col="at")
    seen = log.assign(day=log["at"].dt.normalize()).drop_duplicates(["user_id", "day"])
    users = seen["day"].value_counts().reindex(found["day"], fill_value=0)
    new = seen.groupby("user_id")["day"].min().value_counts().reindex(found["day"], fill_value=0)
    assert found["users"].tolist() == users.tolist()
    assert found["new_users"].tolist() == new.tolist()
    for ids in (log["user_id"].astype(str).astype("category"), log["user_id"].astype("Int64")):
        other = log.assign(user_id=ids)
        other.index = pd.Index(range(90), name="user_id")
        pd.testing.assert_frame_equal(X.arrivals_by_day(other, time_col="at"), found)
    with pytest.raises(rd.NullKeyError, match=r"log\['user_id'\] is null in 1 of 90"):
        X.arrivals_by_day(log.assign(user_id=[None, *user[1:]]), time_col="at")


def test_no_labels_of_people():
    for human, cheap, role in ((USERS.head(0), USERS, "human"), (USERS, USERS.head(0), "cheap")):
        with pytest.raises(rd.EmptyPopulationError, match=f"{role} has no rows"):
            X.prediction_powered(human, cheap, "x")
    with pytest.raises(rd.EmptyPopulationError, match="has no rows"):
        rd.compare_models(MODELS.head(0), "x", cheap=MODELS)


TWO_LEVELS = USERS.set_axis(pd.MultiIndex.from_product([USERS.columns, [""]]), axis=1)


@pytest.mark.parametrize(
    "call",
    [
        lambda frame: rd.compare_variants(frame, "x", control="A"),
        lambda frame: X.bootstrap_ci(frame, "x"),
        lambda frame: X.interleave(frame, frame, 5),
        lambda frame: X.roll_up(frame),
        lambda frame: X.segment_effects(frame),
        lambda frame: X.report_table(frame),
        lambda frame: rd.ope.estimate(frame),
        lambda frame: rd.evaluate(frame, frame, "recall"),
    ],
)
def test_columns_on_two_levels_are_refused_in_words(call):
    with pytest.raises(rd.ColumnError, match="has names of columns on 2 levels"):
        call(TWO_LEVELS)


def test_a_table_of_another_library_is_named_by_it():
    polars = pytest.importorskip("polars")
    words = "data is a DataFrame of polars; expected .*; pass data.to_pandas()"
    with pytest.raises(TypeError, match=words):
        X.compare_quantiles(polars.from_pandas(USERS), "x", control="A")


def test_weights_that_make_no_number_of_a_value():
    users = USERS.assign(x=1e250, w=1e90)
    with pytest.raises(rd.DataError, match="'x' times the weights is too large"):
        rd.compare_variants(users, "x", control="A", weight_col="w")


def test_segments_that_have_the_names_of_results():
    table = rd.compare_variants(USERS, "x", control="A", by="g").assign(q="a")
    with pytest.raises(rd.OptionError, match="by='q' is also a column of the result"):
        X.segment_effects(table, by=["g", "q"])
    with pytest.raises(rd.OptionError, match="comparison has no rows"):
        X.segment_effects(table.head(0), by="g")


# Numbers that comparisons compute with and do not show.
@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["zeros", "arms", "p_random", "evenness", "ranks_higher"])
def test_a_column_of_segments_may_have_any_other_name(name):
    users, models = (frame.rename(columns={"g": name}) for frame in (USERS, MODELS))
    for table in (
        rd.compare_variants(users, "x", control="A", by=name, family=name),
        rd.compare_models(models, "x", by=name, family=name),
        rd.compare_models(models, "x", test="wilcoxon", by=name),
    ):
        assert table[name].tolist() == ["p", "q", "r"]
        assert table.columns[0] == name


def test_models_have_a_cut_off_of_0_and_no_metric_that_is_a_number():
    frame = MODELS.rename(columns={"x": "lat@0"})
    assert rd.compare_models(frame, "lat@0")["diff"].tolist() == [0.0]
    with pytest.raises(rd.OptionError, match="metrics holds 7; expected a name that is a text"):
        rd.compare_models(MODELS.rename(columns={"x": 7}), [7])


@pytest.mark.few(2)
@pytest.mark.parametrize("form", ["date32[pyarrow]", "timestamp[us][pyarrow]", object, "category"])
def test_days_of_every_kind(form):
    rows = USERS.assign(visits=1.0)
    other = rows["day"].dt.date.astype(object) if form is object else rows["day"].astype(form)
    given = {"control": "A", "time_col": "day", "exposure_col": None}
    expected = X.effect_over_time(rows, "visits", **given)
    pd.testing.assert_frame_equal(
        X.effect_over_time(rows.assign(day=other), "visits", **given), expected
    )
    pd.testing.assert_frame_equal(
        X.arrivals_by_day(rows.assign(day=other), time_col="day"),
        X.arrivals_by_day(rows, time_col="day"),
        check_dtype=False,  # seconds or microseconds
    )


def test_days_in_several_zones_and_no_days():
    zones = [day.tz_localize("UTC" if i % 2 else "Asia/Tokyo") for i, day in enumerate(USERS.day)]
    rows = USERS.assign(day=pd.Series(zones, dtype=object))
    with pytest.raises(rd.DataError, match="times of several zones"):
        X.effect_over_time(rows, "x", control="A", time_col="day", exposure_col=None)
    with pytest.raises(rd.DataError, match="times of several zones"):
        X.arrivals_by_day(rows, time_col="day")
    with pytest.raises(rd.DataError, match="log has no rows"):
        X.arrivals_by_day(USERS.head(0), time_col="day")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda one: rd.compare_variants(USERS, "x", control="A", details=one), "details"),
        (lambda one: X.compare_quantiles(USERS, "x", control="A", details=one), "details"),
        (lambda one: rd.compare_models(MODELS, "x", details=one), "details"),
        (lambda one: X.plan_experiment(USERS, "x", n=99, sequential=one), "sequential"),
    ],
)
@pytest.mark.parametrize("flag", ["yes", pd.NA, pd.Series([True])])
def test_flags_are_true_or_false(call, words, flag):
    with pytest.raises(rd.OptionError, match=rf"{words}.* True or False"):
        call(flag)


def test_a_flag_of_numpy_is_one():
    found = rd.compare_variants(USERS, "x", control="A", details=np.True_)
    assert "srm_p" in found


def test_a_seed_of_numpy_is_that_of_python():
    tables = [X.aa_test(USERS, "x", n=20, seed=seed) for seed in (5, np.int64(5), np.int8(5))]
    pd.testing.assert_frame_equal(tables[0], tables[1])
    pd.testing.assert_frame_equal(tables[0], tables[2])


def test_several_names_where_one_column_is_meant():
    given = {"control": "A", "time_col": "day"}
    with pytest.raises(rd.ColumnError, match=r"has no column \('day', 'g'\)"):
        X.effect_over_time(USERS, "x", exposure_col=("day", "g"), **given)
    with pytest.raises(rd.ColumnError, match=r"has no column \('day', 'g'\)"):
        X.arrivals_by_day(USERS, time_col=("day", "g"))
    with pytest.raises(rd.OptionError, match=r"test\['x'\]=\['t'\].*valid are 't'"):
        rd.compare_variants(USERS, "x", control="A", test={"x": ["t"]})
    with pytest.raises(rd.DataError, match="repeat a list"):
        rd.summarize(MODELS, user_col=["user_id", "user_id"])


HUGE = USERS.assign(x=USERS["x"] * 1e200, past=USERS["x"][::-1].to_numpy() * 1e200, w=1.0)


def test_huge_values_are_withheld_without_a_warning():
    given = {"control": "A", "weight_col": "w", "covariates": "past", "strata": "g"}
    assert rd.compare_variants(HUGE, "x", **given)["withheld"].item() == "huge_values"
    given = {"control": "A", "cluster": "user_id", "covariates": "past"}
    assert rd.compare_variants(HUGE, "x", **given)["withheld"].item() == "huge_values"


@pytest.mark.parametrize(
    "call",
    [
        lambda: X.proxy_metrics(
            pd.DataFrame({"a": [1e200, 2, 3], "a_se": 1.0, "b": [1.0, 2, 4], "b_se": 1.0}),
            offline="a",
            online="b",
        ),
        lambda: X.prediction_powered(HUGE.head(20), HUGE, "x"),
    ],
)
def test_tables_of_values_whose_squares_are_no_numbers(call):
    with pytest.raises(rd.DataError, match=r"above 1e\+150 in size, whose squares"):
        call()


def test_weighted_models_of_values_beyond_all_numbers():
    runs = MODELS.assign(x=1e250, w=1e90)
    with pytest.raises(rd.DataError, match="'x' times the weights is too large"):
        rd.compare_models(runs, "x", weight_col="w")


@pytest.mark.parametrize(("x", "w"), [(1e140, 1e90), (1e100, 1e60), (1e140, 1.0)])
def test_models_of_values_whose_products_or_cubes_are_no_numbers_have_no_verdict(x, w):
    noise = np.random.default_rng(0).normal(1, 0.1, len(MODELS))
    runs = MODELS.assign(x=x * noise, w=w)
    found = rd.compare_models(runs, "x", weight_col="w")
    assert set(found["withheld"]) == {"huge_values"}


@pytest.mark.parametrize("scale", [2.0**660, 2.0**-660])
def test_segments_of_any_size_are_told_apart_alike(scale):
    table = pd.DataFrame({"g": list("pqr"), "metric": "x"})
    table["diff"], table["se"] = [1.0, 2.0, 2.5], [0.2, 0.3, 0.1]
    other = table.assign(diff=table["diff"] * scale, se=table["se"] * scale)
    expected, found = (X.segment_effects(one, details=True) for one in (table, other))
    sized = ["diff", "se", "shrunken", "shrunken_low", "shrunken_high", "mean_effect", "tau"]
    found[sized] /= scale
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


@pytest.mark.parametrize(
    ("of_arrow", "call"),
    [
        *itertools.product(
            ["table", "reader", "dataset"], ["srm", "health", "splits", "join", "compare"]
        ),
        ("file", "srm"),  # of files, others read only what they need
        ("file", "compare"),
    ],
)
def test_a_name_of_two_columns_of_arrow_is_named(of_arrow, call, tmp_path):
    columns = [range(8), ["A", "B"] * 4, [1, 2] * 4, [0.5] * 8, [1.5] * 8]
    table = pa.table([pa.array(one) for one in columns], ["user_id", "variant", "x", "x", "m"])
    data = {
        "table": lambda: table,
        "reader": table.to_reader,
        "dataset": lambda: dataset.InMemoryDataset(table),
        "file": lambda: pq.write_table(table, tmp_path / "f.parquet") or tmp_path / "f.parquet",
    }[of_arrow]()
    groups = table.select([0, 1]).to_pandas()
    calls = {
        "srm": lambda: rd.experiments.find_srm(data, ["x"], expected={"A": 1, "B": 1}),
        "health": lambda: rd.experiments.experiment_health(groups, data),
        "splits": lambda: rd.experiments.aa_test(data, "m"),
        "join": lambda: rd.join_experiment(data, groups),
        "compare": lambda: rd.compare_variants(data, ["m", "x"], control="A"),
    }
    with pytest.raises(rd.ColumnError, match=r"has several columns of one name \('x'\); expected"):
        calls[call]()
