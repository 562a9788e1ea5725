"""evaluate_parquet with `exclude=`: its rows go to the buckets of the lists, and the result is that
of the frames."""

import pandas as pd
import pytest
from partitions.parquet_files import USUAL, assert_equal, check, data, write
from registry.seeded import BUILT_IN, ITEMS, OF_ANY_FRAMES, side_tables

import recdf as rd

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("small_pieces", "nothing_left_behind"),
    pytest.mark.filterwarnings("ignore::recdf.RecdfWarning"),
]


def seen_of(true, pred, names=("user_id", "item_id"), seed=3):
    parts = [true.sample(30, random_state=seed), pred.sample(200, random_state=seed)]
    return pd.concat(parts)[list(names)].dropna()


def without(frame, seen, names):
    pairs = pd.MultiIndex.from_frame(seen[list(names)])
    return frame[~pd.MultiIndex.from_frame(frame[list(names)]).isin(pairs)]


@pytest.mark.parametrize("users", ["true", "pred", "ids"])
def test_every_metric(tmp_path, users):
    """In memory and in parts every metric is that of the rows that are left."""
    true, pred = data(4)
    true = true.assign(relevance=true["relevance"] / 3)
    seen = seen_of(true, pred)
    users = [*true["user_id"].unique()[30:], 100_000] if users == "ids" else users
    left = [without(frame, seen, ["user_id", "item_id"]) for frame in (true, pred)]
    for family, tables in ((BUILT_IN, {"value_col": "value"}), (OF_ANY_FRAMES, side_tables(4))):
        metrics, options = (
            [metric.name for metric in family],
            {**tables, "by": "model", "users": users},
        )
        expected = check(write(tmp_path, true, pred), metrics, (3,), exclude=seen, **options)
        by_hand = rd.evaluate(*left, metrics, k=3, **(USUAL | {"items": ITEMS} | options))
        for name, keys in (("per_user", ["model", "user_id"]), ("summary", ["model", "metric"])):
            found, rows = (
                getattr(one, name).sort_values(keys, ignore_index=True)
                for one in (expected, by_hand)
            )
            pd.testing.assert_frame_equal(found, rows, rtol=1e-12)


@pytest.mark.parametrize("names", [["user_id"], ["session"], ["user_id", "session"]])
def test_lists_of_sessions(tmp_path, names):
    true, pred = (one.assign(session=(one["user_id"] % 3).map("s{}".format)) for one in data(10))
    seen = seen_of(true, pred, [*names, "item_id"])[:: 40 if names == ["session"] else 1]
    check(
        write(tmp_path, true, pred),
        user_col=["user_id", "session"],
        users="all",
        exclude=seen,
        parts=(1, 3),
    )


@pytest.mark.parametrize("kind", ["string", "category", "int32"])
def test_kinds_of_ids(tmp_path, kind):
    true, pred = data(7)
    seen = seen_of(true, pred)
    plain = "int64" if kind == "int32" else "string"
    true, pred, seen = (
        frame.assign(**{name: frame[name].astype(to) for name in ("user_id", "item_id")})
        for frame, to in ((true, plain), (pred, plain), (seen, plain))
    )
    seen = seen.astype(dict.fromkeys(seen.columns, kind))
    paths = write(tmp_path, true, pred)
    expected = rd.evaluate(true, pred, "ndcg", k=2, exclude=seen, **USUAL)
    for buckets in (1, 4):
        found = rd.evaluate_parquet(*paths, "ndcg", k=2, exclude=seen, buckets=buckets, **USUAL)
        assert found.summary["value"].tolist() == pytest.approx(expected.summary["value"].tolist())
        assert found.spec["counts"] == expected.spec["counts"]
        assert found.spec["side_tables"] == expected.spec["side_tables"]


def test_rows_that_are_written_to_disk(tmp_path):
    true, pred = data(8)
    seen = seen_of(true, pred)
    paths = write(tmp_path, true, pred)
    expected = rd.evaluate_parquet(*paths, "ndcg", k=2, exclude=seen, buckets=1, **USUAL)
    found = rd.evaluate_parquet(
        *paths, "ndcg", k=2, exclude=seen, buckets=5, out=tmp_path / "out", **USUAL
    )
    assert_equal(found, expected)
    assert_equal(rd.read_parquet(tmp_path / "out"), expected)
