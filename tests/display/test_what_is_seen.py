"""What a comparison adds to its verdict, or why it withholds it, stands in all that a reader sees:
the headline of a page, its tables, leaderboard, roles, decision and command."""

import re

import numpy as np
import pandas as pd
import pytest
from experiments.test_missing_lists import evaluated as lacking_lists

import recdf as rd
from recdf.cli import main

from .page_read import Page
from .planted import card_of

pytestmark = pytest.mark.usefixtures("without_pictures")

EQUAL = {"A": 1, "B": 1}
BEST = r"<td [^>]*><b>"  # the cell of the best mean
E = rd.experiments


def card(tmp_path, *given, **options):
    path = rd.report(*given, path=tmp_path / "r.html", overwrite=True, **options)
    lines, kind, badge = card_of(path)
    return {
        name: text.replace(" ,", ",").replace(" .", ".").replace(" :", ":")
        for name, text in lines.items()
    }, (
        kind,
        badge,
    )


# -- models


def spenders(n=100, metrics="revenue"):
    """Of n users, `new` finds what four of five buy, and `old` what two of five buy."""
    user, draw = np.arange(n), np.random.default_rng(0)
    true = pd.DataFrame({"user_id": user, "item_id": 0, "value": draw.uniform(3, 7, n).round(2)})
    found = {"new": user % 5 > 0, "old": user % 5 < 2}
    rows = [true.assign(model=model, item_id=np.where(hit, 0, 1)) for model, hit in found.items()]
    pred = pd.concat(rows, ignore_index=True)
    return rd.evaluate(true, pred, metrics, k=1, by="model", value_col="value")


def turning(result, n=100):
    """By how much three of n users would have to differ: −n·d/ln 20, d the mean difference."""
    wide = result.per_user.pivot(index="user_id", columns="model", values="revenue@1")
    return n * (wide["new"] - wide["old"]).mean() / np.log(20)


def test_the_headline_of_models_says_what_would_turn_a_metric_without_bounds(tmp_path):
    result = spenders()
    words = f"unless 3 in 100 users differ by −{turning(result):.1f} or more"
    assert result.compare_models(baseline="old")["verdict"].tolist() == [f"better, {words}"]
    lines, badge = card(tmp_path, result, baseline="old")
    assert badge == ("better", "better")
    assert f"new is better than the baseline old on revenue@1, {words}." in lines["Which"]
    lines, badge = card(tmp_path, result, baseline="new")
    assert badge == ("open", "keep the baseline")
    assert f"The next best is old: worse, {words.replace('−', '+')}." in lines["Which"]


def test_a_mark_of_a_leaderboard_says_that_its_metric_has_no_bounds():
    board = rd.leaderboard(spenders(metrics=["revenue", "hitrate"]), baseline="old")
    assert set(board.frame["marks"]) == {"+", ""}
    said = "1 of 2 comparisons carries the remark “no bounds”: no bounds of the metric are known"
    for text in (str(board), board.to_html(), board.to_markdown(), board.to_latex()):
        assert said in text.replace("``", "“").replace("''", "”")
    bounded = rd.leaderboard(spenders(), baseline="old", bounds={"revenue@1": (0, 7)})
    assert "no bounds" not in str(bounded)


def folders(tmp_path, **options):
    """Two models in folders of their own, of which `b` was evaluated with other options, and lacks
    lists."""
    shop = rd.sample_shop(n_users=400, n_items=100)
    own = {"a": {"model": "knn"}, "b": {"model": "popularity", **options}}
    for name, more in own.items():
        pred = shop.pred[shop.pred["model"] == more.pop("model")].drop(columns="model")
        cut = pred if more.get("k", 10) == 10 else pred.groupby("user_id").head(more["k"])
        true = shop.true.drop_duplicates("user_id") if more.get("true") else shop.true
        how = {word: one for word, one in more.items() if word not in ("k", "true")}
        rd.evaluate(true, cut, "ndcg@10", **how).to_parquet(tmp_path / name, overwrite=True)
    return {name: rd.read_parquet(tmp_path / name) for name in own}


@pytest.mark.few(1)
@pytest.mark.parametrize("options", [{"true": 1}, {"like": "rectools"}, {"ties": "item_asc"}])
def test_models_that_were_not_measured_alike_have_no_best_and_no_verdict_where_both_have_lists(
    options, tmp_path, capsys
):
    given = folders(tmp_path, **options)
    row = rd.compare_models(given, baseline="a", details=True).iloc[0]
    assert row["verdict"].startswith("check: ")
    # b is far behind, also where both have lists, by numbers that do not compare.
    assert (row["n_lacking_baseline"] > 0, row["ci_high_both"] < 0) == (True, True)
    assert (row["effect_both"], row["withheld_both"]) == ("", row["withheld"])
    assert "missing_lists" not in row["remarks"]
    users = pd.DataFrame({"user_id": given["a"].per_user["user_id"].unique()}).assign(half="x")
    for more in ({"baseline": "a"}, {"correction": None}, {"segments": users}):
        board = rd.leaderboard(given, **more)
        assert board.frame["place"].isna().all()
        assert "*" not in str(board)
        assert "so that none is marked as best" in str(board)
    lines, _ = card(tmp_path, given, segments=users)
    # The row is about b against a, and is seen from the other side.
    said = f"({row['verdict']}): a against the second best, b on ndcg@10"
    assert said in lines["Which"]
    assert "item_asc of b, item_desc of a)" in said or "ties" not in options
    assert not re.search(BEST, Page(tmp_path / "r.html").source)
    card(tmp_path, {"a": given["a"], "same": given["a"]}, segments=users)
    assert re.search(BEST, Page(tmp_path / "r.html").source)
    lines, badge = card(tmp_path, given, baseline="a")
    assert badge == ("warning", "withheld")
    where = lines["What could overturn it"].partition("Where both have lists")[2]
    assert row["verdict"] in where
    assert "worse" not in where
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--baseline", "a"]) == 0
    assert "worse" not in capsys.readouterr().out


def test_lists_that_end_early_are_those_of_the_model_by_its_name(tmp_path):
    given = folders(tmp_path, k=5)
    said = "check: 100% of the lists of b are shorter than 10"
    assert rd.compare_models(given, baseline="a")["verdict"].tolist() == [said]
    board = rd.leaderboard(given, baseline="a")
    assert board.comparisons["verdict"].tolist() == [said]
    lines, _ = card(tmp_path, given, baseline="a")
    assert f"The verdict is withheld ({said}): b against a" in lines["Which"]
    assert f"{said}." in lines["What could overturn it"].partition("Where both have lists")[2]
    assert "of 1 are" not in Page(tmp_path / "r.html").text("comparison")


@pytest.mark.long
def test_lists_that_end_early_are_named_where_the_rows_stay_in_a_file(tmp_path):
    user = np.arange(400)
    true = pd.DataFrame({"user_id": user, "item_id": user % 3})
    rows = [("a", u, item) for u in user for item in range(3)] + [("b", u, 1) for u in user]
    pred = pd.DataFrame(rows, columns=["model", "user_id", "item_id"]).assign(score=1.0)
    pred["score"] -= pred["item_id"]
    true.to_parquet(tmp_path / "true.parquet")
    pred.to_parquet(tmp_path / "pred.parquet")
    files = [tmp_path / "true.parquet", tmp_path / "pred.parquet"]
    options = {"by": "model", "out": tmp_path / "out", "memory_limit": 12_000}
    result = rd.evaluate_parquet(*files, "ndcg", 3, **options)
    assert result.rows_stay
    said = ["check: 100% of the lists of b are shorter than 3"]
    assert rd.leaderboard(result, baseline="a").comparisons["verdict"].tolist() == said
    assert result.compare_models(baseline="a")["verdict"].tolist() == said
    assert rd.leaderboard(result).comparisons["unlike"].str.contains(" of b are ").all()


def test_a_model_that_is_worse_where_both_have_lists_fails_the_command(tmp_path, capsys):
    """`old` has lost most of its lists, which count as 0, so that `new` is better over all."""
    true = pd.DataFrame({"user_id": range(400), "item_id": 0})
    draw = np.random.default_rng(0)
    hit = {"new": draw.random(400) < 0.3, "old": draw.random(400) < 0.7}
    rows = [(m, u, 0 if hit[m][u] else 1) for m in hit for u in range(400 if m == "new" else 80)]
    pred = pd.DataFrame(rows, columns=["model", "user_id", "item_id"])
    rd.evaluate(true, pred, "hitrate@1", by="model").to_parquet(tmp_path / "both")
    call = ["compare", str(tmp_path / "both"), "--baseline", "old"]
    assert main([*call, "--fail-on", "worse"]) == 1
    said = capsys.readouterr().err
    assert "new vs. old: better, but worse where both have lists" in said
    assert main([*call[:-1], "new", "--fail-on", "worse"]) == 1  # and in the other direction
    assert main(["leaderboard", *call[1:], "--fail-on", "worse"]) == 1
    assert ": segment all, hitrate@1, new vs. old: better, but worse " in capsys.readouterr().err
    lacking_lists(lost=0).to_parquet(tmp_path / "whole")
    assert main(["compare", str(tmp_path / "whole"), "--baseline", "old", *call[4:]]) == 0


def test_a_verdict_that_is_withheld_does_not_say_what_would_be_shown(tmp_path):
    user = np.arange(60)
    frame = {"user_id": user, "variant": np.where(user % 2, "B", "A")}
    data = pd.DataFrame({**frame, "ndcg@10": 0.5 + 0.1 * (user % 3) + 0.02 * (user % 2)})
    table = rd.compare_variants(data, "ndcg@10", control="A", expected=EQUAL)
    quantiles = E.compare_quantiles(
        data.assign(y=np.where(user % 4 < 2, 1.0, 2.0)), "y", quantiles=0.3, control="A"
    )
    tiny = rd.compare_variants(data.head(20), "ndcg@10", control="A", expected=EQUAL)
    shown = "would be shown in 8 of 10 cases"
    assert tiny["withheld"].tolist() == ["tiny"]
    assert quantiles["diff"].tolist() == [0]
    assert table["withheld"].tolist() == [""]
    for one, there in ((tiny, False), (quantiles, False), (table, True)):
        assert (shown in card(tmp_path, experiment=one)[0]["How sure"]) == there


# -- experiments


def with_covariate(by=1.0, n=2000):
    """Users of whom B has more, and their values from before."""
    draw = np.random.default_rng(6)
    level, b = draw.normal(5, 1, n), np.arange(n) % 2 == 1
    columns = {"before": level + draw.normal(size=n), "y": level + draw.normal(size=n) + by * b}
    return pd.DataFrame({"user_id": np.arange(n), "variant": np.where(b, "B", "A"), **columns})


UNTIMED, UNCHECKED = " (covariate time not checked)", " (sample ratio not checked)"


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"covariates": "before", "expected": EQUAL}, UNTIMED),
        ({}, UNCHECKED),
        ({"covariates": "before"}, UNTIMED + UNCHECKED),
    ],
)
def test_what_was_not_checked_stands_beside_every_verdict(options, words, tmp_path):
    table = rd.compare_variants(with_covariate(), "y", control="A", details=True, **options)
    said = table["verdict"].iloc[0].removesuffix(words)
    assert re.fullmatch("better, unless 3 in 1,000 users of the control have [0-9]+ or more", said)
    unless = said.removeprefix("better")
    for given in (table, pd.read_csv(_csv(table, tmp_path))):
        lines, _ = card(tmp_path, experiment=given)
        assert f"B is better than the control A on y{unless}{words}." in lines["Which"]
        roles = E.role_verdicts(given, {"y": "success"})
        assert roles["verdict"].tolist() == [f"{said}{words}"]
        lines, badge = card(tmp_path, experiment={"": roles})
        assert badge[1] == f"{said}{words}"
        guard = E.role_verdicts(given, {"y": ("guardrail", -1)})
        assert (
            guard["verdict"]
            .iloc[0]
            .startswith("safe, unless 3 in 1,000 users of the control have ")
        )
        assert guard["verdict"].iloc[0].endswith(words)
        unsafe = E.role_verdicts(given.assign(withheld="tiny", effect=""), {"y": ("guardrail", -1)})
        assert unsafe["verdict"].tolist() == ["not shown safe"]
        decided = E.decide_experiment(given, roles={"y": "success"}).iloc[0]
        assert decided["decision"] == "ship"
        # The sample ratio is one of the whole experiment, and is said once.
        reasons = decided["reasons"]
        assert reasons.startswith(f"y: {said}{words.replace(UNCHECKED, '')} (+")
        assert reasons.endswith("the sample ratio was not checked") == (UNCHECKED in words)


@pytest.mark.parametrize(
    ("details", "words"),
    [
        (True, ", for users with up to 20 lists."),
        (False, " (old against new: worse, for users with up to 20 lists)."),
    ],
)
def test_the_headline_of_a_pair_that_is_turned_says_for_whom_it_holds(details, words, tmp_path):
    """`new` finds what four of five want, and is the baseline of a pair."""
    user = np.minimum(np.arange(200) // 2, 90)  # the last user has 20 lists, all others have 2
    true = pd.DataFrame({"user_id": user, "session": np.arange(200), "item_id": 0})
    fifth = np.arange(200) % 5
    found = {"new": fifth > 0, "next": fifth < 1, "old": fifth < 3}
    rows = [true.assign(model=name, item_id=np.where(hit, 0, 1)) for name, hit in found.items()]
    names = {"user_col": ["user_id", "session"], "by": "model"}
    result = rd.evaluate(true, pd.concat(rows), "hitrate@1", **names)
    table = result.compare_models(details=details)
    assert table["baseline"].tolist() == ["new", "new", "next"]
    lines, _ = card(tmp_path, result, comparison=table)
    assert f"new is better than the second best, old on hitrate@1{words}" in lines["Which"]


@pytest.mark.parametrize(
    ("details", "words"),
    [
        (
            True,
            ", for users with a weight of up to 3, unless 3 in 1,000 users of ",
        ),
        (
            False,
            " (better, for users with a weight of up to 3, unless 3 in 1,000 users of ",
        ),
    ],
)
def test_the_headline_says_for_whom_it_holds(details, words, tmp_path):
    users = with_covariate().assign(w=lambda f: 1 + f.index // 2 % 3)
    options = {"control": "A", "expected": EQUAL, "weight_col": "w", "details": details}
    table = rd.compare_variants(users, "y", **options)
    lines, badge = card(tmp_path, experiment=table)
    assert badge == ("better", "better")
    assert f"B is better than the control A on y{words}" in lines["Which"]


def test_a_decision_does_not_ship_unseen_that_nobody_checked_the_sample_ratio(tmp_path):
    """The verdict of the first metric is withheld, and another one ships."""
    data = with_covariate()
    few = (data["variant"] == "B") & (data.index < 12)
    data["load"] = np.where(few, 3000.0, data["before"] % 1)
    names = {"larger_is_better": "y", "smaller_is_better": "load", "details": True}
    for expected, badge in (
        (None, ("warning", "ship, but the sample ratio is not checked")),
        (EQUAL, ("better", "ship")),
    ):
        table = rd.compare_variants(data, ["load", "y"], control="A", expected=expected, **names)
        assert table["withheld"].tolist() == ["few_units", ""]
        decision = E.decide_experiment(table, roles={"y": "success"})
        assert decision["decision"].tolist() == ["ship"]
        for order in (table, table.iloc[::-1]):
            page = card(tmp_path, experiment=order.reset_index(drop=True), roles={"y": "success"})
            assert page[1] == badge
        for given in (decision, pd.read_csv(_csv(decision, tmp_path))):
            lines, found = card(tmp_path, experiment={"": given})
            assert found == badge
            assert lines["So"].startswith("Ship" if expected else "Do not act yet: check the")
    health = E.experiment_health(data, data, expected=EQUAL)
    decision = E.decide_experiment(
        table.assign(remarks="ratio_not_checked"), roles={"y": "success"}
    )
    assert card(tmp_path, experiment={"": decision}, health=health)[1] == badge


def test_an_arm_that_lost_all_is_perhaps_worse(tmp_path):
    """Nobody of B pays, and each user of B waits a second less or more: there is no interval."""
    data = with_covariate()
    b = data["variant"] == "B"
    data = data.assign(paid=1.0 * (data.index % 10 == 0) * ~b, wait=2.0 + b)
    options = {"control": "A", "expected": EQUAL, "details": True}
    better = {"paid": {}, "wait": {"smaller_is_better": "wait"}}
    for metric, code in (("paid", "constant_arm"), ("wait", "zero_variance")):
        table = rd.compare_variants(data, ["y", metric], **options, **better[metric])
        assert table["withheld"].tolist() == ["", code]
        lines, badge = card(tmp_path, experiment=table)
        assert badge == ("warning", f"better, but perhaps worse on {metric}")
        assert lines["So"] == f"Do not act yet: settle first whether {metric} is worse."
    data["wait"] = 2.0 - b
    gained = rd.compare_variants(data, ["y", "wait"], **options, **better["wait"])
    assert card(tmp_path, experiment=gained)[1] == ("better", "better")


def test_a_model_that_is_worse_for_every_list_by_the_same_amount_is_perhaps_worse(tmp_path):
    user, draw = np.arange(300), np.random.default_rng(3)
    pred = pd.DataFrame({"user_id": np.tile(user, 2), "model": np.repeat(["new", "old"], 300)})
    true = pd.DataFrame({"user_id": user, "item_id": 0})
    result = rd.evaluate(true, pred.assign(item_id=0), ["ndcg", "recall"], 1, by="model")
    base, new = draw.uniform(0.3, 0.5, 600), result.per_user["model"] == "new"
    own = result.per_user.assign(**{"ndcg@1": base + 0.2 * new, "recall@1": 1 - 0.1 * new})
    own.attrs["recdf"] = result.spec
    result = rd.Evaluation(own, rd.summarize(own), result.spec)
    table = result.compare_models(baseline="old").set_index("metric")
    assert table["withheld"].to_dict() == {"ndcg@1": "", "recall@1": "zero_variance"}
    _, badge = card(tmp_path, result, baseline="old")
    assert badge == ("warning", "better, but perhaps worse on recall@1")


@pytest.mark.parametrize("role", ["success", ("guardrail", -1)])
def test_a_decision_says_what_its_table_warns_of(role, tmp_path):
    data = with_covariate(n=2400).assign(house=lambda frame: frame["user_id"] % 24, load=1.0)
    data["load"] += data["before"]
    roles = {"y": role, "load": "success" if role != "success" else ("guardrail", -1)}
    options = {"cluster": "house", "control": "A", "expected": EQUAL, "details": True}
    table = rd.compare_variants(data, ["y", "load"], **options)
    assert table["remarks"].tolist() == ["few_clusters; unbounded", "few_clusters"]
    judged = E.role_verdicts(table, roles)
    assert judged["note"].tolist() == ["few clusters"] * 2
    reasons = E.decide_experiment(table, roles=roles)["reasons"].iloc[0].split("; ")
    assert all(one.endswith(", few clusters)") for one in reasons)
    rd.report(path=tmp_path / "r.html", overwrite=True, experiment=table, roles=roles)
    assert Page(tmp_path / "r.html").text("experiment").count("few clusters") >= 4
    held = E.role_verdicts(table.assign(withheld="tiny", effect=""), {"y": "success"})
    assert held["note"].iloc[0] == ""


def _csv(table, folder):
    table.to_csv(folder / "table.csv", index=False)
    return folder / "table.csv"


def test_a_quantile_that_jumps_is_said_to_jump_by_its_role(tmp_path):
    draw, data = np.random.default_rng(6), with_covariate(n=4000)
    gap = data.assign(y=100 + 800 * (draw.random(4000) < 0.05) + draw.normal(0, 9, 4000))
    ties = data.assign(y=draw.choice([4.99, 9.99, 19.99], 4000))
    for frame, order, words in (
        (gap, 0.95, "lies between two groups of values"),
        (ties, 0.5, "stands on steps, compare the share at or below 9.99"),
    ):
        options = {"quantiles": order, "control": "A", "expected": EQUAL, "details": True}
        table = E.compare_quantiles(frame, "y", **options)
        metric, verdict, code = table[["metric", "verdict", "remarks"]].iloc[0]
        assert words in verdict
        judged = E.role_verdicts(table, {metric: "success"})
        assert judged["verdict"].tolist() == [verdict]
        page = rd.report(path=tmp_path / "q.html", overwrite=True, experiment={"": judged})
        assert verdict in Page(page).text("verdict")
        guard = E.role_verdicts(table, {metric: ("guardrail", -1000)})["verdict"].iloc[0]
        assert guard.startswith("safe")
        assert words in guard or guard == f"safe ({code})"  # the ends of a gap are not kept


def test_a_plan_says_that_a_few_large_values_may_decide(tmp_path):
    draw = np.random.default_rng(1)
    past = pd.DataFrame({"user_id": range(3000), "revenue": draw.lognormal(0, 2, 3000)})
    past["ctr"] = draw.normal(5, 1, 3000)
    plan = E.plan_experiment(past, ["revenue", "ctr"], rel_effect=0.2, control_share=0.95)
    assert plan["remarks"].tolist() == ["skewed", ""]
    lines, _ = card(tmp_path, experiment={"": plan})
    assert lines["Which"].count("(20%); skewed.") == 1
    assert "(20%); skewed" in " ".join(Page(tmp_path / "r.html").tables["beside-0"][0][1])
    words = rd.plot.forest.data(plan)["words"]
    assert words.str.endswith("; skewed").tolist() == [True, False]


# -- a gate


def test_a_picture_of_a_gate_says_for_whom_it_passes(tmp_path):
    """334 users have 1 to 5 lists; those with more are not among them."""
    draw, n = np.random.default_rng(1), 1000
    user = np.repeat(np.arange(n), 1 + np.arange(n) % 5)[:n]
    base = pd.DataFrame({"user_id": user, "s": np.arange(n), "ndcg@10": 0.5})
    new = base.assign(**{"ndcg@10": 0.6 + 0.1 * draw.normal(size=n)})
    gate = rd.gate(new, base, {"ndcg@10": -0.02}, user_col=["user_id", "s"])
    assert gate.verdict == "pass"
    (reason,) = gate.table["reason"]
    assert reason == "holds for users with up to 5 lists, the most that was seen"
    assert rd.plot.forest.data(gate)["words"].str.endswith(f"pass, budget −0.02, {reason}").all()
    lines, badge = card(tmp_path, gate=gate)
    assert badge == ("good", "pass")
    assert reason in lines["Which"]


# -- a job


@pytest.mark.parametrize(("change", "rings"), [("line", 0), ("step", 1)])
def test_a_drift_has_no_ring_of_a_new_level(change, rings, tmp_path):
    night = np.arange(200)
    spread = 0.1 * np.random.default_rng(7).normal(size=200)
    values = 10 + spread - (0.006 * night if change == "line" else 0.5 * (night >= 120))
    days = pd.date_range("2026-01-01", periods=200)
    own = {"date": days, "job": "", "column": "hitrate@1", "value": values, "se": 0.1, "unlike": ""}
    nights = pd.DataFrame(own).assign(ci_low=values - 0.2, ci_high=values + 0.2)
    history = object.__new__(rd.diagnostics.History)
    vars(history).update(_values=nights, summary=nights, since=days[0], _series=[])
    found = history.changes().iloc[0]
    assert found["verdict"].startswith("drifts" if change == "line" else "worse")
    assert rd.plot.history.data(history)["changed"].sum() == rings
    table = history.changes()
    back = pd.read_csv(_csv(table, tmp_path))
    words = [rd.plot.forest.data(one)["words"].tolist() for one in (table, back)]
    assert words[0] == words[1]
    assert f"from {found['changed']:%Y-%m-%d}" in words[0][0]
    assert card(tmp_path, experiment={"": table}) == card(tmp_path, experiment={"": back})
