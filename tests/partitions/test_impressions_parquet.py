"""`rd.logs.impressions_parquet`: the tables of `from_impressions`, from files and part by part."""

import decimal
import json

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.logs import impressions

OPTIONS = {"time_col": "time", "value_col": "price", "window": "1h"}


def frames():
    rng = np.random.default_rng(5)
    n = 2000
    log = pd.DataFrame(
        {
            "user_id": rng.integers(0, 200, n),
            "session_id": 1,
            "item_id": rng.integers(0, 30, n),
            "position": rng.integers(0, 9, n),
            "time": pd.Timestamp("2026-09-01")
            + pd.to_timedelta(rng.integers(0, 86400, n), unit="s"),
        }
    )
    events = log.iloc[::7][["user_id", "item_id", "time"]].assign(price=2.0)
    return {"log": log, "purchases": events.reset_index(drop=True)}


@pytest.fixture
def paths(tmp_path):
    found = {}
    for name, frame in frames().items():
        found[f"{name}_path"] = tmp_path / f"{name}.parquet"
        frame.to_parquet(found[f"{name}_path"])
    return found


def in_order(frame):
    return frame.sort_values(["user_id", "item_id"], ignore_index=True)


@pytest.mark.few(1)
@pytest.mark.parametrize("limit", ["1GB", "60KB"])
def test_the_files_are_those_of_from_impressions(tmp_path, paths, limit):
    given = frames()
    expected = rd.from_impressions(given["log"], purchases=given["purchases"], **OPTIONS)
    out = tmp_path / "lists"
    spec = rd.logs.impressions_parquet(**paths, out=out, memory_limit=limit, **OPTIONS)
    for name, table in (("true", expected.true), ("pred", expected.pred)):
        written = pd.read_parquet(out / f"{name}.parquet")
        pd.testing.assert_frame_equal(in_order(written), in_order(table), check_dtype=False)
    assert spec == json.loads((out / "impressions.json").read_text(encoding="utf-8"))
    assert spec["counts"] == expected.spec["counts"]
    assert sorted(path.name for path in out.iterdir()) == [
        "impressions.json",
        "pred.parquet",
        "true.parquet",
    ]


def test_files_are_not_replaced_unasked(tmp_path, paths):
    out = tmp_path / "lists"
    rd.logs.impressions_parquet(**paths, out=out, **OPTIONS)
    before = (out / "true.parquet").read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        rd.logs.impressions_parquet(**paths, out=out, **OPTIONS | {"relevance": {"bought": 2}})
    assert (out / "true.parquet").read_bytes() == before
    rd.logs.impressions_parquet(
        **paths, out=out, overwrite=True, **OPTIONS | {"relevance": {"bought": 2}}
    )
    assert (out / "true.parquet").read_bytes() != before


def test_a_log_with_lists_in_its_cells_is_checked_for_copies(tmp_path, paths):
    log = frames()["log"][:2].assign(tags=[["new"], ["new"]])
    log = pd.concat([log, log[:1]], ignore_index=True)
    log.to_parquet(paths["log_path"])
    with pytest.warns(rd.LogWarning, match="1 of 3 impressions"):
        spec = rd.logs.impressions_parquet(**paths, out=tmp_path / "lists", **OPTIONS)
    assert spec["counts"]["logged_twice"] == 1


def test_kinds_of_two_files_are_compared_although_no_part_has_both(tmp_path, paths):
    events = frames()["purchases"].assign(user_id=lambda rows: "u" + rows["user_id"].astype(str))
    events.to_parquet(paths["purchases_path"])
    with pytest.raises(rd.IdTypeError, match="user_id"):
        rd.logs.impressions_parquet(**paths, out=tmp_path / "lists", memory_limit="60KB", **OPTIONS)


@pytest.mark.parametrize("limit", ["1GB", "60KB"])
def test_decimals_are_no_ids_beside_integers(tmp_path, paths, limit):
    events = frames()["purchases"]
    events["user_id"] = events["user_id"].map(decimal.Decimal)
    events.to_parquet(paths["purchases_path"])
    with pytest.raises(rd.IdTypeError, match=r"user_id.*can never match"):
        rd.logs.impressions_parquet(**paths, out=tmp_path / "lists", memory_limit=limit, **OPTIONS)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"user_col": "member"}, rd.ColumnError, "no column 'member'"),
        ({"memory_limit": "1XB"}, rd.OptionError, "memory_limit="),
        ({"window": "an hour"}, rd.OptionError, "window"),
    ],
)
def test_a_refused_call_leaves_no_folder(tmp_path, paths, options, error, words):
    with pytest.raises(error, match=words):
        rd.logs.impressions_parquet(**paths, out=tmp_path / "lists", **OPTIONS | options)
    assert not (tmp_path / "lists").exists()


@pytest.mark.long
def test_rows_without_a_user_are_refused_or_dropped(tmp_path, paths):
    given = frames()
    log = given["log"].astype({"user_id": "Int64"})
    log.loc[::50, "user_id"] = None
    log.to_parquet(paths["log_path"])
    with pytest.raises(rd.NullKeyError, match=r"in log\['user_id'\].*found in one of"):
        rd.logs.impressions_parquet(**paths, out=tmp_path / "lists", memory_limit="60KB", **OPTIONS)
    spec = rd.logs.impressions_parquet(
        **paths, out=tmp_path / "lists", memory_limit="60KB", null_keys="drop", **OPTIONS
    )
    expected = rd.from_impressions(log, purchases=given["purchases"], null_keys="drop", **OPTIONS)
    assert spec["counts"] == expected.spec["counts"]


@pytest.mark.parametrize("limit", ["1GB", "60KB"])
def test_a_wrong_part_ends_the_call_at_once(tmp_path, paths, monkeypatch, limit):
    begun = []

    def one_part(given, rules):
        begun.append(len(given["log"]))
        return attribute(given, rules=rules)

    attribute = impressions.attribute
    monkeypatch.setattr(impressions, "attribute", one_part)
    log = frames()["log"]
    log.loc[log["user_id"] < 190, "item_id"] = np.nan  # nearly all parts are wrong
    log.to_parquet(paths["log_path"])
    with pytest.raises(rd.NullKeyError, match="item_id"):
        rd.logs.impressions_parquet(**paths, out=tmp_path / "lists", memory_limit=limit, **OPTIONS)
    assert len([n for n in begun if n]) <= 2  # another part may have begun beside it


def test_the_column_of_the_position_may_be_named(tmp_path, paths):
    expected = rd.logs.impressions_parquet(**paths, out=tmp_path / "by default", **OPTIONS)
    log = frames()["log"].rename(columns={"position": "place"})
    log.to_parquet(paths["log_path"])
    given = {**OPTIONS, "rank_col": "place"}
    spec = rd.logs.impressions_parquet(**paths, out=tmp_path / "lists", **given)
    assert spec["counts"] == expected["counts"]
    for name in ("true", "pred"):
        files = [tmp_path / one / f"{name}.parquet" for one in ("by default", "lists")]
        of = list(map(pd.read_parquet, files))
        pd.testing.assert_frame_equal(of[0].rename(columns={"position": "place"}), of[1])
