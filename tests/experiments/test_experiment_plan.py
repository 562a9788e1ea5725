"""A plan in a file: what it says, and how each deviation from it is named."""

import hashlib

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.errors import OptionError
from recdf.experiments.decide.decide_experiment import plan_sentence

EX = rd.experiments
TEXT = """
hypothesis = "Longer lists bring more clicks"
primary = "ctr"
control = "A"
unit = "user_id"
segments = ["country"]
method = "t"
n = 4000
looks = 1
[guardrails]
spend = "-5%"
"""


@pytest.fixture
def read(tmp_path):
    def of(text=TEXT, **changes):
        for name, value in changes.items():
            lines = [
                f"{name} = {value}" if line.startswith(f"{name} ") else line
                for line in text.splitlines()
            ]
            text = "\n".join(lines)
        path = tmp_path / "plan.toml"
        path.write_text(text, encoding="utf-8")
        return EX.read_plan(path)

    return of


@pytest.fixture(scope="module")
def users():
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"user_id": range(4000), "variant": ["A", "B"] * 2000})
    for name, effect in (("ctr", 0.5), ("spend", 0), ("load", 0)):
        frame[name] = draw.normal(10, 3, 4000) + effect * (frame["variant"] == "B")
    return frame


def compared(frame, **options):
    options = {"control": "A", "expected": {"A": 1, "B": 1}} | options
    return rd.compare_variants(frame, ["ctr", "spend", "load"], **options, details=True)


RAN = {"unit": "user_id", "segments": ["country"], "looks": 1}


def test_a_plan_gives_the_roles_and_its_hash(read, users, tmp_path):
    plan = read()
    found = EX.decide_experiment(compared(users), roles=plan, ran=RAN).iloc[0]
    same = EX.decide_experiment(
        compared(users), roles={"ctr": "success", "spend": ("guardrail", "-5%")}
    ).iloc[0]
    assert found[same.index].to_dict() == same.to_dict()
    assert found["decision"] == "ship"
    assert found["deviations"] == ""
    assert found["plan"] == hashlib.sha256((tmp_path / "plan.toml").read_bytes()).hexdigest()
    judged = EX.role_verdicts(compared(users), plan)
    assert judged["role"].tolist() == ["success", "guardrail", "diagnostic"]


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("changes", "options", "ran", "said"),
    [
        ({"control": '"B"'}, {}, {}, "control A instead of B"),
        ({"n": "9000"}, {}, {}, "stopped early: 4,000 users instead of 9,000"),
        ({"n": "3000"}, {}, {}, "ran on: 4,000 users instead of 3,000"),
        ({"n": "3900"}, {}, {}, ""),
        (
            {},
            {"test": "permutation", "n_resamples": 200},
            {},
            "ctr: test permutation instead of t; spend: test permutation instead of t",
        ),
        ({}, {}, {"unit": ["shop"]}, "unit shop instead of user_id"),
        ({}, {}, {"segments": []}, "segments none instead of country"),
        ({}, {}, {"looks": 3}, "3 looks instead of 1"),
        (
            {"looks": '"any"'},
            {},
            {},
            "the test does not hold at every look (sequential_n), as planned",
        ),
        ({"looks": '"any"'}, {"sequential_n": 4000}, {}, ""),
        ({}, {"confidence": 0.9}, {}, "confidence 0.9 instead of 0.95"),
        ({"primary": '["ctr", "cvr"]'}, {}, {}, "cvr was not compared"),
    ],
)
def test_each_deviation_is_named(read, users, changes, options, ran, said):
    found = EX.decide_experiment(compared(users, **options), roles=read(**changes), ran=RAN | ran)
    assert found["deviations"].tolist() == [said]


def test_without_its_primary_metric_an_experiment_keeps_running(read, users):
    for changes in ({}, {"spend": "'-50%'"}):
        text = TEXT if changes else TEXT.partition("[guardrails]")[0]
        found = EX.decide_experiment(compared(users), roles=read(text, primary="'cvr'"), ran=RAN)
        assert found["decision"].tolist() == ["keep running"]
        assert found["deviations"].tolist() == ["cvr was not compared"]


def test_a_plan_that_was_not_followed_stands_in_the_decision(read, users):
    table = compared(users)
    found = EX.decide_experiment(table, roles=read(n="9000"), ran=RAN).iloc[0]
    assert (found["effect"], found["decision"]) == ("ship_not_as_planned", "ship, not as planned")
    worse = table.assign(effect=table["effect"].replace({"better": "worse"}))
    kept = EX.decide_experiment(worse, roles=read(n="9000"), ran=RAN).iloc[0]
    assert (kept["effect"], kept["decision"]) == ("do_not_ship", "do not ship")


def test_what_nobody_knows_of_a_plan_is_not_as_planned(read, users):
    told = EX.decide_experiment(compared(users), roles=read(), ran=RAN).iloc[0]
    digest = told["plan"][:12]
    assert plan_sentence(told) == f"Plan {digest}: as planned"
    ran = {name: RAN[name] for name in ("unit", "segments")}
    silent = EX.decide_experiment(compared(users), roles=read(), ran=ran).iloc[0]
    assert silent["unknown"] == "looks"
    assert plan_sentence(silent) == f"Plan {digest}: no deviation is known; not known: looks"
    assert silent["decision"] == "ship"


def test_several_deviations_stand_side_by_side(read, users):
    three = users.assign(variant=np.array(["A", "B", "C"])[np.arange(4000) % 3])
    table = compared(three, expected={"A": 1, "B": 1, "C": 1}, confidence=0.9)
    found = EX.decide_experiment(table, roles=read(), ran={"looks": 2})
    assert (
        found["deviations"].tolist() == ["2 looks instead of 1; confidence 0.9 instead of 0.95"] * 2
    )


@pytest.mark.long
def test_users_whose_metric_is_null_and_clusters_are_counted(read, users):
    gaps = users.assign(
        **{name: users[name].where(users.index % 10 > 0) for name in ("ctr", "spend")}
    )
    found = EX.decide_experiment(compared(gaps, nan="drop"), roles=read(), ran=RAN)
    assert found["deviations"].tolist() == [""]
    shops = users.assign(shop=users.index // 8 * 2 + (users["variant"] == "B"))
    table = compared(shops, cluster="shop")
    assert EX.decide_experiment(table, roles=read(n="1000"), ran=RAN)["deviations"].tolist() == [""]
    found = EX.decide_experiment(table, roles=read(n="2000"), ran=RAN)["deviations"].tolist()
    assert found == ["stopped early: 1,000 clusters instead of 2,000"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("primary = 'ctr'", "no hypothesis"),
        ("hypothesis = 'x'", "no primary"),
        (
            "hypothesis = 'x'\nprimary = 'ctr'\nguardrail = 1",
            "'guardrail', which no plan has.*guardrails",
        ),
        (
            "hypothesis = 'x'\nprimary = ['ctr', 'spend']\n[guardrails]\nspend = '-2%'",
            r"plan has \['spend'\] as primary and as guardrails; name each in one of them",
        ),
        ("hypothesis = x", "no TOML file"),
        ("hypothesis = 'x'\nprimary = 'ctr'\nmethod = 'anova'", "anova"),
        ("hypothesis = 'x'\nprimary = 'ctr'\nn = 'many'", "n='many'"),
        ("hypothesis = 'x'\nprimary = 'ctr'\nlooks = 0", "looks=0"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(read, text, said):
    with pytest.raises(OptionError, match=said):
        read(text)


@pytest.mark.long
def test_the_report_says_whether_the_plan_was_kept(read, users, tmp_path):
    plan = read(n="9000")
    page = rd.report(path=tmp_path / "r.html", experiment=compared(users), roles=plan).read_text(
        encoding="utf-8"
    )
    assert (
        f"Plan {plan.digest[:12]}: not as planned: stopped early: 4,000 users instead of 9,000; "
        "not known: unit, segments, looks." in page
    )
