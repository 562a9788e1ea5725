"""ope_estimate against exact cases, plain loops, and what must not change a number."""

import functools
import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from off_policy.logs import bandit_log, slate_log
from oracles.off_policy import logging_value, standard_error, units_of, value
from quick import few

import recdf as rd
from recdf.inputs.machine import Sizes, sized

Q = {"q_logged": "q_logged", "q_target": "q_target"}
ALL = ["ips", "snips", "dm", "dr", "sndr"]
CLIPPED = ["ips", "snips", "dr", "sndr", "switch_dr", "dros"]

EXACT = pd.DataFrame(
    {
        "item_id": ["a0", "a0", "a1", "a2"],
        "reward": [1, 1, 3, 10],
        "propensity": [0.5, 0.5, 0.25, 0.25],
        "target_propensity": [0.25, 0.25, 0.25, 0.5],
    }
)


def one(log, estimator="ips", **options):
    table = rd.ope.estimate(log, estimators=estimator, **{"cluster": None, **options})
    assert len(table) == 1
    return table.iloc[0]


# -- exact cases


def test_the_exact_case():
    # The log holds every action in the share in which it was drawn, so the estimate is the
    # expectation: 1/4 + 3/4 + 5.
    table = rd.ope.estimate(EXACT, cluster=None)
    assert table["value"].tolist() == [6.0, 6.0]
    assert table["logging_value"].tolist() == [3.75, 3.75]
    assert table["lift"].tolist() == [2.25, 2.25]
    assert table["rel_lift"].tolist() == [0.6, 0.6]
    # Weights 1/2, 1/2, 1, 2.
    assert table["weight_mean"].tolist() == [1.0, 1.0]
    assert table["ess"].tolist() == pytest.approx([16 / 5.5] * 2, abs=1e-12)
    assert table["ess_share"].tolist() == pytest.approx([4 / 5.5] * 2, abs=1e-12)
    # w·r is 1/2, 1/2, 3, 20.
    assert table["ess_reward"].tolist() == pytest.approx([24**2 / 409.5] * 2, abs=1e-12)
    assert table["max_weight_share"].tolist() == [0.5, 0.5]
    counts = table[["n_rows", "n_units", "n_clusters", "n_matched", "n_clipped"]]
    assert counts.to_numpy().tolist() == [[4, 4, 4, 4, 0]] * 2
    # ψ = w·r − 6: −5.5, −5.5, −3, 14 for ips; w·(r − 6): −2.5, −2.5, −3, 8 for snips.
    squares = [5.5**2 * 2 + 9 + 196, 2.5**2 * 2 + 9 + 64]
    assert table["se"].tolist() == pytest.approx(
        [math.sqrt(4 / 3 * s) / 4 for s in squares], abs=1e-12
    )
    half = 1.959963984540054 * table["se"]
    assert table["ci_low"].tolist() == pytest.approx((6 - half).tolist(), abs=1e-12)
    assert table["ci_high"].tolist() == pytest.approx((6 + half).tolist(), abs=1e-12)


def test_the_target_is_the_logging_policy():
    log = bandit_log()
    log = log.assign(target_propensity=log["propensity"])
    table = rd.ope.estimate(log)
    assert table["lift"].tolist() == [0, 0]
    assert table["lift_se"].tolist() == [0, 0]
    assert table[["lift_ci_low", "lift_ci_high", "rel_lift"]].to_numpy().tolist() == [[0, 0, 0]] * 2
    assert table["value"].tolist() == pytest.approx([log["reward"].mean()] * 2, abs=1e-12)
    assert (table["weight_mean"] == 1).all()


def test_without_a_model_dr_is_ips():
    log = bandit_log().assign(q_logged=0.0, q_target=0.0)
    plain, model = (
        rd.ope.estimate(log, estimators=names, **Q) for names in (["ips", "snips"], ["dr", "sndr"])
    )
    pd.testing.assert_frame_equal(plain.drop(columns="estimator"), model.drop(columns="estimator"))


def test_switch_without_any_weight_is_dm_and_with_all_is_dr():
    log = bandit_log()
    assert one(log, "switch_dr", clip=1e-12, **Q)["value"] == pytest.approx(
        one(log, "dm", **Q)["value"], abs=1e-12
    )
    assert one(log, "switch_dr", clip=1e9, **Q)["value"] == pytest.approx(
        one(log, "dr", **Q)["value"], abs=1e-12
    )
    assert one(log, "dros", clip=1e13, **Q)["value"] == pytest.approx(
        one(log, "dr", **Q)["value"], rel=1e-10
    )


def test_a_clip_above_all_weights_changes_nothing():
    log = bandit_log()
    for name in ("ips", "snips", "dr", "sndr"):
        clipped = one(log, name, clip=1e6, **Q).drop(["clip"])
        assert clipped.equals(one(log, name, **Q).drop(["clip"]))


def test_what_clipping_takes_away():
    table = rd.ope.estimate(EXACT, estimators="ips", clip=[0.75, None], cluster=None)
    # Weights 1/2, 1/2, 1, 2 become 1/2, 1/2, 3/4, 3/4.
    assert table["value"].tolist() == pytest.approx([(0.5 + 0.5 + 2.25 + 7.5) / 4, 6.0], abs=1e-12)
    assert table["n_clipped"].tolist() == [2, 0]
    assert table["clipped_mass"].tolist() == pytest.approx([(0.25 + 1.25) / 4, 0.0], abs=1e-12)
    assert table["weight_max"].tolist() == [2.0, 2.0]
    assert "clip_bias" in table["flags"][0]
    # The bias is at most the largest reward times the clipped mass.
    assert abs(table["value"][0] - 6) <= 10 * table["clipped_mass"][0]


# -- against plain loops


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", few(range(3), 1))
@pytest.mark.parametrize("kept", [None, "kept"])
@pytest.mark.parametrize("cluster", few([None, "user_id"], ["user_id"]))
def test_rows_against_loops(seed, kept, cluster):
    log = bandit_log(seed=seed)
    units = units_of(log if kept else log.drop(columns="kept"))
    clusters = log["user_id"].tolist() if cluster else list(range(len(log)))
    options = {"cluster": cluster, "weight_col": kept, **Q}
    tables = [
        rd.ope.estimate(log, estimators=names, clip=clip, **options)
        for names, clip in ((ALL, None), (CLIPPED, [0.7, 3.0]))
    ]
    assert [*map(len, tables)] == [len(ALL), 2 * len(CLIPPED)]
    once = [1.0] * len(units)
    logged = functools.cache(lambda times: logging_value(units, times))
    for row in [row for table in tables for row in table.to_dict("records")]:
        name, clip = row["estimator"], None if np.isnan(row["clip"]) else row["clip"]
        found = functools.cache(
            lambda times, name=name, clip=clip: value(units, name, clip, multiplicity=times)
        )

        def estimate(_, multiplicity=once, found=found):
            return found(tuple(multiplicity))

        def lift(_, multiplicity=once, found=found):
            return found(tuple(multiplicity)) - logged(tuple(multiplicity))

        assert row["value"] == pytest.approx(estimate(units), rel=1e-12)
        assert row["se"] == pytest.approx(standard_error(estimate, units, clusters), rel=1e-7), (
            name,
            clip,
        )
        assert row["lift"] == pytest.approx(lift(units), rel=1e-10)
        assert row["lift_se"] == pytest.approx(standard_error(lift, units, clusters), rel=1e-7)


@pytest.mark.few(1)
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("kept", few([None, "kept"], ["kept"]))
@pytest.mark.parametrize("interaction", ["independent", "cascade", "standard"])
def test_slates_against_loops(ragged, kept, interaction):
    log = slate_log(ragged=ragged)
    units = units_of(log if kept else log.drop(columns="kept"), "slate")
    options = {
        "slate_col": "slate",
        "interaction": interaction,
        "weight_col": kept,
        "propensity_kind": "item" if interaction == "independent" else "conditional",
        "ragged": "as_logged" if ragged else "raise",
    }
    for name, clip, cluster in itertools.product(["ips", "snips"], [None, 1.5], [None, "user_id"]):
        clusters = [unit[0]["user_id"] if cluster else i for i, unit in enumerate(units)]
        row = one(log.sample(frac=1, random_state=1), name, clip=clip, cluster=cluster, **options)

        def estimate(units, name=name, clip=clip, multiplicity=None):
            return value(units, name, clip, interaction, multiplicity)

        def lift(units, multiplicity=None):
            return estimate(units, multiplicity=multiplicity) - logging_value(units, multiplicity)

        assert row["value"] == pytest.approx(estimate(units), rel=1e-12)
        assert row["se"] == pytest.approx(standard_error(estimate, units, clusters), rel=1e-7)
        assert row["lift_se"] == pytest.approx(standard_error(lift, units, clusters), rel=1e-7)
        assert row["n_units"] == len(units)
        assert row["n_clusters"] == len(set(clusters))


def test_prefix_and_slate_propensities_are_products_of_conditional_ones():
    log = slate_log()
    prefix = log.groupby("slate")[["propensity", "target_propensity"]].cumprod()
    whole = log.groupby("slate")[["propensity", "target_propensity"]].transform("prod")
    for interaction in ("cascade", "standard"):
        options = {"slate_col": "slate", "interaction": interaction, "estimators": ["ips", "snips"]}
        conditional = rd.ope.estimate(log, propensity_kind="conditional", **options)
        kinds = {"prefix": prefix} | ({"slate": whole} if interaction == "standard" else {})
        for kind, columns in kinds.items():
            other = rd.ope.estimate(log.assign(**columns), propensity_kind=kind, **options)
            pd.testing.assert_frame_equal(conditional, other, rtol=1e-12)


def test_one_call_takes_estimators_of_two_interactions():
    log = slate_log()
    names = ["rips", "snsips", "sips"]
    together = rd.ope.estimate(
        log, estimators=names, slate_col="slate", propensity_kind="conditional"
    )
    assert together["estimator"].tolist() == ["rips", "snsips", "sips"]
    alone = [
        rd.ope.estimate(log, estimators=name, slate_col="slate", propensity_kind="conditional")
        for name in together["estimator"]
    ]
    pd.testing.assert_frame_equal(together, pd.concat(alone, ignore_index=True))


# -- what must not change a number


@pytest.mark.few(2)
@pytest.mark.parametrize("interval", ["delta", "bootstrap"])
@pytest.mark.parametrize("cluster", [None, "user_id"])
def test_row_order(interval, cluster):
    log = bandit_log()
    options = {"estimators": ALL, "cluster": cluster, "interval": interval, "n_resamples": 200, **Q}
    first = rd.ope.estimate(log, **options)
    for seed in range(3):
        shuffled = log.sample(frac=1, random_state=seed)
        pd.testing.assert_frame_equal(first, rd.ope.estimate(shuffled, **options), rtol=1e-12)


@pytest.mark.few(3)
@pytest.mark.parametrize("piece", [1, 7, 59])
@pytest.mark.parametrize("log", [bandit_log(), slate_log()], ids=["rows", "slates"])
def test_pieces(piece, log):
    options = {"clip": [None, 2]}
    if "slate" in log:
        options |= {
            "slate_col": "slate",
            "interaction": "cascade",
            "propensity_kind": "conditional",
        }
    else:
        options |= {"estimators": [*ALL[:2], "dr", "sndr"], **Q}
    for cluster in (None, "user_id"):
        whole = rd.ope.estimate(log, cluster=cluster, **options)
        with sized(Sizes(log_rows=piece, most_log_rows=piece)):
            pieces = rd.ope.estimate(log, cluster=cluster, **options)
        pd.testing.assert_frame_equal(whole, pieces, rtol=1e-12)


def test_index_and_inputs_are_left_alone():
    log = bandit_log()
    before = log.copy(deep=True)
    first = rd.ope.estimate(log)
    pd.testing.assert_frame_equal(log, before)
    pd.testing.assert_frame_equal(
        first, rd.ope.estimate(log.set_index(log["item_id"].to_numpy() * 0))
    )


def strings(log):
    return log.assign(user_id="u" + log["user_id"].astype(str))


FORMS = {
    "integer rewards": lambda log: log.assign(reward=log["reward"].astype("int8")),
    "nullable": lambda log: log.convert_dtypes(),
    "arrow": lambda log: log.convert_dtypes(dtype_backend="pyarrow"),
    "strings": strings,
    "categories": lambda log: log.assign(user_id=strings(log)["user_id"].astype("category")),
    "dates": lambda log: log.assign(
        user_id=pd.Timestamp("2026-01-01") + pd.to_timedelta(log["user_id"], unit="D")
    ),
    "objects": lambda log: log.astype(object),
    "pyarrow table": lambda log: pa.Table.from_pandas(log),
    "polars": lambda log: pl.DataFrame(log.to_dict("list")),
    "wide ids": lambda log: log.assign(user_id=log["user_id"].astype("int64") * 2**40),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("form", FORMS)
def test_dtypes(form):
    log = bandit_log().drop(columns="kept")
    first, other = rd.ope.estimate(log), rd.ope.estimate(FORMS[form](log))
    pd.testing.assert_frame_equal(first, other, rtol=1e-12)


def test_float32_is_read_as_it_is():
    log = bandit_log()
    small = log.astype({"propensity": "float32", "target_propensity": "float32"})
    expected = rd.ope.estimate(small.astype("float64"))
    pd.testing.assert_frame_equal(expected, rd.ope.estimate(small))


def test_every_by_value_is_estimated_alone():
    cells = enumerate(itertools.product("ba", [2, 1]))
    log = pd.concat(
        [bandit_log(40, seed=i).assign(model=model, week=week) for i, (model, week) in cells]
    )
    table = rd.ope.estimate(log, by=["model", "week"], clip=[None, 2.0])
    assert list(table.columns[:4]) == ["model", "week", "estimator", "clip"]
    assert table[["model", "week"]].drop_duplicates().to_numpy().tolist() == [
        ["a", 1],
        ["a", 2],
        ["b", 1],
        ["b", 2],
    ]
    for (model, week), own in table.groupby(["model", "week"]):
        part = log[(log["model"] == model) & (log["week"] == week)]
        alone = rd.ope.estimate(part, clip=[None, 2.0])
        pd.testing.assert_frame_equal(
            own.drop(columns=["model", "week"]).reset_index(drop=True), alone, rtol=1e-12
        )


def test_users_of_small_groups_do_not_cost_a_table_of_all_users():
    log = bandit_log(400).assign(
        user_id=np.arange(400) * 1000, segment=np.repeat(np.arange(40), 10)
    )
    table = rd.ope.estimate(log, by="segment", estimators="snips")
    assert (table["n_clusters"] == 10).all()
    alone = rd.ope.estimate(log[log["segment"] == 7], estimators="snips")
    pd.testing.assert_frame_equal(
        table[table["segment"] == 7].drop(columns="segment").reset_index(drop=True), alone
    )


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.floats(0.01, 1),
            st.floats(0, 1),
            st.floats(-100, 100, allow_subnormal=False),
        ),
        min_size=2,
        max_size=30,
    ).filter(lambda rows: sum(row[2] for row in rows) > 1e-3 and len({row[0] for row in rows}) > 1)
)
def test_any_log_against_loops(rows):
    log = pd.DataFrame(rows, columns=["user_id", "propensity", "target_propensity", "reward"])
    units = units_of(log)
    table = rd.ope.estimate(log).set_index("estimator")
    scale = 1 + log["reward"].abs().max() * 100
    for name in table.index:
        assert table.loc[name, "value"] == pytest.approx(value(units, name), abs=1e-9 * scale)
        varies = log.loc[log["target_propensity"] > 0, "reward"].nunique() > 1
        assert table.loc[name, "se"] >= 0 if varies else np.isnan(table.loc[name, "se"])


# -- the table


def test_the_table_is_tidy_and_goes_to_parquet(tmp_path):
    table = rd.ope.estimate(bandit_log().assign(model="a"), by="model", clip=[None, 3])
    assert table.columns.is_unique
    assert all(isinstance(name, str) for name in table.columns)
    assert isinstance(table.index, pd.RangeIndex)
    for name, dtype in table.dtypes.items():
        assert pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_string_dtype(dtype), name
    table.to_parquet(tmp_path / "ope.parquet")
    pd.testing.assert_frame_equal(table, pd.read_parquet(tmp_path / "ope.parquet"))


@pytest.mark.few(5)
@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("most", [0, 4, 8, 20])
def test_a_value_is_never_printed_without_its_flags(width, most):
    table = rd.ope.estimate(bandit_log())
    assert (table["trust"] != "ok").all()
    with pd.option_context("display.width", width, "display.max_columns", most):
        text = repr(table)
    header = text.replace("\\", " ").split()
    assert "estimator" in header
    if "value" in header:
        assert "flags" in header
        assert "trust" in header
        assert "do not use: few rewards" in text


def test_a_single_cluster_has_no_standard_error():
    row = one(bandit_log().assign(user_id=1), cluster="user_id")
    assert math.isnan(row["se"])
    assert math.isnan(row["ci_low"])
    assert row["trust"].startswith("do not use")
