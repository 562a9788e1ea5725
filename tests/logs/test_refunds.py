"""Refunds take purchases out, wholly or in part, as a plain loop does."""

import json

import numpy as np
import pandas as pd
import pytest
from cli.command import run
from hypothesis import given
from hypothesis import strategies as st
from logs.impression_logs import bought, log_of, quietly
from logs.test_impressions import LOG, SMALL, as_dicts, frame
from oracles import impressions as oracle

import recdf as rd

ROW = {
    "user": st.integers(0, 1),
    "item": st.integers(0, 1),
    "order": SMALL,
    "time": st.integers(0, 12),
}
BOUGHT = st.lists(st.fixed_dictionaries({**ROW, "price": st.integers(0, 5)}), max_size=10)
BACK = st.lists(st.fixed_dictionaries({**ROW, "price": st.integers(0, 7)}), max_size=10)
COLUMNS = ["user", "item", "order", "time", "price"]


@pytest.mark.long
@given(
    log=LOG,
    purchases=BOUGHT,
    refunds=BACK,
    amounts=st.booleans(),
    orders=st.booleans(),
    unattributed=st.sampled_from(["count", "true"]),
    value=st.sampled_from([0, 1]),
)
def test_equals_a_plain_loop(log, purchases, refunds, amounts, orders, unattributed, value):
    if not orders:
        purchases, refunds = (
            [{**row, "order": 0} for row in rows] for rows in (purchases, refunds)
        )
    left, found_rests = oracle.refunded(purchases, refunds, amounts)
    kept = [
        {**row, "price": rest if amounts else row["price"]}
        for row, rest in zip(purchases, left, strict=True)
        if rest > 0 or (amounts and row["price"] == 0)
    ]
    true, pred, counts = oracle.tables(log, [], kept, unattributed=unattributed)
    back = frame(refunds, COLUMNS).drop(columns=[] if amounts else "price")
    found = quietly(
        frame(log, ["user", "session", "item", "time", "position"]),
        purchases=frame(purchases, COLUMNS).astype({"price": float}),
        refunds=back,
        order_col="order" if orders else None,
        time_col="time",
        value_col="price",
        unattributed=unattributed,
    )
    mine = found.true.assign(clicks=0.0)
    mine_true, mine_pred = as_dicts(type(found)(mine, found.pred, found.spec))
    assert mine_pred == pred
    assert mine_true == {key: [float(one) for one in values] for key, values in true.items()}
    events = found.events.set_index("event").loc["purchases"]
    assert (events["events"], events["attributed"]) == (len(purchases), counts["purchases"])
    assert events["refunded"] == len(purchases) - len(kept)
    if amounts:
        cut = [0 < rest < row["price"] for row, rest in zip(purchases, left, strict=True)]
        assert events["refunded_in_part"] == sum(cut)
    assert found.spec["counts"]["refunds"] == {
        "events": len(refunds),
        "matched": sum(rest is not None for rest in found_rests),
        "without_purchase": sum(rest is None for rest in found_rests),
        "beyond_price": sum(bool(rest) for rest in found_rests),
        "logged_twice": len(back) - len(back.drop_duplicates()),
    }


def refund(minutes, price=5.0, **columns):
    return bought(minutes, price=price).assign(**columns)


@pytest.mark.parametrize(
    ("refunds", "price", "purchases", "relevance"),
    [
        ([refund(80)], 0, 0, 0),
        ([refund(80, 2.0)], 3, 1, 3),
        ([refund(80, 2.0), refund(90, 3.0)], 0, 0, 0),
        ([refund(80).drop(columns="price")], 0, 0, 0),
        ([refund(80, 9.0)], 0, 0, 0),
    ],
)
def test_by_hand(refunds, price, purchases, relevance):
    """Ann was shown the tea a second time after 60 minutes, and bought it for 5 ten minutes
    later."""
    found = rd.from_impressions(
        log_of(),
        time_col="time",
        purchases=bought(70),
        refunds=pd.concat(refunds),
        value_col="price",
    )
    row = found.true.iloc[2]
    assert (row["price"], row["purchases"], row["relevance"]) == (price, purchases, relevance)
    assert found.pred["price"].iloc[2] == price
    assert found.events[["events", "refunded"]].to_numpy().tolist() == [[1, 1 - purchases]]
    if price:
        assert (
            rd.evaluate(*found, "revenue@10", **found.options).per_user["revenue@10"].sum() == price
        )


def test_a_refund_belongs_to_the_last_purchase_before_it_and_then_to_the_one_before():
    purchases = pd.concat(
        [bought(70, price=5.0), bought(80, price=7.0), bought(100, price=2.0)], ignore_index=True
    )
    refunds = refund(90, 8.0)  # 7 of the second purchase and 1 of the first; the third one is later
    found = rd.from_impressions(
        log_of(), time_col="time", purchases=purchases, refunds=refunds, value_col="price"
    )
    assert (found.true["price"].sum(), found.true["purchases"].sum()) == (6.0, 2)
    assert found.events[["refunded", "refunded_in_part"]].to_numpy().tolist() == [[1, 1]]
    assert "refunds: 1 events, 1 matched, 0 without_purchase, 0 beyond_price" in repr(found)


def test_an_order_names_the_purchase():
    purchases = pd.concat([bought(70, price=5.0), bought(80, price=7.0)], ignore_index=True).assign(
        order=["a", "b"]
    )
    options = {"time_col": "time", "purchases": purchases, "value_col": "price"}
    found = rd.from_impressions(
        log_of(), refunds=refund(90, 5.0, order="a"), order_col="order", **options
    )
    assert found.true["price"].sum() == 7
    assert found.spec["order_col"] == "order"
    found = rd.from_impressions(log_of(), refunds=refund(90, 5.0, order="a"), **options)
    assert found.true["price"].sum() == 7  # 5 + (7 - 5)
    assert found.true["purchases"].sum() == 2


@pytest.mark.parametrize(
    "refunds", [refund(69), refund(80, item_id="mug"), refund(80, user_id="bob")]
)
def test_refunds_without_a_purchase_are_a_warning(refunds):
    with pytest.warns(rd.NoOverlapWarning, match="1 of 1 refunds cancel nothing"):
        found = rd.from_impressions(
            log_of(), time_col="time", purchases=bought(70), refunds=refunds, value_col="price"
        )
    assert found.true["price"].sum() == 5
    assert found.spec["counts"]["refunds"]["without_purchase"] == 1


def test_parts_of_a_price_add_up_to_the_whole():
    """0.1 + 0.2 is not 0.3 in floating-point numbers, but the purchase is refunded wholly."""
    refunds = pd.concat([refund(80, 0.1), refund(81, 0.2)])
    found = rd.from_impressions(
        log_of(),
        time_col="time",
        purchases=bought(70, price=0.3),
        refunds=refunds,
        value_col="price",
    )
    assert found.events[["refunded", "refunded_in_part"]].to_numpy().tolist() == [[1, 0]]
    assert found.spec["counts"]["refunds"]["beyond_price"] == 0


def test_at_the_price_shown_a_purchase_counts_by_the_share_that_was_not_paid_back():
    """5 were paid for an item that was shown at 6: after 2 are paid back, 3/5 of 6 are left."""
    log = log_of(price=6.0)
    for amount, value in ((None, 6.0), (2.0, 3.6), (5.0, 0.0)):
        found = rd.from_impressions(
            log,
            time_col="time",
            purchases=bought(70),
            refunds=None if amount is None else refund(80, amount),
            value_col="price",
            value="shown",
        )
        assert found.true["price"].sum() == pytest.approx(value)


@pytest.mark.long
def test_many_refunds_of_one_user_and_item():
    n = 3000
    log = log_of().iloc[:1]
    purchases = pd.concat([bought(1)] * n, ignore_index=True)
    found = quietly(
        log,
        time_col="time",
        purchases=purchases,
        refunds=pd.concat([refund(2)] * (n - 1)),
        value_col="price",
    )
    assert found.true["price"].tolist() == [5.0]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"purchases": None}, rd.OptionError, "refunds= cancel purchases; pass purchases="),
        (
            {"refunds": None, "order_col": "order"},
            rd.OptionError,
            "order_col='order' matches refunds",
        ),
        ({"order_col": "order"}, rd.ColumnError, "purchases has no column 'order'"),
        (
            {"refunds": refund(80).drop(columns="time")},
            rd.ColumnError,
            "refunds has no column 'time'",
        ),
        ({"refunds": refund(80, -5.0)}, rd.DataError, "refunds.'price'. holds 1 values below 0"),
        ({"refunds": refund(80, np.nan)}, rd.DataError, "refunds.'price'. holds 1 null"),
        ({"refunds": refund(80, user_id=None)}, rd.NullKeyError, "1 in refunds.'user_id'."),
        ({"refunds": refund(80, user_id=7)}, rd.IdTypeError, "refunds.'user_id'."),
        ({"refunds": refund(80, time="soon")}, rd.DataError, "refunds.'time'. holds"),
    ],
)
def test_bad_input(options, error, words):
    given = {"purchases": bought(70), "refunds": refund(80), "value_col": "price"} | options
    with pytest.raises(error, match=words):
        rd.from_impressions(log_of(), time_col="time", **given)


def shop(folder):
    """Fifty users who buy twice, and a refund for every second one, one of them without a
    purchase."""
    rng = np.random.default_rng(3)
    log = pd.concat(
        [log_of(user_id=[f"u{i}"] * 3 + [f"v{i}"]) for i in range(50)], ignore_index=True
    )
    purchases = [bought(70, user=f"u{i}", price=5.0 + i).assign(order=i) for i in range(50)]
    refunds = [
        bought(90, user=f"u{i}", price=5.0 + i - i % 3).assign(order=i if i else 99)
        for i in range(0, 50, 2)
    ]
    found = {"log": log, "purchases": pd.concat(purchases), "refunds": pd.concat(refunds)}
    for name, one in found.items():
        one.sample(frac=1, random_state=rng).to_parquet(folder / f"{name}.parquet", index=False)
        one.to_csv(folder / f"{name}.csv", index=False)
    return found


@pytest.mark.long
@pytest.mark.parametrize("limit", ["1GB", "30KB"])
def test_files_are_alike(tmp_path, limit):
    frames = shop(tmp_path)
    options = {"time_col": "time", "value_col": "price", "order_col": "order"}
    with pytest.warns(rd.NoOverlapWarning, match="1 of 25 refunds cancel nothing"):
        expected = rd.from_impressions(
            frames["log"], **{k: v for k, v in frames.items() if k != "log"}, **options
        )
    paths = {f"{name}_path": tmp_path / f"{name}.parquet" for name in frames}
    with pytest.warns(rd.NoOverlapWarning, match="1 of 25 refunds cancel nothing") as caught:
        spec = rd.logs.impressions_parquet(
            **paths, out=tmp_path / "lists", memory_limit=limit, **options
        )
    assert len(caught) == 1
    assert spec["counts"] == expected.spec["counts"]
    assert (
        spec["counts"]["purchases"]["refunded"] == 8
    )  # of 24 refunds, those of users whose number is a multiple of 6
    keys = ["user_id", "session_id", "item_id"]
    for name, table in (("true", expected.true), ("pred", expected.pred)):
        written = pd.read_parquet(tmp_path / f"lists/{name}.parquet")
        one, two = (part.sort_values(keys, ignore_index=True) for part in (written, table))
        pd.testing.assert_frame_equal(one, two, check_dtype=False, check_flags=False)


@pytest.mark.long
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_command(tmp_path, monkeypatch, capsys, ending):
    shop(tmp_path)
    monkeypatch.chdir(tmp_path)
    files = [
        f"log.{ending}",
        "--purchases",
        f"purchases.{ending}",
        "--refunds",
        f"refunds.{ending}",
    ]
    options = [
        "--value-col",
        "price",
        "--order-col",
        "order",
        "--named-lists",
        "all",
        "--out",
        "lists",
    ]
    code, out, err = run(capsys, "impressions", *files, *options)
    assert code == 0
    counts = [line.split() for line in out.splitlines() if line.startswith("refunds ")]
    wanted = {"events": "25", "matched": "24", "without_purchase": "1", "beyond_price": "0"}
    assert wanted.items() <= {name: n for _, name, n in counts}.items()
    bought = [line.split() for line in out.splitlines() if line.startswith("purchases ")]
    wanted = {"refunded": "8", "refunded_in_part": "16"}
    assert wanted.items() <= {name: n for _, name, n in bought}.items()
    assert "1 of 25 refunds cancel nothing" in err
    spec = json.loads((tmp_path / "lists/impressions.json").read_text(encoding="utf-8"))
    assert (spec["order_col"], spec["named_lists"]) == ("order", "all")
