"""What metrics share: sums over hits are made once for all metrics and cut-offs, and are those of
each alone."""

import gc

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.inputs.options import Options
from recdf.matching.counts import ListCounts
from recdf.matching.hits import HitArrays, Hits
from recdf.matching.lists import Lists, Matched
from recdf.matching.match import match

METRICS = [
    "hits",
    "mapr",
    "mapr(normalizer=k)",
    "mar",
    "mrr",
    "mrr(of=all)",
    "arhr",
    "ndcg",
    "ndcg(gain=exp2)",
    "dcg",
]
METRICS += ["ndcg(discount=jk)", "rbp", "err", "auc", "pauc", "pap", "first_rank"]


@pytest.fixture
def frames():
    rng = np.random.default_rng(11)
    pred = [
        (user, item)
        for user in range(40)
        for item in rng.choice(60, rng.integers(1, 31), replace=False)
    ]
    true = [
        (user, item)
        for user in range(1, 41)
        for item in rng.choice(60, rng.integers(1, 31), replace=False)
    ]
    return (pd.DataFrame(rows, columns=["user_id", "item_id"]) for rows in (true, pred))


def matched(true, pred, **options):
    return match(true, pred, Options(**options))


@pytest.mark.long
@pytest.mark.parametrize("ks", [[1, 3, 10, 40], [40, 3, 10, 1]])
def test_a_cut_off_has_the_same_values_beside_others_as_alone(frames, ks):
    true, pred = frames
    together = rd.evaluate(true, pred, METRICS, k=ks).per_user
    for k in ks:
        for name in METRICS:
            alone = rd.evaluate(true, pred, name, k=k).per_user
            pd.testing.assert_series_equal(
                together[f"{name}@{k}"], alone[f"{name}@{k}"], check_exact=True
            )


def test_a_sum_reads_each_hit_once(frames):
    lists_of = matched(*frames)
    seen = []

    def rank(hits):
        seen.extend(zip(hits.list.tolist(), hits.rank.tolist(), strict=True))
        return hits.rank

    sums = [lists_of.at(k).sum_hits(rank) for k in (3, 10, 40, 10, 3)]
    hits = lists_of.hits
    assert sorted(seen) == list(zip(hits.list.tolist(), hits.rank.tolist(), strict=True))
    for k, found in zip((3, 10, 40), sums, strict=False):
        assert found.tolist() == lists_of.at(k).sum(lists_of.at(k).hits.rank).tolist()
        assert lists_of.at(k).sum_hits(rank) is found


def test_a_shared_sum_is_read_only(frames):
    with pytest.raises(ValueError, match="read-only"):
        matched(*frames).at(3).n_hits[0] = 7


def test_no_metric_changes_what_others_read(frames):
    """`ranks -= 1` in a metric of one's own would move the hits of all other metrics."""
    true, pred = (frame.assign(price=1.0, chance=0.5) for frame in frames)
    options = {"value_col": "price", "propensity_col": "chance"}
    lists = matched(true, pred, **options).at(3)
    arrays = [
        *(getattr(lists, name) for name in ("n_true", "n_pred", "n_shown", "n_hits", "n_judged")),
        *(lists.first_rank, lists.item_weights, lists.values.pred, lists.values.true),
        *(getattr(lists.hits, name) for name in HitArrays._fields),
        *(getattr(lists.judged, name) for name in HitArrays._fields),
    ]
    counts = ListCounts(lists)
    for array in [*arrays, counts.shown, counts.hits, counts.relevant, counts.first_shown]:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_results_may_be_written_to(frames):
    per_user = rd.evaluate(*frames, ["hits", "precision"], k=5).per_user
    per_user["hits@5"] += 1
    assert (per_user["hits@5"] != 5 * per_user["precision@5"]).all()


def test_kinds_of_gain_share_a_sum_only_where_all_gains_are_1(frames):
    true, pred = frames
    kinds = ["dcg(gain=linear)", "dcg(gain=exp2)", "dcg(gain=binary)"]
    linear, exp2, binary = rd.evaluate(true, pred, kinds, k=10).per_user.iloc[:, -3:].to_numpy().T
    assert (linear == exp2).all()
    assert (linear == binary).all()
    # One list of other gains, and all others go the long way to the same values.
    graded = true.assign(relevance=np.where(true["user_id"] == 1, 3.0, 1.0))
    table = (
        rd.evaluate(graded, pred, kinds, k=10, relevance_col="relevance")
        .per_user.iloc[:, -3:]
        .to_numpy()
    )
    assert (table[1:] == linear[1:, None]).all()
    np.testing.assert_allclose(table[0], linear[0] * np.array([3, 7, 1]), rtol=1e-14)


def test_hits_with_a_score_of_their_own_are_no_ties(frames):
    true, pred = frames
    pred = pred.assign(score=-pred.groupby("user_id").cumcount().clip(upper=8))
    ties = matched(true, pred).at(None)
    tied, hits = ties.tied_hits, ties.hits
    n_pred = ties.n_pred[hits.list]
    expected = (hits.rank >= 9) & (n_pred > 9)
    assert list(zip(tied.list, tied.rank, strict=True)) == list(
        zip(hits.list[expected], hits.rank[expected], strict=True)
    )
    assert not len(matched(true, pred.drop(columns="score")).at(3).tied_hits)


def test_any_callable_may_be_a_discount(frames):
    class Discount:
        __hash__ = None

        def __call__(self, rank):
            return 1 / np.log2(rank + 1)

    true, pred = frames
    graded = true.assign(relevance=true["item_id"] % 3)
    for truth, options in ((true, {}), (graded, {"relevance_col": "relevance"})):
        found = rd.ndcg.per_user(truth, pred, 10, discount=Discount(), **options)
        expected = rd.ndcg.per_user(truth, pred, 10, **options)
        np.testing.assert_allclose(found.iloc[:, -1], expected.iloc[:, -1], rtol=1e-12)


@pytest.mark.long
def test_an_evaluation_leaves_no_cycles(frames):
    true, pred = frames
    gc.collect()
    gc.disable()
    try:
        rd.evaluate(true, pred, METRICS, k=[3, 10])
        rd.ndcg(true, pred, 3)
        rd.ndcg.per_user(true, pred, 3)
        assert not [one for one in gc.get_objects() if isinstance(one, Matched | Lists | Hits)]
    finally:
        gc.enable()
