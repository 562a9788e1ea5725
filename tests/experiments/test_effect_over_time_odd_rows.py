"""Effects by period of odd rows: time zones, nulls, clusters, absent users, broken ratios."""

import datetime

import numpy as np
import pandas as pd
import pytest
from experiments.periods import ORDERS, panel

import recdf as rd
from recdf.experiments import effect_over_time


@pytest.mark.long
def test_users_who_are_not_assigned_yet_are_absent(purchases):
    rows, users = purchases
    table = effect_over_time(
        rows.drop(columns=["variant", "exposed"]), "value", assignment=users, **ORDERS, details=True
    )
    first = table[table["treatment"] == "B"].iloc[0]
    day = pd.Timestamp("2026-03-26")
    assert first["n_control"] == ((users["exposed"] < day) & (users["variant"] == "A")).sum()
    alone = effect_over_time(
        rows, "value", **ORDERS, details=True
    )  # users without a row are not known from rows alone
    last = table["n_control"].iloc[-1], alone["n_control"].iloc[-1]
    assert last == (
        (users["variant"] == "A").sum(),
        rows.loc[rows["variant"] == "A", "user_id"].nunique(),
    )


@pytest.mark.long
def test_active_users_only_are_compared_where_it_is_asked_for(purchases):
    rows, _ = purchases
    table = effect_over_time(rows, "value", missing="drop", **ORDERS, details=True)
    kept = rows[
        (rows["time"] >= rows["exposed"]) & (rows["time"].dt.date == datetime.date(2026, 4, 2))
    ]
    per_user = kept.groupby(["variant", "user_id"])["value"].sum()
    day = table[(table["period"] == "2026-04-02") & (table["treatment"] == "B")].iloc[0]
    assert day["diff"] == pytest.approx(per_user["B"].mean() - per_user["A"].mean())
    assert day["n_control"] == len(per_user["A"])
    assert day["n_dropped_control"] > 0


@pytest.mark.long
def test_measures_of_lists_are_means_and_absent_lists_are_worth_what_the_join_says(purchases):
    rows, _ = purchases
    rows = rows.assign(
        **{
            "ndcg@10": rows["wait"] / 20,
            "first_rank@10": rows["shown"] + 1.0,
            "hits@10": rows["shown"],
        }
    )
    table = effect_over_time(
        rows, ["ndcg@10", "first_rank@10", "hits@10"], **ORDERS, details=True
    ).set_index(["metric", "treatment"])
    day = rows[
        (rows["time"] >= rows["exposed"]) & (rows["time"].dt.date == datetime.date(2026, 4, 2))
    ]
    users = rows[["user_id", "variant"]].drop_duplicates().set_index("user_id")["variant"]
    found = table[table["period"] == "2026-04-02"]
    mean = day.groupby("user_id")["ndcg@10"].mean().reindex(users.index).fillna(0)
    assert found.loc[("ndcg@10", "B"), "mean_treatment"] == pytest.approx(mean[users == "B"].mean())
    rank = day[day["variant"] == "B"].groupby("user_id")["first_rank@10"].mean()
    assert found.loc[("first_rank@10", "B"), "mean_treatment"] == pytest.approx(rank.mean())
    assert found.loc[("first_rank@10", "B"), "n_treatment"] == len(rank)
    named = effect_over_time(
        rows.rename(columns={"value": "revenue"}), "revenue", **ORDERS, details=True
    )
    assert (
        named["diff"].tolist()
        == effect_over_time(rows, "value", **ORDERS, details=True)["diff"].tolist()
    )
    hits = day.groupby("user_id")["hits@10"].sum().reindex(users.index).fillna(0)
    assert found.loc[("hits@10", "B"), "mean_treatment"] == pytest.approx(hits[users == "B"].mean())
    with pytest.raises(rd.OptionError, match=r"wait.*larger_is_better"):
        effect_over_time(rows, "wait", how="mean", **ORDERS, details=True)
    waits = effect_over_time(
        rows, "wait", how="mean", smaller_is_better="wait", **ORDERS, details=True
    )
    assert waits["n_dropped"].iloc[-1] > 0


@pytest.mark.long
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize("kind", ["daily", "since_exposure"])
def test_days_are_those_of_the_zone(purchases, zone, kind):
    rows, _ = purchases
    plain = effect_over_time(rows, "value", kind=kind, **ORDERS, details=True)
    # The same clock in another zone; clocks change on the 29th in Europe.
    zoned = rows.assign(
        **{
            name: rows[name].dt.tz_localize(zone, nonexistent="shift_forward")
            for name in ("time", "exposed")
        }
    )
    own = effect_over_time(zoned, "value", kind=kind, **ORDERS, details=True)
    assert own["period"].tolist() == plain["period"].tolist()
    if zone != "Europe/Berlin":
        assert own["diff"].tolist() == plain["diff"].tolist()
    # Exposures in another zone are the same instants.
    other = zoned.assign(exposed=zoned["exposed"].dt.tz_convert("Asia/Tokyo"))
    pd.testing.assert_frame_equal(
        effect_over_time(other, "value", kind=kind, **ORDERS, details=True), own
    )


def test_midnights_of_a_zone_are_whole_days_apart_when_clocks_change():
    days = pd.date_range("2026-03-27", "2026-03-31", tz="Europe/Berlin")
    users = pd.DataFrame({"user_id": range(6), "variant": list("AABBAB"), "exposed": days[0]})
    rows = users.merge(pd.DataFrame({"time": days}), how="cross")
    rows["x"] = rows["time"].dt.day
    table = effect_over_time(rows, "x", kind="since_exposure", **ORDERS, details=True)
    assert table["mean_control"].tolist() == [27, 28, 29, 30, 31]
    assert table["period"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.long
def test_dates_of_every_kind_are_the_same_days(purchases):
    rows, _ = purchases
    dates = rows.assign(time=rows["time"].dt.normalize(), exposed=rows["exposed"].dt.normalize())
    plain = pd.DataFrame(effect_over_time(dates, "value", **ORDERS, details=True))
    objects = dates.assign(time=dates["time"].dt.date, exposed=dates["exposed"].dt.date)
    pd.testing.assert_frame_equal(
        pd.DataFrame(effect_over_time(objects, "value", **ORDERS, details=True)), plain
    )
    zero = pd.Timestamp("2026-03-01")
    numbers = dates.assign(
        time=(dates["time"] - zero).dt.days, exposed=(dates["exposed"] - zero).dt.days
    )
    counted = effect_over_time(numbers, "value", **ORDERS, details=True)
    assert counted["diff"].tolist() == plain["diff"].tolist()
    assert counted["trend"].tolist() == pytest.approx(plain["trend"].tolist(), rel=1e-9)
    assert counted["period"].iloc[0] == 24
    arrow = dates.assign(time=dates["time"].astype("timestamp[us][pyarrow]"))
    assert (
        effect_over_time(arrow, "value", **ORDERS, details=True)["diff"].tolist()
        == plain["diff"].tolist()
    )


@pytest.mark.long
def test_the_order_of_the_rows_does_not_matter_and_nothing_is_changed(purchases, rng):
    rows, _ = purchases
    before = rows.copy()
    for kind in ("daily", "cumulative", "since_exposure"):
        table = effect_over_time(
            rows, {"v": "value", "r": ("value", "shown")}, kind=kind, **ORDERS, details=True
        )
        again = effect_over_time(
            rows.sample(frac=1, random_state=5),
            {"v": "value", "r": ("value", "shown")},
            kind=kind,
            **ORDERS,
            details=True,
        )
        pd.testing.assert_frame_equal(table, again, check_exact=True)
    pd.testing.assert_frame_equal(rows, before)


@pytest.mark.long
def test_clusters_are_the_units(purchases):
    rows, users = purchases
    variant = users.drop_duplicates("region").set_index("region")["variant"]
    rows = rows.assign(variant=rows["region"].map(variant))
    table = effect_over_time(rows, "value", cluster="region", **ORDERS, details=True)
    last = table.iloc[-1]
    day = rows[(rows["time"] >= rows["exposed"]) & (rows["time"].dt.normalize() == last["period"])]
    people = rows[["user_id", "variant", "region"]].drop_duplicates()
    people["value"] = people["user_id"].map(day.groupby("user_id")["value"].sum()).fillna(0)
    same = rd.compare_variants(people, "value", control="A", cluster="region", details=True).iloc[
        -1
    ]
    for name in ("n_control", "n_treatment", "diff", "se", "p_value"):
        assert last[name] == pytest.approx(same[name], rel=1e-12)


def test_shares_that_change_are_named_and_the_verdicts_hold(rng):
    users = pd.DataFrame({"user_id": range(4000), "exposed": rng.integers(0, 8, 4000)})
    users["variant"] = np.where(
        rng.random(4000) < np.where(users["exposed"] < 4, 0.2, 0.5), "B", "A"
    )
    rows = users.merge(pd.DataFrame({"time": range(8)}), how="cross").assign(
        x=lambda f: rng.normal(size=len(f))
    )
    table = effect_over_time(rows, "x", **ORDERS, details=True)
    changed = ["strata_differ" in text for text in table["remarks"]]
    assert changed == [False] * 4 + [True] * 4
    assert (table["method"] == "welch+strata").all()
    assert table["verdict"].iloc[-1] == "no difference shown (sample ratio not checked)"
    assert table["trend_verdict"].iloc[0] == "no trend shown (sample ratio not checked)"


@pytest.mark.long
def test_days_of_one_variant_alone_are_left_out(rng):
    """Before the first treated users there is nothing to compare; what these days had says
    nothing."""
    users = pd.DataFrame({"user_id": range(900), "exposed": np.arange(900) // 150})
    users["variant"] = np.where((users["exposed"] > 2) & (rng.random(900) < 0.5), "B", "A")
    rows = users.merge(pd.DataFrame({"time": range(6)}), how="cross")
    rows["x"] = rng.normal(0, 1, len(rows)) + 10 * (rows["exposed"] < 3)
    for kind in ("daily", "cumulative", "since_exposure"):
        table = effect_over_time(rows, "x", kind=kind, **ORDERS, details=True).set_index("period")
        late = effect_over_time(
            rows[rows["exposed"] > 2], "x", kind=kind, **ORDERS, details=True
        ).set_index("period")
        both = [d for d in late.index if late.loc[d, "n_treatment"] > 1]
        if kind != "since_exposure":
            assert (
                table["remarks"].str.contains("too_few_users").tolist() == [True] * 3 + [False] * 3
            )
            assert table.loc[5, "n_dropped_control"] == 450
        assert (abs(table.loc[both, "diff"] - late.loc[both, "diff"]) < 0.2).all()
        assert table["trend"].iloc[0] == pytest.approx(late["trend"].iloc[0], abs=0.2)


@pytest.mark.long
def test_a_broken_sample_ratio_invalidates_the_trend(rng):
    rows = panel(rng, n=2000, effect=lambda age: 3 - age)
    table = effect_over_time(rows, "x", expected={"A": 2, "B": 1}, **ORDERS, details=True)
    assert set(table["verdict"]) == set(table["trend_verdict"]) == {"invalid: sample ratio"}


@pytest.mark.long
def test_null_rows_raise_or_are_left_out(purchases):
    rows, _ = purchases
    gaps = rows.assign(value=rows["value"].where(rows.index % 9 != 0))
    with pytest.raises(rd.DataError, match=r"null in 445 of 4,000 rows.*nan"):
        effect_over_time(gaps, "value", **ORDERS, details=True)
    kept = effect_over_time(gaps, {"r": ("value", "shown")}, nan="drop", **ORDERS, details=True)
    clean = effect_over_time(gaps.dropna(), {"r": ("value", "shown")}, **ORDERS, details=True)
    assert kept["mean_control"].tolist() == clean["mean_control"].tolist()
    assert (
        effect_over_time(gaps, "value", nan="drop", **ORDERS, details=True)["n_dropped"].sum() > 0
    )


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"kind": "weekly"}, rd.OptionError, "since_exposure"),
        ({"kind": "since_exposure", "exposure_col": None}, rd.OptionError, "exposure_col"),
        ({"sequential_n": 100}, rd.OptionError, "cumulative"),
        ({"control": "Z"}, rd.OptionError, "control='Z'"),
        ({"time_col": "when"}, rd.ColumnError, "when"),
        ({"missing": "nan"}, rd.OptionError, "missing"),
        ({"how": {"other": "sum"}}, rd.OptionError, "other"),
        ({"how": "median"}, rd.OptionError, "median"),
        ({"time_col": "shown"}, rd.DataError, "cannot be compared"),
    ],
)
def test_what_cannot_be_is_an_error(purchases, change, error, words):
    rows, _ = purchases
    with pytest.raises(error, match=words):
        effect_over_time(rows, "value", **{**ORDERS, **change}, details=True)


@pytest.mark.long
def test_users_in_two_variants_raise_or_are_left_out(purchases):
    rows, _ = purchases
    rows = rows.copy()
    rows.loc[0, "variant"] = {"A": "B", "B": "C", "C": "A"}[rows.loc[0, "variant"]]
    with pytest.raises(rd.DataError, match="1 users of rows are in more than one variant"):
        effect_over_time(rows, "value", **ORDERS, details=True)
    dropped = effect_over_time(rows, "value", multi_variant="drop", **ORDERS, details=True)
    clean = effect_over_time(
        rows[rows["user_id"] != rows.loc[0, "user_id"]], "value", **ORDERS, details=True
    )
    assert dropped["diff"].tolist() == clean["diff"].tolist()


def test_without_exposures_all_users_are_there_from_the_first_row(purchases):
    rows, _ = purchases
    table = effect_over_time(rows, "value", **{**ORDERS, "exposure_col": None}, details=True)
    assert table["n_control"].nunique() == 1
    assert table["n_control"].iloc[0] == rows.loc[rows["variant"] == "A", "user_id"].nunique()


@pytest.mark.long
def test_the_table_is_drawn_and_goes_to_parquet(purchases, tmp_path):
    rows, _ = purchases
    for kind in ("daily", "cumulative", "since_exposure"):
        table = effect_over_time(rows, ["value", "shown"], kind=kind, **ORDERS, details=True)
        ax = rd.plot.over_time(table, "value", treatment="B")
        assert kind.replace("_", " ") in ax.get_title(loc="left") + ax.get_title()
        table.to_parquet(tmp_path / "t.parquet")
        assert rd.plot.over_time.data(
            pd.read_parquet(tmp_path / "t.parquet"), "value", treatment="C"
        )["diff"].tolist() == (
            table.loc[(table["metric"] == "value") & (table["treatment"] == "C"), "diff"].tolist()
        )


@pytest.mark.parametrize(
    ("value", "word"),
    [(0.0, "no trend shown"), (0.1, "no trend shown"), (None, "check: zero variance")],
)
def test_values_that_never_vary_have_no_trend_by_rounding(value, word):
    users = pd.DataFrame({"user_id": range(100), "variant": ["A", "B"] * 50, "exposed": 0})
    rows = users.merge(pd.DataFrame({"time": range(5)}), how="cross")
    rows["x"] = 0.7 + (rows["variant"] == "B") * (rows["time"] / 7 if value is None else value)
    table = effect_over_time(rows, "x", expected={"A": 1, "B": 1}, **ORDERS, details=True)
    assert table["trend_verdict"].unique().tolist() == [word]
    assert table["trend"].iloc[0] == pytest.approx(
        1 / 7 if value is None else 0.0, abs=0 if value is not None else None
    )
    assert table["trend_p"].isna().all()


def test_a_stratum_without_denominators_has_no_worth(rng):
    users = pd.DataFrame({"user_id": range(400), "variant": ["A", "B"] * 200, "day": 1})
    users["stratum"] = np.where(users["user_id"] % 100 < 10, "new", "old")
    users["views"] = (users["stratum"] == "old") * 1.0
    users["clicks"] = rng.poisson(3, 400) * 1.0
    rows = pd.concat([users, users.assign(day=2)])
    options = {"control": "A", "time_col": "day", "exposure_col": None, "strata": "stratum"}
    table = rd.experiments.effect_over_time(rows, {"rate": ("clicks", "views")}, **options)
    assert not table["verdict"].str.contains("strata moved").any()
    assert len(table) == 2


@pytest.mark.parametrize(("days", "said"), [(1, "not tested"), (3, "no trend shown")])
def test_the_trend_of_one_day_is_not_tested(days, said):
    draw = np.random.default_rng(0)
    rows = pd.DataFrame({"user_id": np.arange(400), "variant": ["A", "B"] * 200})
    rows = rows.merge(pd.DataFrame({"day": pd.date_range("2026-01-01", periods=days)}), how="cross")
    rows["clicks"] = draw.poisson(3, len(rows))
    table = rd.experiments.effect_over_time(
        rows.assign(at=pd.Timestamp("2026-01-01")),
        "clicks",
        control="A",
        time_col="day",
        exposure_col="at",
        expected={"A": 1, "B": 1},
        details=True,
    )
    assert table["trend_verdict"].unique().tolist() == [said]
    assert set(table["trend_withheld"]) == {"not_tested" if days == 1 else ""}


def test_a_mean_of_unknown_direction_is_named_in_rows():
    with pytest.raises(rd.OptionError, match=r"rows\['x'\] is no metric that recdf knows"):
        effect_over_time(panel(np.random.default_rng(0)), "x", **ORDERS, how="mean")
