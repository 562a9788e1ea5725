"""`recdf gate`, as a pipeline calls it, and `recdf compare --fail-on worse`."""

import json
from xml.etree import ElementTree

import pandas as pd
import pytest
from cli.command import fails, run
from cli.shop import SHOP, models

import recdf as rd


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    """Folders new, old, bad and all, in the working folder."""
    monkeypatch.chdir(tmp_path)
    for folder, model in (("new", "knn"), ("old", "popularity"), ("bad", "random")):
        rd.evaluate(
            SHOP.true, SHOP.pred[SHOP.pred["model"] == model], ["ndcg@10", "recall@10"]
        ).to_parquet(folder)
    models().to_parquet("all")
    return tmp_path


GATE = ("gate", "new", "--baseline", "old", "--budget", "ndcg@10=-2%")


@pytest.mark.long
def test_pass_writes_what_a_pipeline_keeps(capsys):
    code, out, err = run(
        capsys,
        *GATE,
        "recall@10=-0.05",
        "--junit",
        "out.xml",
        "--summary",
        "out.md",
        "--out",
        "kept",
    )
    assert (code, err) == (0, "")
    assert out.startswith("Passed: 2 of 2 budgets are met")
    with open("out.md", encoding="utf-8") as file:
        assert file.read().startswith("### Passed: 2 of 2 budgets are met")
    with open("out.xml", encoding="utf-8") as file:
        assert 'tests="2"' in file.read()
    want = rd.gate("new", "old", {"ndcg@10": "-2%", "recall@10": -0.05}).table
    pd.testing.assert_frame_equal(pd.read_parquet("kept/gate.parquet"), want)
    with open("kept/run.json", encoding="utf-8") as file:
        record = json.load(file)
    assert record["exit"] == 0
    assert {"results", "baseline"} <= set(record["inputs"])


@pytest.mark.long
def test_exit_codes(capsys):
    undecided = ("gate", "new", "--baseline", "new", "--budget", "ndcg@10=-0.001")
    assert (
        run(capsys, "gate", "bad", "--baseline", "old", "--budget", "ndcg@10=-2%", "--out", "kept")[
            0
        ]
        == 1
    )
    assert pd.read_parquet("kept/gate.parquet")["verdict"].tolist() == ["fail"]
    assert run(capsys, *undecided, "--out", "open")[0] == 3
    with open("open/run.json", encoding="utf-8") as file:
        assert json.load(file)["exit"] == 3
    assert run(capsys, *undecided, "--undecided", "pass")[0] == 0
    assert run(capsys, *undecided, "--undecided", "fail")[0] == 1
    assert run(capsys, *undecided, "--undecided", "pass", "--junit", "o.xml")[0] == 0
    with open("o.xml", encoding="utf-8") as file:
        assert "<skipped" in file.read()


@pytest.mark.long
def test_bad_calls_are_named(capsys):
    assert "nowhere" in fails(
        capsys, "gate", "nowhere", "--baseline", "old", "--budget", "ndcg@10=-2%"
    )
    assert "nowhere" in fails(
        capsys, "gate", "new", "--baseline", "nowhere", "--budget", "ndcg@10=-2%"
    )
    assert "allows what is better" in fails(capsys, *GATE[:-1], "ndcg@10=+2%")
    assert "expected a metric and what it may lose" in fails(capsys, *GATE[:-1], "ndcg@10")
    assert "expected a share" in fails(capsys, *GATE[:-1], "ndcg@10=-2pp")
    assert "at another k" in fails(capsys, *GATE[:-1], "ndcg@5=-2%")
    assert "country" in fails(capsys, *GATE, "--segment", "country")
    assert "without --by" in fails(capsys, *GATE, "--model", "knn")
    assert "--budget" in fails(capsys, "gate", "new", "--baseline", "old")


def test_the_budget_that_is_broken_is_named(capsys):
    code, _, err = run(capsys, "gate", "bad", "--baseline", "old", "--budget", "ndcg@10=-2%", "-q")
    assert code == 1
    assert err.startswith("recdf gate: exit code 1: ndcg@10: fail, -")
    assert err.isascii()
    assert err.count("\n") == 1


@pytest.mark.long
def test_one_of_several_recommenders(capsys):
    call = ("gate", "all", "--model", "knn", "--baseline", "all", "--baseline-model", "popularity")
    code, out, _ = run(capsys, *call, "--budget", "ndcg@10=-2%", "--format", "json")
    assert code == 0
    want = rd.gate("new", "old", {"ndcg@10": "-2%"}).table
    assert json.loads(out)[0]["change_low"] == pytest.approx(want["change_low"].iloc[0])


@pytest.mark.long
def test_segments_that_were_carried(capsys):
    for folder, model in (("n", "knn"), ("o", "popularity")):
        pred = SHOP.pred[SHOP.pred["model"] == model].merge(SHOP.users[["user_id", "segment"]])
        rd.evaluate(SHOP.true, pred, "ndcg@10", carry={"segment": "constant"}).to_parquet(folder)
    call = ("gate", "n", "--baseline", "o", "--budget", "ndcg@10=-20%", "ndcg@10[segment]=-50%")
    code, out, _ = run(capsys, *call)
    assert "[segment=" in out
    assert code in (0, 3)


@pytest.mark.slow
def test_a_shell_stops_where_the_gate_does(shell):
    """With `set -e` the deployment behind the gate runs only if it passed."""
    for candidate, after in (("new", "deployed\n"), ("bad", "")):
        gate = f"recdf gate {candidate} --baseline old --budget ndcg@10=-2% -q"
        done = shell(f"set -e; {gate}; echo deployed")
        assert (done.stdout, done.returncode) == (after, 0 if after else 1)


@pytest.mark.long
def test_compare_fails_on_worse(capsys):
    call = ("compare", "all", "--model", "random", "--baseline", "popularity")
    assert run(capsys, *call)[0] == 0
    code, _, err = run(capsys, *call, "--fail-on", "worse")
    assert code == 1
    said = (
        "recdf compare: exit code 1, --fail-on worse: ndcg@10, random vs. popularity: worse (and 1 "
        "more)\n"
    )
    assert err == said
    assert (
        run(
            capsys,
            "compare",
            "all",
            "--model",
            "knn",
            "--baseline",
            "popularity",
            "--fail-on",
            "worse",
        )[0]
        == 0
    )


@pytest.mark.long
def test_messages_are_in_the_words_of_the_command(capsys):
    for budget, says in (
        (["ndcg@10=-2pp"], "--budget ndcg@10=-2pp; expected a share"),
        (["ndcg@10=+2%"], "--budget ndcg@10=+2% allows what is better"),
        (["ndcg@10=-2"], "did you mean '−2%'?"),
        (["ndcg@10[country=DE=-2%"], "expected the name of a metric, or of one in a segment"),
        (["ndcg@10=-2%", "ndcg@10 =-3%"], "ndcg@10 has two budgets"),
        (["NDCG=-2%"], "did you mean 'ndcg@10'?"),
        (["ndcg=-2%"], "did you mean 'ndcg@10'?"),
        (["ndcg@10[country]=-2%"], "candidate has no column 'country'; it has 'user_id'"),
        (["ndcg@10[country]=-2%"], "carry=, --carry in a shell"),
    ):
        assert says in fails(capsys, *GATE[:-1], *budget)
    assert "did you mean" not in fails(capsys, *GATE[:-1], "mrr@10=-2%")
    assert "all has several models (knn, popularity, random); name one: --model" in fails(
        capsys, "gate", "all", "--baseline", "old", "--budget", "ndcg@10=-2%"
    )
    assert "name one: --baseline-model" in fails(
        capsys, "gate", "new", "--baseline", "all", *GATE[-2:]
    )


@pytest.mark.long
def test_spaces_do_not_matter(capsys):
    code, out, _ = run(capsys, *GATE[:-1], " ndcg@10 = -2 % ")
    assert (code, out) == run(capsys, *GATE)[:2]


@pytest.mark.long
def test_recommendations_beside_the_results(capsys, tmp_path):
    """The candidate puts items first that the users have in the log; the gate does not decide
    then."""
    pred = {
        name: SHOP.pred[SHOP.pred["model"] == name].drop(columns="model")
        for name in ("knn", "popularity")
    }
    log = SHOP.log.drop_duplicates(["user_id", "item_id"])
    again = log.groupby("user_id").head(3)[["user_id", "item_id"]].assign(score=1e6)
    frames = {
        "old": pred["popularity"],
        "new": pred["knn"],
        "seen": pd.concat([again, pred["knn"]]),
        "log": log,
    }
    for name, frame in (frames | {"true": SHOP.true}).items():
        frame.to_parquet(f"{name}.parquet")
    frames["new"].to_csv("new.csv", index=False)
    beside = ("--true", "true.parquet", "--log", "log.parquet", "--pred")
    code, out, err = run(capsys, *GATE, *beside, "seen.parquet", "old.parquet", "--out", "kept")
    assert code == 3
    assert err.startswith("recdf gate: exit code 3: seen items in doubt: ")
    assert "seen items in doubt" in out
    with open("kept/run.json", encoding="utf-8") as file:
        assert {"pred", "true", "log"} <= set(json.load(file)["inputs"])
    assert run(capsys, *GATE, *beside, "new.csv", "old.parquet", "--out", "csv")[0] == 0
    want = rd.gate(
        "new",
        "old",
        {"ndcg@10": "-2%"},
        pred=(frames["new"], frames["old"]),
        true=SHOP.true,
        log=log,
    )
    pd.testing.assert_frame_equal(pd.read_parquet("csv/checks.parquet"), want.checks)
    assert "--pred holds 1; expected two" in fails(capsys, *GATE, *beside, "new.csv")
    assert "--pred needs --true" in fails(capsys, *GATE, "--pred", "new.csv", "old.parquet")
    assert "--true and --log are what --pred is looked at with" in fails(
        capsys, *GATE, "--true", "true.parquet"
    )


@pytest.mark.long
def test_one_file_of_several_recommenders(capsys):
    SHOP.pred.to_parquet("pred.parquet")
    SHOP.true.to_parquet("true.parquet")
    models = ("--model", "knn", "--baseline-model", "popularity")
    call = (
        "gate",
        "all",
        "--baseline",
        "all",
        *models,
        "--budget",
        "ndcg@10=-2%",
        "--true",
        "true.parquet",
    )
    code, _, err = run(capsys, *call, "--pred", "pred.parquet", "pred.parquet", "--out", "kept")
    assert (code, err) == (0, "")
    assert (
        pd.read_parquet("kept/checks.parquet").set_index("check").loc["candidates", "found"]
        == "no doubt"
    )


@pytest.mark.long
def test_a_report_shows_the_gate(capsys):
    run(capsys, *GATE, "--out", "kept")
    code, _, err = run(capsys, "report", "all", "--gate", "kept/gate.parquet", "--out", "page.html")
    assert (code, err) == (0, "")
    assert run(capsys, "report", "all", "--gate", "kept", "--out", "same.html")[0] == 0
    assert "--gate all/gate.parquet: no such file" in fails(
        capsys, "report", "all", "--gate", "all", "--out", "o.html"
    )
    with open("page.html", encoding="utf-8") as file:
        page = file.read()
    assert "Gate: Passed: 1 budget is met" in page
    assert "Bounds of the change hold one-sided with 95%" in page
    for name in ("gate", "checks"):  # a table of something else has the name of a table of the gate
        run(capsys, *GATE, "--out", name)
        SHOP.items.to_parquet(f"{name}/{name}.parquet")
        said = fails(capsys, "report", "all", "--gate", name, "--out", "o.html")
        assert "has no column" in said
        assert "expected what rd.gate returned" in said
    assert "no such file" in fails(
        capsys, "report", "all", "--gate", "no/gate.parquet", "--out", "two.html"
    )


@pytest.mark.long
def test_a_segment_with_too_few_users_is_said(capsys):
    """A budget of it is not met and not broken; where there is no other, nothing is decided."""
    for folder, model in (("n", "knn"), ("o", "popularity")):
        pred = SHOP.pred[SHOP.pred["model"] == model].merge(SHOP.users[["user_id", "segment"]])
        rd.evaluate(SHOP.true, pred, "ndcg@10", carry={"segment": "constant"}).to_parquet(folder)
    few = ("gate", "n", "--baseline", "o", "--min-lists", "200", "--junit", "o.xml", "--budget")
    code, out, _ = run(capsys, *few, "ndcg@10=-90%", "ndcg@10[segment=loyal]=-90%")
    assert (code, out.split("\n")[0]) == (0, "Passed: 1 of 2 budgets are met, 1 not gated")
    suite = ElementTree.parse("o.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("skipped"), suite.get("errors")) == ("2", "1", "0")
    code, out, _ = run(capsys, *few, "ndcg@10[segment=loyal]=-90%")
    assert (code, out.split("\n")[0]) == (3, "Undecided: 0 of 1 budget is met, 1 not gated")
    suite = ElementTree.parse("o.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
    assert "fewer than 200 users" in suite.find(".//error").get("message")
    assert any(
        "fewer than 200 users" in one
        for one in rd.gate("n", "o", {"ndcg@10[segment=loyal]": "-90%"}, min_lists=200).reasons
    )
