"""Per user equal to trec_eval itself, through pytrec_eval, to 1e-12."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from registry.seeded import quietly

import recdf as rd

pytrec_eval = pytest.importorskip("pytrec_eval")

MEASURES = {
    "mapr@1000": "map",
    "mapr@5": "map_cut_5",
    "ndcg@1000": "ndcg",
    "ndcg@5": "ndcg_cut_5",
    "mrr@1000": "recip_rank",
    "precision@5": "P_5",
    "precision@10": "P_10",
    "recall@5": "recall_5",
    "rprecision": "Rprec",
    "hitrate@1": "success_1",
    "hitrate@5": "success_5",
    "hits@1000": "num_rel_ret",
    "bpref@1000": "bpref",
    "precision(divisor=achievable)@5": "relative_P_5",
}
NAMES = {
    "map",
    "map_cut.5",
    "ndcg",
    "ndcg_cut.5",
    "recip_rank",
    "P.5,10",
    "recall.5",
    "Rprec",
    "success.1,5",
}
NAMES |= {"num_rel_ret", "bpref", "relative_P.5"}


def compare(true, pred, names=MEASURES):
    """Values of both for every user that both frames hold: trec_eval knows no others."""
    qrels, run = {}, {}
    for user, item, gain in zip(true["user_id"], true["item_id"], true["relevance"], strict=True):
        qrels.setdefault(str(user), {})[str(item)] = int(gain)
    for user, item, score in zip(pred["user_id"], pred["item_id"], pred["score"], strict=True):
        run.setdefault(str(user), {})[str(item)] = float(score)
    expected = pytrec_eval.RelevanceEvaluator(qrels, NAMES).evaluate(run)
    result = quietly(
        rd.evaluate,
        true,
        pred,
        list(names),
        relevance_col="relevance",
        users="both",
        undefined="zero",
    )
    per_user = result.per_user.set_index(result.per_user["user_id"].astype(str))
    assert set(per_user.index) == set(expected)
    for user, values in expected.items():
        for ours, theirs in names.items():
            assert per_user.loc[user, ours] == pytest.approx(
                values[theirs], rel=1e-12, abs=1e-12
            ), (user, ours)
    return len(expected)


def log(seed, n_users=60, n_items=40, label="d{:03d}", ties=True):
    """Graded judgements with non-relevant ones, ragged lists with holes, few distinct scores."""
    rng = np.random.default_rng(seed)
    true, pred = [], []
    for user in range(n_users):
        for item in rng.choice(n_items, rng.integers(0, 15), replace=False):
            true.append((user, label.format(item), rng.choice([0, 0, 1, 1, 2, 3])))
        for item in rng.choice(n_items, rng.integers(0, 25), replace=False):
            pred.append(
                (user, label.format(item), rng.integers(0, 6) / 4 if ties else rng.normal())
            )
    true = pd.DataFrame(true, columns=["user_id", "item_id", "relevance"]).sample(
        frac=1, random_state=seed
    )
    return true, pd.DataFrame(pred, columns=["user_id", "item_id", "score"]).sample(
        frac=1, random_state=seed
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ties", [True, False])
def test_logs(seed, ties):
    assert compare(*log(seed, ties=ties)) > 40


@pytest.mark.long
def test_string_ids_of_all_alphabets_tie_alike():
    """trec_eval compares bytes, which for UTF-8 is the order of code points."""
    alphabet = ["10", "9", "a", "B", "b", "é", "ß", "Ω", "ﬀ", "😀", "日", "~", "_", "-", " x"]
    rng = np.random.default_rng(0)
    for _ in range(20):
        items = rng.permutation(alphabet)
        pred = pd.DataFrame(
            {"user_id": "u", "item_id": items, "score": rng.integers(0, 2, len(items)) / 1.0}
        )
        true = pd.DataFrame(
            {"user_id": "u", "item_id": rng.permutation(alphabet)[:5], "relevance": [1, 2, 3, 0, 1]}
        )
        compare(true, pred)


def test_categories_tie_by_their_values():
    true, pred = log(9)
    shuffled = pd.CategoricalDtype(
        list(np.random.default_rng(1).permutation(pd.unique(pred["item_id"].astype(object))))
    )
    items = pd.CategoricalDtype(shuffled.categories.union(true["item_id"].unique(), sort=False))
    compare(true.astype({"item_id": items}), pred.astype({"item_id": shuffled}))


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 8), st.integers(0, 3)), min_size=1, max_size=25
    ),
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(-2, 2)), min_size=1, max_size=30
    ),
)
@example([(0, 1, 0), (0, 2, 3), (1, 1, 0)], [(0, 1, 2), (0, 2, 2), (0, 3, 2), (1, 5, 0)])
@example([(0, i, i % 3) for i in range(9)], [(0, i, -1) for i in range(10)] + [(4, 1, 0)])
def test_small_logs(true, pred):
    # One digit a number, so that the order of strings, which trec_eval takes, is the order of
    # numbers.
    true = pd.DataFrame(true, columns=["user_id", "item_id", "relevance"]).drop_duplicates(
        ["user_id", "item_id"]
    )
    pred = pd.DataFrame(pred, columns=["user_id", "item_id", "score"]).drop_duplicates(
        ["user_id", "item_id"]
    )
    if not set(true["user_id"]) & set(pred["user_id"]):
        return
    compare(true, pred)
