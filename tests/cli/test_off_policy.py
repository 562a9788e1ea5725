"""`recdf ope`: the numbers of the functions, with their flags, from files of both kinds."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli.command import fails
from cli.command import run as run_command

import recdf as rd

GOLDEN = Path(__file__).parents[1] / "golden"


def run(capsys, *arguments):
    """What a successful command prints."""
    code, out, err = run_command(capsys, *arguments)
    assert (code, err) == (0, "")
    return out


def files(tmp_path, kind="parquet"):
    rng = np.random.default_rng(0)
    log = pd.DataFrame(
        {
            "user_id": [f"u{i % 40}" for i in range(400)],
            "item_id": rng.integers(0, 4, 400),
            "reward": rng.integers(0, 2, 400),
            "propensity": 0.25,
        }
    )
    users = sorted(log["user_id"].unique())
    pred = pd.DataFrame(
        {
            "model": ["als"] * 40 + ["bpr"] * 40,
            "user_id": users * 2,
            "item_id": [1] * 40 + [2, 3] * 20,
        }
    )
    for name, frame in (("log", log), ("pred", pred)):
        if kind == "parquet":
            frame.to_parquet(tmp_path / f"{name}.parquet")
        else:
            frame.to_csv(tmp_path / f"{name}.csv", index=False)
    return log, pred, tmp_path / f"log.{kind}", tmp_path / f"pred.{kind}"


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_recommendations_of_two_models(tmp_path, capsys, kind):
    log, pred, log_file, pred_file = files(tmp_path, kind)
    out = tmp_path / "results"
    text = run(
        capsys,
        "ope",
        log_file,
        "--pred",
        pred_file,
        "--by",
        "model",
        "--estimators",
        "ips",
        "snips",
        "--out",
        out,
    )
    both = rd.ope.target_from_recs(log, pred, by="model")
    expected = rd.ope.estimate(both, by="model")
    pd.testing.assert_frame_equal(pd.read_parquet(out / "ope.parquet"), expected, check_dtype=False)
    pd.testing.assert_frame_equal(
        pd.read_parquet(out / "ope_diagnostics.parquet"),
        rd.ope.diagnostics(both, by="model"),
        check_dtype=False,
    )
    pd.testing.assert_frame_equal(
        pd.read_parquet(out / "ope_comparison.parquet"),
        rd.ope.compare(both, by="model"),
        check_dtype=False,
    )
    for row in expected.itertuples():
        line = next(
            line
            for line in text.splitlines()
            if line.startswith(row.model) and f" {row.estimator} " in line
        )
        # Two digits of half the interval are shown.
        shown = float(line.split()[2])
        assert abs(shown - row.value) <= 0.051 * (row.ci_high - row.ci_low) / 2
        assert row.trust in line
        assert row.flags in line
    assert "low_ess: few rows carry the weight" in text


def test_an_excerpt_of_open_bandit(capsys):
    text = run(
        capsys, "ope", GOLDEN / "ope_open_bandit.parquet", "--by", "campaign", "--cluster", "none"
    )
    assert text.count("do not use: few rewards") == 6
    assert "too few to tell" in text


@pytest.mark.long
def test_slates_and_options(tmp_path, capsys):
    log = pd.read_csv(GOLDEN / "ope_slate.csv")
    options = [
        "--propensity-col",
        "p_conditional",
        "--target-col",
        "e_conditional",
        "--propensity-kind",
        "conditional",
    ]
    out = tmp_path / "out"
    run(
        capsys,
        "ope",
        GOLDEN / "ope_slate.csv",
        "--slate-col",
        "slate",
        "--estimators",
        "rips",
        "snsips",
        *options,
        "--out",
        out,
    )
    expected = rd.ope.estimate(
        log,
        slate_col="slate",
        estimators=["rips", "snsips"],
        propensity_col="p_conditional",
        target_col="e_conditional",
        propensity_kind="conditional",
    )
    pd.testing.assert_frame_equal(pd.read_parquet(out / "ope.parquet"), expected, check_dtype=False)
    text = run(
        capsys,
        "ope",
        GOLDEN / "ope_bandit.csv",
        "--clip",
        "2",
        "5",
        "--interval",
        "bootstrap",
        "--n-resamples",
        "50",
    )
    assert [line.split()[1] for line in text.splitlines()[1:5]] == ["2", "5", "2", "5"]


def test_bounded_intervals(capsys):
    ranges = ["--reward-range", "0", "1", "--weight-range", "0", "50"]
    text = run(capsys, "ope", GOLDEN / "ope_bandit.csv", "--interval", "bounded", *ranges)
    assert "use the interval only: few rewards" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ope_open_bandit.parquet"], ["no column 'user_id'", "--cluster None"]),
        (["ope_bandit.csv", "--interval", "bounded"], ["--reward-range"]),
        (["ope_bandit.csv", "--estimators", "isp"], ["'isp'", "did you mean"]),
        (["ope_bandit.csv", "--target-col", "action"], ["log['action'] is outside [0, 1]"]),
        (["ope_bandit.csv", "--reward-col", "zz"], ["(--reward-col zz; name the column"]),
        (["nowhere.csv"], ["no such file"]),
    ],
)
def test_errors(capsys, arguments, words):
    message = fails(capsys, "ope", GOLDEN / arguments[0], *arguments[1:])
    assert all(word in message for word in words), message


def test_results_are_not_overwritten(tmp_path, capsys):
    arguments = ["ope", GOLDEN / "ope_bandit.csv", "--out", tmp_path]
    run(capsys, *arguments)
    assert "--overwrite" in fails(capsys, *arguments)
    run(capsys, *arguments, "--overwrite")


def stacked(tmp_path):
    """A log, recommendations of the models 1 and 2, and the log once for each of them."""
    log, pred, log_file, pred_file = files(tmp_path)
    log = log.assign(campaign=np.where(log.index % 3, "x", "y"))
    pred["model"] = np.where(pred["model"] == "als", 1, 2)
    log.to_parquet(log_file)
    pred.to_parquet(pred_file)
    rd.ope.target_from_recs(log, pred, by="model").to_parquet(tmp_path / "both.parquet")
    return pred, log_file, pred_file


def test_segments_of_a_log_are_no_targets(tmp_path, capsys):
    pred, log_file, pred_file = stacked(tmp_path)
    pred[pred["model"] == 1].drop(columns="model").to_parquet(pred_file)
    out = run(capsys, "ope", log_file, "--pred", pred_file, "--by", "campaign")
    assert "baseline" not in out


def test_targets_without_a_key_have_no_comparison(tmp_path, capsys):
    _, log_file, pred_file = stacked(tmp_path)
    words = ("ope", log_file, "--pred", pred_file, "--by", "model", "--cluster")
    assert "baseline" not in run(capsys, *words)
    err = fails(capsys, *words, "--baseline", "1")
    assert "name the key by which the rows of the targets are paired" in err


@pytest.mark.few(1)
def test_a_baseline_is_a_label_of_the_targets(tmp_path, capsys):
    _, log_file, pred_file = stacked(tmp_path)
    words = ("--by", "model", "--baseline", "2", "--out")
    run(capsys, "ope", log_file, "--pred", pred_file, *words, tmp_path / "a")
    run(capsys, "ope", tmp_path / "both.parquet", *words, tmp_path / "b")
    own = rd.ope.compare(pd.read_parquet(tmp_path / "both.parquet"), baseline=2)
    for folder in ("a", "b"):
        found = pd.read_parquet(tmp_path / folder / "ope_comparison.parquet")
        pd.testing.assert_frame_equal(found, own)
    err = fails(capsys, "ope", log_file, "--pred", pred_file, *words[:3], "3")
    assert "no such model; the result has 1, 2" in err
    err = fails(capsys, "ope", tmp_path / "both.parquet", "--baseline", "1")
    assert "--baseline: name the column of the targets in --by" in err


def test_estimators_of_several_interactions_are_compared_one_after_the_other(tmp_path, capsys):
    rng = np.random.default_rng(0)
    user, position = np.repeat(np.arange(60), 2), np.tile([1, 2], 60)
    log = pd.DataFrame({"user_id": user, "position": position, "propensity": 1 / 3})
    log = log.assign(item_id=rng.integers(0, 3, 120), reward=rng.integers(0, 2, 120))
    pred = pd.concat(
        pd.DataFrame({"model": model, "user_id": user, "item_id": position - 1 + first})
        for model, first in (("a", 0), ("b", 1))
    )
    log.to_parquet(tmp_path / "log.parquet")
    pred.to_parquet(tmp_path / "pred.parquet")
    words = ("--by", "model", "--slate-col", "user_id", "--propensity-kind", "conditional")
    words += ("--match-position", "--estimators", "rips", "sips", "--out", tmp_path / "out")
    run(capsys, "ope", tmp_path / "log.parquet", "--pred", tmp_path / "pred.parquet", *words)
    both = rd.ope.target_from_recs(log, pred, position_col="position", by="model")
    own = [
        rd.ope.compare(both, estimators=name, slate_col="user_id", propensity_kind="conditional")
        for name in ("rips", "sips")
    ]
    found = pd.read_parquet(tmp_path / "out" / "ope_comparison.parquet")
    pd.testing.assert_frame_equal(found, pd.concat(own, ignore_index=True))
