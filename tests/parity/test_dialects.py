"""Each convention gives the golden numbers of its library, but for differences that are known and
asserted."""

from __future__ import annotations

import json
import re
import tomllib

import dialects
import frames as parity
import pandas as pd
import pytest
from registry.seeded import BEYOND

import recdf as rd
from recdf.metrics.strings import parse

# The frames judge nothing as not relevant, and conventions have `bpref`.
pytestmark = pytest.mark.filterwarnings("ignore::recdf.JudgedWarning")

# Metrics with side tables, which `test_parity_beyond` compares; the last two need the catalogue.
ELSEWHERE = {*(metric.name for metric in BEYOND), "accuracy", "mcc", "fallout"}


@pytest.mark.few(9)
@pytest.mark.parametrize("convention", list(dialects.LIKE))
def test_convention_is_its_library(convention: str) -> None:
    outcome = dialects.compare(convention)
    assert outcome
    compared = {metric.partition("[")[0] for metric, _ in outcome}
    for metric in set(rd.CONVENTIONS[convention].metrics) - compared:
        assert dialects.how_known(convention, metric) in ("stored", "read")
    worst = ("equal", "mean", "values", "error")
    wrong = {}
    for (metric, frame), found in outcome.items():
        allowed = dialects.expected(convention, metric, frame)[0]
        if worst.index(found) > worst.index(allowed):
            wrong[metric, frame] = (found, "expected", allowed)
    assert not wrong


@pytest.mark.parametrize("key", list(dialects.EXPECTED_DIFFERENCES))
def test_a_stated_difference_is_one(key: tuple[str, str, str]) -> None:
    convention, metric, frame = key
    outcome = dialects.compare(convention)
    found = {
        what for (name, at), what in outcome.items() if frame in ("*", at) and metric in ("*", name)
    }
    assert dialects.EXPECTED_DIFFERENCES[key][0] in found


def test_every_metric_that_a_library_has_is_known() -> None:
    """No cell of the table is empty, and nothing is said to be read that is not in a convention."""
    table = dialects.pages()["convention_table"]
    rows = [row.split(" | ") for row in table.splitlines() if row.startswith("| `")]
    assert len(rows) > 50
    assert all(len(row) == 5 and cell.strip("| ") for row in rows for cell in row)
    for convention, names in dialects.READ.items():
        assert set(names.split()) <= set(rd.CONVENTIONS[convention].metrics), convention
    text = (dialects.ROOT / "docs" / "names_elsewhere.toml").read_text(encoding="utf-8")
    missing = []
    for metric, libraries in tomllib.loads(text).items():
        assert metric in rd.METRICS, metric
        for library, name in libraries.items():
            like = dialects.LIBRARIES.get(library)
            other = "another measure" in name or "(of labels)" in name or "(a plot)" in name
            record = rd.CONVENTIONS.get(like)
            if record and not other and metric not in {*record.metrics, *record.differs}:
                missing.append((like, metric, name))
    by_parameter = {(like, metric) for like, metric, _ in dialects.BY_PARAMETER}
    assert [one for one in missing if one[:2] not in by_parameter] == []


def test_measures_by_other_names_are_metric_strings() -> None:
    text = (dialects.ROOT / "tests" / "parity" / "measures.md").read_text(encoding="utf-8")
    cells = [row.rpartition(" | ")[2] for row in text.splitlines() if row.startswith("| ")][1:]
    for written in re.findall(r"`([^`]+)`", " ".join(cells)):
        metric = re.match(r"\w+", written)[0]
        if metric in rd.METRICS:
            assert parse(written.replace("@inf", "@1000000"), 10, rd.Options()), written
        else:
            assert re.match(r"rd\.|n_|n$|undefined=|per_user", written), written


def test_measures_by_parameter_are_metric_strings() -> None:
    for like, metric, text in dialects.BY_PARAMETER:
        assert like in rd.CONVENTIONS
        for one in text.split("; "):
            assert parse(one, 10, rd.Options())[0].metric.name == metric


def test_the_pages_are_what_the_comparison_gives() -> None:
    for name, text in dialects.pages().items():
        assert (dialects.DOCS / f"{name}.md").read_text(encoding="utf-8") == text, name


def test_five_users_as_each_library_itself_says() -> None:
    frame = parity.section9()
    golden = json.loads((dialects.GOLDEN / "section9.json").read_text(encoding="utf-8"))
    for convention, library in dialects.LIKE.items():
        means = golden.get(library, {"mean": {}})["mean"]
        compared = [
            metric
            for metric in rd.CONVENTIONS[convention].metrics
            if (convention, metric, "*") not in dialects.EXPECTED_DIFFERENCES
            and metric not in ELSEWHERE
            and f"{metric}@10" in means
            and convention != "trec_eval"  # its mean leaves out the user without recommendations
        ]
        if not compared:
            continue
        result = rd.evaluate(frame.true, frame.pred, compared, k=10, like=convention)
        mine = result.summary.set_index("metric")["value"]
        for metric in compared:
            theirs = means[f"{metric}@10"]
            if theirs == theirs:
                assert mine[metric] == pytest.approx(theirs, abs=1e-9), (convention, metric)


@pytest.mark.few(1)
@pytest.mark.parametrize("frame", ["holes", "gaps", "judged"])
def test_means_of_trec_eval_over_the_users_that_it_reports(frame: str) -> None:
    """pytrec_eval means over the users of both frames, lists without relevant items included."""
    group = json.loads((dialects.GOLDEN / "pytrec_eval.json").read_text(encoding="utf-8"))[
        "frames"
    ][frame]["accuracy"]
    tables = parity.parity_frames()[frame]
    metrics = [
        "hitrate@5",
        "precision@5",
        "recall@5",
        "mapr@5",
        "ndcg@5",
        "rprecision",
        "bpref@10000",
    ]
    result = rd.evaluate(tables.true, tables.pred, metrics, like="trec_eval", users="both")
    # Lists without a relevant item are undefined for all but hitrate and precision: they count as
    # 0, and are told.
    relevant = (
        tables.true[tables.true["relevance"] > 0] if "relevance" in tables.true else tables.true
    )
    without = len(
        set(tables.true["user_id"]) & set(tables.pred["user_id"]) - set(relevant["user_id"])
    )
    assert result.summary["n_undefined"].tolist() == [0, 0, *[without] * (len(metrics) - 2)]
    assert result.summary["n"].eq(len(group["users"])).all()
    for metric, value in zip(metrics, result.summary["value"], strict=True):
        assert value == pytest.approx(group["mean"][metric.removesuffix("@10000")], abs=1e-12)


def test_lists_without_relevant_items_count_for_trec_eval_and_ranx() -> None:
    """Two topics, one without relevant items: both programs say .5, where a mean that skips the
    second says 1."""
    true = pd.DataFrame({"user_id": [1, 2], "item_id": ["a", "a"], "relevance": [1, 0]})
    pred = pd.DataFrame({"user_id": [1, 2], "item_id": ["a", "a"], "score": [1.0, 1.0]})
    for like in ("trec_eval", "ranx"):
        assert rd.mapr(true, pred, k=1, like=like) == 0.5
        assert rd.mapr(true, pred, k=1, like=like, undefined="nan") == 1.0


def test_lenskit_has_no_average_precision_of_an_empty_list() -> None:
    group = json.loads((dialects.GOLDEN / "lenskit.json").read_text(encoding="utf-8"))["frames"][
        "holes"
    ]["accuracy"]
    theirs = dict(zip(group["users"], group["per_user"]["mapr[empty list]@5"], strict=True))
    empty = {user for user, value in theirs.items() if value is not None}
    assert empty
    assert all(value != value for value in theirs.values() if value is not None)
    tables = parity.parity_frames()["holes"]
    found = rd.mapr.per_user(tables.true, tables.pred, 5, like="lenskit", users="true")
    assert set(found.loc[found["mapr@5"].isna(), "user_id"].astype(str)) == empty


def test_explicit_options_win_and_the_spec_says_what_was_computed() -> None:
    true, pred = {"u": ["a", "b"], "v": ["c"]}, {"u": ["a"], "w": ["a"]}
    result = rd.evaluate(true, pred, ["precision@2", "ndcg@2"], like="lenskit", users="true")
    assert result.per_user["user_id"].tolist() == ["u", "v"]
    assert result.spec["options"]["like"] == "lenskit"
    assert result.spec["options"]["users"] == "true"
    assert (
        result.spec["metrics"]["precision@2"]["definition"]
        == "precision(divisor=shown,pooled=False)@2"
    )
    assert "discount=jk" in result.spec["metrics"]["ndcg@2"]["definition"]
    assert rd.precision(true, pred, k=2, like="lenskit") == 0.5
    assert rd.precision(true, pred, k=2, like="lenskit", divisor="k", users="true") == 0.25


def test_own_record_and_unknown_name() -> None:
    ours = rd.Convention(
        "ours", options={"undefined": "zero"}, metrics={"recall": {"divisor": "achievable"}}
    )
    assert rd.recall({"u": ["a", "b"]}, {"u": ["a"]}, k=1, like=ours) == 1.0
    with pytest.raises(ValueError, match=r"like='rectool'; valid are .*; did you mean 'rectools'"):
        rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr@1", like="rectool")
    with pytest.raises(ValueError, match=r"no option 'usrs'; did you mean 'users'"):
        rd.evaluate(
            {"u": ["a"]}, {"u": ["a"]}, "mrr@1", like=rd.Convention("bad", options={"usrs": "pred"})
        )
    with pytest.raises(ValueError, match="recall parameter divisor='all'"):
        rd.evaluate(
            {"u": ["a"]},
            {"u": ["a"]},
            "recall@1",
            like=rd.Convention("bad", metrics={"recall": {"divisor": "all"}}),
        )
    table = rd.conventions_table()
    assert set(table["convention"]) == set(rd.CONVENTIONS)


def test_compare_conventions_tells_the_rule() -> None:
    frame = parity.section9()
    table = rd.diagnostics.compare_conventions(frame.true, frame.pred).set_index(
        ["metric", "convention"]
    )
    assert table.loc[("ndcg", "rectools"), "rule"].startswith("ideal=k")
    assert table.loc[("mapr", "replay"), "rule"].startswith("normalizer=achievable")
    assert table.loc[("hitrate", "lenskit"), "rule"].startswith("only together: ")
    same = table[table["diff"] == 0]
    assert (same["rule"] == "").all()
    assert (table[table["diff"].abs() > 1e-9]["rule"] != "").all()
    with pytest.raises(ValueError, match="takes no by="):
        rd.diagnostics.compare_conventions(frame.true, frame.pred, by="model")


def test_compare_conventions_tells_the_bits_of_scores() -> None:
    true = pd.DataFrame({"user_id": [1], "item_id": ["b"]})
    pred = pd.DataFrame({"user_id": [1, 1], "item_id": ["a", "b"], "score": [1 + 1e-12, 1.0]})
    both = [
        rd.Convention(f"{bits} bits", order="score", score_bits=bits, metrics={"mrr": {}})
        for bits in (32, 64)
    ]
    table = rd.diagnostics.compare_conventions(true, pred, "mrr", conventions=both)
    assert table["value"].tolist() == [1, 0.5]
    assert table["rule"].tolist() == ["", "scores of 64 bits (-0.5)"]


def test_compare_conventions_of_graded_data() -> None:
    true = pd.DataFrame(
        {"user_id": list("uuuvw"), "item_id": list("abcab"), "relevance": [3, 1, 2, 1, 2]}
    )
    pred = pd.DataFrame({"user_id": list("uuuv"), "item_id": list("bcaa"), "score": [3.0, 2, 1, 1]})
    table = rd.diagnostics.compare_conventions(
        true, pred, ["ndcg", "rbp"], 2, relevance_col="relevance"
    )
    table = table.set_index(["metric", "convention"])
    # ideal=k alone does not take gains above 1, rectools, which is binary, does
    assert table.loc[("ndcg", "rectools"), "rule"].startswith("gain=binary (")
    assert table.loc["ndcg", "value"].notna().all()
    assert table.loc[("ndcg", "rectools"), "value"] == rd.ndcg(
        true, pred, 2, like="rectools", relevance_col="relevance", score_col="score"
    )
    refused = table.loc[("rbp", "ranx")]
    assert refused["rule"].startswith("rbp takes gains in [0, 1]; true has 3.0, 2.0")
    assert refused[["n", "n_undefined"]].tolist() == [0, 3]
    assert refused[["value", "diff"]].isna().all()
    assert table.loc[("rbp", "lenskit"), "diff"] == 0  # the first one that computes it
    with pytest.raises(rd.OptionError, match="users='some'"):
        rd.diagnostics.compare_conventions(true, pred, users="some")


def test_a_rule_that_refuses_the_data_alone_is_skipped() -> None:
    pred = {"u": ["b", "a"], "v": ["a"]}
    base = rd.Convention("base", metrics={"ndcg": {}})
    other = rd.Convention("other", metrics={"ndcg": {"gain": "binary", "ideal": "k"}})
    true = pd.DataFrame({"user_id": ["u", "v"], "item_id": ["a", "a"], "relevance": 3})
    table = rd.diagnostics.compare_conventions(
        true, pred, ["ndcg"], 2, conventions=[base, other], relevance_col="relevance"
    )
    assert table.loc[1, "rule"].startswith("only together: gain=binary and ideal=k (")


def test_metrics_are_the_third_argument_as_in_evaluate():
    true, pred = (
        pd.DataFrame({"user_id": [1], "item_id": ["a"]}),
        pd.DataFrame({"user_id": [1], "item_id": ["a"]}),
    )
    table = rd.diagnostics.compare_conventions(true, pred, ["precision", rd.recall], 5)
    assert table["metric"].unique().tolist() == ["precision", "recall"]
    assert set(table["k"]) == {5}
    alone = rd.diagnostics.compare_conventions(true, pred, "recall", 5)
    assert alone.values.tolist() == table[table["metric"] == "recall"].values.tolist()


@pytest.mark.long
def test_compare_conventions_takes_side_tables_and_metrics_of_all_lists() -> None:
    frame = parity.parity_frames()["plain"]
    items = pd.DataFrame(
        {"item_id": range(1 + max(frame.true["item_id"].max(), frame.pred["item_id"].max()))}
    )
    metrics = ["precision", "auc", "coverage", "surprisal"]
    table = rd.diagnostics.compare_conventions(
        frame.true, frame.pred, metrics, 10, items=items, log=frame.side["log"]
    )
    found = table.set_index(["metric", "convention"])
    golden = json.loads((dialects.GOLDEN / "implicit.json").read_text(encoding="utf-8"))
    golden = golden["frames"]["plain"]["accuracy"]["mean"]
    for metric in ("precision", "auc"):
        assert found.loc[(metric, "implicit"), "value"] == pytest.approx(
            golden[f"{metric}@10"], abs=1e-9
        )
    assert found.loc[("precision", "implicit"), "rule"].startswith("divisor=achievable")
    assert found["value"].notna().all()
    for metric in metrics:
        assert set(found.loc[metric].index) == {
            one.name for one in rd.CONVENTIONS.values() if metric in one.metrics
        }
    without = rd.diagnostics.compare_conventions(frame.true, frame.pred, "coverage", 10)
    assert without["value"].isna().all()
    assert without["rule"].str.contains("items").all()
