"""The report as text: what it says, that it holds aggregates only, and that names stay letters.

What a browser makes of it is tested in `browser/`.
"""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import recdf as rd

from .page_read import Page

SECTIONS = [
    "verdict",
    "leaderboard",
    "curves",
    "comparison",
    "trade-offs",
    "users",
    "exposure",
    "segments",
    "experiment",
    "positions",
    "off-policy",
    "data-health",
    "definitions",
    "reproducibility",
]


@pytest.mark.long
def test_every_section_stands_in_order(full):
    page, _ = full
    assert list(page.sections) == SECTIONS
    links = [value for name, value in page.attributes if name == "href"]
    assert links[1 : len(SECTIONS) + 1] == [f"#{name}" for name in SECTIONS]


@pytest.mark.long
@pytest.mark.usefixtures("without_pictures")
def test_a_section_without_its_table_is_left_out(result, tmp_path):
    page = Page(rd.report(result, tmp_path / "r.html"))
    assert list(page.sections) == [
        s
        for s in SECTIONS
        if s not in ("exposure", "segments", "experiment", "positions", "off-policy", "data-health")
    ]


@pytest.mark.long
def test_the_headline_says_which_model_by_how_much_and_for_whom(full, result):
    page, _ = full
    compared = result.compare_models(
        ["ndcg@10", "recall@10", "first_rank@10"],
        baseline="popularity",
        missing="drop",
        details=True,
    )
    row = compared.set_index(["metric", "model"]).loc[("ndcg@10", "knn")]
    text = page.text("verdict")
    assert row["verdict"] in text
    assert f"{row['diff']:+.3f}"[:6] in text
    assert f"{row['wins']} of {row['n_users']} users gain and {row['losses']} lose" in text
    assert "the best mean of 3 models" in text
    assert "p-values adjusted by Holm's method for 6 tests" in text
    assert "segment" in text
    assert "off-policy estimates carry a flag" in text
    assert "Data health:" in text


def test_the_tables_hold_the_numbers(full, result):
    page, tables = full
    head, *rows = page.tables["leaderboard"][0]
    at = head.index("ndcg@10 ↑")
    for row in rows:
        value = result.summary.set_index(["model", "metric", "k"]).loc[
            (row[0].split()[0], "ndcg", 10), "value"
        ]
        assert row[at].startswith(f"{value:.3f}")
    summary = result.summary
    assert len(rows) * (len(head) - 1) == len(summary)  # every metric at every k
    effects = page.tables["experiment"][0]
    first = tables["experiment"]["adjusted"].iloc[0]
    assert [effects[1][0], effects[1][-1].lstrip("▲▼● ")] == [first["metric"], first["verdict"]]
    findings = page.tables["data-health"][0]
    assert [row[4] for row in findings[1:]] == tables["check"]["effect"].tolist()  # whole texts
    names = [row[0] for row in page.tables["definitions"][0][1:]]
    assert names == ["ndcg@10", "recall@10", "first_rank@10", "coverage@10"]


def test_a_flagged_estimate_never_stands_without_its_flag(full):
    page, _ = full
    head, *rows = page.tables["off-policy"][0]
    flags = [row[head.index("flags")] for row in rows]
    assert flags[0].startswith("! few rewards, low ess fewer than 100 effective rewards")
    assert flags[1].startswith("! low ess few rows carry the weight")  # in words too
    assert flags[2] == "✓ no flag"
    bars = re.findall(r'<svg class="bar (\w+)"[^>]*aria-label="(ips|snips|dr)', page.source)
    assert [kind for kind, _ in bars] == [
        "warning",
        "warning",
        "better",
    ]  # a flagged one has no look of a result
    assert "2 of 3 off-policy estimates carry a flag" in page.text("off-policy")


@pytest.mark.long
@pytest.mark.usefixtures("without_pictures")
def test_a_broken_sample_ratio_is_said_first(small, full, tmp_path):
    _, tables = full
    broken = tables["health"].assign(srm_flag="sample_ratio", srm_p=1e-9)
    page = Page(
        rd.report(small, tmp_path / "r.html", experiment=tables["experiment"], health=broken)
    )
    assert "do not fit the plan" in page.text("experiment")
    assert "do not fit the plan" in page.text("verdict")
    unknown = Page(rd.report(small, tmp_path / "u.html", experiment=tables["experiment"]))
    assert "The sample ratio was not checked" in unknown.text("verdict")


@pytest.mark.long
def test_no_row_of_a_user_is_in_the_page(full, small, tmp_path):
    page, tables = full
    assert not re.search(r"\bu\d{4}\b", page.source)
    assert not re.search(r"\bi\d{4}\b", page.source)
    asked = rd.report(small, tmp_path / "e.html", check=tables["check"], examples=True)
    assert re.search(r"\bu\d{4}\b", asked.read_text(encoding="utf-8"))


# -- the headline's rule


def two_models(difference, n=40, better="larger"):
    """Per-user values of `new` and `old`: `new` is better by `difference` for all but a few
    users."""
    rng = np.random.default_rng(1)
    base = rng.random(n)
    values = np.concatenate([base, np.clip(base + difference + rng.normal(0, 0.02, n), 0, None)])
    result = rd.evaluate(
        {i: [1] for i in range(n)},
        pd.DataFrame(
            {"model": ["old"] * n + ["new"] * n, "user_id": [*range(n)] * 2, "item_id": 1}
        ),
        {"score": "ndcg@1" if better == "larger" else "first_rank@1"},
        by="model",
    )
    per_user = result.per_user.assign(score=values)
    summary = rd.summarize(per_user, by="model", user_col=["model", "user_id"], metrics=["score"])
    summary["k"] = summary["k"].fillna(1)
    return type(result)(per_user, summary, result.spec)


@pytest.mark.long
@pytest.mark.parametrize(
    ("difference", "better", "options", "words"),
    [
        (0.2, "larger", {"baseline": "old"}, "new is better than the baseline old on score"),
        (0.2, "larger", {}, "new is better than the second best, old on score"),
        (
            -0.2,
            "larger",
            {"baseline": "old"},
            "No model is better than the baseline old , which has the best mean",
        ),
        (0.0, "larger", {"baseline": "new"}, "not shown"),
        (0.2, "smaller", {"baseline": "new"}, "old is better than the baseline new on score"),
        pytest.param(
            -0.2,
            "smaller",
            {},
            "new is better than the second best, old on score",
            marks=pytest.mark.long,
        ),
    ],
)
@pytest.mark.usefixtures("without_pictures")
def test_the_rule_of_the_headline(difference, better, options, words, tmp_path):
    page = Page(rd.report(two_models(difference, better=better), tmp_path / "r.html", **options))
    text = page.text("verdict").replace(" :", ":")
    if words == "not shown":
        assert (
            "better than the baseline" not in text
            or "not shown to be better" in text
            or "No model" in text
        )
    else:
        assert words in text
    if not options:
        assert "No baseline was named" in text


@pytest.mark.long
@pytest.mark.usefixtures("without_pictures")
def test_gains_and_losses_follow_the_direction(tmp_path):
    table = two_models(-0.2, better="smaller")
    text = Page(rd.report(table, tmp_path / "r.html", baseline="old")).text("verdict")
    wide = table.per_user.pivot(index="user_id", columns="model", values="score")
    gain = int((wide["new"] < wide["old"] - 1e-12).sum())
    assert f"{gain} of 40 users gain" in text


@pytest.mark.long
@pytest.mark.usefixtures("without_pictures")
def test_one_model_and_no_direction_have_no_verdict(shop, tmp_path):
    one = rd.evaluate(shop.true, shop.pred[shop.pred["model"] == "knn"], "ndcg")
    assert "nothing is compared" in Page(rd.report(one, tmp_path / "1.html")).text("verdict")
    plain = rd.evaluate(shop.true, shop.pred, "popularity", by="model", log=shop.log)
    assert "There is no verdict" in Page(rd.report(plain, tmp_path / "2.html")).text("verdict")


@pytest.mark.long
@pytest.mark.usefixtures("without_pictures")
def test_with_one_model_the_experiment_has_the_headline(shop, full, tmp_path):
    """B earns more than A in the sample shop; the metrics have different cut-offs, and the first
    one comes first."""
    shown = rd.evaluate(
        shop.true, shop.shown, ["revenue@20", "ndcg@5"], users="pred", value_col="value"
    )
    _, tables = full
    effect, health = tables["experiment"]["adjusted"], tables["health"]
    row = effect.iloc[0]
    page = Page(rd.report(shown, tmp_path / "1.html", experiment=effect, health=health))
    verdict = page.text("verdict").replace(" :", ":")
    assert re.match(
        "Verdict Which ▲ better B is better than the control A on revenue@10 , unless 3 in [0-9]+ "
        r"users of the control have [0-9]+ or more \(covariate time not checked\) \(sample ratio "
        r"not checked\)\. By how much \+",
        verdict,
    )
    assert f"{row['n_treatment']} users against {row['n_control']}" in verdict
    assert "Sample ratio as planned" in verdict
    assert "revenue@20" in page.text("leaderboard")
    assert "ndcg@5" in page.text("leaderboard")
    broken = health.assign(srm_flag=True, srm_p=1e-9)
    page = Page(rd.report(shown, tmp_path / "2.html", experiment=effect, health=broken))
    assert "The verdict is withheld" in page.text("verdict")
    open_row = effect.assign(effect="none", verdict="no difference shown")
    page = Page(rd.report(shown, tmp_path / "3.html", experiment=open_row))
    assert "No difference shown: B against the control A" in page.text("verdict")


@pytest.mark.long
@pytest.mark.parametrize(
    ("moved", "word"), [("n_pred", "denominator differs"), ("hits@10", "few units decide")]
)
@pytest.mark.usefixtures("without_pictures")
def test_what_a_ratio_hides_withholds_the_headline(shop, full, tmp_path, moved, word):
    shown = rd.evaluate(
        shop.true, shop.shown, ["hits@10", "revenue@10"], users="pred", value_col="value"
    )
    users = shown.join_experiment(shop.assignment, missing="zero")
    treated = (users["variant"] == "B").to_numpy()
    if moved == "n_pred":
        users["n_pred"] *= np.where(treated, 3, 1)
    else:  # ten programs in the control
        users.loc[~treated & (np.cumsum(~treated) <= 10), "hits@10"] = 900
    effect = rd.compare_variants(
        users, {"ctr": ("hits@10", "n_pred")}, control="A", expected={"A": 1, "B": 1}, details=True
    )
    page = Page(rd.report(shown, tmp_path / "r.html", experiment=effect, health=full[1]["health"]))
    assert f"The verdict is withheld (check: {word})" in page.text("verdict")
    section = page.text("experiment")
    assert f"check: {word}" in section
    assert {"n_pred": " vs. ", "hits@10": "without them"}[moved] in section


@pytest.mark.long
@pytest.mark.usefixtures("without_pictures")
def test_every_metric_is_shown_at_the_cutoff_nearest_to_k(shop, tmp_path):
    result = rd.evaluate(shop.true, shop.pred, ["ndcg@3", "ndcg@8", "recall@2"], by="model")
    page = Page(rd.report(result, tmp_path / "r.html", k=7))
    head = page.source.split('id="leaderboard"')[1].split("</thead>")[0]
    heads = re.findall(r"<th scope=.col.([^>]*)>([^<]*)</th>", head)
    assert [name for attributes, name in heads if "data-off" not in attributes] == [
        "model",
        "ndcg@8 ↑",
        "recall@2 ↑",
    ]
    assert [name for attributes, name in heads if "data-off" in attributes] == [
        "ndcg@3 ↑"
    ]  # for a reader to choose


@pytest.mark.long
def test_a_gate_has_a_section_with_the_numbers_of_its_table(shop, result, tmp_path):
    own, base = (
        rd.evaluate(shop.true, shop.pred[shop.pred["model"] == name], ["ndcg@10", "recall@10"])
        for name in ("knn", "popularity")
    )
    gate = rd.gate(own, base, {"ndcg@10": "-2%", "recall@10": -0.01})
    page = rd.report(result, tmp_path / "r.html", gate=gate, baseline="popularity").read_text(
        encoding="utf-8"
    )
    assert f"Gate: {gate.headline}." in page
    for note in gate.notes:
        assert note in page
    rows = [line.split("  ") for line in repr(gate).splitlines() if line.startswith("pass")]
    for cells in rows:
        assert (
            page.count(f">{next(one.strip() for one in cells if '[' in one)}<") >= 1
        )  # in the table
    section = page[page.index('id="gate"') :]
    for words in rd.plot.forest.data(gate)["words"]:
        assert words.split("  ")[0] in section[section.index("<svg") :]  # in the picture
    with pytest.raises(TypeError, match=r"gate is a DataFrame; expected what rd\.gate returned"):
        rd.report(result, tmp_path / "x.html", gate=gate.table)
    for wrong, says in (
        (
            replace(gate, table=result.summary),
            r"gate has no column 'segment'.*expected what rd\.gate returned",
        ),
        (replace(gate, checks=result.summary), r"checks of the gate has no column 'check'"),
        (replace(gate, table=gate.table.drop(columns="reason")), r"gate has no column 'reason'"),
        (replace(gate, table=gate.table.head(0)), "gate has no rows"),
        (
            replace(gate, table=gate.table.astype({"change": str})),
            r"gate\['change'\] is .*; expected numbers",
        ),
    ):
        with pytest.raises((rd.ColumnError, rd.DataError), match=says):
            rd.report(result, tmp_path / "x.html", gate=wrong)
        with pytest.raises((rd.ColumnError, rd.DataError), match=says):
            rd.plot.forest.data(wrong)


@pytest.mark.slow
def test_examples_draw_the_lists_of_the_first_users(shop, small, tmp_path):
    lists = rd.diagnostics.hit_table(shop.true, shop.pred, 3, by="model", missed=True)
    page = rd.report(small, tmp_path / "r.html", baseline="popularity", examples=lists)
    said = page.read_text(encoding="utf-8").partition('id="examples"')[2].partition("</section>")[0]
    assert said.count("<h3>Lists of ") == 5
    first = lists[(lists["user_id"] == lists["user_id"].iloc[0])]
    for item in first.loc[first["model"].isin(["knn", "popularity"]), "item_id"]:
        assert f"{item}</text>" in said
    assert "missed</text>" in said
    assert "random" not in said  # the headline is about the two others
