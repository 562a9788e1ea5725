"""A gate with few labels of people and many cheap ones: what it decides, says and refuses."""

import functools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import recdf as rd
from recdf.cli import main

MANY, N = 3000, 300
OF_M = {"m": (0, 1)}


def sides(loss=0.0, judge="biased", n=N, seed=1, judged=None):
    """Candidate and baseline as people see them on n lists, and as a judge who prefers the
    candidate sees all."""
    rng = np.random.default_rng(seed)
    base = np.where(rng.random(MANY) < 0.6, rng.random(MANY), 0.0)
    other = np.where(rng.random(MANY) < 0.6, rng.random(MANY), 0.0)
    candidate = np.where(rng.random(MANY) < 0.5, base, other)
    candidate = np.clip(candidate - loss * (candidate > 0), 0, 1)
    noise = rng.normal(0, 0.05, MANY)
    seen = {
        "biased": (0.5 * base, 0.5 * candidate + 0.4),
        "good": (base + noise, candidate - noise),
        "useless": (rng.random(MANY), rng.random(MANY)),
    }[judge]
    rows = np.sort(rng.choice(MANY, n, replace=False)) if judged is None else judged(base)
    people = [pd.DataFrame({"user_id": rows, "m": one[rows]}) for one in (candidate, base)]
    cheap = [pd.DataFrame({"user_id": np.arange(MANY), "m": one}) for one in seen[::-1]]
    return people, cheap, (candidate - base).mean()


def test_the_change_is_that_of_prediction_powered_and_passes_where_people_alone_cannot_tell():
    people, cheap, _ = sides()
    alone, both = (
        rd.gate(*people, {"m": -0.03}, bounds=OF_M, **more) for more in ({}, {"cheap": cheap})
    )
    assert (alone.verdict, both.verdict) == ("undecided", "pass")
    row = both.table.iloc[0]
    long = [
        pd.concat([one.assign(model=name) for one, name in zip(pair, ("new", "old"), strict=True)])
        for pair in (people, cheap)
    ]
    found = rd.experiments.prediction_powered(*long, "m", baseline="old").iloc[0]
    np.testing.assert_allclose(
        row[["diff", "change", "bias", "weight", "n_cheap"]].tolist(),
        found[["mean", "mean", "bias", "weight", "n_cheap"]].tolist(),
        rtol=1e-9,
    )
    assert row["p_pass"] == pytest.approx(
        stats.t.sf((found["mean"] + 0.03) / found["se"], N - 2), rel=0.1
    )  # skewness
    assert row["labels"] == "both"
    text = str(both)
    assert (
        "Labels of people on 300 lists, cheap labels on 2,700 more (prediction-powered inference)."
        in text
    )
    assert "which the labels of people take out" in text


def test_a_relative_budget_is_about_the_mean_under_both_labels():
    people, cheap, _ = sides()
    row = rd.gate(*people, {"m": "-10%"}, cheap=cheap, bounds=OF_M).table.iloc[0]
    assert row["verdict"].startswith("pass")
    assert row["labels"] == "both"
    assert row["change"] == pytest.approx(row["diff"] / row["mean_baseline"], abs=0.01)


def test_a_judge_who_prefers_the_candidate_does_not_let_it_pass():
    people, cheap, truth = sides(loss=0.15)
    assert truth < -0.05
    assert np.mean(cheap[0]["m"]) > np.mean(cheap[1]["m"])
    assert rd.gate(*people, {"m": -0.01}, cheap=cheap, bounds=OF_M).verdict == "fail"


def test_few_lists_of_people_are_undecided_whatever_min_lists_says():
    people, cheap, _ = sides(n=29)
    gate = rd.gate(*people, {"m": -0.5}, cheap=cheap, min_lists=5)
    assert gate.verdict == "undecided"
    assert "fewer than 30 users" in gate.reasons[0]


def test_lists_that_are_no_random_sample_are_undecided():
    people, cheap, _ = sides(judged=lambda base: np.argsort(-base, kind="stable")[:N])
    gate = rd.gate(*people, {"m": -0.5}, cheap=cheap)
    assert gate.verdict == "undecided"
    assert "no random sample" in gate.reasons[0]


def test_a_judge_who_is_nearly_perfect_leaves_the_decision_to_people_where_one_list_could_turn_it():
    people, cheap, _ = sides()
    shop = (
        [one.assign(m=one["m"] * 0.2) for one in people],
        [one.assign(m=one["m"] * 0.2) for one in cheap],
    )
    bounded = rd.gate(
        *(one.rename(columns={"m": "ndcg@10"}) for one in shop[0]),
        {"ndcg@10": -0.01},
        cheap=[one.rename(columns={"m": "ndcg@10"}) for one in shop[1]],
    )
    assert bounded.table["labels"].tolist() == ["people"]
    assert bounded.table["bound"].tolist() == ["betting"]
    assert "The labels of people count alone for ndcg@10" in str(bounded)


def test_few_lists_that_the_judge_does_not_know_leave_the_decision_to_people():
    """One list more would move the change by more than two thirds of its standard error. Both
    labels decided here, passed bad candidates in 8 % of the runs, and the bound was infinite."""
    rng = np.random.default_rng(3)
    old = (rng.random(600) < 0.97) * 1.0
    new = np.where(rng.random(600) < 0.08, 0, (rng.random(600) < 0.97) * 1.0)
    by_judge = np.where((new == 0) & (rng.random(600) < 0.3), 1, new)
    tables = [pd.DataFrame({"user_id": np.arange(600), "m": one}) for one in (new, old, by_judge)]
    gate = rd.gate(
        tables[0][:60], tables[1][:60], {"m": -0.05}, cheap=(tables[2], tables[1]), bounds=OF_M
    )
    row = gate.table.iloc[0]
    assert row["labels"] == "people"
    assert -1 < row["change_low"] < row["change_high"] < 0


@pytest.mark.long
@pytest.mark.parametrize("judge", ["biased", "good", "useless"])
def test_a_candidate_that_has_lost_the_budget_passes_in_one_of_twenty_runs(judge):
    """At the boundary: the true change of the population of all lists is the budget."""
    runs, passed, many = 100, 0, 25
    for first in range(0, runs, many):  # in one gate of 25 metrics, each has a verdict of its own
        drawn = {
            f"m{seed}": sides(0.05, judge, seed=seed, judged=lambda base: np.arange(150))
            for seed in range(first, first + many)
        }
        people, cheap = (
            [
                pd.DataFrame({m: run[labels][side]["m"] for m, run in drawn.items()})
                .rename_axis("user_id")
                .reset_index()
                for side in (0, 1)
            ]
            for labels in (0, 1)
        )
        budgets, bounds = dict.fromkeys(drawn, true_loss()), dict.fromkeys(drawn, (0, 1))
        table = rd.gate(*people, budgets, cheap=cheap, bounds=bounds).table
        assert len(table) == many
        passed += table["verdict"].str.startswith("pass").sum()
    assert passed <= stats.binom.ppf(0.999, runs, 0.05)


@functools.cache
def true_loss():
    return float(np.mean([sides(loss=0.05, seed=seed)[2] for seed in range(1000, 1150)]))


def test_values_that_lists_of_one_side_lack_count_as_the_worst_under_both_labels():
    people, cheap, _ = sides()
    lacking = (
        [people[0][people[0]["user_id"] % 2 == 0], people[1]],
        [cheap[0][cheap[0]["user_id"] % 2 == 0], cheap[1]],
    )
    names = [[one.rename(columns={"m": "ndcg@10"}) for one in pair] for pair in lacking]
    row = rd.gate(*names[0], {"ndcg@10": "-5%"}, cheap=names[1]).table.iloc[0]
    assert row["verdict"] == "fail"
    assert row["n_only_baseline"] == (people[0]["user_id"] % 2 == 1).sum()


BAD = [
    (lambda p, c: (p, c[0]), {}, rd.OptionError, "expected two, the results under cheap labels"),
    (lambda p, c: (p, c), {"looks": "any"}, rd.OptionError, "exclude each other"),
    (lambda p, c: (p, p), {}, rd.DataError, "no more lists"),
    (
        lambda p, c: (p, [one[one["user_id"] > 500] for one in c]),
        {},
        rd.DataError,
        "do not have cheap labels",
    ),
    (
        lambda p, c: (p, [one.rename(columns={"m": "o"}) for one in c]),
        {},
        rd.ColumnError,
        "cheap of the candidate",
    ),
]


@pytest.mark.parametrize(("change", "options", "error", "words"), BAD)
def test_bad_cheap_labels_of_a_gate_are_named_errors(change, options, error, words):
    people, cheap = change(*sides()[:2])
    with pytest.raises(error, match=words):
        rd.gate(*people, {"m": -0.03}, cheap=cheap, **options)


@pytest.mark.long
def test_the_command_reads_both_folders_of_cheap_labels(tmp_path, capsys):
    shop = rd.sample_shop()
    some = shop.true["user_id"].drop_duplicates().sample(400, random_state=1)
    for name in ("knn", "popularity"):
        pred = shop.pred[shop.pred["model"] == name]
        rd.evaluate(shop.true, pred, "ndcg@10", users=some).to_parquet(tmp_path / f"people-{name}")
        rd.evaluate(shop.true, pred, "ndcg@10").to_parquet(tmp_path / f"cheap-{name}")
    call = ["gate", str(tmp_path / "people-knn"), "--baseline", str(tmp_path / "people-popularity")]
    call += ["--budget", "ndcg@10=-2%"]
    cheap = ["--cheap", str(tmp_path / "cheap-knn"), str(tmp_path / "cheap-popularity")]
    assert main([*call, *cheap]) == 0
    assert "Labels of people on 400 lists, cheap labels on 1,137 more" in capsys.readouterr().out
    assert main([*call, *cheap[:2]]) == 2
    assert "--cheap holds 1" in capsys.readouterr().err
    assert main([*call, "--cheap", cheap[2], str(tmp_path / "people-popularity")]) in (2, 3)


def test_budgets_about_one_sample_share_what_tells_that_it_is_not_random():
    """People judged good lists by m, and k knows nothing of it: its budget is not broken either."""
    people, cheap, _ = sides(judged=lambda base: np.argsort(-base)[:N])
    rng = np.random.default_rng(3)
    of_all = [rng.random(MANY) * 0.5, rng.random(MANY) * 0.5 + 0.5]  # of candidate and baseline
    people = [one.assign(k=k[one["user_id"]]) for one, k in zip(people, of_all, strict=True)]
    cheap = [one.assign(k=k) for one, k in zip(cheap, of_all, strict=True)]
    budgets, bounds = {"m": -0.2, "k": -0.2}, {"m": (0, 1), "k": (0, 1)}
    gate = rd.gate(*people, budgets, cheap=cheap, bounds=bounds)
    assert gate.table["effect"].tolist() == ["undecided", "undecided"]
    assert (gate.table["reason"] == gate.table["reason"].iloc[0]).all()
    assert "no random sample" in gate.table["reason"].iloc[0]
    assert gate.table["p_fail"].isna().all()
    alone = rd.gate(*people, {"k": -0.2}, cheap=cheap, bounds={"k": (0, 1)})
    assert alone.table["effect"].tolist() == ["fail"]
