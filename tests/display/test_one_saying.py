"""What one place shows of a verdict, no other place hides: pages, decisions, pictures and commands
say the same of rows that are withheld, unsound, clustered or without details."""

import numpy as np
import pandas as pd
import pytest
from cli.command import run

import recdf as rd
from recdf.cli.stored_runs import decided
from recdf.experiments.decide.decide_experiment import decisions
from recdf.judge.cautions.table import CAUTIONS

from .page_read import Page
from .test_what_is_seen import EQUAL, UNCHECKED, card, spenders, with_covariate

pytestmark = pytest.mark.usefixtures("without_pictures")

E = rd.experiments
OF_A = {"control": "A"}
SURE = {"control": "A", "expected": EQUAL}


# -- decisions


def test_each_reason_of_a_decision_is_one_line_whatever_its_verdict_says():
    draw = np.random.default_rng(6)
    data = with_covariate(n=4000).assign(price=draw.choice([4.99, 9.99, 19.99], 4000))
    table = E.compare_quantiles(data, ["price", "y"], quantiles=0.5, details=True, **OF_A)
    roles = dict.fromkeys(table["metric"], "success")
    assert "; price p50 stands on steps, compare the share at" in table["verdict"].iloc[0]
    (row,) = decisions(table, roles, None)
    assert [one.split(":")[0] for one in row["reasons"]] == [
        "price p50",
        "y p50",
        "the sample ratio was not checked",
    ]
    assert UNCHECKED not in "".join(row["reasons"])
    assert E.decide_experiment(table, roles=roles)["reasons"].tolist() == [
        "; ".join(row["reasons"])
    ]
    lines = decided(table, roles, {})[1].splitlines()
    assert [line.strip()[:9] for line in lines[2:]] == ["price p50", "y p50: be", "the sampl"]


def test_a_reason_of_a_table_without_details_has_the_numbers_of_its_sentence():
    users = with_covariate().assign(w=lambda f: 1 + f.index // 2 % 3)
    table = rd.compare_variants(users, "y", weight_col="w", **OF_A)
    words = "better, for users with a weight of up to 3"
    assert table["verdict"].iloc[0].startswith(f"{words}, unless 3 in 1,000 users of ")
    assert table["verdict"].iloc[0].endswith(UNCHECKED)
    reasons = E.decide_experiment(table, roles={"y": "success"})["reasons"].iloc[0]
    assert words in reasons
    assert "heavier unseen" not in reasons


def test_a_metric_that_is_not_better_among_all_is_said_of_no_users():
    """Its own p is below 0.05, and that of three metrics is not."""
    draw = np.random.default_rng(5)
    data = with_covariate(0.0, 600).assign(w=lambda f: 1 + f.index // 2 % 3)
    b = data["variant"] == "B"
    names = ["m0", "m1", "m2"]
    for name in names:
        data[name] = draw.normal(size=600) + 0.19 * b * (name == "m0")
    table = rd.compare_variants(data, names, weight_col="w", correction="none", **SURE)
    assert table["remarks"].tolist() == ["heavier_unseen; unbounded", "", ""]
    judged = E.role_verdicts(table, dict.fromkeys(names, "success"))
    assert judged["verdict"].tolist() == ["no difference shown"] * 3
    assert judged["remarks"].tolist() == [""] * 3
    assert judged["note"].iloc[0].startswith("better alone")


def test_a_reason_quotes_no_effect_of_a_verdict_that_is_withheld():
    table = rd.compare_variants(with_covariate(), "y", details=True, **SURE)
    held = table.assign(effect="", withheld="tiny", remarks="tiny", verdict="check: tiny arms")
    assert E.decide_experiment(held, roles={"y": "success"})["reasons"].tolist() == [
        "y: check: tiny arms"
    ]


# -- a health table that finds what the comparison was not told


def lost_users(n=2000, lost=300):
    """Users of an assignment, of whom A has more, and health, which tells it."""
    data = with_covariate(n=n)
    more = pd.DataFrame({"user_id": range(n, n + lost), "variant": "A"})
    assigned = pd.concat([data[["user_id", "variant"]], more])
    return data, E.experiment_health(data[["user_id", "y"]], assigned, expected=EQUAL)


def test_a_broken_sample_ratio_withholds_what_was_compared_without_it(tmp_path):
    data, health = lost_users()
    table = rd.compare_variants(data, "y", details=True, **OF_A)
    assert table["effect"].tolist() == ["better"]
    roles = {"y": "success"}
    ships = E.decide_experiment(table, roles=roles)
    assert ships["decision"].tolist() == ["ship"]
    wrong = "invalid: sample ratio"
    for more in ({}, {"roles": roles}):
        lines, badge = card(tmp_path, experiment=table, health=health, **more)
        assert badge == ("error", "invalid")
        assert f"({wrong}): B against the control A on y." in lines["Which"]
        assert lines["So"].startswith("Do not act")
        assert "Ship" not in "".join(lines.values())
    lines, badge = card(tmp_path, experiment={"": ships}, health=health)
    assert badge == ("error", "invalid")
    assert f"B : {wrong}.".replace(" :", ":") in lines["Which"]
    assert lines["So"] == "Do not act on B : the experiment is invalid.".replace(" :", ":")
    judged = E.role_verdicts(table, roles)
    lines, _ = card(tmp_path, experiment={"effects": table, "roles": judged}, health=health)
    assert "y, B: better" not in " ".join(lines.values())
    lines, _ = card(tmp_path, spenders(), baseline="old", experiment=table, health=health)
    assert f"Experiment, B against A on y: {wrong}." in lines["Beside it"]


def test_missing_metrics_temper_a_decision_that_ships(tmp_path):
    data, health = lost_users()
    health["srm_flag"] = ""
    table = rd.compare_variants(data, "y", details=True, **SURE)
    lines, badge = card(tmp_path, experiment=table, health=health)
    assert badge == ("error", "invalid")
    assert "withheld (missing metrics): B against the control A on y." in lines["Which"]
    roles = {"y": "success"}
    decided = E.decide_experiment(table, roles=roles)
    for given in ({"experiment": table, "roles": roles}, {"experiment": {"": decided}}):
        lines, badge = card(tmp_path, health=health, **given)
        assert badge == ("warning", "ship, but metrics are missing")
        assert lines["So"] == "Do not act yet: find out why metrics are missing."


def test_health_withholds_segments_and_periods_too(tmp_path):
    data, health = lost_users()
    data = data.assign(land=data.index // 2 % 2, day=data.index // 2 % 3, assigned=0)
    by_land = E.segment_effects(rd.compare_variants(data, "y", by="land", **SURE))
    of = {"time_col": "day", "exposure_col": "assigned", "missing": "drop"}
    periods = E.effect_over_time(data, "y", **of, **SURE)
    given = {"over_time": periods, "experiment": {"": by_land}, "health": health}
    rd.report(path=tmp_path / "r.html", **given)
    page = Page(tmp_path / "r.html")
    assert page.text("segments").count("invalid: sample ratio") >= 2
    assert "difference between segments shown" not in page.text("segments")
    assert "trend shown" not in page.text("verdict")


# -- pages of one table


def test_segments_of_models_have_the_badge_of_their_verdict(tmp_path):
    draw, user = np.random.default_rng(1), np.arange(900) // 2
    rows = pd.DataFrame({"user_id": user, "model": ["old", "new"] * 450, "land": user % 3})
    new = rows["model"] == "new"
    for moves, words in ((0.0, "no difference between segments shown"), (0.5, "differs between")):
        rows["ndcg@10"] = draw.uniform(0, 0.3, 900) + new * (0.1 + moves * (rows["land"] == 2))
        table = rd.compare_models(rows, "ndcg@10", baseline="old", by="land")
        lines, badge = card(tmp_path, experiment={"": E.segment_effects(table)})
        assert badge[1].startswith(words)
        assert f"ndcg@10, new against old: {words}" in lines["Which"]
        assert "no verdict" not in "".join(lines.values())


def test_periods_alone_have_the_badge_of_their_trend(tmp_path):
    data = with_covariate().assign(day=lambda f: f.index // 2 % 3, assigned=0)
    of = {"time_col": "day", "exposure_col": "assigned", "missing": "drop"}
    table = E.effect_over_time(data, "y", **of, **SURE)
    assert set(table["trend_verdict"]) == {"no trend shown"}
    assert card(tmp_path, over_time=table)[1] == ("open", "no trend shown")
    held = table.assign(trend_withheld="tiny", trend_verdict="check: tiny arms")
    assert card(tmp_path, over_time=held)[1] == ("warning", "check: tiny arms")


def test_clusters_are_counted_as_clusters_with_and_without_details(tmp_path):
    data = with_covariate(n=2400).assign(house=lambda frame: frame["user_id"] % 24)
    for details in (True, False):
        table = rd.compare_variants(data, "y", cluster="house", details=details, **SURE)
        table.to_parquet(tmp_path / "t.parquet")
        for one in (table, pd.read_parquet(tmp_path / "t.parquet")):
            rd.report(path=tmp_path / "r.html", overwrite=True, experiment=one)
            page = Page(tmp_path / "r.html")
            assert "12 clusters against 12" in page.text("verdict")
            assert "24 clusters" in page.source
            assert "clusters" in page.tables["experiment"][0][0]
    users = rd.compare_variants(data, "y", **SURE)
    assert "1,200 users against 1,200" in card(tmp_path, experiment=users)[0]["How sure"]


# -- verdicts that are withheld


def few_lists():
    """Two models of 20 users, of which `new` hits more; and a comparison, which is withheld."""
    result = spenders(20)
    table = result.compare_models(baseline="old")
    assert table["withheld"].tolist() == ["few_lists"]
    return result, table


def test_a_card_says_that_a_withheld_difference_is_no_finding(tmp_path):
    result, _ = few_lists()
    lines, badge = card(tmp_path, result, baseline="old")
    assert badge == ("warning", "too few lists to tell")
    assert "The verdict is withheld, so that this is no finding." in lines["By how much"]
    lines, _ = card(tmp_path, spenders(), baseline="old")
    assert "no finding" not in lines["By how much"]


def test_ties_and_seeds_move_no_difference_that_is_withheld(tmp_path):
    user = np.arange(20)
    true = pd.DataFrame({"user_id": user, "item_id": 0})
    found = {"new": user % 5 > 0, "old": user % 5 < 2}
    rows = [
        true.assign(model=model, seed=seed, item_id=np.where(hit, seed, 1 - seed), score=1.0)
        for model, hit in found.items()
        for seed in (0, 1)
    ]
    pred = pd.concat(rows)
    tied = rd.evaluate(true, pred, "mrr", k=2, by="model")
    checked = rd.check(true, pred, 2, by="model")
    lines, _ = card(tmp_path, tied, baseline="old", check=checked)
    assert "Under other orders of equal scores: " in lines["What could overturn it"]
    assert "The difference " not in lines["What could overturn it"]
    # What a model finds with one seed, it misses with the other.
    seeds = rd.evaluate(true, pred, "mrr", k=2, by=["model", "seed"])
    board = rd.leaderboard(seeds, baseline="old", seed_col="seed")
    assert set(board.comparisons["withheld"]) == {"few_lists"}
    assert " differ by " not in str(board)


def test_the_name_of_a_bar_and_of_a_shade_has_the_verdict(tmp_path):
    result, _ = few_lists()
    rd.report(result, tmp_path / "r.html", baseline="old")
    bars = [text for name, text in Page(tmp_path / "r.html").attributes if name == "aria-label"]
    assert any(one.startswith("new vs. old on revenue@1, check: too few lists: ") for one in bars)
    ax = rd.plot.pairs(result.compare_models())
    said = [one for patch in ax.patches for one in patch.recdf_says[1]]
    assert [one.rpartition(", ")[2] for one in said] == ["check: too few lists"] * 2


def test_rows_of_estimates_say_whose_numbers_they_are(tmp_path):
    table = rd.compare_variants(with_covariate(), "y", details=True, **SURE)
    held = table.assign(effect="", withheld="tiny", remarks="tiny", verdict="check: tiny arms")
    roles = E.role_verdicts(held, {"y": "success"})
    lines, _ = card(tmp_path, experiment={"": roles})
    assert "check: tiny arms, by the numbers as they stand: success: +" in lines["Which"]
    roles = E.role_verdicts(table, {"y": "success"})
    assert "as they stand" not in card(tmp_path, experiment={"": roles})[0]["Which"]


def test_no_test_of_segments_is_quoted_where_their_verdict_is_withheld(tmp_path):
    data = with_covariate().assign(land=lambda f: f.index // 2 % 2)
    shares = data.drop(index=data.index[(data["variant"] == "B")][:500])
    table = E.segment_effects(rd.compare_variants(shares, "y", by="land", **SURE))
    assert set(table["withheld"]) == {"sample_ratio"}
    lines, _ = card(tmp_path, experiment={"": table})
    assert lines["Which"].endswith("y, B against A: invalid: sample ratio.")


def test_a_picture_of_past_experiments_has_no_slope_that_is_withheld():
    draw = np.random.default_rng(0)
    past = pd.DataFrame({"ndcg": draw.normal(size=6), "ndcg_se": 1.0, "ctr_se": 1.0})
    past["ctr"] = draw.normal(size=6)
    ax = rd.plot.proxy_metrics(past, offline="ndcg", online="ctr")
    below = next(one.get_text() for one in ax.texts if one.get_gid() == "caption")
    assert "slope" not in below
    assert "6 experiments" in below


# -- commands


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A result and an assignment in the working folder."""
    monkeypatch.chdir(tmp_path)
    shop = rd.sample_shop(n_users=400, n_items=100)
    names = ["revenue@10", "hits@10"]
    result = rd.evaluate(shop.true, shop.shown, names, users="pred", value_col="value")
    result.to_parquet("ab")
    shop.assignment.to_parquet("a.parquet")
    return "experiment", "ab", "--assignment", "a.parquet", "--control", "A", "--missing", "zero"


ROLES = "--role", "revenue@10=success", "--guardrail", "hits@10=-5%"


@pytest.mark.long
def test_a_report_says_which_command_makes_the_table_that_it_needs(capsys, shop):
    shop = *shop, "--larger-is-better", "hits@10"
    assert run(capsys, *shop, "--out", "short")[0] == 0
    report = "report", "--experiment", "short", "--out", "r.html"
    code, _, err = run(capsys, *report, *ROLES)
    assert code == 2
    assert err == (
        "recdf report: error: table has no column 'se_control'; make the comparison with recdf "
        "experiment RESULTS --assignment FILE --control NAME --details --out FOLDER\n"
    )
    assert run(capsys, *shop, "--details", "--out", "whole")[0] == 0
    assert run(capsys, "report", "--experiment", "whole", "--out", "w.html", *ROLES)[0] == 0


@pytest.mark.long
def test_a_report_of_a_folder_has_the_decision_that_is_in_it(capsys, shop, tmp_path):
    shop = *shop, "--larger-is-better", "hits@10", *ROLES
    code, out, _ = run(capsys, *shop, "--out", "decided")
    assert code == 0
    decision = pd.read_parquet("decided/decision.parquet").iloc[0]
    assert f"Decision, B vs. A: {decision['decision'].upper()}" in out
    assert run(capsys, "report", "--experiment", "decided", "--out", "r.html")[0] == 0
    page = Page(tmp_path / "r.html")
    assert f"B : {decision['decision']}. {decision['reasons']}." in page.text("verdict")
    assert "hits@10, B" in page.text("beside-0")


@pytest.mark.long
def test_every_warning_ends_a_command_that_is_to_fail_on_it(capsys, shop):
    log = pd.DataFrame({"user_id": range(300), "item_id": 1, "reward": [1.0] * 9 + [0.0] * 291})
    log = log.assign(propensity=[0.5, 0.01] * 150, target_propensity=0.5)
    log.to_parquet("log.parquet")
    code, _, err = run(capsys, "ope", "log.parquet", "--fail-on", "warning")
    assert (code, "few_rewards" in err) == (1, True)
    assert run(capsys, "ope", "log.parquet")[0] == 0
    plan = "plan", "ab", "--metric", "revenue@10", "--rel-effect", "2", "--control-share", "0.9"
    code, _, err = run(capsys, *plan, "--fail-on", "warning")
    assert (code, "revenue@10 (skewed)" in err) == (1, True)


def test_a_default_table_is_not_taken_for_one_of_an_earlier_release():
    table = rd.compare_variants(with_covariate(), "y", **SURE)
    with pytest.raises(rd.ColumnError, match="make the comparison with details=True"):
        E.role_verdicts(table, {"y": ("guardrail", "-2%")})


def test_a_note_has_the_words_of_its_cautions():
    data = with_covariate(n=2400).assign(house=lambda frame: frame["user_id"] % 24)
    table = rd.compare_variants(data, "y", cluster="house", details=True, **SURE)
    judged = E.role_verdicts(table, {"y": ("guardrail", -1)})
    assert judged["note"].tolist() == [CAUTIONS["few_clusters"].name]
