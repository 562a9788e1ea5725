"""Pages about an experiment or about off-policy estimates alone, and what an experiment's card
says."""

import re

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.cli import main

from .page_read import off_policy
from .planted import card_of
from .test_sentences import section

pytestmark = pytest.mark.usefixtures("without_pictures")

LINES = ["Which", "By how much", "How sure", "For whom worse", "What could overturn it", "So"]


def users(n=2000, effects=(("ndcg", 0.0), ("clicks", 0.0)), seed=0):
    rng = np.random.default_rng(seed)
    arm = rng.permutation(np.arange(n) % 3)
    frame = pd.DataFrame(
        {"user_id": range(n), "variant": np.array([*"ABC"])[arm], "land": ["x", "y"] * (n // 2)}
    )
    for name, effect in effects:
        frame[name] = rng.normal(1, 0.5, n) + effect * (arm == 1)
    return frame


def compared(frame, **options):
    names = [name for name in frame.columns if name not in ("user_id", "variant", "land")]
    options = {"control": "A", "expected": dict.fromkeys("ABC", 1)} | options
    return rd.compare_variants(frame, names, **options, details=True)


@pytest.mark.long
def test_validity_comes_first_with_what_was_checked(tmp_path):
    path = rd.report(path=tmp_path / "r.html", experiment=compared(users()))
    page = path.read_text(encoding="utf-8")
    assert page.index('id="validity"') < page.index('id="verdict"') < page.index('id="experiment"')
    said = section(path, "validity")
    assert "Checked: the sample ratio" in said  # expected= of the comparison is a check
    assert "was not checked" not in said
    assert "Not checked here: users without metrics" in said
    unknown = rd.report(path=tmp_path / "u.html", experiment=compared(users(), expected=None))
    assert "The sample ratio was not checked" in section(unknown, "validity")
    assert list(card_of(path)[0]) == LINES


@pytest.mark.long
def test_a_harm_stands_above_every_open_line(tmp_path):
    table = compared(users(effects=(("ndcg", 0.0), ("clicks", -0.4))))
    path = rd.report(path=tmp_path / "r.html", experiment=table)
    lines, kind, badge = card_of(path)
    assert (kind, badge) == ("worse", "harm on clicks")
    assert re.match(
        r"Worse: B against A on clicks: worse, unless 4 in \d+ users have [\d.]+ or more, −0\.",
        lines["For whom worse"],
    )
    rows = section(path, "experiment").split("verdict")[1]
    assert rows.index("clicks") < rows.index("ndcg")
    both = rd.report(
        path=tmp_path / "b.html",
        experiment=compared(users(effects=(("ndcg", 0.4), ("clicks", -0.4)))),
    )
    assert card_of(both)[1:] == ("warning", "better, but worse on clicks")


def test_an_invalid_experiment_shows_no_effect_in_large_type(tmp_path):
    table = compared(users(effects=(("ndcg", 0.9),)), expected={"A": 8, "B": 1, "C": 1})
    path = rd.report(path=tmp_path / "r.html", experiment=table)
    lines, kind, badge = card_of(path)
    assert (kind, badge) == ("error", "invalid")
    assert lines["By how much"].startswith("No effect is shown here")
    assert "%" not in " ".join(lines.values())
    assert "sample ratio sample ratio" not in section(path, "experiment")


@pytest.mark.long
def test_segments_are_counted_for_the_pair_of_the_headline(tmp_path):
    frame = users()
    path = rd.report(
        path=tmp_path / "r.html", experiment=compared(frame), segments=compared(frame, by="land")
    )
    said = card_of(path)[0]["For whom worse"]
    assert "B against A : shown to be worse in none of 2 segments." in said
    effects = rd.experiments.segment_effects(compared(frame, by="land"), details=True)
    q = effects.query("metric == 'ndcg' and treatment == 'B'").iloc[0]
    assert (
        f"ndcg, B against A: {q['verdict']} (Q = {q['q']:.4g} of 2 segments, p {q['p_adj']:.3f})."
        in said
    )
    assert "C against A: " not in said


def test_hidden_characters_of_a_segment_are_shown_by_their_numbers(tmp_path):
    frame = users(effects=(("ndcg", 0.4), ("clicks", -0.4))).assign(land="x\u202ey")
    path = rd.report(path=tmp_path / "r.html", experiment=compared(frame, by="land"))
    assert "\u202e" not in path.read_text(encoding="utf-8")
    lines, _, badge = card_of(path)
    assert "B is better than the control A on ndcg ( land = x⟨U+202E⟩y )" in lines["Which"]
    assert badge == "better, but worse on clicks (land = x⟨U+202E⟩y)"


@pytest.mark.long
def test_no_page_has_a_hidden_character_of_a_name(tmp_path):
    hidden = "a\u202eb"
    frame = users(effects=((f"m{hidden}", 0.4), (f"c{hidden}", -0.4))).replace("x", f"x{hidden}")
    frame["variant"] += hidden
    arms = {"control": f"A{hidden}", "expected": {f"{arm}{hidden}": 1 for arm in "ABC"}}
    table, within = (compared(frame, **arms, **by) for by in ({}, {"by": "land"}))
    roles = {f"m{hidden}": "success", f"c{hidden}": ("guardrail", "-2%")}
    x = rd.experiments
    health = x.experiment_health(frame, frame, expected=arms["expected"])
    alone = [
        {"experiment": {hidden: table, "land": x.segment_effects(within, details=True)}},
        {"experiment": table, "segments": within, "health": health, "roles": roles},
        {"experiment": x.role_verdicts(table, roles)},
        {"experiment": x.find_srm(frame, ["land"], expected=arms["expected"])},
        {"experiment": x.plan_experiment(frame, [*roles], rel_effect=0.05)},
        {"off_policy": off_policy().assign(policy=hidden, lift_ci_high=-0.001)},
    ]
    for i, given in enumerate(alone):
        path = rd.report(path=tmp_path / f"{i}.html", **given)
        assert "\u202e" not in path.read_text(encoding="utf-8"), given
    true = pd.DataFrame({"user_id": range(100), "item_id": 0})
    pred = pd.concat([true.assign(model=f"{i}{hidden}", item_id=true.index % i) for i in (1, 2)])
    result = rd.evaluate(true, pred, {f"m{hidden}": "hitrate@1"}, by="model")
    groups = pd.DataFrame({"user_id": range(100), "part": hidden})
    for baseline in (None, *result.per_user["model"].unique()):
        path = rd.report(
            result, tmp_path / "r.html", baseline=baseline, segments=groups, overwrite=True
        )
        assert "\u202e" not in path.read_text(encoding="utf-8"), baseline


def test_trust_is_the_badge_of_an_estimate(tmp_path):
    table = off_policy().assign(
        trust=["do not use: few rewards", "ok", "ok"],
        withheld=["few_rewards", "", ""],
        effect=["", "ok", "ok"],
    )
    # The estimate that may be trusted leads, wherever it stands in the table.
    mixed, _, badge = card_of(rd.report(path=tmp_path / "m.html", off_policy=table))
    assert badge == "ok"
    said = "has the largest value of the estimates that may be trusted (1 of 3)."
    assert f"new , estimated by dr, {said}" in mixed["Which"]
    assert mixed["So"] == "Test new online."
    path = rd.report(path=tmp_path / "r.html", off_policy=table.iloc[[0]])
    lines, kind, badge = card_of(path)
    assert lines["So"].startswith("Do not act: fewer than 100 effective rewards")
    assert (kind, badge) == ("error", "do not use: few rewards")
    assert lines["By how much"].startswith("No value is shown here")
    assert "fewer than 100 effective rewards" in lines["What could overturn it"]
    good = rd.report(path=tmp_path / "g.html", off_policy=table.iloc[[2]])
    assert card_of(good)[1:] == ("good", "ok")
    assert (
        "Value 0.0200 [0.0150, 0.0250], +0.0041 [+0.0010, +0.0070]"
        in card_of(good)[0]["By how much"]
    )


@pytest.mark.long
def test_variants_that_are_not_alike_are_not_sound(tmp_path):
    table = compared(users()).assign(withheld="shares_change", effect="", remarks="shares_change")
    page = rd.report(path=tmp_path / "r.html", experiment=table).read_text(encoding="utf-8")
    assert "not alike" in page
    assert "sound" not in section(tmp_path / "r.html", "validity").replace("sound?", "")
    parts = {"comparison": compared(users()), "segments": table.assign(land="x")}
    page = rd.report(path=tmp_path / "s.html", experiment=parts).read_text(encoding="utf-8")
    assert "not alike" not in page


def test_the_p_of_strata_is_corrected_for_their_number(tmp_path):
    n = {("x", "A"): 60, ("x", "B"): 40, ("y", "A"): 50, ("y", "B"): 50}
    groups = pd.DataFrame([key for key, times in n.items() for _ in range(times)])
    groups = groups.set_axis(["week", "variant"], axis=1).assign(user_id=range(200))
    even = {"A": 0.5, "B": 0.5}
    health = rd.experiments.experiment_health(
        groups[["user_id"]], groups, expected={"x": even, "y": even}, by="week"
    )
    said = section(rd.report(path=tmp_path / "r.html", health=health), "validity")
    # Of x, χ² = 2·10²/50 = 4 with p = 0.0455, and of y it is 0.
    assert "p = 0.091" in said


def test_the_command_makes_the_same_page(tmp_path, capsys):
    table = compared(users())
    table.to_parquet(tmp_path / "comparison.parquet")
    given = [
        "--experiment",
        str(tmp_path / "comparison.parquet"),
        "--out",
        str(tmp_path / "r.html"),
    ]
    assert main(["report", *given]) == 0
    own = rd.report(
        path=tmp_path / "own.html", experiment=pd.read_parquet(tmp_path / "comparison.parquet")
    )
    assert (tmp_path / "r.html").read_bytes() == own.read_bytes()
    assert main(["report"]) == 2
    assert "RESULTS" in capsys.readouterr().err


def test_a_page_without_models_refuses_what_is_about_them(tmp_path):
    with pytest.raises(rd.OptionError, match="baseline= is about the models of a result"):
        rd.report(path=tmp_path / "r.html", experiment=compared(users()), baseline="x")
    for nothing in (None, {}):
        with pytest.raises(TypeError, match="result is None"):
            rd.report(path=tmp_path / "r.html", experiment=nothing)


@pytest.mark.long
def test_metrics_and_examples_of_a_page(tmp_path):
    shop = rd.sample_shop()
    result = rd.evaluate(shop.true, shop.pred, ["ndcg", "recall", "mrr"], k=[5, 10], by="model")
    lists = rd.diagnostics.hit_table(shop.true, shop.pred, 5, by="model", missed=True)
    path = rd.report(
        result,
        tmp_path / "r.html",
        metrics=["recall", "ndcg@10"],
        examples=lists,
        baseline="popularity",
    )
    assert "on recall@10 ." in card_of(path)[0]["Which"]
    assert "mrr" not in section(path, "leaderboard")
    assert "holds rows of users" in path.read_text(encoding="utf-8")
    assert 'id="examples"' not in rd.report(result, tmp_path / "n.html").read_text(encoding="utf-8")


@pytest.mark.long
def test_forty_models_stay_below_a_megabyte_with_a_matrix_of_pairs(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {"user_id": np.repeat(np.arange(200), 5), "item_id": np.tile(np.arange(5), 200)}
    )
    pred = pd.concat(
        [rows.assign(model=f"mf_lr{i / 10_000:.4f}", score=rng.random(1000)) for i in range(1, 41)]
    )
    true = pd.DataFrame({"user_id": range(200), "item_id": rng.integers(0, 5, 200)})
    result = rd.evaluate(true, pred, ["ndcg", "recall", "mrr"], k=[1, 2, 5], by="model")
    path = rd.report(result, tmp_path / "r.html", k=2)
    assert path.stat().st_size < 1_000_000
    said = section(path, "comparison")
    assert "the model of the row against that of the column" in said
    table = result.compare_models("ndcg@2", details=True)
    shown = {"better": "▲", "worse": "▼", "no difference shown": "●"}
    for verdict, sign in shown.items():
        n = (
            2 * int((table["verdict"] == verdict).sum())
            if verdict == "no difference shown"
            else int(table["verdict"].isin(["better", "worse"]).sum())
        )
        assert said.split("withheld")[1].count(sign) == n


@pytest.mark.long
def test_twelve_users_are_too_few_to_tell(tmp_path):
    rng = np.random.default_rng(0)
    items = rng.integers(0, 2, 24)
    pred = pd.DataFrame(
        {"model": np.repeat(["a", "b"], 12), "user_id": [*range(12)] * 2, "item_id": items}
    )
    result = rd.evaluate({u: [1] for u in range(12)}, pred, ["hitrate@1", "recall@1"], by="model")
    path = rd.report(result, tmp_path / "r.html", baseline="a")
    assert card_of(path)[1:] == ("warning", "too few lists to tell")
    alike = rd.evaluate({u: [1] for u in range(12)}, pred.assign(item_id=1), "recall@1", by="model")
    assert "± 0.000" not in rd.report(alike, tmp_path / "s.html").read_text(encoding="utf-8")
    assert "± 0.000" not in str(rd.leaderboard(alike))


@pytest.mark.long
@pytest.mark.parametrize(
    ("effects", "kind", "decided"),
    [
        ((0.2, 0.0), "better", "ship"),
        ((0.2, -0.4), "worse", "do not ship"),
        ((0.0, 0.0), "open", "keep running"),
    ],
)
def test_the_page_says_the_decision_and_its_reasons(tmp_path, effects, kind, decided):
    table = compared(users(effects=(("ndcg", effects[0]), ("clicks", effects[1]))))
    roles = {"ndcg": "success", "clicks": ("guardrail", "-10%")}
    path = rd.report(path=tmp_path / "r.html", experiment=table, roles=roles)
    lines, found, badge = card_of(path)
    both = f"B: {decided}; C: keep running" if decided != "keep running" else decided
    assert (found, badge) == (kind, both)
    assert lines["So"].endswith(("do not ship C yet.", "do not ship B and C yet."))
    decision = rd.experiments.decide_experiment(table, roles=roles).iloc[0]
    assert f"B : {decided}. {decision['reasons']}." in lines["Which"]
    said = section(path, "experiment")
    assert said.index("Roles: bounds") < said.index("Effects: differences")
    assert "−10%" in said


def test_an_invalid_decision_quotes_no_effect(tmp_path):
    table = compared(users(effects=(("ndcg", 0.9),)), expected={"A": 8, "B": 1, "C": 1})
    lines, kind, badge = card_of(
        rd.report(path=tmp_path / "r.html", experiment=table, roles={"ndcg": "success"})
    )
    assert (kind, badge) == ("error", "invalid")
    assert lines["Which"].startswith("✕ invalid B : invalid: sample ratio.")
    with pytest.raises(rd.OptionError, match="pass experiment="):
        rd.report(path=tmp_path / "o.html", off_policy=off_policy(), roles={"ndcg": "success"})


def pair_of_arms(n=1200, effect=0.3):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"user_id": range(n), "variant": ["A", "B"] * (n // 2)})
    moved = effect * (frame["variant"] == "B")
    return frame.assign(clicks=rng.normal(2, 1, n) + moved, ms=rng.normal(9, 1, n))


@pytest.mark.parametrize(
    ("side", "can", "so"),
    [
        ("greater", "larger", "Ship B ."),
        ("less", "smaller", "Keep A . Test it two-sided"),
    ],
)
def test_one_sided_bounds_are_named_and_what_they_cannot_show(tmp_path, side, can, so):
    of = {"control": "A", "expected": {"A": 1, "B": 1}, "smaller_is_better": "ms"}
    table = rd.compare_variants(pair_of_arms(), ["clicks", "ms"], **of, alternative=side)
    lines, *_ = card_of(rd.report(path=tmp_path / "r.html", experiment=table))
    assert "(one-sided interval" in lines["By how much"]
    assert f"can show that B has {can} values than A , and nothing else" in lines["How sure"]
    assert lines["So"].startswith(so)


@pytest.mark.long
def test_bounds_of_roles_are_named_wherever_they_stand(tmp_path):
    of = {"control": "A", "expected": {"A": 1, "B": 1}, "smaller_is_better": "ms"}
    table = rd.compare_variants(pair_of_arms(), ["clicks", "ms"], **of, details=True)
    roles = {"clicks": "success", "ms": ("guardrail", "+5%")}
    judged = rd.experiments.role_verdicts(table, roles)
    path = rd.report(path=tmp_path / "r.html", experiment=judged)
    guard, success = (judged["metric"].tolist().index(name) for name in ("ms", "clicks"))
    words = rd.plot.forest.data(judged)["numbers"]
    assert "% ] one-sided" in words[guard].replace("%]", "% ]")
    assert "one-sided" not in words[success]
    assert f"{words[guard]}." in card_of(path)[0]["Which"]
    one = rd.compare_variants(
        pair_of_arms(), ["clicks", "ms"], **of, alternative="greater", details=True
    )
    page = rd.report(path=tmp_path / "o.html", experiment=one, roles=roles)
    assert "one-sided 95 % intervals, beside the bounds" in section(page, "experiment")
    assert "two-sided" not in section(page, "experiment")


@pytest.mark.long
def test_a_decision_to_ship_waits_for_a_test_that_holds(tmp_path):
    frame = pair_of_arms()
    of = {"control": "A", "expected": {"A": 1, "B": 1}}
    table = rd.compare_variants(frame, "clicks", **of, details=True)
    land = pd.DataFrame({"user_id": range(1200), "variant": ["A", "B"] * 600, "land": "x"})
    land.loc[(land["user_id"] % 4 == 1) & (land["user_id"] < 600), "land"] = "y"
    broken = rd.experiments.find_srm(land, ["land"], expected={"A": 1, "B": 1})
    given = {"": table, "levels": broken}
    lines, kind, badge = card_of(
        rd.report(path=tmp_path / "r.html", experiment=given, roles={"clicks": "success"})
    )
    assert (kind, badge) == ("warning", "ship, but a level breaks the sample ratio")
    assert lines["So"] == "Do not act yet: find out where its users are lost."
    decision = rd.experiments.decide_experiment(table, roles={"clicks": "success"})
    given = {"": decision, "levels": broken}
    assert card_of(rd.report(path=tmp_path / "d.html", experiment=given))[2] == badge
    frame = frame.assign(variant=np.where(frame["user_id"] % 2, frame["variant"], "A"))
    unchecked = rd.compare_variants(frame, "clicks", control="A", details=True)
    lines, _, badge = card_of(
        rd.report(path=tmp_path / "u.html", experiment=unchecked, roles={"clicks": "success"})
    )
    assert badge == "ship, but the sample ratio is not checked"
    assert lines["So"].startswith("Do not act yet")


@pytest.mark.long
@pytest.mark.parametrize("alone", [True, False])
def test_shrunken_effects_of_models_have_a_section(alone, shop, tmp_path):
    result = rd.evaluate(shop.true, shop.pred, "ndcg@10", by="model")
    users = shop.users[["user_id", "segment"]]
    table = result.compare_models(baseline="popularity", segments=users, by="segment", details=True)
    shrunken = rd.experiments.segment_effects(table)
    given = {"experiment": shrunken} if alone else {"segments": shrunken, "baseline": "popularity"}
    path = rd.report(None if alone else result, tmp_path / "r.html", **given)
    text = section(path, "segments")
    assert all(verdict in text for verdict in shrunken["verdict"])
    assert f"{shrunken['n_users'].iloc[0]:,}" in text


@pytest.mark.parametrize(
    ("withheld", "effect", "trust", "kind", "said", "action"),
    [
        (
            "few_rewards",
            "interval_only",
            "use the interval only: few rewards",
            "warning",
            "1 of 1 off-policy estimate carries a flag. Of 1 of them only the interval should be "
            "used: the value says little.",
            "Test new online.",
        ),
        (
            "few_rewards",
            "",
            "do not use: few rewards",
            "error",
            "1 of 1 off-policy estimate carries a flag. 1 of them should not be used: the value "
            "can be far off",
            "Do not act: fewer than 100 effective rewards",
        ),
        (
            "",
            "ok",
            "ok",
            "good",
            "1 of 1 off-policy estimate carries a flag. See the column trust.",
            "Test new online.",
        ),
    ],
)
def test_a_page_says_of_a_flag_what_trust_says(
    tmp_path, withheld, effect, trust, kind, said, action
):
    flags = "few_rewards, low_ess" if withheld else "same_policy"
    more = {"withheld": withheld, "effect": effect, "trust": trust, "flags": flags}
    path = rd.report(path=tmp_path / "r.html", off_policy=off_policy().iloc[[0]].assign(**more))
    card, *badge = card_of(path)
    assert badge == [kind, trust]
    assert card["So"].startswith(action)
    assert said in path.read_text(encoding="utf-8")
    allows = "its bounded interval allows for them" in card["What could overturn it"]
    assert allows == (effect == "interval_only")


def test_a_comparison_of_targets_is_no_estimate(tmp_path):
    log = pd.DataFrame(
        {"user_id": [1, 2], "item_id": ["a", "b"], "reward": [1, 0], "propensity": 0.5}
    )
    pred = pd.DataFrame({"model": ["x", "y"], "user_id": [1, 2], "item_id": ["a", "b"]})
    both = rd.ope.compare(rd.ope.target_from_recs(log, pred, by="model"))
    with pytest.raises(rd.ColumnError, match=r"expected what rd\.ope\.estimate"):
        rd.report(path=tmp_path / "r.html", off_policy=both)
