"""What the card says, held against tables that were computed beside it."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.cli import main
from recdf.judge.verdict import turned

from .planted import card_of
from .test_sentences import section

pytestmark = pytest.mark.usefixtures("without_pictures")


def lists(rates, n=400, seed=0, segments=None):
    """True and pred of models that find the one relevant item, 0, at the first place with some
    rate, which may be one for each user."""
    rng = np.random.default_rng(seed)
    users, luck = np.arange(n), rng.random(n)
    parts = []
    for name, rate in rates.items():
        # Half of the luck of a user is the same for all models.
        hit = (luck + rng.random(n)) / 2 < np.asarray(rate)
        items = np.where(hit, 0, 1 + users % 40)
        parts.append(pd.DataFrame({"model": name, "user_id": users, "item_id": items}))
    return pd.DataFrame({"user_id": users, "item_id": 0}), pd.concat(parts, ignore_index=True)


def evaluated(rates, metrics="hitrate@1", **options):
    return rd.evaluate(*lists(rates, **options), metrics, by="model")


def card(tmp_path, *given, **options):
    return card_of(rd.report(*given, path=tmp_path / "r.html", overwrite=True, **options))


def test_the_call_of_the_readme_names_the_baseline(tmp_path):
    result = evaluated({"new": 0.6, "old": 0.4, "odd": 0.2}, ["hitrate@1", "ndcg@1"])
    pairs = result.compare_models(baseline="old", details=True)
    lines, _, badge = card(tmp_path, result, comparison=pairs)
    assert badge == "better"
    assert "new is better than the baseline old on hitrate@1" in lines["Which"].replace(" :", ":")
    assert "better on ndcg@1" in lines["By how much"]
    for wrong in ("No baseline was named", "Nothing was compared"):
        assert wrong not in str(lines)
    assert lines["So"] == "Ship new to a test."


def test_a_model_whose_verdict_says_worse_is_not_plainly_among_those_that_are_not_worse(tmp_path):
    """The lists that "half" has are those of "old", and it lacks every other one."""
    true, pred = lists({"old": 0.6, "new": 0.57}, 200, seed=1)
    half = pred[(pred["model"] == "old") & (pred["user_id"] % 2 == 0)].assign(model="half")
    result = rd.evaluate(true, pd.concat([pred, half]), "hitrate@1", by="model")
    said = "worse, but no difference shown where both have lists"
    assert result.compare_models(baseline="old")["verdict"].tolist() == [
        said,
        "no difference shown",
    ]
    for base, others, how in (
        ("old", f"new , half ({said})", "p-values"),
        (None, f"half ({said})", "over all 3 pairs"),
    ):
        which = card(tmp_path, result, baseline=base)[0]["Which"]
        assert f"Not shown to be worse than old : {others} ({how}" in which


def test_without_a_baseline_both_numbers_are_seen_from_the_same_model(tmp_path):
    true, pred = lists({"a": 0.4, "b": 0.6})
    pred = pred[~((pred["model"] == "b") & (pred["user_id"] % 5 == 0))]
    result = rd.evaluate(true, pred, "hitrate@1", by="model")
    row = result.compare_models(details=True).iloc[
        0
    ]  # b against a, or a against b: the page says b − a
    sign = 1 if row["model"] == "b" else -1
    lines, _, _ = card(tmp_path, result)
    assert lines["By how much"].startswith(f"b − a : {sign * row['diff']:+.3f}".replace("-", "−"))
    both = result.per_user.pivot(index="user_id", columns="model", values="hitrate@1")
    both = both[both.index % 5 != 0].mean()
    said = f"Where both have lists, hitrate@1 is {both['b']:.3f} against {both['a']:.3f}: "
    assert f"{said}{both['b'] - both['a']:+.3f}" in lines["What could overturn it"]


def test_a_row_that_is_turned_twice_is_the_row():
    true, pred = lists({"a": 0.4, "b": 0.6})
    pred = pred[~((pred["model"] == "b") & (pred["user_id"] % 5 == 0))]
    row = (
        rd.evaluate(true, pred, "hitrate@1", by="model")
        .compare_models(details=True)
        .iloc[0]
        .to_dict()
    )
    again = turned(turned(row))
    assert list(again)
    assert again["verdict"] == row["verdict"]
    for name, value in row.items():
        assert again[name] == value or pd.isna(value) or again[name] == pytest.approx(value)
    other = turned(row)
    assert (other["model"], other["wins"], other["diff"]) == ("a", row["losses"], -row["diff"])
    assert {row["effect"], other["effect"]} in ({"better", "worse"}, {"none"})


@pytest.mark.long
@pytest.mark.parametrize("baseline", ["old", None])
def test_which_names_all_that_are_not_shown_to_be_worse(tmp_path, baseline):
    result = evaluated({"new": 0.62, "old": 0.35, "near": 0.61, "far": 0.4})
    table = result.compare_models(details=True)  # all pairs, Holm's method over all six
    best = result.summary.set_index("model")["value"].idxmax()
    own = [
        row if row["model"] == best else turned(row)
        for row in table.to_dict("records")
        if best in (row["model"], row["baseline"])
    ]
    alike = {row["baseline"] for row in own if row["effect"] != "better"}
    assert alike == {"near"} or best == "near"
    lines, _, _ = card(tmp_path, result, baseline=baseline)
    if baseline is None:
        assert (
            f"No difference shown: {best} against the second best, {alike.pop()}" in lines["Which"]
        )
    else:
        said = f"Not shown to be worse than {best} : {alike.pop()} (over all 6 pairs"
        assert said in lines["Which"]
        assert "it is not shown to be better than" in lines["So"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("share", "kind"), [(0.67, "error"), (0.05, "warning"), (0.0, "better")], ids=str
)
def test_a_leak_withholds_or_tempers_the_badge(tmp_path, share, kind):
    true, pred = lists({"new": 0.6, "old": 0.4})
    result = rd.evaluate(true, pred, "hitrate@1", by="model")
    seen = pd.DataFrame({"user_id": range(400), "item_id": 50})
    # Item 0 is known, and the least popular one.
    others = pd.DataFrame({"user_id": range(1000, 1081), "item_id": np.arange(1, 82) // 2})
    train = pd.concat([seen, others, true.head(int(share * 400))])
    found = rd.audit(true, pred, ["hitrate"], 1, train=train, by="model")
    lines, look, badge = card(tmp_path, result, baseline="old", check=found)
    assert look == kind
    if share:
        assert f"{share:.0%} of the test rows stand in train" in badge
        assert lines["So"].startswith("Do not act")
    if kind == "error":
        assert badge == "withheld: 67% of the test rows stand in train"
        assert lines["Which"].partition("train ")[2].startswith("Nothing is decided.")
        assert lines["So"] == "Do not act: 67% of the test rows stand in train."
    if not share:
        assert (badge, lines["So"]) == ("better", "Ship new to a test.")


@pytest.mark.long
def test_for_whom_worse_names_every_form_of_worse(tmp_path):
    users = np.arange(600)
    part = np.array(["x", "y", "z"])[users % 3]
    true, pred = lists({"new": np.where(part == "x", 0.2, 0.65), "old": 0.4}, n=600)
    # Where new lacks lists of z, it is worse over all of them, and not where both have lists.
    gone = (pred["model"] == "new") & (part[pred["user_id"]] == "z") & (pred["user_id"] % 4 > 0)
    result = rd.evaluate(true, pred[~gone], "hitrate@1", by="model")
    segments = pd.DataFrame({"user_id": users, "part": part})
    table = result.compare_models(baseline="old", segments=segments, by="part", details=True)
    forms = table.set_index("part")["verdict"]
    assert forms["x"] == "worse"
    assert "but better where both have lists" in forms["z"]
    lines, _, _ = card(tmp_path, result, baseline="old", segments=segments)
    worse = lines["For whom worse"]
    assert "worse in 2 of 3 segments: part = x: worse" in worse
    assert f"part = z: {forms['z']}" in worse
    assert "part = y" not in worse
    table = section(tmp_path / "r.html", "segments")
    assert table.index("part = x") < table.index("part = y")
    forms = table.partition("verdict")[2]
    assert max(map(forms.index, ("part = x", "part = z"))) < forms.index("part = y")


@pytest.mark.long
def test_carried_columns_are_segments(tmp_path):
    true, pred = lists({"new": 0.6, "old": 0.4})
    land = pred["user_id"].map(lambda user: ["fi", "se"][user % 2])
    result = rd.evaluate(true, pred.assign(land=land), "hitrate@1", by="model", carry="land")
    lines, _, _ = card(tmp_path, result, baseline="old")
    assert "shown to be worse in none of 2 segments" in lines["For whom worse"]


@pytest.mark.long
def test_a_model_without_rows_lacks_its_lists(tmp_path):
    true, pred = lists({"new": 0.6, "old": 0.4})
    some = pred[(pred["model"] == "old") | (pred["user_id"] < 125)]
    parts = {
        name: rd.evaluate(true, rows.drop(columns="model"), "hitrate@1", users="pred")
        for name, rows in some.groupby("model")
    }
    lines, _, _ = card(tmp_path, parts, baseline="old")
    assert "new lacks 275 of 400 (68.8%)" in lines["What could overturn it"]
    assert "Every model has" not in str(lines)
    assert "undefined" not in str(lines)


def test_few_lists_say_how_many_more_are_needed(tmp_path):
    result = evaluated({"new": 0.6, "old": 0.4}, n=12)
    lines, _, badge = card(tmp_path, result, baseline="old")
    assert badge == "too few lists to tell"
    assert lines["So"] == "Collect 18 more lists at least: a verdict needs 30."


@pytest.mark.long
def test_an_open_difference_says_how_many_more_lists_would_show_it(tmp_path):
    result = evaluated({"new": 0.53, "old": 0.5}, n=300, seed=4)
    row = result.compare_models(baseline="old", details=True).iloc[0]
    assert row["effect"] == "none"
    assert row["diff"] > 0
    lines, _, _ = card(tmp_path, result, baseline="old")
    # The half width of the interval and .84 standard errors, as large as the difference.
    half = (row["ci_high"] - row["ci_low"]) / 2
    needed = 300 * ((half + 0.8416 * row["se"]) / row["diff"]) ** 2 - 300
    said = int(lines["So"].split("about ")[1].split(" more")[0].replace(",", ""))
    assert needed <= said <= 1.1 * needed + 1
    assert lines["So"].startswith("Keep old")


@pytest.mark.long
def test_ties_that_move_nothing_have_no_span(tmp_path):
    true, pred = lists({"new": 0.6, "old": 0.4})
    pred = pred.assign(score=1.0)
    more = pred.assign(item_id=60 + pred["user_id"] % 9, score=0.0)
    pred = pd.concat([pred, more, more.assign(item_id=more["item_id"] + 10)], ignore_index=True)
    result = rd.evaluate(true, pred, "hitrate@1", by="model")
    check = rd.check(true, pred, 1, by="model")
    lines, _, _ = card(tmp_path, result, baseline="old", check=check)
    assert "could be" not in lines["What could overturn it"]
    assert lines["So"] == "Ship new to a test."  # what changes nothing asks for nothing


@pytest.mark.long
def test_long_names_are_short_on_the_card_and_stay_different(tmp_path):
    one, two = "n" * 300 + "1", "n" * 300 + "2"
    lines, _, _ = card(tmp_path, evaluated({one: 0.6, two: 0.4}), baseline=two)
    assert max(map(len, lines["Which"].split())) <= 60
    shown = {word for word in lines["Which"].split() if word.startswith("nnn")}
    assert len(shown) == 2


@pytest.mark.long
def test_a_name_cannot_hold_the_marks_of_a_name(tmp_path):
    evil = "new\ue001<i>\ue000"
    path = rd.report(evaluated({evil: 0.6, "old": 0.4}), tmp_path / "r.html", baseline="old")
    page = path.read_text(encoding="utf-8")
    assert "<bdi><b>new⟨U+E001⟩&lt;i&gt;⟨U+E000⟩</b></bdi> is better than" in page
    assert "\ue000" not in page
    assert "<i>" not in page


@pytest.mark.long
@pytest.mark.parametrize(("rate", "verdict"), [(0.75, "pass"), (0.2, "fail"), (0.5, "undecided")])
def test_a_gate_has_a_page_whose_badge_is_its_verdict(tmp_path, rate, verdict):
    true, pred = lists({"new": rate, "old": 0.5}, n=200)
    own, base = (
        rd.evaluate(true, pred[pred["model"] == name], "hitrate@1") for name in ("new", "old")
    )
    gate = rd.gate(own, base, {"hitrate@1": -0.02})
    lines, _, badge = card(tmp_path, gate=gate)
    assert (badge, gate.verdict) == (verdict, verdict)
    said = {"pass": "Replace the baseline", "fail": "Do not replace the baseline."}
    assert lines["So"].startswith(said.get(verdict, "Do not replace the baseline yet"))
    result = rd.evaluate(true, pred, "hitrate@1", by="model")
    lines, _, badge = card(tmp_path, result, baseline="old", gate=gate)
    assert "too few" in badge or ("the gate" in badge) == (verdict != "pass")


@pytest.mark.long
def test_a_page_of_several_tables_asks_for_what_the_worst_of_them_needs(tmp_path):
    true, pred = lists({"new": 0.6}, n=60)
    for night in range(1, 5):
        part = rd.evaluate(true, pred.drop(columns="model"), "hitrate@1")
        part.to_parquet(tmp_path / "job" / f"2026-01-0{night}")
    # No item of pred is one of true, which is an error.
    found = rd.check(true, pred.drop(columns="model").assign(item_id=999), 1)
    assert "error" in set(found["severity"])
    history = rd.diagnostics.History(tmp_path / "job")
    lines, kind, badge = card(tmp_path, history=history, check=found)
    assert kind == "error"
    assert badge.startswith("1 error")
    assert lines["So"] == "Mend the data before anything is compared."
    lines, _, _ = card(tmp_path, history=history)
    assert lines["So"] == "Do nothing now: wait for more nights."


def test_a_withheld_effect_says_what_was_checked(tmp_path):
    users = pd.DataFrame({"user_id": range(600), "variant": ["A"] * 150 + ["B"] * 450})
    users["clicks"] = np.random.default_rng(0).normal(1, 0.5, 600)
    table = rd.compare_variants(
        users, "clicks", control="A", expected={"A": 1, "B": 1}, details=True
    )
    lines, kind, badge = card(tmp_path, experiment=table)
    assert (kind, badge) == ("error", "invalid")
    assert "Checked: the sample ratio" in lines["By how much"]
    assert lines["So"].startswith("Do not act")


def test_a_sample_ratio_that_does_not_fit_was_checked(tmp_path):
    users = pd.DataFrame({"user_id": range(1700), "variant": ["A"] * 1000 + ["B"] * 700})
    users["clicks"] = np.random.default_rng(0).poisson(3, 1700)
    effects = rd.compare_variants(users, "clicks", control="A", expected={"A": 1, "B": 1})
    path = rd.report(path=tmp_path / "r.html", experiment=effects)
    said = " ".join(card_of(path)[0].values())
    assert "do not fit the plan" in said
    assert "Checked: the sample ratio. Not checked here: users without metrics" in said


def test_users_without_metrics_were_looked_for_where_there_are_none(tmp_path):
    users = pd.DataFrame({"user_id": range(600), "variant": ["A", "B"] * 300})
    health = rd.experiments.experiment_health(users[["user_id"]], users, expected={"A": 1, "B": 1})
    assert health["missing_p"].isna().all()
    path = rd.report(path=tmp_path / "r.html", health=health)
    said = section(path, "validity")
    assert "Users without metrics: 0.0%, 0.0%." in said
    assert "Checked: the sample ratio, users without metrics. Not checked here: effects" in said
    assert "covariates" not in said


def test_codes_of_a_table_that_was_written_are_read(tmp_path):
    users = pd.DataFrame({"user_id": range(600), "variant": ["A", "B"] * 300})
    users["clicks"] = np.random.default_rng(0).normal(1, 0.5, 600)
    table = rd.compare_variants(users, "clicks", control="A", expected={"A": 1, "B": 1})
    table.to_csv(tmp_path / "t.csv", index=False)
    read = pd.read_csv(tmp_path / "t.csv")  # empty texts are nulls there
    pages = [card(tmp_path, experiment=one) for one in (table, read)]
    assert pages[0] == pages[1]
    for name, cell in {"remarks": "skew", "effect": "good", "withheld": [1]}.items():
        odd = table.astype(object)
        odd.at[0, name] = cell
        with pytest.raises(rd.DataError, match="no code of a comparison"):
            card(tmp_path, experiment=odd)


@pytest.mark.long
def test_bounds_of_a_role_and_intervals_of_an_effect_are_told_apart(tmp_path):
    users = pd.DataFrame({"user_id": range(600), "variant": ["A", "B"] * 300})
    users["clicks"] = np.random.default_rng(0).normal(1, 0.5, 600)
    users["sales"] = users["clicks"] + 1
    table = rd.compare_variants(
        users, ["clicks", "sales"], control="A", expected={"A": 1, "B": 1}, details=True
    )
    roles = {"clicks": "success", "sales": ("guardrail", "-10%")}
    path = rd.report(path=tmp_path / "r.html", experiment=table, roles=roles)
    page = path.read_text(encoding="utf-8")
    assert "two-sided 95 % intervals, beside the bounds of the roles" in page
    assert "one-sided" in page[page.index("Roles: bounds") : page.index("Effects: differences")]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_all_that_shows_a_comparison_says_the_same(tmp_path, capsys, seed):
    rates = {"new": [0.75, 0.5, 0.2][seed], "old": 0.5}
    result = evaluated(rates)
    row = result.compare_models(baseline="old", details=True).iloc[0]
    _, _, badge = card(tmp_path, result, baseline="old")
    says = {"better": "better", "none": "no difference shown", "worse": "keep the baseline"}
    assert badge in (says[row["effect"]], "keep the baseline")
    mark = {"better": "+", "worse": "−", "none": ""}[row["effect"]]
    board = rd.leaderboard(result, baseline="old")
    assert board.frame.set_index("model")["marks"]["new"] == mark
    shown = {"better": "⁺", "worse": "⁻", "none": ""}[row["effect"]]
    for text in (str(board), board.to_markdown()):
        line = next(one for one in text.splitlines() if "new" in one)
        assert (shown in line) if shown else ("⁺" not in line and "⁻" not in line)
    html = board._repr_html_()
    assert (f"<sup>{mark}</sup>" in html) if mark else ("<sup>" not in html)
    assert ("$^{" in board.to_latex()) == bool(mark)
    assert row["verdict"] in result.compare_models(baseline="old", details=True)._repr_html_()
    result.to_parquet(tmp_path / "results")
    assert main(["compare", str(tmp_path / "results"), "--baseline", "old"]) == 0
    assert row["verdict"] in capsys.readouterr().out
    assert main(["leaderboard", str(tmp_path / "results"), "--baseline", "old"]) == 0
    printed = next(one for one in capsys.readouterr().out.splitlines() if "new " in one)
    assert (mark.replace("−", "-") in printed or shown in printed) if mark else True
    out = tmp_path / "command.html"
    assert main(["report", str(tmp_path / "results"), "--baseline", "old", "--out", str(out)]) == 0
    assert card_of(out)[2] == badge


@pytest.mark.long
def test_another_truth_withholds_the_badge(tmp_path):
    true, pred = lists({"new": 0.6, "old": 0.4})
    other = true.assign(item_id=np.where(true["user_id"] < 100, 7, 0))
    parts = {
        name: rd.evaluate(
            truth, pred[pred["model"] == name].drop(columns="model"), "hitrate@1", users="all"
        )
        for name, truth in (("new", true), ("old", other))
    }
    lines, kind, badge = card(tmp_path, parts, baseline="old")
    row = rd.compare_models(parts, baseline="old", details=True).iloc[0]
    assert row["withheld"] == "other_truth"
    assert (kind, badge) == ("warning", "withheld")
    assert lines["So"] == "Do not act: the two were not evaluated on the same truth."
    assert "The comparison carries the warning “other truth”" in lines["How sure"]


@pytest.mark.long
def test_lists_that_both_lack_are_counted_as_what_they_are(tmp_path):
    true, pred = lists({"new": 0.6, "old": 0.4})
    result = rd.evaluate(true, pred[pred["user_id"] >= 25], "hitrate@1", by="model")
    lines, _, _ = card(tmp_path, result, baseline="old")
    said = "Paired t tests on 400 lists, where a list without recommendations counts as 0;"
    assert lines["How sure"].startswith(said)
    assert "that both models have" not in lines["How sure"]
    lacks = "new lacks 25 of 400 (6.2%), old lacks 25 of 400 (6.2%)"
    assert lacks in lines["What could overturn it"]


def arms(**metrics):
    """600 users in A and B, and metrics of so much more in B."""
    draw, b = np.random.default_rng(0), np.arange(600) % 2
    users = pd.DataFrame({"user_id": range(600), "variant": np.where(b, "B", "A")})
    return users.assign(**{name: draw.normal(1, 0.5, 600) + by * b for name, by in metrics.items()})


@pytest.mark.long
def test_a_harm_whose_verdict_is_withheld_tempers_the_badge(tmp_path):
    users = arms(clicks=0.4, sales=-0.4)
    users.loc[(users["variant"] == "B") & (users["user_id"] % 5 == 1), "sales"] = np.nan
    plan = {"control": "A", "expected": {"A": 1, "B": 1}, "nan": "drop", "details": True}
    table = rd.compare_variants(users, ["clicks", "sales"], **plan)
    assert table["withheld"].tolist() == ["", "unequal_missing"]
    assert table["ci_high"].iloc[1] < 0
    lines, kind, badge = card(tmp_path, experiment=table)
    assert (kind, badge) == ("warning", "better, but perhaps worse on sales")
    assert lines["So"] == "Do not act yet: settle first whether sales is worse."
    gain = rd.compare_variants(users.assign(sales=-users["sales"]), ["clicks", "sales"], **plan)
    assert card(tmp_path, experiment=gain)[2] == "better"


@pytest.mark.long
def test_a_withheld_loss_on_another_metric_tempers_the_badge_of_a_model(tmp_path):
    true, pred = lists({"new": 0.6, "old": 0.4})
    result = rd.evaluate(true, pred, ["hitrate@1", "recall@1"], by="model")
    table = result.compare_models(baseline="old")
    loss = table["metric"] == "recall@1"
    own = {"withheld": "few_units", "effect": "", "verdict": "check: few units decide"}
    for name, value in {**own, "diff": -0.2, "ci_low": -0.3, "ci_high": -0.1}.items():
        table.loc[loss, name] = value
    _, kind, badge = card(tmp_path, result, comparison=table)
    assert (kind, badge) == ("warning", "better, but perhaps worse on recall@1")


@pytest.mark.long
def test_harms_of_every_table_are_told_and_those_of_other_treatments_temper_nothing(tmp_path):
    users = arms(clicks=0.4, ms=0.4)
    plan = {"control": "A", "expected": {"A": 1, "B": 1}}
    table = rd.compare_variants(users, "clicks", **plan)
    slow = rd.experiments.compare_quantiles(
        users, "ms", quantiles=[0.5], smaller_is_better="ms", **plan
    )
    lines, _, badge = card(tmp_path, experiment={"": table, "quantiles": slow})
    assert badge == "better, but worse on ms p50"
    assert "Worse: B against A on ms p50: worse" in lines["For whom worse"]
    lines, _, badge = card(
        tmp_path, experiment={"": table, "quantiles": slow.assign(treatment="C")}
    )
    assert badge == "better"
    assert "Worse: C against A on ms p50: worse" in lines["For whom worse"]


@pytest.mark.parametrize(("metric", "tempers"), [("clicks", True), ("sales", False)])
def test_a_test_that_rejects_too_often_tempers_the_badge_of_its_metric(tmp_path, metric, tempers):
    table = rd.compare_variants(arms(clicks=0.4), "clicks", control="A", expected={"A": 1, "B": 1})
    tried = rd.experiments.aa_test(arms(clicks=0.0), "clicks", n=100)
    tried = tried.assign(metric=metric, effect="rejects_often", verdict="rejects too often")
    lines, _, badge = card(tmp_path, experiment={"": table, "splits": tried})
    assert badge == ("better, but its test does not hold" if tempers else "better")
    assert f"{metric}, no cap: rejects too often" in lines["What could overturn it"]


def test_so_of_a_plan_names_the_largest_number(tmp_path):
    users = arms(clicks=0.0, sales=0.0)
    plan = rd.experiments.plan_experiment(users, ["clicks", "sales"], rel_effect=0.02)
    n = int((plan["n_control"] + plan["n_treatment"]).max())
    lines, _, badge = card(tmp_path, experiment=plan)
    assert badge == "plan"
    assert lines["So"] == f"Run it with {n:,} users, and decide at the end alone."


def test_columns_that_say_nothing_are_left_out(tmp_path):
    plan = rd.experiments.plan_experiment(arms(clicks=0.0), ["clicks"], rel_effect=0.02)
    page = rd.report(path=tmp_path / "r.html", experiment=plan).read_text(encoding="utf-8")
    assert "Plan: Users that are needed" in page
    assert ">what<" not in page
    assert "Recommendations: Plan" in page
    table = rd.compare_variants(arms(clicks=0.0), "clicks", control="A", expected={"A": 1, "B": 1})
    roles = rd.experiments.role_verdicts(table, {"clicks": "success"})
    rd.report(path=tmp_path / "roles.html", experiment=roles)
    assert ">margin<" not in (tmp_path / "roles.html").read_text(encoding="utf-8")


def test_a_reason_is_said_once(tmp_path):
    """Few lists, few that differ, and fewer than the test was tried with are one reason."""
    shop = rd.sample_shop()
    few = shop.true["user_id"].unique()[:26]
    true, pred = (one[one["user_id"].isin(few)] for one in (shop.true, shop.pred))
    result = rd.evaluate(true, pred, ["ndcg", "recall"], k=10, by="model")
    table = result.compare_models(baseline="popularity")
    assert table["remarks"].str.contains("few_lists; few_lists_differ; few_differ").any()
    path = rd.report(result, tmp_path / "r.html", baseline="popularity")
    page, board = path.read_text(encoding="utf-8"), str(rd.leaderboard(result, baseline="knn"))
    for said in (page, board):
        assert "fewer than 30 users are compared" in said
        assert "fewer than 20 users" not in said
        assert "fewer than 50 users" not in said


def test_metrics_without_a_value_for_each_list_keep_no_baseline(tmp_path):
    true, pred = lists({"new": 0.6, "old": 0.4})
    result = rd.evaluate(true, pred, ["coverage@1", "hhi@1"], by="model", items=range(50))
    for baseline in ("new", "old"):
        lines, _, badge = card(tmp_path, result, baseline=baseline)
        assert badge == "no verdict"
        assert "has no value per user to test" in lines["Which"]


def test_a_comparison_with_another_baseline_says_nothing_of_this_one(tmp_path):
    result = evaluated({"new": 0.6, "old": 0.4, "odd": 0.2})
    pairs = result.compare_models(baseline="old")
    alone = pairs[pairs["model"] == "odd"]
    lines, _, badge = card(tmp_path, result, comparison=alone, baseline="new")
    assert badge == "no verdict"
    assert "in the comparison that was given" in lines["Which"]
    path = rd.report(result, path=tmp_path / "b.html", comparison=pairs, baseline="odd")
    page = path.read_text(encoding="utf-8")
    board = page.partition("Leaderboard")[2]
    assert "odd" in board
    assert "is worse than" not in board
