"""What `rd.write_trec` and `result.to_trec` write, read by pytrec_eval: equal values, and the order
survives."""

import gzip

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

import recdf as rd

MEASURES = {
    "ndcg_cut_10": "ndcg@10",
    "map": "mapr@1000",
    "P_5": "precision@5",
    "recall_5": "recall@5",
    "recip_rank": "mrr@1000",
    "Rprec": "rprecision",
    "bpref": "bpref@1000",
}


def run_of(path):
    with open(path, encoding="utf-8") as file:
        return pytrec_eval.parse_run(file)


def qrels_of(path):
    with open(path, encoding="utf-8") as file:
        return pytrec_eval.parse_qrel(file)


def theirs(true_path, pred_path):
    """Value of each user and measure by pytrec_eval."""
    measures = {"ndcg_cut.10", "map", "P.5", "recall.5", "recip_rank", "Rprec", "bpref"}
    found = pytrec_eval.RelevanceEvaluator(qrels_of(true_path), measures).evaluate(
        run_of(pred_path)
    )
    return pd.DataFrame(found).T.rename_axis("user_id")[list(MEASURES)].astype(float)


def ours(true, pred, **options):
    found = rd.evaluate(true, pred, list(MEASURES.values()), **options).per_user
    return found.astype({"user_id": str}).set_index("user_id")[list(MEASURES.values())]


def assert_same(ours, theirs):
    own = ours.loc[theirs.index]
    np.testing.assert_allclose(own.to_numpy(dtype=float), theirs.to_numpy(), rtol=0, atol=1e-9)


def made_up(seed, scores):
    """Long frames with text ids, many equal scores and judgements of several grades, some of them
    negative."""
    rng = np.random.default_rng(seed)
    users, items = [f"q{i}" for i in range(12)], [f"d{i:02}" for i in range(40)]
    pred = pd.DataFrame(
        [(user, item) for user in users for item in rng.choice(items, 25, False)],
        columns=["user_id", "item_id"],
    )
    pred["score"] = scores(rng, len(pred))
    true = pd.DataFrame(
        [(user, item) for user in users for item in rng.choice(items, 12, False)],
        columns=["user_id", "item_id"],
    )
    true["relevance"] = rng.integers(-1, 4, len(true))
    return true, pred


SCORES = {
    "equal": lambda rng, n: rng.integers(0, 4, n) / 2,
    "equal in 32 bits": lambda rng, n: 100 + rng.integers(0, 50, n) * 1e-6,
    "plain": lambda rng, n: rng.normal(size=n),
    "tiny": lambda rng, n: rng.normal(size=n) * 1e-46,
    "beyond 32 bits": lambda rng, n: rng.normal(size=n) * 1e300,
    "large integers": lambda rng, n: 2**40 + rng.integers(0, 10, n),
}


@pytest.mark.few(2)
@pytest.mark.filterwarnings("ignore::recdf.errors.RecdfWarning")
@pytest.mark.parametrize("kind", SCORES)
def test_the_order_of_recdf_survives(tmp_path, kind):
    true, pred = made_up(7, SCORES[kind])
    rd.write_trec(true, tmp_path / "true.qrels")
    rd.write_trec(pred, tmp_path / "pred.run")
    peer = theirs(tmp_path / "true.qrels", tmp_path / "pred.run")
    assert_same(ours(true, pred, undefined="zero"), peer)
    again, back = rd.read(tmp_path / "true.qrels"), rd.read(tmp_path / "pred.run")
    for options in ({"undefined": "zero"}, {"like": "trec_eval"}):
        assert_same(ours(again, back, **options), peer)
    pd.testing.assert_frame_equal(again.drop(columns="iteration"), true, check_dtype=False)


@pytest.mark.few(2)
@pytest.mark.filterwarnings("ignore::recdf.errors.RecdfWarning")
@pytest.mark.parametrize("kind", SCORES)
def test_a_run_of_another_tool_has_the_values_of_trec_eval(tmp_path, kind):
    """Its scores have ties in 32 bits, which trec_eval orders by item id, and stated ranks that
    nobody reads."""
    true, pred = made_up(8, SCORES[kind])
    with open(tmp_path / "pred.run", "w", encoding="utf-8") as file:
        for row in pred.sample(frac=1, random_state=1).itertuples():
            file.write(f"{row.user_id}\tQ0  {row.item_id} 1 {row.score!r} \t my-run\r\n")
    rd.write_trec(true, tmp_path / "true.qrels")
    peer = theirs(tmp_path / "true.qrels", tmp_path / "pred.run")
    found = ours(rd.read(tmp_path / "true.qrels"), rd.read(tmp_path / "pred.run"), like="trec_eval")
    assert_same(found, peer)


@pytest.mark.parametrize("column", ["rank", None])
def test_ranks_and_the_order_of_rows(tmp_path, column):
    pred = pd.DataFrame({"user_id": [2, 1, 2, 2], "item_id": [9, 5, 10, 11], "rank": [3, 1, 1, 2]})
    rd.write_trec(
        pred if column else pred[["user_id", "item_id"]],
        tmp_path / "pred.run",
        kind="run",
        tag="als",
    )
    expected = ["10", "11", "9"] if column else ["9", "10", "11"]
    found = run_of(tmp_path / "pred.run")
    assert sorted(found["2"], key=lambda item: -found["2"][item]) == expected
    assert found["2"] == dict(zip(expected, [3.0, 2.0, 1.0], strict=True))
    assert (tmp_path / "pred.run").read_text().splitlines()[0] == f"2 Q0 {expected[0]} 1 3 als"


def test_a_score_that_need_not_change_stays(tmp_path):
    rd.write_trec({"u": {"a": 0.1, "b": 0.3}}, tmp_path / "a.run.gz", kind="run")
    assert (
        gzip.decompress((tmp_path / "a.run.gz").read_bytes())
        == b"u Q0 b 1 0.3 recdf\nu Q0 a 2 0.1 recdf\n"
    )
    assert rd.read(tmp_path / "a.run.gz")["score"].tolist() == [0.3, 0.1]


@pytest.mark.long
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=12))
def test_written_scores_fall_in_32_bits_and_in_64(scores):
    import tempfile
    from pathlib import Path

    pred = pd.DataFrame(
        {"user_id": "u", "item_id": [f"{i:02}" for i in range(len(scores))], "score": scores}
    )
    with tempfile.TemporaryDirectory() as folder:
        rd.write_trec(pred, Path(folder, "p.run"))
        found = rd.read(Path(folder, "p.run"))
    expected = sorted(zip(scores, pred["item_id"], strict=True), reverse=True)
    assert found["item_id"].tolist() == [item for _, item in expected]
    assert (np.diff(found["score"]) < 0).all()
    with np.errstate(over="ignore"):
        assert (np.diff(found["score"].to_numpy(dtype=np.float32)) < 0).all() or np.isinf(
            found["score"]
        ).any()


@pytest.mark.parametrize(
    ("frame", "options", "error", "words"),
    [
        ({"user_id": ["a b"], "item_id": ["x"], "score": [1.0]}, {}, rd.DataError, "'a b'"),
        ({"user_id": [1.0], "item_id": ["x"], "score": [1.0]}, {}, rd.DataError, "floats"),
        (
            {"user_id": ["u", "u"], "item_id": ["x", "x"], "score": [1.0, 2]},
            {},
            rd.DuplicateError,
            "a file for each",
        ),
        ({"user_id": ["u"], "item_id": [None], "score": [1.0]}, {}, rd.NullKeyError, "item_id"),
        ({"user_id": ["u"], "item_id": ["x"], "score": [float("nan")]}, {}, rd.DataError, "score"),
        ({"user_id": ["u"], "item_id": ["x"]}, {}, rd.OptionError, 'kind="qrels"'),
        (
            {"user_id": ["u"], "item_id": ["x"], "score": [1], "relevance": [1]},
            {},
            rd.OptionError,
            'kind="run"',
        ),
        ({"user_id": ["u"], "item_id": ["x"], "relevance": [0.5]}, {}, rd.DataError, "integer"),
        (
            {"user_id": ["u"], "item_id": ["x"], "relevance": [1e30]},
            {},
            rd.DataError,
            "integer of 32 bits",
        ),
        (
            {"user_id": ["u"], "item_id": ["x"], "score": [1]},
            {"kind": "runs"},
            rd.OptionError,
            "kind",
        ),
        (
            {"user_id": ["u"], "item_id": ["x"], "score": [1]},
            {"tag": "my run"},
            rd.DataError,
            "tag",
        ),
        ({"uid": ["u"], "item_id": ["x"], "score": [1]}, {}, rd.ColumnError, "uid"),
    ],
)
def test_what_trec_cannot_hold_is_refused(tmp_path, frame, options, error, words):
    with pytest.raises(error, match=words):
        rd.write_trec(pd.DataFrame(frame), tmp_path / "file", **options)
    assert not (tmp_path / "file").exists()


def test_a_null_relevance_is_not_judged(tmp_path):
    true = pd.DataFrame({"user_id": ["u"] * 2, "item_id": ["x", "y"], "relevance": [2.0, None]})
    rd.write_trec(true, tmp_path / "true.qrels")
    assert (tmp_path / "true.qrels").read_text() == "u 0 x 2\nu 0 y -1\n"


@pytest.mark.filterwarnings("ignore::recdf.errors.RecdfWarning")
def test_values_as_trec_eval_prints_them(tmp_path):
    true, pred = made_up(9, SCORES["plain"])
    result = rd.evaluate(
        true, pred, [*MEASURES.values(), "mrr@5", "ndcg(gain=exp2)@5"], like="trec_eval"
    )
    result.to_trec(tmp_path / "values.txt")
    lines = [line.split() for line in (tmp_path / "values.txt").read_text().splitlines()]
    found = {(name, user): value for name, user, value in lines}
    rd.write_trec(true, tmp_path / "true.qrels")
    rd.write_trec(pred, tmp_path / "pred.run")
    peer = theirs(tmp_path / "true.qrels", tmp_path / "pred.run")
    for name in MEASURES:
        for user, value in peer[name].items():
            assert found[name, user] == f"{value:.4f}"
        assert found[name, "all"] == f"{peer[name].mean():.4f}"
    assert {name for name, _ in found} == {*MEASURES, "mrr@5", "ndcg(gain=exp2)@5"}
    assert [user for _, user, _ in lines][-9:] == ["all"] * 9
    several = rd.evaluate(true, pred.assign(model="a"), "ndcg@5", by="model", like="trec_eval")
    with pytest.raises(rd.OptionError, match="one model"):
        several.to_trec(tmp_path / "values.txt")


def test_a_negative_relevance_is_no_error_for_trec_eval(tmp_path):
    true, pred = made_up(10, SCORES["plain"])
    rd.write_trec(true, tmp_path / "true.qrels")
    rd.write_trec(pred, tmp_path / "pred.run")
    found = rd.evaluate(true, pred, "ndcg@10", like="trec_eval").per_user["ndcg@10"]
    peer = theirs(tmp_path / "true.qrels", tmp_path / "pred.run")["ndcg_cut_10"]
    np.testing.assert_allclose(found.sort_values(), peer.sort_values(), rtol=0, atol=1e-9)
    with pytest.raises(rd.DataError, match="drop rows that nobody judged"):
        rd.evaluate(true, pred, "ndcg@10")


def test_a_frame_without_rows_is_a_file_without_lines(tmp_path):
    rd.write_trec(pd.DataFrame({"user_id": [], "item_id": [], "score": []}), tmp_path / "a.run")
    assert (tmp_path / "a.run").read_text() == ""


def test_values_of_a_list_stand_together_where_another_one_is_undefined(tmp_path):
    true = pd.DataFrame(
        {"user_id": list("abc"), "item_id": ["x"] * 3, "relevance": [1, 0, 1]}
    )  # b has no relevant item, and so no recall
    pred = pd.DataFrame({"user_id": list("abc"), "item_id": ["x"] * 3})
    rd.evaluate(true, pred, ["recall", "precision"], k=1).to_trec(tmp_path / "values.txt")
    lines = (tmp_path / "values.txt").read_text().splitlines()
    assert [line.split()[1] for line in lines] == ["a", "a", "b", "c", "c", "all", "all"]


def test_a_column_may_have_an_empty_name(tmp_path):
    run = pd.DataFrame({"user_id": ["u", "v"], "": ["a", "b"], "score": [1.0, 2.0]})
    rd.write_trec(run, tmp_path / "a.run", item_col="")
    assert run_of(tmp_path / "a.run") == {"u": {"a": 1.0}, "v": {"b": 2.0}}
