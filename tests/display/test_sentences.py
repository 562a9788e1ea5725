"""Every sentence of report, leaderboard and command follows from the table that it speaks of."""

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.cli import main

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_pictures")]


def values(n=300, shifts=(("old", 0.0), ("mid", 0.05), ("new", 0.1)), seed=0):
    """A result whose values are made up: one metric, one row per user and model."""
    rng = np.random.default_rng(seed)
    models = [model for model, _ in shifts]
    base = rng.random(n)
    pred = pd.DataFrame(
        {"model": np.repeat(models, n), "user_id": [*range(n)] * len(models), "item_id": 1}
    )
    result = rd.evaluate({i: [1] for i in range(n)}, pred, ["ndcg", "recall"], 1, by="model")
    per_user = result.per_user
    for name in ("ndcg@1", "recall@1"):
        drawn = {model: base + rng.normal(shift, 0.2, n) for model, shift in shifts}
        order = per_user["model"].drop_duplicates()
        per_user = per_user.assign(**{name: np.concatenate([drawn[model] for model in order])})
    per_user.attrs["recdf"] = result.spec
    return rd.Evaluation(per_user, rd.summarize(per_user), result.spec)


def section(path, name="verdict"):
    page = path.read_text(encoding="utf-8")
    found = re.search(rf'<section id="{name}".*?</section>', page, flags=re.S)
    return " ".join(unescape(re.sub("<[^>]+>", " ", found[0])).split())


def plain_latex(board):
    """A LaTeX table with some signs as they are printed; the notes are no comments."""
    text = board.to_latex()
    assert not any(line.startswith("%") for line in text.splitlines())
    return text.replace(r"\_", "_").replace(r"$\leq$", "≤")


@pytest.fixture(scope="module")
def result():
    return values()


# ------------------------------------------------------------------------------------------
# correction


@pytest.mark.parametrize(
    ("options", "said", "not_said"),
    [
        (
            {},
            "is taken into account: the p-values are adjusted by Holm's method for 4 tests",
            "not adjusted",
        ),
        (
            {"correction": "none"},
            "is not taken into account: the p-values are not adjusted",
            "orrected",
        ),
        (
            {"correction": "bh"},
            "the p-values are adjusted by Benjamini and Hochberg's method for 4 tests",
            "holm",
        ),
        (
            {"correction": "bonferroni"},
            "the p-values are adjusted by Bonferroni's method for 4 tests",
            "holm",
        ),
        (
            {"family": "metric"},
            "is taken into account: the p-values are adjusted by Holm's method in 2 families",
            "4 tests",
        ),
        (
            {"family": "model"},
            "is not taken into account: the p-values are adjusted by Holm's method in 2 families",
            "4 tests",
        ),
        (
            {"family": ["model", "metric"]},
            "is not taken into account: the p-values are not adjusted",
            "holm",
        ),
    ],
)
def test_the_page_says_how_p_values_were_adjusted(result, options, said, not_said, tmp_path):
    table = result.compare_models(baseline="old", **options, details=True)
    text = section(rd.report(result, tmp_path / "r.html", baseline="old", comparison=table))
    assert "new is better than the baseline old on ndcg@1" in text
    assert said in text
    assert not_said not in text
    head = section(tmp_path / "r.html", "comparison")
    assert ("p (adjusted)" in head) is ("not adjusted" not in said)


def test_rows_of_a_larger_comparison(result, tmp_path):
    table = result.compare_models(baseline="old", details=True)
    text = section(
        rd.report(
            result,
            tmp_path / "r.html",
            baseline="old",
            comparison=table[table["metric"] == "ndcg@1"],
        )
    )
    # Rows alone do not tell with how many others they were adjusted.
    said = (
        "may not be taken into account: the p-values are adjusted in a way that these rows do not"
    )
    assert f"{said} show" in text


@pytest.mark.parametrize(
    ("correction", "words"),
    [
        ("holm", "adjusted by Holm's method for 6 tests"),
        ("none", "not adjusted"),
        ("bh", "adjusted by Benjamini and Hochberg's method for 6 tests"),
    ],
)
def test_the_leaderboard_says_how_p_values_were_adjusted(result, correction, words):
    board = rd.leaderboard(result, correction=correction)
    for text in (str(board), board.to_markdown(), board.to_html(), plain_latex(board)):
        assert f"(paired t tests, p ≤ 0.05, p-values {words})" in unescape(text)
    segments = pd.DataFrame({"user_id": range(300), "country": ["x", "y"] * 150})
    board = rd.leaderboard(result, baseline="old", correction=correction, segments=segments)
    words = words.replace("6", "12")  # two metrics, two models, all lists and two countries
    assert (
        f"+ is better and − is worse than old (paired t tests, p ≤ 0.05, p-values {words})."
        in str(board)
    )


def test_the_command_says_how_p_values_were_adjusted(result, tmp_path, capsys):
    result.to_parquet(tmp_path / "results")
    for flags, words in (
        ([], "p adjusted by Holm's method for 6 tests"),
        (["--family", "metric"], "p adjusted by Holm's method in 2 families of 3 tests"),
        (["--correction", "none"], "p not adjusted"),
        (
            ["--baseline", "old", "--correction", "bh"],
            "p adjusted by Benjamini and Hochberg's method for 4 tests",
        ),
    ):
        assert main(["compare", str(tmp_path / "results"), *flags]) == 0
        printed = capsys.readouterr().out
        assert words in printed.splitlines()[0]
        assert ("p adjusted" in "".join(printed.splitlines()[2:3])) is ("not adjusted" not in words)


def test_the_picture_says_how_p_values_were_adjusted(result):
    def caption(**options):
        ax = rd.plot.forest(result.compare_models(baseline="old", **options, details=True))
        axes = np.atleast_1d(ax)
        texts = [
            text.get_text()
            for one in axes
            for text in one.findobj(lambda t: t.get_gid() == "caption")
        ]
        return " ".join(" ".join(texts).split())

    assert "p-values adjusted by Holm's method for 4 tests" in caption()
    assert "p-values not adjusted" in caption(correction="none")
    assert "90 % intervals" in caption(confidence=0.9)


# -- other comparisons


def test_a_comparison_of_other_numbers_decides_nothing(result, tmp_path):
    other = values(seed=5).compare_models(baseline="old", details=True)
    text = section(rd.report(result, tmp_path / "1.html", baseline="old", comparison=other))
    assert "withheld" in text
    assert "the comparison has other means than the result" in text
    assert "new is better" not in text
    turned = result.compare_models(
        "ndcg@1", baseline="old", smaller_is_better="ndcg@1", details=True
    )
    text = section(rd.report(result, tmp_path / "2.html", baseline="old", comparison=turned))
    assert "the comparison takes the other direction for better" in text
    lacking = result.compare_models("recall@1", baseline="old", details=True)
    text = section(rd.report(result, tmp_path / "3.html", baseline="old", comparison=lacking))
    assert (
        "There is no verdict: the first metric, ndcg@1 , has not one row of new and old in the "
        "comparison that was given." in text
    )
    halves = pd.concat(
        [
            result.compare_models("ndcg@1", baseline="old", details=True).assign(half=i)
            for i in range(2)
        ]
    )
    halves = halves[["half", *(name for name in halves.columns if name != "half")]]
    text = section(rd.report(result, tmp_path / "4.html", baseline="old", comparison=halves))
    assert "There is no verdict" in text


def test_one_sided_tests_and_other_tests_are_named(result, tmp_path):
    table = result.compare_models("ndcg@1", baseline="old", alternative="greater", details=True)
    text = section(rd.report(result, tmp_path / "1.html", baseline="old", comparison=table))
    assert (
        "The tests are one-sided: they can show that new has larger values than old , and nothing"
        in text
    )
    table = result.compare_models(
        "ndcg@1", baseline="old", test="bootstrap", n_resamples=200, details=True
    )
    text = section(rd.report(result, tmp_path / "2.html", baseline="old", comparison=table))
    assert "Bootstrap tests on 300 lists; p-values" in text
    table = result.compare_models("ndcg@1", baseline="old", test="wilcoxon", details=True)
    text = section(rd.report(result, tmp_path / "3.html", baseline="old", comparison=table))
    assert "Ranks higher: new against the baseline old on ndcg@1" in text
    assert "Do not act: the test says nothing of the mean." in text
    assert "not shown to be better" not in text
    assert "no difference shown" not in text
    table = result.compare_models(baseline="old", test="wilcoxon", details=True)
    text = section(rd.report(result, tmp_path / "4.html", baseline="old", comparison=table))
    assert "On other metrics: ranks higher on recall@1." in text
    table = result.compare_models(baseline="old", details=True).assign(
        effect=["better", "better", "higher", "higher"],
        verdict=["better", "better", "higher", "higher"],
    )
    text = section(rd.report(result, tmp_path / "5.html", baseline="old", comparison=table))
    assert "On other metrics: higher on recall@1." in text


def test_the_baseline_stays(tmp_path):
    result = values(shifts=(("old", 0.1), ("mid", 0.09), ("new", 0.0)))
    text = section(rd.report(result, tmp_path / "1.html", baseline="old"))
    assert "No model is shown to be better than the baseline old" in text
    assert "The next best is mid" in text
    # The comparison lacks the next best model, which must not be taken for the one that it has.
    table = result.compare_models("ndcg@1", baseline="old", details=True)
    text = section(
        rd.report(
            result, tmp_path / "2.html", baseline="old", comparison=table[table["model"] == "new"]
        )
    )
    assert "The next best is" not in text


def test_a_shared_best_mean(tmp_path):
    result = values(shifts=(("old", 0.1), ("new", 0.0)))
    per_user = result.per_user.assign(**{"ndcg@1": 0.5})
    per_user.attrs["recdf"] = result.spec
    same = rd.Evaluation(per_user, rd.summarize(per_user), result.spec)
    text = section(rd.report(same, tmp_path / "r.html"))
    assert "shares the best mean" in text
    assert "has the best mean" not in text


def test_segments_count_what_they_name(result, tmp_path):
    segments = pd.DataFrame(
        {"user_id": range(300), "country": ["x", "y"] * 150, "age": ["1", "2", "3"] * 100}
    )
    path = rd.report(result, tmp_path / "1.html", baseline="old", segments=segments)
    assert (
        "new against old within segments; p-values adjusted by Holm's method for 5 tests"
        in section(path, "segments")
    )
    assert "new against old : shown to be worse in none of 5 segments." in section(path)
    given = pd.concat(
        [result.compare_models(baseline="old", details=True).assign(country=one) for one in "xy"]
    )
    given = given[["country", *(name for name in given.columns if name != "country")]]
    text = section(rd.report(result, tmp_path / "2.html", baseline="old", segments=given))
    # Of the pair and the metric of the headline, not of all 8 comparisons.
    assert "new against old : shown to be worse in none of 2 segments." in text


def test_a_sample_ratio_that_was_not_tested_is_not_as_planned(result, tmp_path):
    users = pd.DataFrame({"user_id": range(300), "variant": ["A", "B"] * 150})
    health = rd.experiments.experiment_health(
        result.per_user[result.per_user["model"] == "old"], users
    )
    path = rd.report(result, tmp_path / "1.html", health=health)
    assert "Sample ratio as planned" in section(path, "experiment")
    path = rd.report(result, tmp_path / "2.html", health=health.assign(srm_p=np.nan))
    assert "The sample ratio could not be tested" in section(path, "experiment")
    assert "as planned" not in section(path, "experiment")


def test_notes_only_of_what_is_there(result):
    one = rd.evaluate({1: [1], 2: [1]}, {1: [1], 2: [2]}, "ndcg@1")
    assert rd.leaderboard(one).notes == (
        "± is half of the 95 % interval of the mean.",
        "Arrows say whether higher or lower values are better.",
    )
    lists = {u: [1] for u in range(9)}
    weighted = rd.evaluate(
        lists, {u: [u] for u in range(9)}, "ndcg@1", weight_col={u: 1.0 + u for u in range(9)}
    )
    assert "interval of the weighted mean." in rd.leaderboard(weighted).notes[0]
    exposed = rd.evaluate({1: [1]}, {1: [1]}, "coverage@1", items=[1, 2])
    assert not any("±" in note for note in rd.leaderboard(exposed).notes)


# ------------------------------------------------------------------------------------------
# different lists


@pytest.fixture(scope="module")
def ranks():
    """Model `few` finds something for 40 of 200 users, at rank 1; `many` for all of them, at rank 1
    to 3."""
    rng = np.random.default_rng(0)
    rows = [
        ("many", u, item, rank)
        for u in range(200)
        for rank, item in enumerate(rng.permutation([1, 2, 3]), 1)
    ]
    rows += [("few", u, 1 if u % 5 == 0 else 9, 1) for u in range(200)]
    pred = pd.DataFrame(rows, columns=["model", "user_id", "item_id", "rank"])
    return rd.evaluate({u: [1] for u in range(200)}, pred, ["first_rank@3", "ndcg@3"], by="model")


def test_a_metric_that_is_undefined_for_other_lists_decides_nothing(ranks, tmp_path, capsys):
    with pytest.raises(rd.DataError, match="first_rank@3"):
        ranks.compare_models("first_rank@3", details=True)
    table = ranks.compare_models("first_rank@3", baseline="many", missing="drop", details=True)
    row = table.iloc[0]
    assert row["verdict"] == "check: values for different lists"
    assert (row["n_lists"], row["n_only_baseline"], row["n_only_model"]) == (40, 160, 0)
    assert "different_lists" in row["remarks"]
    complete = ranks.compare_models("ndcg@3", baseline="many", missing="drop", details=True).iloc[0]
    # A list without a hit is 0, not undefined; but lists of one item cannot be held to three.
    assert complete["n_lists"] == 200
    assert complete["withheld"] == "short_lists"
    ranks.to_parquet(tmp_path / "results")
    assert (
        main(["compare", str(tmp_path / "results"), "--missing", "drop", "--baseline", "many"]) == 0
    )
    printed = capsys.readouterr().out
    assert "check: values for different lists" in printed
    assert "only one of the models has a value for some lists" in printed
    for options in ({"baseline": "many"}, {}):
        text = section(rd.report(ranks, tmp_path / "r.html", overwrite=True, **options))
        assert "withheld (check: values for different lists)" in text
        assert "few has a value for 40 lists, many for 200, and both for 40." in text.replace(
            " has a", " has a"
        ).replace("many  for", "many for")
        assert "few is better" not in text
    board = section(tmp_path / "r.html", "leaderboard")
    assert "n = 40" in board
    assert "n = 200" in board


@pytest.mark.parametrize("options", [{"baseline": "many"}, {}, {"correction": None}])
def test_the_leaderboard_shows_n_and_marks_nothing(ranks, options):
    segments = pd.DataFrame({"user_id": range(200), "half": ["x", "y"] * 100})
    for board in (
        rd.leaderboard(ranks, **options),
        rd.leaderboard(ranks, segments=segments, **options),
    ):
        own = board.frame[board.frame["metric"] == "first_rank@3"]
        assert own["place"].isna().all()
        assert not any(own["marks"])
        assert board.frame.loc[board.frame["metric"] == "ndcg@3", "place"].notna().all()
        for text in (str(board), board.to_markdown(), board.to_html(), plain_latex(board)):
            assert "n = 40" in text
            assert "n = 200" in text
            assert "values of first_rank@3 for different lists or by different rules, so" in text


def test_as_many_lists_but_not_the_same(tmp_path):
    rows = [("a", u, 1 if u < 50 else 9) for u in range(100)] + [
        ("b", u, 1 if u >= 50 else 9) for u in range(100)
    ]
    pred = pd.DataFrame(rows, columns=["model", "user_id", "item_id"])
    result = rd.evaluate({u: [1] for u in range(100)}, pred, "first_rank@1", by="model")
    board = rd.leaderboard(result)
    assert board.frame["place"].isna().all()
    assert "for different lists" in str(board)


def test_undefined_for_the_same_lists_is_no_obstacle():
    true = {u: [1] if u < 150 else [] for u in range(200)}
    rows = [(model, u, item) for model, item in (("a", 1), ("b", 9)) for u in range(200)]
    rows = [(m, u, 1 if m == "b" and u % 3 == 0 else i) for m, u, i in rows]
    pred = pd.DataFrame(rows, columns=["model", "user_id", "item_id"])
    result = rd.evaluate(true, pred, "recall@1", by="model")
    board = rd.leaderboard(result, baseline="b")
    assert board.frame["place"].tolist() == [1, 2]
    assert board.frame["marks"].tolist() == ["+", ""]
    assert "n = " not in str(board)
