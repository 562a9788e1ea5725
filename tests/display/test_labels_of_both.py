"""The leaderboard and the report with few labels of people and many cheap ones: what a reader is
told."""

import re

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.cli import main

from .two_labels import results

pytestmark = pytest.mark.usefixtures("without_pictures")

BIAS = "The cheap labels are off by "


def page(tmp_path, people, cheap, **options):
    """The text of the page, without tags, scripts and folded parts."""
    text = rd.report(
        people, tmp_path / "page.html", cheap=cheap, baseline="old", **options
    ).read_text(encoding="utf-8")
    text = re.sub(r"(?s)<(style|script|svg|details|title).*?</\1>", "", text)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


@pytest.mark.long
def test_the_page_of_a_good_judge_says_how_many_labels_and_is_surer_than_people_alone(tmp_path):
    people, cheap, _ = results()
    text = page(tmp_path, people, cheap)
    assert "1,500 lists" in text
    assert "new is better than the baseline old on ndcg@5" in text
    assert re.search(
        r"Labels of people on 197 to 200 lists, cheap labels on 1,28\d to 1,300 more", text
    )
    assert "users whose lists people judged gain" in text
    assert "These are the lists that people judged, under their labels alone." in text
    both = people.compare_models("ndcg@5", baseline="old", cheap=cheap).iloc[0]
    alone = people.compare_models("ndcg@5", baseline="old").iloc[0]
    assert both["ci_high"] - both["ci_low"] < 0.8 * (alone["ci_high"] - alone["ci_low"])


@pytest.mark.long
def test_a_biased_judge_does_not_turn_the_page_and_his_bias_stands_there(tmp_path):
    people, cheap, _ = results("biased")
    assert cheap.compare_models("ndcg@5", baseline="old")["verdict"].tolist() == ["worse"]
    text = page(tmp_path, people, cheap)
    assert "new is better than the baseline old on ndcg@5" in text
    assert re.search(
        BIAS + r"−0\.5\d+ \[.*?\] on ndcg@5, new − old, which the labels of people take out", text
    )


@pytest.mark.long
def test_a_model_that_people_find_worse_is_not_praised_for_the_judge(tmp_path):
    people, cheap, _ = results("biased", better="old")
    assert cheap.compare_models("ndcg@5", baseline="old")["verdict"].tolist() == ["better"]
    text = page(tmp_path, people, cheap)
    assert "No model is better than the baseline old" in text
    assert "keep the baseline" in text
    board = rd.leaderboard(people, cheap=cheap, baseline="old")
    assert board.frame.set_index(["model", "metric"]).loc[("new", "ndcg@5"), "marks"] == "−"
    assert board.frame["model"].iloc[0] == "old"


@pytest.mark.long
@pytest.mark.parametrize(
    ("case", "words", "interval"),
    [
        (
            {"n": 20},
            "too few lists to tell",
            "People judged lists of fewer than 30 users, so that there is no interval.",
        ),
        (
            {"judged": lambda taste: np.argsort(-taste)[:200]},
            "check: lists of people not random",
            "The lists that people judged are no random sample of all, so that there is no "
            "interval.",
        ),
    ],
)
def test_few_or_chosen_lists_withhold_verdict_marks_and_intervals(tmp_path, case, words, interval):
    people, cheap, _ = results(**case)
    text = page(tmp_path, people, cheap)
    assert words in text
    assert interval in text
    assert "is better than" not in text.replace("+ is better and", "")
    assert "which the labels of people take out" not in text
    board = rd.leaderboard(people, cheap=cheap, baseline="old").frame
    assert board["half_width"].isna().all()
    assert (board["marks"] == "").all()


@pytest.mark.long
def test_a_useless_judge_leaves_the_intervals_of_people(tmp_path):
    people, cheap, _ = results("useless")
    text = page(tmp_path, people, cheap)
    assert "the labels of people count alone" in text
    both, alone = (
        rd.leaderboard(people, **more).frame["half_width"] for more in ({"cheap": cheap}, {})
    )
    np.testing.assert_allclose(both, alone, rtol=0.05)


def test_lists_that_do_not_overlap_are_an_error(tmp_path):
    people, _, rows = results()
    rest = rows[~rows["user_id"].isin(people.per_user["user_id"])]
    other = rd.evaluate(
        rest[rest["judge"]][["user_id", "item_id"]],
        rest,
        ["ndcg@5", "precision@5"],
        by="model",
        rank_col="rank",
    )
    for call in (
        lambda: page(tmp_path, people, other),
        lambda: rd.leaderboard(people, cheap=other),
    ):
        with pytest.raises(rd.DataError, match="lists of result do not have cheap labels"):
            call()


@pytest.mark.long
def test_means_are_those_of_prediction_powered_and_segments_have_their_own():
    people, cheap, _ = results(metrics=("precision@5",))
    means = rd.experiments.prediction_powered(
        people.per_user, cheap.per_user, "precision@5"
    ).set_index("model")
    board = rd.leaderboard(people, cheap=cheap, baseline="old").frame.set_index("model")
    np.testing.assert_allclose(board["value"], means["mean"][board.index], rtol=1e-12)
    np.testing.assert_allclose(board["ci_low"], means["ci_low"][board.index], rtol=1e-12)
    segments = cheap.per_user[["user_id"]].drop_duplicates()
    segments = segments.assign(half=np.where(segments["user_id"] % 2, "odd", "even"))
    frame = rd.leaderboard(people, cheap=cheap, segments=segments).frame
    odd = [one.per_user[one.per_user["user_id"] % 2 == 1] for one in (people, cheap)]
    own = rd.experiments.prediction_powered(*odd, "precision@5").set_index("model")
    found = frame[frame["group"] == "odd"].set_index("model")
    np.testing.assert_allclose(found["value"], own["mean"][found.index], rtol=1e-12)
    np.testing.assert_allclose(
        found["half_width"], (own["ci_high"] - own["ci_low"])[found.index] / 2, rtol=1e-9
    )


def test_plus_minus_reaches_the_farther_end_of_an_interval():
    """All 60 lists are hits: [.94, 1], which "1.000 ± .030" would not reach."""
    users = np.arange(400)
    true = pd.DataFrame({"user_id": users, "item_id": 1})
    pred = true.assign(score=1.0)
    pred.loc[pred["user_id"] % 40 == 7, "item_id"] = 2
    people = pred.assign(item_id=1)[users < 60]
    board = rd.leaderboard(
        rd.evaluate(true[users < 60], people, "hitrate@1"),
        cheap=rd.evaluate(true, pred, "hitrate@1"),
    )
    assert "1.000 ± 0.060" in str(board)
    assert "± reaches the farther end of the 95 % interval of the mean." in str(board)


BAD = [
    (lambda p, c: (p, c.per_user), {}, TypeError, "cheap is"),
    (lambda p, c: (p, p), {}, rd.DataError, "no more lists"),
    (lambda p, c: (p, results(metrics=("ndcg@3",))[1]), {}, rd.OptionError, "differ in metrics"),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(("change", "options", "error", "words"), BAD)
def test_bad_cheap_labels_of_a_leaderboard_are_named_errors(change, options, error, words):
    people, cheap = change(*results()[:2])
    with pytest.raises(error, match=words):
        rd.leaderboard(people, cheap=cheap, **options)


@pytest.mark.long
def test_the_commands_read_a_folder_of_cheap_labels(tmp_path, capsys):
    people, cheap, _ = results("biased")
    people.to_parquet(tmp_path / "people")
    cheap.to_parquet(tmp_path / "cheap")
    both = [str(tmp_path / "people"), "--cheap", str(tmp_path / "cheap"), "--baseline", "old"]
    assert main(["compare", *both, "--metric", "ndcg@5", "--out", str(tmp_path / "compared")]) in (
        0,
        None,
    )
    text = capsys.readouterr().out
    assert "which the labels of people take out" in text
    assert "better" in text
    out, compared = (
        tmp_path / "page.html",
        ["--comparison", str(tmp_path / "compared/comparison.parquet")],
    )
    assert main(["report", *both, "--out", str(out), *compared]) in (0, None)
    assert "cheap labels on 1," in out.read_text(encoding="utf-8")
    assert "is better than the baseline" in out.read_text(encoding="utf-8")
    assert main(["compare", *both, "--test", "wilcoxon"]) == 2
    assert "--test wilcoxon takes no --cheap" in capsys.readouterr().err
    plain = [
        "report",
        str(tmp_path / "people"),
        "--baseline",
        "old",
        "--out",
        str(tmp_path / "two.html"),
    ]
    assert main([*plain, *compared]) in (0, None)
    assert "the comparison has other means than the result" in (tmp_path / "two.html").read_text(
        encoding="utf-8"
    )


@pytest.mark.long
def test_the_labels_of_people_say_which_metrics_stand_in_which_order():
    shop = rd.sample_shop()
    users = shop.true["user_id"].drop_duplicates()
    people, cheap = (
        rd.evaluate(shop.true, shop.pred, names, by="model", users=of)
        for names, of in (
            (["ndcg@5", "recall@10"], users.head(200)),
            (["recall@10", "ndcg@5"], users),
        )
    )
    board = rd.leaderboard(people, cheap=cheap)
    assert board.frame["metric"].tolist()[:2] == ["ndcg@5", "recall@10"]
    assert "on ndcg@5 of" in board.notes[1]
    more = rd.evaluate(
        shop.true, shop.pred, ["map@5", "recall@10", "ndcg@5"], by="model", users=users
    )
    pd.testing.assert_frame_equal(rd.leaderboard(people, cheap=more).frame, board.frame)
    fewer = rd.evaluate(shop.true, shop.pred, "ndcg@5", by="model", users=users)
    with pytest.raises(rd.errors.OptionError, match=r"cheap lacks \['recall@10'\]"):
        rd.leaderboard(people, cheap=fewer)


def judged_lists(values, judged):
    """Results of models that recommend one item, which is right for some users: of the users whose
    lists people judged, and, by a judge who sees the same, of all."""
    n = len(judged)
    pred = pd.concat(
        pd.DataFrame({"model": name, "user_id": np.arange(n), "item_id": np.where(one, 1, 2)})
        for name, one in values.items()
    )
    true = pd.DataFrame({"user_id": np.arange(n), "item_id": 1})
    return tuple(
        rd.evaluate(true[of], pred[np.tile(of, len(values))], "precision@1", by="model")
        for of in (judged, np.ones(n, bool))
    )


@pytest.mark.parametrize("moved", [0, 1])
def test_segments_that_were_judged_at_the_same_places_are_two_samples(moved):
    n = 500
    right = np.random.default_rng(1).random(2 * n) < 0.6
    judged = np.arange(2 * n) % 5 == 0
    right[:n] |= judged[:n]  # people judged good lists of s
    judged[n:] = np.roll(judged[n:], moved)
    people, cheap = judged_lists({"a": right, "b": right}, judged)
    segments = pd.DataFrame({"user_id": np.arange(2 * n), "part": np.repeat(["s", "t"], n)})
    frame = rd.leaderboard(people, cheap=cheap, segments=segments).frame.set_index("group")
    assert frame.loc["s", "ci_low"].isna().all()
    assert frame.loc["t", "ci_low"].notna().all()


def test_a_model_without_a_list_is_judged_on_the_same_sample():
    n = 1000
    rng = np.random.default_rng(2)
    a, b = rng.random((2, n)) < [[0.5], [0.6]]
    judged = np.zeros(n, bool)
    judged[np.flatnonzero(a)[:200]] = True  # good lists of a, which are like others of b
    people, cheap = judged_lists({"a": a, "b": b}, judged)
    rows = cheap.per_user
    lost = rows.index[(rows["model"] == "b") & ~rows["user_id"].isin(np.flatnonzero(judged))][0]
    fewer = rows.drop(index=lost).reset_index(drop=True)
    for given in (rows, fewer):
        both = rd.Evaluation(given, cheap.summary, cheap.spec)
        assert rd.leaderboard(people, cheap=both).frame["ci_low"].isna().all()
