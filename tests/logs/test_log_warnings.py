"""Rows that were written twice and events just before their impression: counted and told of once,
by function, files and command; and shares that moved since an earlier run."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from cli.command import run

import recdf as rd
from recdf.logs.log_checks import moved_shares

START = pd.Timestamp("2026-11-01", tz="UTC")
TIMES = {"time_col": "time"}


def night(n_users=200, early=0.0, seed=0):
    """Every user sees four items once, and clicks on two of them some seconds later; all clicks are
    `early` seconds ahead. Also returns the delays."""
    rng = np.random.default_rng(seed)
    log = pd.DataFrame(
        {
            "user_id": np.repeat(np.arange(n_users), 4),
            "session_id": 1,
            "item_id": np.tile(list("abcd"), n_users),
            "position": np.tile(np.arange(1, 5), n_users),
            "time": START
            + pd.to_timedelta(np.repeat(rng.integers(0, 80_000, n_users), 4), unit="s"),
        }
    )
    clicks = log[log["item_id"].isin(["a", "c"])][["user_id", "item_id", "time"]]
    delay = rng.integers(1, 300, len(clicks)).astype(float)
    shifted = clicks["time"] + pd.to_timedelta(delay - early, unit="s")
    clicks = clicks.assign(time=shifted).reset_index(drop=True)
    return log, clicks, delay


def told(function):
    """The result of a call, and the sentences of its LogWarnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = function()
    assert {one.category for one in found} <= {rd.LogWarning}
    return result, [str(one.message) for one in found]


def purchases_of(log):
    """One purchase of each user, an hour after the impressions."""
    rows = log[log["item_id"] == "b"][["user_id", "item_id", "time"]]
    return rows.assign(time=rows["time"] + pd.Timedelta("1h"), price=2.0)


def test_honest_logs_are_silent():
    log, clicks, _ = night()
    found, said = told(
        lambda: rd.from_impressions(
            log, clicks=clicks, purchases=purchases_of(log), value_col="price", **TIMES
        )
    )
    assert said == []
    assert found.spec["first_copies"] == found.spec["ahead"] == {}
    assert found.events["logged_twice"].tolist() == [0, 0]


def test_a_log_of_purchases_concatenated_with_itself():
    log, _, _ = night(100)
    bought = purchases_of(log)
    twice = pd.concat([bought, bought], ignore_index=True)
    options = {"purchases": twice, "value_col": "price", **TIMES}
    found, said = told(lambda: rd.from_impressions(log, **options))
    assert found.true["price"].sum() == 2 * bought["price"].sum()
    first = ", ".join(repr(row) for row in bought.iloc[:3, :3].itertuples(index=False, name=None))
    assert said == [
        f"100 of 200 purchases (50.0%) repeat an earlier row in every column, such as {first}: "
        "each copy counts, also in what was paid. Leave the copies out if each is not an event of "
        "its own"
    ]
    assert found.spec["counts"]["purchases"]["logged_twice"] == 100
    checked = rd.logs.check_log(log, **options).set_index("finding")
    assert checked.loc["purchases logged twice", ["count", "share"]].tolist() == [100, 0.5]
    # Rows with a column of their own, such as the line of an order, are no copies.
    lines = twice.assign(line=np.arange(len(twice)))
    assert told(lambda: rd.from_impressions(log, **{**options, "purchases": lines}))[1] == []


def test_a_log_of_impressions_that_was_written_twice():
    log, clicks, _ = night(50)
    log["tags"] = [["new"], ["old"]] * 100  # lists in cells cannot be hashed
    found, [said] = told(lambda: rd.from_impressions(pd.concat([log, log]), clicks=clicks, **TIMES))
    assert said.startswith("200 of 400 impressions (50.0%) repeat an earlier row in every column")
    assert found.spec["counts"]["logged_twice"] == 200


def test_few_copies_are_only_counted():
    log, clicks, _ = night(1000)
    more = pd.concat([clicks, clicks[:1]], ignore_index=True)
    found, said = told(lambda: rd.from_impressions(log, clicks=more, **TIMES))
    assert (said, found.spec["counts"]["clicks"]["logged_twice"]) == ([], 1)


@pytest.mark.few(3)
@pytest.mark.parametrize("early", [5, 15, 30, 60])
@pytest.mark.parametrize("numbers", [False, True])
def test_clicks_before_their_impression(early, numbers):
    log, clicks, delay = night(early=early)
    lost = early - delay[delay < early]
    if numbers:
        log, clicks = (
            frame.assign(time=frame["time"].dt.as_unit("ms").astype("int64"))
            for frame in (log, clicks)
        )
    found, [said] = told(lambda: rd.from_impressions(log, clicks=clicks, **TIMES))
    assert found.events["before_impression"].tolist() == [len(lost)]
    share = len(lost) / len(clicks)
    assert said.startswith(
        f"{len(lost):,} of {len(clicks):,} clicks ({share:.1%}) belong to no impression, since "
        f"those of their item to their user came just after them: half of the {len(lost):,} within "
        "600 s came at most "
    )
    most = np.sort(lost)[int(np.ceil(0.99 * len(lost))) - 1]
    skew = most * 1000 if numbers else f"{most:.12g}s"
    assert found.spec["ahead"]["clicks"]["clock_skew"] == skew
    kept, said = told(lambda: rd.from_impressions(log, clicks=clicks, clock_skew=skew, **TIMES))
    assert kept.events["before_impression"].tolist() == [int((lost > most).sum())]
    assert said == []
    checked = rd.logs.check_log(log, clicks=clicks, **TIMES).set_index("finding")
    words = f'clock_skew="{skew}"' if not numbers else f"clock_skew={skew:.12g}"
    assert words in checked.loc["impressions after the clicks", "effect"]


def test_users_who_find_items_by_themselves_are_no_clock():
    """Clicks at any time of the day, half of them before the impression."""
    log, clicks, _ = night(4000)
    rng = np.random.default_rng(1)
    seconds = rng.integers(-40_000, 40_000, len(clicks))
    clicks["time"] += pd.to_timedelta(seconds, unit="s")
    found, said = told(lambda: rd.from_impressions(log, clicks=clicks, **TIMES))
    assert found.spec["ahead"]["clicks"]["events"] > 0.001 * len(clicks)
    assert said == []


@pytest.mark.long
@pytest.mark.parametrize("limit", ["1GB", "30KB"])
def test_files_and_command_say_the_same(tmp_path, monkeypatch, capsys, limit):
    monkeypatch.chdir(tmp_path)
    log, clicks, _ = night(early=30)
    clicks = pd.concat([clicks, clicks[:40]], ignore_index=True)
    log.to_parquet("log.parquet")
    clicks.to_parquet("clicks.parquet")
    found, said = told(lambda: rd.from_impressions(log, clicks=clicks, **TIMES))
    spec, of_files = told(
        lambda: rd.logs.impressions_parquet(
            "log.parquet", "lists", clicks_path="clicks.parquet", memory_limit=limit, **TIMES
        )
    )
    assert len(said) == 2
    assert spec["counts"] == found.spec["counts"]
    assert spec["ahead"] == found.spec["ahead"]
    assert of_files[0] == said[0]
    assert of_files[1].partition(" such as ")[0] == said[1].partition(" such as ")[0]
    command = ["impressions", "log.parquet", "--clicks", "clicks.parquet", "--memory-limit", limit]
    code, _, err = run(capsys, *command, "--out", "new")
    assert code == 0
    assert err.count("\n") == 2
    assert 'clock_skew="' not in err
    assert f"--clock-skew {spec['ahead']['clicks']['clock_skew']}" in err
    code, _, err = run(capsys, *command, "--out", "new", "--overwrite", "--fail-on", "warning")
    assert code == 1
    assert "exit code 1, --fail-on warning: " in err
    assert json.loads((tmp_path / "new/impressions.json").read_text())["counts"] == spec["counts"]


def counts(clicks, attributed, copies=0, **more):
    own = {"events": clicks, "attributed": attributed, "logged_twice": copies}
    own["never_shown"] = clicks - attributed
    return {"impressions": 10 * clicks, "clicks": own, **more}


@pytest.mark.parametrize(
    ("new", "old", "said"),
    [
        # 40 % of 1,000 and 44 %: beyond no chance. 40 % and 60 %: both.
        (counts(1000, 400), counts(1000, 440), []),
        (
            counts(1000, 400),
            counts(1000, 600),
            [
                "clicks attributed: 400 of 1,000 (40.0%), and 600 of 1,000 (60.0%) before",
                "clicks never shown: 600 of 1,000 (60.0%), and 400 of 1,000 (40.0%) before",
            ],
        ),
        # Of a million clicks any change is beyond chance; the odds of these are 0.667 and 0.724.
        (counts(1_000_000, 400_000), counts(1_000_000, 420_000), []),
        (
            counts(1000, 400, 100),
            counts(1000, 400),
            ["clicks logged twice: 100 of 1,000 (10.0%), and 0 of 1,000 (0.0%) before"],
        ),
        ({"impressions": 50}, counts(10, 5), ["0 clicks, and 10 before"]),
        (
            counts(10, 5, null_rows={"log": 50}),
            counts(10, 5),
            ["impressions with a null: 50 of 150 (33.3%), and 0 of 100 (0.0%) before"],
        ),
        (
            counts(10, 5, persons={"devices": 100, "unknown_devices": 60, "shared_devices": 0}),
            counts(10, 5, persons={"devices": 100, "unknown_devices": 10, "shared_devices": 0}),
            ["unknown devices: 60 of 100 (60.0%), and 10 of 100 (10.0%) before"],
        ),
    ],
)
def test_shares_that_moved(new, old, said):
    assert moved_shares(new, old) == said


def test_chance_alone_moves_no_share():
    """Ten shares of two nights of the same day: below 1 in 100 pairs have a finding."""
    rng = np.random.default_rng(0)
    nights = [counts(5000, int(n)) for n in rng.binomial(5000, 0.3, 200)]
    found = [moved_shares(one, two) for one, two in zip(nights[::2], nights[1::2], strict=True)]
    assert not any(found)


@pytest.mark.long
def test_against_the_night_before(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    log, clicks, _ = night()
    log.to_parquet("log.parquet")
    clicks.to_parquet("clicks.parquet")
    clicks.assign(item_id=clicks["item_id"] + "z").where(
        clicks["user_id"] < 100, clicks
    ).to_parquet("odd.parquet")
    base = ["impressions", "log.parquet", "--clicks"]
    assert run(capsys, *base, "clicks.parquet", "--out", "mon")[::2] == (0, "")
    same = [*base, "clicks.parquet", "--out", "tue", "--against"]
    for place in ("mon/impressions.json", "mon"):
        assert run(capsys, *same, place, "--overwrite", "--fail-on", "drift")[::2] == (0, "")
    command = [*base, "odd.parquet", "--out", "wed", "--overwrite", "--against", "tue"]
    code, _, err = run(capsys, *command)
    assert code == 0
    assert err.splitlines()[0] == (
        "recdf: warning: --against tue: clicks attributed: 200 of 400 (50.0%), and 400 of 400 "
        "(100.0%) before"
    )
    for why in ("warning", "drift"):
        code, _, err = run(capsys, *command, "--fail-on", why)
        assert (code, f"exit code 1, --fail-on {why}" in err) == (1, True)
    spec = json.loads((tmp_path / "wed/impressions.json").read_text())
    assert [one.partition(":")[0] for one in spec["moved"]] == [
        "clicks attributed",
        "clicks never shown",
    ]
    _, _, err = run(capsys, *same, "mon", "--overwrite", "--window", "1h")
    assert "shares are not compared, since window is" in err


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"counts": 1}', "[" * 5000, '{"counts": {}}'])
def test_a_file_that_is_no_record(tmp_path, capsys, text):
    (tmp_path / "old.json").write_text(text)
    log, clicks, _ = night(5)
    log.to_parquet(tmp_path / "log.parquet")
    clicks.to_parquet(tmp_path / "clicks.parquet")
    command = ["impressions", tmp_path / "log.parquet", "--clicks", tmp_path / "clicks.parquet"]
    code, _, err = run(
        capsys, *command, "--out", tmp_path / "x", "--against", tmp_path / "old.json"
    )
    assert code == 2
    assert "is no impressions.json of recdf impressions" in err
    assert not (tmp_path / "x").exists()
