"""Two models that were not measured alike have no verdict, whoever compares them."""

import json

import pandas as pd
import pytest
from cli.command import run

import recdf as rd

pytestmark = pytest.mark.usefixtures("without_pictures")

SHOP = rd.sample_shop(n_users=400, n_items=100)
METRIC = "ndcg@10"


def lists(model):
    return SHOP.pred.query("model == @model").drop(columns="model")


def evaluated(true=SHOP.true, pred=None, **options):
    return rd.evaluate(true, lists("popularity") if pred is None else pred, METRIC, **options)


SAME = evaluated(pred=lists("knn"))
FIRST = SHOP.true.drop_duplicates("user_id")
N_TRUE = SHOP.true.groupby("user_id")["item_id"].nunique()
UNLIKE = {
    "truth": (
        evaluated(FIRST),
        "other_truth",
        f"check: other truth ({int((N_TRUE > 1).sum()):,} of {len(N_TRUE):,} lists)",
    ),
    "items": (
        evaluated(SHOP.true.replace({"item_id": {SHOP.true["item_id"].iloc[0]: "another"}})),
        "other_truth",
        "check: other truth (other items)",
    ),
    "definition": (
        evaluated(like="rectools"),
        "other_definition",
        "check: other definition of ndcg@10: ",
    ),
    "population": (
        evaluated(users="pred"),
        "other_population",
        "check: users pred of B, true of A",
    ),
    "option": (
        evaluated(ties="item_asc"),
        "other_options",
        "check: ties item_asc of B, item_desc of A",
    ),
    "order": (
        evaluated(score_col=False),
        "other_order",
        "check: order of pred row of B, score of A",
    ),
    "length": (
        evaluated(pred=lists("popularity").groupby("user_id").head(5)),
        "short_lists",
        "check: 100% of the lists of B are shorter than 10",
    ),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", UNLIKE)
def test_the_verdict_is_withheld_with_its_reason(name):
    other, code, words = UNLIKE[name]
    table = rd.compare_models({"A": SAME, "B": other}, METRIC, missing="drop", details=True)
    row = table.iloc[0]
    assert (row["withheld"], row["effect"]) == (code, "")
    assert code in row["remarks"].split("; ")
    assert row["verdict"].startswith(words)
    joined = rd.join_results({"A": SAME, "B": other})
    assert joined.compare_models(METRIC, missing="drop", details=True)["verdict"].tolist() == [
        row["verdict"]
    ]


@pytest.mark.long
@pytest.mark.parametrize("name", UNLIKE)
def test_leaderboard_report_gate_and_diff_say_so(name, tmp_path):
    other, code, _ = UNLIKE[name]
    board = rd.leaderboard({"A": SAME, "B": other}, baseline="A")
    assert board.comparisons["withheld"].tolist() == [code]
    assert set(board.frame["marks"]) == {""}
    assert any("withheld" in note for note in board.notes)
    page = rd.report({"A": SAME, "B": other}, tmp_path / "page.html", baseline="A")
    assert "is better than" not in page.read_text(encoding="utf-8")
    if code == "short_lists":  # a gate is about what is shown, and shorter lists are
        return
    gate = rd.gate(other, SAME, {METRIC: "-90%"})
    assert not gate.passed
    assert gate.table["verdict"].tolist() == ["undecided"]
    assert rd.diff(SAME, other).headline.startswith("Not comparable: ")


def test_a_plain_frame_still_tells_another_truth_and_shorter_lists():
    for name in ("truth", "length"):
        other, code, words = UNLIKE[name]
        frames = {"A": SAME.per_user.copy(), "B": other.per_user.copy()}
        for frame in frames.values():
            frame.attrs = {}
        row = rd.compare_models(frames, METRIC, details=True).iloc[0]
        assert (row["withheld"], row["verdict"].startswith(words)) == (code, True)


def test_models_that_were_measured_alike_have_their_verdict():
    alike = {"A": SAME, "B": evaluated(), "C": evaluated(pred=lists("random"))}
    table = rd.compare_models(alike, METRIC, details=True)
    assert table["withheld"].tolist() == [""] * 3
    assert table["effect"].tolist() == ["worse"] * 3
    whole = rd.evaluate(SHOP.true, SHOP.pred, METRIC, by="model").compare_models(
        METRIC, details=True
    )
    assert whole["remarks"].tolist() == table["remarks"].tolist()


@pytest.mark.long
def test_names_of_columns_and_how_they_are_written_are_no_difference():
    renamed = lists("popularity").rename(columns={"score": "points"})
    other = evaluated(pred=renamed, score_col="points")
    by_rank = lists("popularity").assign(
        rank=lists("popularity").groupby("user_id")["score"].rank(ascending=False, method="first")
    )
    ranked = evaluated(pred=by_rank.drop(columns="score"))
    for one in (other, ranked, evaluated(user_col=["user_id"])):
        assert rd.compare_models({"A": SAME, "B": one}, METRIC, details=True)[
            "withheld"
        ].tolist() == [""]


def test_a_shorter_model_that_is_better_keeps_its_verdict():
    best = evaluated(pred=lists("knn").groupby("user_id").head(9))
    row = rd.compare_models(
        {"A": evaluated(pred=lists("random")), "B": best}, METRIC, details=True
    ).iloc[0]
    assert (row["effect"], row["withheld"]) == ("better", "")


@pytest.mark.long
def test_the_command_says_it_too(tmp_path, capsys):
    SAME.to_parquet(tmp_path / "A")
    UNLIKE["truth"][0].to_parquet(tmp_path / "B")
    code, out, err = run(
        capsys,
        "compare",
        tmp_path / "A",
        tmp_path / "B",
        "--format",
        "json",
        "--fail-on",
        "warning",
    )
    assert code == 1
    assert json.loads(out)[0]["verdict"] == UNLIKE["truth"][2]
    assert "other truth" in err
    code, out, _ = run(capsys, "diff", tmp_path / "A", tmp_path / "B")
    assert out.startswith("Not comparable: truth: ")


def test_segments_and_folds_compare_their_own_lists():
    segments = pd.DataFrame({"user_id": SAME.per_user["user_id"]})
    segments["half"] = ["x", "y"] * (len(segments) // 2) + ["x"] * (len(segments) % 2)
    halved = segments.set_index("user_id")["half"]
    cut = SHOP.true[(SHOP.true["user_id"].map(halved) == "x") | ~SHOP.true["user_id"].duplicated()]
    runs = {"A": SAME, "B": evaluated(cut)}
    table = rd.compare_models(runs, METRIC, segments=segments, details=True).set_index("half")
    assert table["withheld"].to_dict()["y"] == "other_truth"
    assert "lists" not in table.loc["x", "verdict"]
