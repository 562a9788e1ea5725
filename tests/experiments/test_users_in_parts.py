"""Users in files and in frames of Dask are added up part by part, and their table is that of the
rows in memory."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import dataset

import recdf as rd
from recdf.experiments.compare import variants
from recdf.inputs import data_files
from recdf.inputs.machine import USUAL_SIZES, sized, sizes
from recdf.judge import in_parts

METRICS = {"revenue": "revenue", "hit": "hit", "ctr": ("clicks", "views"), "clicks": "clicks"}
PAST = {"revenue": "before", "ctr": [("clicks_before", "views_before"), "before"]}
TWO = {"revenue": ["before", "views_before"], "clicks": ["before", "clicks_before"]}
N, MANY = 1600, 4000


def some_users(shares=(0.5, 0.5), n=N):
    rng = np.random.default_rng(4)
    users = pd.DataFrame({"user_id": np.arange(n), "segment": rng.choice(["x", "y"], n)})
    users["variant"] = rng.choice(["A", "B", "C"][: len(shares)], n, p=shares)
    users["revenue"], users["hit"] = rng.gamma(2, 3, n), rng.binomial(1, 0.2, n)
    users["week"] = np.arange(n) * 3 // n
    users["before"] = users["revenue"] / 3 + rng.normal(0, 1, n)
    users["weight"], users["constant"] = rng.integers(1, 5, n) / 4, 1.1
    for name in ("", "_before"):
        users[f"views{name}"] = rng.poisson(3, n)
        users[f"clicks{name}"] = rng.binomial(users[f"views{name}"], 0.3).astype(float)
    return users


@pytest.fixture
def parts(monkeypatch):
    """Small parts, of which few units are kept."""
    monkeypatch.setattr(in_parts, "_WAITING", 120)
    with sized(replace(sizes(), summed_rows=100, summed_batch=512)):
        yield


@pytest.fixture
def only_sums(monkeypatch):
    read_metrics = variants.read_metrics

    def only_expected(*given, **options):
        assert sizes() is USUAL_SIZES, "rows were compared"
        return read_metrics(*given, **options)

    monkeypatch.setattr(variants, "read_metrics", only_expected)


@pytest.fixture
def no_rows(monkeypatch, only_sums):
    """Labels and times may come into memory, values of metrics may not."""
    values = {"revenue", "hit", "clicks", "views", "before"}
    needed_frame = data_files.needed_frame

    def only_labels(*given):
        found = needed_frame(*given)
        in_memory = isinstance(given[0], pd.DataFrame)
        assert in_memory or not values & {*found.columns}, "rows were brought into memory"
        return found

    monkeypatch.setattr(variants, "needed_frame", only_labels)
    monkeypatch.setattr(data_files, "needed_frame", only_labels)


def same(data, users, metrics=METRICS, also=(), **given):
    """The table of the data in parts, and of what is given beside it, is that of the frame as
    rows."""
    given = {"control": "A", **given}
    with sized(USUAL_SIZES):
        expected = rd.compare_variants(users, metrics, **given, details=True)
    for one in (*also, data):
        found = rd.compare_variants(one, metrics, **given, details=True)
        frames = map(pd.DataFrame, (found, expected))
        pd.testing.assert_frame_equal(*frames, rtol=1e-9, atol=1e-12, check_dtype=False)
    return found


def written(users, folder, rows=1500):
    users.to_parquet(folder / "users.parquet", index=False, row_group_size=rows)
    return folder / "users.parquet"


GIVEN = {
    "plain": {},
    "one-sided, logarithm": {"alternative": "greater", "relative": "log", "confidence": 0.9},
    "planned shares": {"expected": {"A": 1, "B": 1}},
    "covariates": {"covariates": PAST},
    "a covariate over itself": {
        "covariates": {"ctr": [("views_before", "views_before"), "before"]}
    },
    "a metric as its own covariate": {"covariates": {"revenue": "revenue", "hit": "revenue"}},
    "segments": {"by": "segment"},
    "regressions": {"covariates": TWO, "by": "segment"},
    "shares": {"test": {"hit": "proportion"}},
    "looks": {"sequential_n": 2 * N},
    "weights": {"weight_col": "weight"},
    "weights of 0": {"weight_col": "views"},
    "weights and a constant": {"weight_col": "weight", "covariates": ["before", "constant"]},
    "weights and covariates": {"weight_col": "weight", "covariates": PAST, "by": "segment"},
    "strata": {"strata": "week"},
    "covariates in strata": {"strata": "week", "covariates": PAST},
    "regressions in strata": {"strata": "week", "covariates": TWO, "by": "segment"},
    "weights in strata": {"strata": "week", "weight_col": "weight", "covariates": ["before"]},
    "strata in segments": {"strata": ["week"], "by": "segment", "correction": "bh"},
    "shares by stratum": {
        "strata": "week",
        "expected": {0: {"A": 1, "B": 1}, 1: {"A": 1, "B": 1}, 2: {"A": 5, "B": 4}},
    },
}


@pytest.mark.few(1)
@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_files_are_compared_as_the_frame(given, parts, no_rows, tmp_path):
    users = some_users(n=MANY if {"covariates", "weight_col"} & {*given} else N)
    also = () if "weight_col" in given else (users,)  # those of a frame in memory are rows
    found = same(written(users, tmp_path), users, also=also, **given)
    assert found["diff_without_top"].notna().all()


@pytest.mark.long
@pytest.mark.parametrize(
    ("shares", "more"),
    [
        ((0.6, 0.3, 0.1), {}),
        ((0.6, 0.3, 0.1), {"control": None}),
        ((0.8, 0.2), {"covariates": PAST}),
        ((0.8, 0.2), {"strata": "week"}),
    ],
)
def test_arms_of_different_sizes_need_third_moments(shares, more, parts, no_rows, tmp_path):
    users = some_users(shares)
    same(written(users, tmp_path), users, **more)


@pytest.mark.long
def test_several_files_without_ids(parts, no_rows, tmp_path):
    users = some_users().drop(columns="user_id")
    for i in range(3):
        users.iloc[i::3].to_parquet(tmp_path / f"{i}.parquet", index=False)
    same(tmp_path, pd.concat([users.iloc[i::3] for i in range(3)]))


@pytest.mark.long
def test_a_dataset_is_read_as_its_files(parts, only_sums, tmp_path):
    users = some_users()
    data = dataset.dataset(written(users, tmp_path))
    same(data, users)
    same(data.filter(dataset.field("user_id") < 900), users[:900])


@pytest.mark.long
def test_tables_of_arrow_are_read_as_frames(parts, only_sums):
    users = some_users()
    same(pa.table({name: pa.array(users[name]) for name in users}), users)


def relation(users):
    return pytest.importorskip("duckdb").from_arrow(pa.Table.from_pandas(users))


def lazy_frame(users):
    return pytest.importorskip("polars").from_pandas(users).lazy()


@pytest.mark.few(1)
@pytest.mark.parametrize("lazy", [relation, lazy_frame])
def test_lazy_rows_that_take_much_memory_are_read_in_batches(lazy, parts, only_sums, monkeypatch):
    users = some_users(n=MANY)
    same(lazy(users), users, covariates=PAST)
    tables = []
    as_frame = data_files.frame_of_table
    monkeypatch.setattr(data_files, "memory_bytes", lambda limit: 1000)
    monkeypatch.setattr(
        data_files, "frame_of_table", lambda table: tables.append(len(table)) or as_frame(table)
    )
    shuffled = users.sample(frac=1, random_state=1)
    same(lazy(users), users, by="segment")
    same(lazy(shuffled), users, covariates=PAST)
    assert max(tables) < 100, "rows were brought into memory"


@pytest.mark.long
def test_codes_of_categories_have_room_for_their_products(parts, only_sums):
    users = some_users(n=MANY)
    for name, step in (("country", 1), ("device", 12)):
        users[name] = pd.Categorical.from_codes(users["user_id"] // step % 12, list("abcdefghijkl"))
    same(users, users, "revenue", by=["country", "device"])


def test_a_query_that_has_other_rows_each_time_is_read_once(parts, monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    users = some_users()
    monkeypatch.setattr(data_files, "memory_bytes", lambda limit: 1000)
    with duckdb.connect() as connection:
        connection.register("users", pa.Table.from_pandas(users))
        some = connection.sql("SELECT * FROM users WHERE random() < 0.5")
        found = rd.compare_variants(some, "revenue", control="A", details=True)
        assert 0 < found["n_control"].iloc[0] < N
        twice = connection.sql(f"SELECT * FROM users UNION ALL SELECT * FROM users LIMIT {N + 1}")
        with pytest.raises(rd.DuplicateError, match="1 rows too many"):
            rd.compare_variants(twice, "revenue", control="A")


def test_ids_in_any_order_and_as_text(parts, no_rows, tmp_path):
    users = some_users().sample(frac=1, random_state=1)
    same(written(users, tmp_path), users, "revenue")
    users["user_id"] = "u" + users["user_id"].astype(str)
    same(written(users, tmp_path), users, "revenue")


def test_a_few_users_who_decide_are_named(parts, no_rows, tmp_path):
    users = some_users()
    users["revenue"] = np.random.default_rng(1).normal(10, 1, N)
    users.loc[users.index[users["variant"] == "B"][:6], "revenue"] = 400.0
    found = same(written(users, tmp_path), users, "revenue")
    assert "few_units" in found["remarks"].iloc[0]


@pytest.mark.long
def test_stores_that_were_assigned_whole_are_seen_in_a_frame(resized):
    users = some_users(n=12_800)
    users["store"] = users["user_id"] // 20
    users["variant"] = np.where(users["store"] % 2 == 0, "A", "B")
    users["revenue"] += users["store"] % 7
    expected = rd.compare_variants(users, "revenue", control="A", details=True)
    resized(summed_rows=100)
    found = rd.compare_variants(users, "revenue", control="A", details=True)
    assert found["unbalanced"].tolist() == ["store"]
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize("given", [{}, {"cap": {"revenue": 0.99}}, {"user_col": "user_id"}])
def test_stores_that_were_assigned_whole_are_seen_in_a_file(given, parts, tmp_path):
    users = some_users(n=12_800)
    users["store"] = users["user_id"] // 20
    users["variant"] = np.where(users["store"] % 2 == 0, "A", "B")
    users["revenue"] += users["store"] % 7
    users["page"] = "p" + users["views"].astype(str)
    with sized(replace(sizes(), summed_batch=2**13)):  # a quarter is looked at first
        found = same(written(users, tmp_path), users, "revenue", **given)
    assert found["unbalanced"].tolist() == ["" if "user_col" in given else "store"]


# What sums do not tell: the rows are read, and the table and the errors are theirs.
ROWS = {
    "clusters in both arms": {"cluster": "segment"},
    "caps": {"cap": {"revenue": 0.99}},
    "shuffled": {"test": "permutation", "n_resamples": 50},
}


CLUSTERS = {
    "plain": {},
    "covariates": {"covariates": PAST},
    "segments": {"by": "segment", "expected": {"A": 1, "B": 1}},
    "a covariate twice": {"covariates": ["before", "before"]},
    "several columns": {"cluster": ["store", "segment"], "user_col": []},
    "few": {"cluster": "region"},
    "looks": {"sequential_n": 400, "alternative": "less"},
    "strata": {"strata": "week", "time_col": "week", "by": "segment"},
    "strata that may be moved": {"strata": "visits"},
    "weights": {"weight_col": "weight", "covariates": PAST},
    "weights of 0 in strata": {"weight_col": "views", "metrics": "revenue", "strata": "week"},
}


@pytest.mark.long
@pytest.mark.parametrize("given", CLUSTERS.values(), ids=CLUSTERS)
def test_clusters_are_added_up_where_they_are(given, parts, no_rows, tmp_path):
    users = some_users(n=MANY)
    arm = (users["variant"] == "B").astype(int)
    users["store"] = users["user_id"] % 97 * 2 + arm
    users["region"] = "r" + (users["user_id"] % 15 * 2 + arm).astype(str)
    users["visits"] = np.where(users["revenue"] + 2 * arm > 6, "many", "few")
    users = users.sample(frac=1, random_state=2)
    found = same(written(users, tmp_path), users, **{"cluster": "store", **given})
    assert found["remarks"].str.contains("strata_moved").any() == (given.get("strata") == "visits")


@pytest.mark.long
@pytest.mark.parametrize("given", [{}, {"strata": "week"}, {"weight_col": "weight"}])
def test_nulls_of_clusters_are_told_from_values(given, parts, no_rows, tmp_path):
    users = with_gaps(with_nulls(some_users(n=MANY)))
    users["store"] = users["user_id"] % 97 * 2 + (users["variant"] == "B")
    more = users["revenue"].mask((users["variant"] == "B") & (users["user_id"] % 5 == 0))
    given = {"cluster": "store", "nan": "drop", "covariates": PAST, **given}
    found = same(written(users, tmp_path), users, **given)
    assert (found["n_dropped"] > 0).sum() == 3
    assert (found["n_covariate_missing"] > 0).any()
    found = same(written(users.assign(revenue=more), tmp_path), users.assign(revenue=more), **given)
    assert found["remarks"].str.contains("unequal_missing").tolist() == [True, False, False, False]


@pytest.mark.long
def test_sessions_of_a_user_are_added_up_where_they_are(parts, no_rows, tmp_path):
    users = some_users(n=MANY)
    users["user_id"] //= 5
    users["variant"] = np.where(users["user_id"] % 2 == 0, "A", "B")
    users["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(users["user_id"] % 7, "D")
    same(written(users, tmp_path), users, cluster="user_id")


@pytest.mark.long
def test_a_cluster_in_both_arms_is_told_by_its_rows(parts, tmp_path):
    users = some_users()
    users["user_id"] //= 5
    users["variant"] = np.where(users["user_id"] % 2 == 0, "A", "B")
    users.loc[17, "variant"] = "B" if users["variant"][17] == "A" else "A"
    messages = []
    for data in (users, written(users, tmp_path)):
        with pytest.raises(rd.DataError) as error:
            rd.compare_variants(data, "revenue", control="A", cluster="user_id")
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_types_of_labels_stay_as_they_are(parts, no_rows, tmp_path):
    users = some_users(n=MANY)
    users["variant"] = (users["variant"] == "B").astype("Int64")
    users["store"] = users["user_id"] % 97 * 2 + users["variant"]
    path = written(users, tmp_path)
    for given in ({}, {"cluster": "store"}):
        found = rd.compare_variants(path, "revenue", control=0, **given)
        assert found["treatment"].dtype == "Int64"


@pytest.mark.parametrize("given", [{"by": 7}, {"by": 7, "weight_col": "weight"}, {"cluster": 8}])
def test_numbers_as_names_of_columns(given, parts):
    """Arrow takes them for places."""
    dask = pytest.importorskip("dask.dataframe")
    users = some_users()
    users[7], users[8] = users["week"], users["user_id"] // 9 * 2 + (users["variant"] == "B")
    with sized(USUAL_SIZES):
        expected = pd.DataFrame(rd.compare_variants(users, "revenue", control="A", **given))
    lazy = dask.from_pandas(users, npartitions=2, sort=False)
    found = pd.DataFrame(rd.compare_variants(lazy, "revenue", control="A", **given))
    pd.testing.assert_frame_equal(found, expected, rtol=1e-9, check_dtype=False)


def test_a_shift_that_a_tiny_covariate_uncovers(parts, no_rows, tmp_path):
    users = some_users(n=MANY)
    noise = np.random.default_rng(6).normal(0, 3, MANY)
    users["before"] = noise + users["views_before"] / 10 + 0.1 * (users["variant"] == "B")
    users["tiny"] = noise * 1e-9
    past = {"revenue": "before", "clicks": "tiny", "hit": "views_before"}
    found = same(written(users, tmp_path), users, covariates=past)
    assert (found["balance_p"].dropna() < 1e-9).all()  # beside both, the shift is all that is left


def test_strata_may_have_a_number_as_a_name():
    users = some_users().rename(columns={"week": 7})
    found = rd.compare_variants(users, "revenue", control="A", strata=7)
    assert found["n_control"].item() == (users["variant"] == "A").sum()


ODD_ROWS = {
    "a user without an id": ({"user_id": None}, {"cluster": "store"}, "null"),
    "an infinite value of weight 0": ({"weight": 0, "revenue": np.inf}, {}, "infinite"),
    "a negative denominator of weight 0": ({"weight": 0, "views": -1}, {}, "negative"),
}


@pytest.mark.parametrize(("cells", "given", "words"), ODD_ROWS.values(), ids=ODD_ROWS)
def test_what_is_refused_in_rows_is_refused_in_sums(cells, given, words, parts, tmp_path):
    users = some_users().assign(store=lambda rows: rows["variant"] + rows["week"].astype(str))
    users["user_id"] = "u" + users["user_id"].astype(str)
    for name, cell in cells.items():
        users[name] = users[name].astype(object if cell is None else float)
        users.loc[700, name] = cell
    given = given or {"weight_col": "weight"}
    metrics = {"revenue": "revenue", "ctr": ("clicks", "views")}
    for data in (users, written(users, tmp_path)):
        with pytest.raises(rd.RecdfError, match=words):
            rd.compare_variants(data, metrics, control="A", **given)


@pytest.mark.long
def test_digits_of_clusters_are_asked_in_each_segment(parts, tmp_path):
    users = some_users(n=MANY).assign(store=lambda rows: rows["variant"] + rows["segment"])
    users["store"] += (users["user_id"] % 31).astype(str)
    users["revenue"] = users["revenue"] / 100 + np.where(users["segment"] == "x", 1e9, 0)
    same(written(users, tmp_path), users, "revenue", cluster="store", by="segment")
    users["revenue_sum"] = users["store"]  # the name of a sum
    same(written(users, tmp_path), users, "revenue", cluster="revenue_sum")


@pytest.mark.long
def test_nulls_beside_weights(parts, no_rows, tmp_path):
    users = some_users(n=MANY)
    rng = np.random.default_rng(8)
    for name in ("revenue", "clicks", "views"):
        users[name] = users[name].where(rng.random(MANY) < 0.9)
    users["weight"] = users["weight"].where(rng.random(MANY) < 0.8, 0.0)
    found = same(written(users, tmp_path), users, weight_col="weight", nan="drop")
    assert (found["n_dropped"] > 0.2 * MANY).all()


BAD_WEIGHTS = {"null": np.nan, "negative": -1.0, "infinite": np.inf}


@pytest.mark.parametrize("bad", BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_a_weight_that_is_none_is_refused(bad, parts, tmp_path):
    users = some_users()
    users.loc[900, ["weight", "revenue"]] = bad, np.nan
    path = written(users, tmp_path)
    for data in (users, path):
        with pytest.raises(rd.DataError, match="weight"):
            rd.compare_variants(data, "revenue", control="A", weight_col="weight", nan="drop")


@pytest.mark.long
@pytest.mark.parametrize("given", ROWS.values(), ids=ROWS)
def test_what_needs_the_rows_has_them(given, parts, tmp_path):
    users = some_users(n=600)
    same(written(users, tmp_path), users, "revenue", **given)


def test_a_part_that_fails_does_not_stop_the_others(parts, tmp_path):
    users = some_users()
    path = written(users, tmp_path)
    found = data_files.users_in_parts(path, lambda head: list(head.columns), "variant")[1]

    def fail(batches):
        next(batches)
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            found.run(fail, ["revenue"])
    rows = found.run(lambda batches: sum(map(len, batches)), ["revenue"])
    assert len(rows) > 1
    assert sum(rows) == len(users)


@pytest.mark.long
def test_dates_come_into_memory_without_the_metrics(parts, no_rows, tmp_path):
    users = some_users(n=MANY)
    day = pd.Timestamp("2026-01-01") + pd.to_timedelta(users["user_id"] // 150, "D")
    steady = users.assign(day=day, before_day=day - pd.Timedelta("7D"))
    same(written(steady, tmp_path), steady)
    timed = {"time_col": "day", "covariate_time_col": "before_day", "covariates": "before"}
    found = same(written(steady, tmp_path), steady, **timed)
    assert not found["remarks"].str.contains("covariate_not_timed").any()
    ramp = steady[(steady["variant"] == "A") | (steady["user_id"] % 10 < steady["week"] * 4 + 1)]
    found = same(written(ramp, tmp_path), ramp)
    assert (found["withheld"] == "shares_change").all()
    within = same(written(ramp, tmp_path), ramp, strata="week", time_col="week")
    assert not within["remarks"].str.contains("strata_differ").any()


@pytest.mark.long
def test_strata_that_the_treatment_moves_are_named(parts, no_rows, tmp_path):
    users, rng = some_users(), np.random.default_rng(0)
    users["level"] = rng.integers(0, 3, N) + (users["variant"] == "B") * rng.integers(0, 2, N)
    users["level"] = users["level"].clip(upper=2)
    users["revenue"] += users["level"]
    found = same(written(users, tmp_path), users, "revenue", strata="level")
    assert found["remarks"].str.contains("strata_moved").all()


@pytest.mark.long
def test_a_few_users_who_decide_in_strata_are_named(parts, no_rows, tmp_path):
    users = some_users()
    users["revenue"] = np.random.default_rng(1).normal(10, 1, N) + users["week"]
    users.loc[users.index[users["variant"] == "B"][:6], "revenue"] = 400.0
    found = same(written(users, tmp_path), users, "revenue", strata="week")
    assert "few_units" in found["remarks"].iloc[0]


@pytest.mark.long
def test_what_a_health_check_found_is_asked(parts, no_rows, tmp_path):
    users = some_users()
    assigned = users[["user_id", "variant"]]
    health = rd.experiments.experiment_health(users, assigned, expected={"A": 1, "B": 1})
    same(written(users, tmp_path), users, health=health)
    others = users.assign(user_id=users["user_id"] + 10**6)
    for data in (written(others, tmp_path), others):
        with pytest.raises(rd.OptionError, match="health was made of other users"):
            rd.compare_variants(data, METRICS, control="A", health=health)


def with_nulls(users):
    """Revenue without a value, clicks of users without views, and views that nobody knows."""
    some = users["user_id"]
    clicks = users["clicks"].where((users["views"] > 0) & (some % 11 > 0))
    views = users["views"].where(some % 29 > 0)
    return users.assign(revenue=users["revenue"].where(some % 9 > 0), clicks=clicks, views=views)


@pytest.mark.long
@pytest.mark.parametrize("given", [{}, {"by": "segment", "covariates": {"revenue": "before"}}])
def test_nulls_are_left_out_of_their_metrics(given, parts, no_rows, tmp_path):
    users = with_nulls(some_users((0.7, 0.3)))
    found = same(written(users, tmp_path), users, nan="drop", **given)
    assert (found["n_dropped"] > 0).tolist() == [m != "hit" for m in found["metric"]]


@pytest.mark.long
def test_far_units_of_segments_are_told_by_a_second_pass(parts, no_rows, tmp_path):
    users = some_users()
    users["revenue"] = users["user_id"] * 7 % N / N + (users["segment"] == "x")
    same(written(users, tmp_path), users, by="segment")
    same(written(users, tmp_path), users, "revenue", strata="segment")


@pytest.mark.long
def test_more_nulls_in_one_arm_are_named(parts, no_rows, tmp_path):
    users = some_users()
    users["revenue"] = users["revenue"].where(
        (users["variant"] == "A") | (users["user_id"] % 5 > 0)
    )
    found = same(written(users, tmp_path), users, nan="drop")
    assert found["remarks"].str.contains("unequal_missing").tolist() == [True, False, False, False]


@pytest.mark.parametrize("arms", ["A", "B", "BC"])
def test_an_arm_whose_users_all_lack_the_metric_is_compared_in_rows(arms, parts):
    users = some_users((0.4, 0.3, 0.3))
    users.loc[users["variant"].isin([*arms]), "revenue"] = np.nan
    found = same(users, users, ["revenue", "hit"], nan="drop")
    assert found["diff"].isna().tolist() == [True, "A" in arms or "C" in arms, False, False]


@pytest.mark.long
def test_nulls_are_left_out_in_strata_that_may_be_moved(parts, no_rows, tmp_path):
    users = with_nulls(some_users(n=MANY))
    for more in (0, 2):
        worth = users["revenue"].fillna(6) + more * (users["variant"] == "B") > 6
        users["visits"] = np.where(worth, "many", "few")
        for by in (None, "segment"):
            found = same(written(users, tmp_path), users, nan="drop", strata="visits", by=by)
            assert found["remarks"].str.contains("strata_moved")[0] == (more > 0)


@pytest.mark.long
def test_zeros_and_ones_beside_an_arm_with_other_values(parts, tmp_path):
    users = some_users((0.4, 0.3, 0.3))
    users["hit"] += users["hit"] * (users["variant"] == "C")
    same(written(users, tmp_path), users, "hit", strata="week")


@pytest.mark.long
def test_strata_of_which_one_has_arms_of_nearly_one_size(parts, no_rows, tmp_path):
    users = some_users((0.55, 0.45), MANY)
    even = np.where(users["user_id"] % 2 == 0, "A", "B")
    users["variant"] = np.where(users["week"] > 0, users["variant"], even)
    users.loc[5, "variant"] = "A"
    users["weight"] = np.random.default_rng(2).exponential(1, MANY)
    same(written(users, tmp_path), users, "revenue", weight_col="weight", strata="week")


@pytest.mark.long
def test_nulls_that_are_refused_are_told_by_the_rows(parts, tmp_path):
    users = with_nulls(some_users(n=600))
    with pytest.raises(rd.DataError, match="'revenue' is null in 67 of 600 rows"):
        rd.compare_variants(written(users, tmp_path), "revenue", control="A", details=True)


def with_gaps(users, **more):
    """Users without a past, some of whom lack but a part of it."""
    new = users["user_id"] * 7 % 10 < 2
    gaps = {name: users[name].mask(new) for name in ("before", "views_before", "clicks_before")}
    gaps["clicks_before"] = gaps["clicks_before"].mask(users["user_id"] % 13 == 0)
    return users.assign(**gaps | more)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "given",
    [
        {"covariates": PAST},
        {"covariates": TWO, "by": "segment"},
        {"covariates": TWO, "strata": "week"},
        {"covariates": ["before"], "weight_col": "weight"},
    ],
)
def test_gaps_of_covariates_are_told_from_values(given, parts, no_rows, tmp_path):
    users = with_gaps(some_users((0.7, 0.3), MANY))
    found = same(written(users, tmp_path), users, **given)
    assert (found["n_covariate_missing"] > 0).any()


@pytest.mark.long
@pytest.mark.parametrize("given", [{}, {"strata": "week"}])
def test_a_covariate_with_more_gaps_in_one_arm_is_left_out(given, parts, no_rows, tmp_path):
    users = some_users((0.7, 0.3), MANY)
    few = users["before"].mask((users["variant"] == "B") & (users["user_id"] % 9 == 0))
    users = with_gaps(users, before=few)
    found = same(written(users, tmp_path), users, covariates=PAST | {"hit": "before"}, **given)
    assert found["remarks"].str.contains("unequal_covariate_missing").tolist() == [1, 1, 1, 0]


@pytest.mark.long
def test_nulls_are_left_out_in_strata_of_time(parts, no_rows, tmp_path):
    users = with_nulls(some_users((0.7, 0.3), MANY))
    users["revenue"] = users["revenue"].mask((users["variant"] == "B") & (users["week"] == 1))
    given = {"strata": "week", "time_col": "week", "nan": "drop"}
    users.loc[users["user_id"] % 3 == 0, "revenue"] = 1.5
    found = same(written(users, tmp_path), users, **given)
    assert found["remarks"].str.contains("unequal_missing").tolist() == [True, False, False, False]


ODD = {
    "gaps in one segment": {"covariates": {"revenue": "gaps"}, "by": "segment"},
    "gaps in a third variant": {"covariates": {"revenue": "others"}},
    "the metric itself in strata": {"covariates": {"hit": ["hit", "before"]}, "strata": "week"},
    "a constant beside weights": {"covariates": ["constant", "before"], "weight_col": "weight"},
    "zeros and ones beside a covariate": {"covariates": {"hit": "constant_but_few"}},
    "a covariate that nobody has": {"covariates": {"ctr": [("nothing", "views_before"), "before"]}},
    "a label as covariate": {"covariates": {"revenue": "week"}, "strata": "week"},
    "a label as metric": {"metrics": {"week": "week", "hit": "hit"}, "by": "week"},
}


@pytest.mark.long
@pytest.mark.parametrize("given", ODD.values(), ids=ODD)
def test_odd_covariates_are_those_of_the_rows(given, parts, tmp_path):
    users = some_users((0.4, 0.35, 0.25), MANY)
    few = users["user_id"] % 7 == 0
    users["gaps"] = users["before"].mask(few & (users["segment"] == "x"))
    users["others"] = users["before"].mask(few & (users["variant"] == "C"))
    users["constant_but_few"] = users["user_id"] * 7 % 11 / 100
    users["nothing"] = np.nan
    same(written(users, tmp_path), users, **given)


@pytest.mark.long
def test_a_user_who_has_neither_part_of_a_ratio_is_no_empty_one(parts, tmp_path):
    users = some_users()
    users.loc[5, ["clicks", "views"]] = np.nan
    for data in (users, written(users, tmp_path)):
        with pytest.raises(rd.DataError, match="'ctr' is null in 1 of"):
            rd.compare_variants(data, {"ctr": ("clicks", "views")}, control="A")


def bad(users, **columns):
    row = users.iloc[[5]].assign(**columns)
    return pd.concat([users, row], ignore_index=True)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("users", "error", "words"),
    [
        (lambda u: bad(u), rd.DuplicateError, r"several rows per \['user_id'\]: 1 rows too many"),
        (
            lambda u: bad(u, variant="B" if u["variant"][5] == "A" else "A"),
            rd.DataError,
            "1 users of data are in more than one variant",
        ),
        (lambda u: bad(u, user_id=-1, clicks=-1.0, views=-1), rd.DataError, "negative in 1 rows"),
        (lambda u: bad(u, user_id=-1, revenue=np.inf), rd.DataError, "infinite in 1 of"),
        (lambda u: bad(u, user_id=-1, variant=None), rd.NullKeyError, "null in 1 of"),
        (lambda u: u.drop(columns="hit"), rd.ColumnError, "no column 'hit'"),
        (lambda u: u.assign(hit="a"), rd.DataError, "expected numbers"),
        (lambda u: u.assign(variant="A"), rd.OptionError, "has one variant"),
    ],
)
def test_wrong_users_are_told_as_those_of_a_frame(users, error, words, parts, tmp_path):
    path = written(users(some_users(n=600)), tmp_path)
    with pytest.raises(error, match=words):
        rd.compare_variants(path, METRICS, control="A", details=True)


@pytest.mark.long
@pytest.mark.parametrize("given", [{}, {"by": "segment"}])
def test_frames_of_dask_are_compared_as_those_of_pandas(given, parts, no_rows):
    frames = pytest.importorskip("dask.dataframe")
    users = some_users()
    data = frames.from_pandas(users, npartitions=3)
    same(data, users, **given)
    same(frames.concat([data[data["revenue"] < 0], data]), users, **given)  # some parts are empty


def in_stores_and_weeks(first_null):
    """Users of 60 stores, which were assigned whole in a ramp-up; the first row may have nulls."""
    rng = np.random.default_rng(7)
    store = rng.integers(0, 60, N)
    later = np.arange(N) >= N // 2
    known = np.arange(N) >= first_null
    users = pd.DataFrame({"user_id": np.arange(N), "revenue": rng.normal(size=60)[store]})
    users["revenue"] += rng.normal(0, 1, N)
    stores = users.assign(variant=np.where(store % 2, "B", "A"), store=store)
    day = np.where(later, "2026-11-10", "2026-11-03")
    ramp = users.assign(variant=np.where(rng.random(N) < 0.05 + 0.5 * later, "B", "A"), day=day)
    return {
        "repeated_units": stores.assign(store=stores["store"].where(known)),
        "shares_change": ramp.assign(day=ramp["day"].where(known, None)),
    }


@pytest.mark.few(2)
@pytest.mark.parametrize("code", ["repeated_units", "shares_change"])
@pytest.mark.parametrize("first_null", [0, 1])
def test_a_null_in_the_first_row_hides_no_store_and_no_date(code, first_null, tmp_path):
    """Files keep ids with a null as floats, and only the first row tells which columns are read."""
    users = in_stores_and_weeks(first_null)[code]
    path = written(users, tmp_path)
    for size in (sizes(), replace(sizes(), summed_rows=100)):
        with sized(size):
            for data in (users, path):
                row = rd.compare_variants(data, "revenue", control="A", user_col=[]).iloc[0]
                assert row["withheld"] == code
