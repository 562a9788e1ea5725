"""The leaderboard beside compare_models, summarize, and tables by hand."""

import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

import recdf as rd

from .conftest import HOSTILE


def test_values_are_those_of_the_summary(result):
    frame = rd.leaderboard(result, correction=None).frame
    summary = result.summary.assign(
        column=result.summary["metric"] + "@" + result.summary["k"].astype(str)
    )
    expected = summary.set_index(["model", "column"])
    assert len(frame) == len(expected)
    for row in frame.itertuples():
        found = expected.loc[(row.model, row.metric)]
        assert row.value == found["value"]
        assert row.n == found["n"]
        if pd.notna(found["ci_low"]):
            assert row.half_width == pytest.approx(
                (found["ci_high"] - found["ci_low"]) / 2, abs=1e-15
            )
        else:
            assert pd.isna(row.half_width)


def test_the_best_model_comes_first_and_directions_count(result):
    frame = rd.leaderboard(result, k=10, correction=None).frame
    for metric, rows in frame.groupby("metric"):
        if metric.startswith("first_rank"):  # it has values for other lists of each model
            assert rows["place"].isna().all()
        else:
            assert rows.sort_values("value", ascending=False)["place"].tolist() == [1, 2, 3]
    first = frame[frame["metric"] == "ndcg@10"]
    assert first["value"].is_monotonic_decreasing
    board = rd.leaderboard(result, k=10, correction=None, metrics=["first_rank", "ndcg@10"])
    head, body, _ = board.head_and_cells()
    assert head == ["model", "first_rank@10 ↓", "ndcg@10 ↑"]
    assert not any(row[1].bold or row[1].underline for row in body)
    assert body[0][1].small.endswith(f"n = {board.frame['n'].iloc[0]:,}")
    first = frame[frame["metric"] == "first_rank@10"].sort_values("value")["model"].iloc[0]
    assert body[0][0].text == first


def test_marks_against_a_baseline_are_those_of_the_comparison(result):
    board = rd.leaderboard(result, k=10, baseline="popularity")
    metrics = ["ndcg@10", "recall@10", "first_rank@10"]
    table = result.compare_models(metrics, baseline="popularity", missing="drop", correction="holm")
    expected = {
        (row.model, row.metric): {"better": "+", "worse": "−"}.get(row.verdict, "")
        for row in table.itertuples()
    }
    found = {
        (row.model, row.metric): row.marks
        for row in board.frame.itertuples()
        if row.model != "popularity"
    }
    assert {key: mark for key, mark in found.items() if key[1] != "coverage@10"} == expected
    assert not any(board.frame.loc[board.frame["metric"] == "coverage@10", "marks"])
    assert not any(board.frame.loc[board.frame["model"] == "popularity", "marks"])
    own = board.comparisons[table.columns]
    pd.testing.assert_frame_equal(own, pd.DataFrame(table), check_dtype=False, check_like=True)
    assert set(board.comparisons["segment"]) == {"all"}


@pytest.mark.long
def test_letters_name_the_models_that_are_beaten(result):
    board = rd.leaderboard(result, k=10, metrics=["ndcg", "first_rank"])
    letters = dict(zip(dict.fromkeys(board.frame["model"]), "abc", strict=True))
    table = result.compare_models(["ndcg@10", "first_rank@10"], missing="drop")
    expected = {}
    for row in table.itertuples():
        if row.verdict in ("better", "worse"):
            pair = (
                (row.model, row.baseline) if row.verdict == "better" else (row.baseline, row.model)
            )
            key = (pair[0], row.metric)
            expected[key] = "".join(sorted(expected.get(key, "") + letters[pair[1]]))
    found = {(row.model, row.metric): row.marks for row in board.frame.itertuples() if row.marks}
    assert found == expected
    assert found  # the shop has differences


# ranx 0.3.21 on the whole sample shop: compare(qrels, runs, ["ndcg@10", "recall@10", "mrr@10",
# "hit_rate@10"], make_comparable=True) with the binary relevance of true. Scores, then p and
# win/tie/loss of knn against popularity.
RANX = {
    "ndcg@10": (
        {
            "knn": 0.18483708849244207,
            "popularity": 0.13852160034966576,
            "random": 0.011001940940401135,
        },
        4.889459989496672e-10,
        (536, 721, 280),
    ),
    "recall@10": (
        {
            "knn": 0.23065575355751022,
            "popularity": 0.18020341907784979,
            "random": 0.020380611581001948,
        },
        7.866317127922569e-08,
        (432, 889, 216),
    ),
    "mrr@10": (
        {
            "knn": 0.2576225588912642,
            "popularity": 0.1883743326000971,
            "random": 0.012905474486476437,
        },
        1.7114460609604185e-10,
        (505, 758, 274),
    ),
    "hitrate@10": (
        {
            "knn": 0.4450227716330514,
            "popularity": 0.3604424202992843,
            "random": 0.04749512036434613,
        },
        7.757957577540426e-09,
        (321, 1025, 191),
    ),
}


@pytest.mark.long
def test_everything_that_ranx_shows():
    shop = rd.sample_shop()
    board = rd.leaderboard(rd.evaluate(shop.true, shop.pred, list(RANX), by="model", like="ranx"))
    values = board.frame.set_index(["model", "metric"])
    pairs = board.comparisons.set_index(["metric", "baseline", "model"])
    for metric, (scores, p, counts) in RANX.items():
        for model, score in scores.items():
            assert values.loc[(model, metric), "value"] == pytest.approx(score, rel=1e-12)
        assert [values.loc[(model, metric), "marks"] for model in scores] == ["bc", "c", ""]
        row = pairs.loc[(metric, "knn", "popularity")]
        assert row["p_value"] == pytest.approx(p, rel=1e-6)
        assert (
            row["losses"],
            row["ties"],
            row["wins"],
        ) == counts  # the baseline of this pair is knn


@pytest.mark.skipif(
    shutil.which("pdflatex") is None,
    reason="no TeX is installed: apt-get install texlive-latex-base",
)
def test_latex_compiles(result, tmp_path):
    names = [
        name for name in HOSTILE if not re.search("[\u0590-\u05ff]", name)
    ]  # Hebrew needs XeLaTeX or LuaLaTeX
    pred = pd.DataFrame({"model": names, "user_id": "u", "item_id": "a"})
    hostile = rd.evaluate({"u": ["a"]}, pred, "ndcg@3", by="model")
    boards = [rd.leaderboard(result).to_latex()]
    boards.append(rd.leaderboard(hostile, correction=None).to_latex())
    lines = [
        r"\documentclass{article}",
        r"\usepackage{booktabs}",
        r"\begin{document}",
        *boards,
        r"\end{document}",
    ]
    (tmp_path / "board.tex").write_text("\n".join(lines), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "board.tex"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.long
def test_segments_are_one_family(shop, result):
    segments = shop.users[["user_id", "segment", "channel"]]
    board = rd.leaderboard(result, metrics="ndcg@10", baseline="popularity", segments=segments)
    joined = result.per_user.merge(segments, on="user_id", validate="many_to_one")
    for column in ("segment", "channel"):
        means = rd.summarize(joined, by=["model", column], metrics=["ndcg@10"])
        own = board.frame[board.frame["segment"] == column].set_index(["model", "group"])
        for row in means.itertuples():
            assert own.loc[(row.model, getattr(row, column)), "value"] == pytest.approx(
                row.value, abs=1e-15
            )
    parts = [result.compare_models("ndcg@10", baseline="popularity")]
    for column in ("segment", "channel"):
        for _, rows in joined.groupby(column):
            parts.append(
                rd.compare_models(rows, "ndcg@10", baseline="popularity", correction="none")
            )
    table = rd.experiments.adjust_pvalues(
        pd.concat([part.drop(columns="p_adj") for part in parts], ignore_index=True)
    )
    held = int(table["reject"].sum())
    assert sum(board.frame["marks"] != "") == held
    assert "segment = new" in str(board)


def test_one_model_and_no_test(shop):
    one = rd.evaluate(
        shop.true,
        shop.pred[shop.pred["model"] == "knn"].drop(columns="model"),
        ["ndcg", "popularity"],
        log=shop.log,
    )
    board = rd.leaderboard(one)
    assert board.frame["model"].tolist() == ["all lists"] * 2
    assert board.frame["place"].isna().all()
    assert "better than" not in str(board)


def test_a_metric_without_direction_has_no_best(shop):
    result = rd.evaluate(shop.true, shop.pred, ["ndcg", "popularity"], by="model", log=shop.log)
    frame = rd.leaderboard(result).frame
    assert frame.loc[frame["metric"] == "popularity@10", "place"].isna().all()
    assert (frame.loc[frame["metric"] == "popularity@10", "marks"] == "").all()


def test_own_names_keep_their_direction(shop):
    result = rd.evaluate(
        shop.true, shop.pred, {"gain": "ndcg@5", "wait": "fallout@5"}, by="model", items=shop.items
    )
    frame = rd.leaderboard(result, correction=None).frame
    waits = frame[frame["metric"].str.startswith("wait")]
    assert waits.loc[waits["place"] == 1, "value"].item() == waits["value"].min()


@pytest.mark.long
def test_every_form_has_every_number(result):
    board = rd.leaderboard(result, k=10, baseline="popularity")
    values = board.frame["value"].to_numpy()
    for text in (
        board.to_markdown(),
        board.to_latex(),
        board.to_html(),
        str(board),
        board._repr_html_(),
    ):
        texts = re.findall(r"\d[\d,]*\.?\d*", text)
        shown = np.array([float(one.replace(",", "")) for one in texts])
        assert (np.abs(values[:, None] - shown).min(axis=1) <= 0.006 * values).all()
    lines = board.to_markdown().splitlines()
    assert len({len(line) for line in lines[:5]}) == 1
    latex = board.to_latex()
    rows = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {len(result.spec["metrics"]) // 3}
    assert [latex.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]


@pytest.mark.long
def test_hostile_names_stay_letters(hostile):
    board = rd.leaderboard(hostile, correction=None)
    page = board.to_html()
    assert "<script" not in page
    assert "<img" not in page
    assert "\u202e" not in page
    assert "<script" not in board.to_markdown()
    assert len(board.to_markdown().splitlines()) == 2 + 10 + 1 + len(board.notes)


@pytest.mark.long
def test_long_tables_are_cut_in_reprs():
    pred = pd.DataFrame({"model": [f"m{i}" for i in range(200)], "user_id": 1, "item_id": 1})
    board = rd.leaderboard(rd.evaluate({1: [1]}, pred, "ndcg@1", by="model"), correction=None)
    assert len(str(board).splitlines()) < 75
    assert "140 more rows" in str(board)
    assert board._repr_html_().count("<tr>") == 61
    assert board.to_html().count("<tr>") == 201


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"baseline": "popular"}, rd.OptionError, "'random']; did you mean 'popularity'?"),
        (
            {"metrics": "ndgc"},
            rd.OptionError,
            "metrics='ndgc' is not a metric of the result",
        ),
        ({"k": 7}, rd.OptionError, "no metric at k=7; it has k of [2, 5, 10]"),
        ({"correction": "bonf"}, rd.OptionError, "correction"),
        ({"segments": [1]}, TypeError, "segments is a list"),
        (
            {"segments": pd.DataFrame({"user": [1]})},
            rd.ColumnError,
            "expected some of the key ['user_id']",
        ),
        (
            {"segments": pd.DataFrame({"user_id": ["u0001"]})},
            rd.ColumnError,
            "a column of segments beside it",
        ),
        (
            {"segments": pd.DataFrame({"user_id": ["a", "a"], "age": [1, 2]})},
            rd.OptionError,
            "several rows for 1 keys",
        ),
    ],
)
def test_bad_input_says_what_to_change(options, error, words, result):
    with pytest.raises(error) as raised:
        rd.leaderboard(result, **options)
    assert words in str(raised.value)


def test_a_frame_is_no_result(result):
    with pytest.raises(TypeError, match="result is a DataFrame; expected an Evaluation"):
        rd.leaderboard(result.summary)


def test_a_picture_of_statistics_says_which(result):
    table = result.summarize(stat=["median", "gmean"], metrics=["ndcg@10"])
    ax = rd.plot.heat(table, rows="model", columns="stat")
    texts = [text.get_text() for text in [*ax.texts, *ax.figure.texts]]
    assert any(
        text.replace("\n", " ").startswith("median and gmean of each cell") for text in texts
    )


@pytest.mark.long
def test_lists_that_are_units_have_intervals_of_independent_lists():
    """The caller says that no list depends on another one, though users have several."""
    pred = pd.DataFrame(
        {
            "user_id": [1, 1, 2, 2, 3, 3],
            "day": [1, 2] * 3,
            "item_id": ["a", "x", "a", "a", "x", "x"],
        }
    )
    true = pred.assign(item_id="a")
    key = ["user_id", "day"]
    result = rd.evaluate(true, pred, "hitrate@1", user_col=key, score_col=False)
    plain, board = result.summary, rd.leaderboard(result, unit_col=key).frame
    assert board["ci_low"].tolist() == plain["ci_low"].tolist()
    clustered = rd.leaderboard(result).frame
    assert clustered["ci_low"].tolist() != plain["ci_low"].tolist()


def test_groups_stand_in_the_order_of_the_frame_of_segments():
    lists = {user: ["a"] for user in "uvw"}
    result = rd.evaluate(lists, lists, "hitrate@1")
    users = pd.DataFrame({"user_id": ["x", "v", "w", "u"], "plan": ["none", "new", "old", "old"]})
    board = rd.leaderboard(result, segments=users).frame
    assert board["group"].tolist() == ["", "new", "old"]


@pytest.mark.parametrize("show", [rd.leaderboard, rd.report])
@pytest.mark.parametrize(
    "given", [{"unit_col": {}}, {"k": [10]}, {"k": 0}, {"metrics": {}}, {"metrics": [[]]}]
)
def test_what_is_no_name_and_no_number_is_refused(show, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "recall@1")
    with pytest.raises(rd.OptionError, match=f"^{next(iter(given))}"):
        show(result, **given)


def test_models_over_other_lists_have_no_best():
    true = pd.DataFrame({"user_id": range(60), "item_id": 1})
    of = {"a": range(40), "b": range(20, 60)}
    pred = pd.concat(
        [pd.DataFrame({"model": m, "user_id": u, "item_id": 1}) for m, u in of.items()]
    )
    board = rd.leaderboard(rd.evaluate(true, pred, "mrr@5", by="model", users="pred"))
    assert board.frame["place"].isna().all()
    assert "none is marked as best" in str(board)


@pytest.mark.parametrize("first", [2**63, 2**60])
def test_models_may_be_integers_that_no_float_is(first):
    true = pd.DataFrame({"user_id": range(40), "item_id": 1})
    names = np.array([first, first + 1, 5], np.uint64)
    pred = pd.concat([true.assign(model=name, rank=1) for name in names])
    board = rd.leaderboard(rd.evaluate(true, pred, "mrr@5", by="model")).frame
    assert set(board["model"]) == {str(name) for name in names}


def test_no_metric_has_a_value_for_each_list(tmp_path):
    true = pd.DataFrame({"user_id": [1, 1, 2], "day": [0, 1, 0], "item_id": 1})
    pred = pd.concat([true.assign(model=name, rank=1) for name in "ab"])
    options = {"by": "model", "user_col": ["user_id", "day"]}
    for name, frame in (("t", true), ("p", pred)):
        frame.to_parquet(tmp_path / name)
    paths = tmp_path / "t", tmp_path / "p"
    stored = rd.evaluate_parquet(*paths, "hhi@5", buckets=3, out=tmp_path / "r", **options)
    users = pd.DataFrame({"user_id": [1, 2], "plan": ["x", "y"]})
    for result in (rd.evaluate(true, pred, "hhi@5", **options), stored):
        for segments in (None, users):
            assert rd.leaderboard(result, segments=segments).frame["value"].tolist() == [1.0, 1.0]
