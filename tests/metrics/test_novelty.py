"""Novelty by hand, and what the log may look like."""

import json
import math
from pathlib import Path

import pandas as pd
import pytest
from close import close

import recdf as rd

# Examples are small, so that side tables lack much of them.
pytestmark = pytest.mark.filterwarnings("ignore::recdf.UnknownWarning")

CASES = json.loads(
    (Path(__file__).parents[1] / "golden" / "cases.json").read_text(encoding="utf-8")
)["frames"]
LOG = pd.DataFrame({"user_id": [1, 1, 2, 3, 3, 3], "item_id": [*list("ab"), "a", *list("acc")]})


@pytest.mark.parametrize("name", ["popularity", "surprisal"])
@pytest.mark.parametrize("form", ["frames", "mappings"])
def test_worked_cases(name, form):
    case = CASES[name]
    log, pred = (
        pd.DataFrame(case["log"]),
        {int(user): items for user, items in case["pred"].items()},
    )
    if form == "frames":
        pred = rd.logs.from_dict(pred)
    else:
        log = log.groupby("user_id")["item_id"].agg(list).to_dict()
    assert rd.METRICS[name](log, pred, case["k"]) == close(case["value"])


def test_popularity_counts_users_or_events():
    pred = {9: ["a", "c", "new"]}
    assert rd.popularity(LOG, pred) == close((1 + 1 / 3 + 0) / 3)
    assert rd.popularity(LOG, pred, share_of="events") == close((3 / 6 + 2 / 6 + 0) / 3)


def test_surprisal():
    pred = {9: ["a", "b", "new"]}
    assert rd.surprisal(LOG, pred, 4) == close((0 + math.log2(3) + math.log2(3)) / 3)
    assert rd.surprisal(LOG, pred, 4, normalize=True, divisor="k") == close(2 / 4)
    assert rd.surprisal(LOG, pred, 4, share_of="events") == close((1 + 2 * math.log2(6)) / 3)


def test_surprisal_of_a_log_of_one_user_has_no_scale():
    assert rd.surprisal({1: ["a"]}, {1: ["a"]}) == 0.0
    assert math.isnan(rd.surprisal({1: ["a"]}, {1: ["a"]}, normalize=True))


def test_what_the_log_does_not_know_is_counted():
    pred = {1: ["a", "new"], 2: ["newer"], 7: ["a"]}
    result = rd.evaluate(
        None, pred, ["popularity", "unseen", "arp_ratio", "surprisal"], log=LOG, users="pred"
    )
    assert result.spec["counts"] == {"pred_not_in_log": 2, "lists_without_log": 1}
    assert result.per_user["unseen@10"].tolist() == close([1 / 2, 1.0, 1.0])
    assert result.per_user["arp_ratio@10"].tolist() == close(
        [(1 / 2) / ((1 + 1 / 3) / 2), 0.0, math.nan]
    )
    assert result.summary.set_index("metric")["n_undefined"].to_dict() == {
        "popularity": 0,
        "unseen": 0,
        "arp_ratio": 1,
        "surprisal": 0,
    }


def test_the_log_of_sessions_may_know_users_alone():
    pred = pd.DataFrame({"user_id": [1, 1, 2], "session": [1, 2, 1], "item_id": ["a", "x", "c"]})
    key = {"user_col": ["user_id", "session"]}
    assert rd.unseen.per_user(LOG, pred, **key).iloc[:, 2].tolist() == [0.0, 1.0, 1.0]
    sessions = LOG.assign(session=[1, 1, 1, 1, 1, 1])
    assert rd.unseen.per_user(sessions, pred, **key).iloc[:, 2].tolist() == [0.0, 1.0, 1.0]
    with pytest.raises(rd.ColumnError, match="log has no column 'user_id'"):
        rd.unseen(LOG.rename(columns={"user_id": "customer"}), pred, **key)


def test_serendipity_by_hand():
    features = {"a": [1, 0], "b": [1, 1], "c": [0, 1], "d": [0, 2], "e": [0, 1]}
    side = {"log": {1: ["a"], 2: ["zzz"]}, "features": features}
    true, pred = {1: ["b", "c", "d"], 2: ["c"]}, {1: ["a", "b", "c", "d", "unknown"], 2: ["c"]}
    found = rd.serendipity.per_user(true, pred, 5, **side).iloc[:, 1]
    # a is the past, b is 0.707 like it, c and d are new; "unknown" has no features.
    assert found.tolist() == close([2 / 4, math.nan])
    assert rd.serendipity(true, pred, 5, threshold=0.8, **side) == close(3 / 4)
    assert rd.serendipity(true, pred, 5, popular=["c"], **side) == close(1 / 4)
    assert rd.serendipity(None, pred, 5, relevant=False, **side) == close(2 / 4)
    with pytest.raises(rd.OptionError, match=r"^serendipity\(.*needs true=, or relevant=False"):
        rd.serendipity(None, pred, 5, **side)
    with pytest.raises(rd.OptionError, match="true="):
        rd.evaluate(None, pred, "recall")


def test_serendipity_without_the_most_popular():
    log = pd.DataFrame({"user_id": [1, 2, 3, 4, 5], "item_id": ["past", "c", "c", "d", "e"]})
    features = {"past": [1, 0, 0], "c": [0, 1, 0], "d": [0, 1, 0], "e": [0, 0, 1]}
    side = {"log": log, "features": features, "relevant": False}
    pred = {1: ["c", "d", "e"]}
    # c has two interactions; of the others, which have one, the smaller id goes first.
    assert [rd.serendipity(None, pred, top=top, **side) for top in (None, 1, 2, 3)] == close(
        [1, 2 / 3, 1 / 3, 0.0]
    )


def test_unexpectedness():
    base = pd.DataFrame({"user_id": [1, 1, 1, 2], "item_id": list("abcz"), "score": [1, 3, 2, 1]})
    pred = {1: ["c", "x", "a"], 2: ["z"], 3: ["q"]}
    found = rd.unexpectedness.per_user(base, pred, 2).iloc[:, 1]
    assert found.tolist() == close([1 / 2, 0.0, 1.0])  # the baseline's first two are b and c
    assert rd.unexpectedness.per_user(base, pred, 2, divisor="k").iloc[:, 1].tolist() == close(
        [0.5, 0.5, 1.0]
    )
    assert rd.unexpectedness(pred, pred) == 0.0


def test_epc_and_efd_by_hand():
    true, pred = {1: ["b", "c"]}, {1: ["a", "b", "c"]}
    weights = 1 + 1 / math.log2(3) + 1 / 2
    found = (2 / 3) / math.log2(3) + (2 / 3) / 2
    assert rd.epc(true, pred, 3, log=LOG) == close(found / weights)
    assert rd.epc(true, pred, 3, log=LOG, discount="none") == close((2 / 3 + 2 / 3) / 3)
    bits = math.log2(6) / math.log2(3) + math.log2(6 / 2) / 2
    assert rd.efd(true, pred, 3, log=LOG) == close(bits / weights)
    assert rd.efd(true, pred, 3, log=LOG, relevant=False) == close((1 + bits) / weights)


def test_long_tail():
    log = pd.DataFrame({"user_id": range(10), "item_id": list("aaaaaabbcd")})
    pred = {1: [*list("abcd"), "new"]}
    # The head holds 60 % with a, 80 % with b.
    assert [rd.aclt(log, pred, head=head) for head in (0.5, 0.6, 0.61, 0.8, 1.0)] == [4, 4, 3, 3, 1]
    assert rd.aplt(log, pred) == close(3 / 5)
    with pytest.raises(rd.OptionError, match=r"head=80; expected a number above 0 and at most 1"):
        rd.aplt(log, pred, head=80)


def test_string_strings_work_like_parameters():
    names = ["surprisal(normalize=true,divisor=k)@3", "arp@3", "novelty@3", "miuf@3"]
    result = rd.evaluate(None, {1: ["a", "b"]}, names, log=LOG, users="pred")
    assert list(result.per_user.columns[3:]) == names
    assert result.per_user["miuf@3"].equals(result.per_user["novelty@3"])


def test_bad_parameters_are_refused():
    side = {"log": LOG, "features": {"a": [1]}, "relevant": False}
    with pytest.raises(rd.OptionError, match="normalize='yes'; expected True or False"):
        rd.surprisal(LOG, {1: ["a"]}, normalize="yes")
    for top in (-1, 2.5, "all", True):
        with pytest.raises(
            rd.OptionError, match=r"top=.*expected an integer of at least 0 or None"
        ):
            rd.serendipity(None, {1: ["a"]}, top=top, **side)
    with pytest.raises(rd.OptionError, match="judged_only=True needs true="):
        rd.unseen(LOG, {1: ["a"]}, judged_only=True)


COUNTED = {1: ["a", "b", "c"], 2: ["a", "b"], 3: ["a", "d"]}  # three have a, two b, one c and d


def test_popularity_as_a_count_or_a_rank():
    pred = {9: ["a", "c", "x"]}
    assert rd.popularity(COUNTED, pred, unit="count") == close((3 + 1 + 0) / 3)
    # Ranks from the rarest: c and d share 1 and 2, b has 3, a has 4.
    assert rd.popularity(COUNTED, pred, unit="rank") == close((4 + 1.5 + 0) / 4 / 3)
    twice = pd.DataFrame({"user_id": [1, 1, 2], "item_id": ["a", "a", "b"]})
    assert rd.popularity(twice, {9: ["a"]}, unit="count") == 1.0
    assert rd.popularity(twice, {9: ["a"]}, unit="count", share_of="events") == 2.0


def test_evidently_leaves_out_items_that_the_log_lacks():
    """a has 3 of 3 users and c 1; x is not in the log, and user 8 is shown nothing else."""
    pred, like = {9: ["x", "a", "c"], 8: ["x"]}, {"like": "evidently"}
    assert rd.surprisal(COUNTED, pred) == close(((2 * math.log2(3)) / 3 + math.log2(3)) / 2)
    assert rd.surprisal(COUNTED, pred, **like) == close(math.log2(3) / 2)
    assert rd.surprisal(COUNTED, pred, k=2, **like) == 0.0
    assert rd.surprisal.per_user(COUNTED, pred, k=1, **like)["surprisal@1"].isna().all()
    assert rd.popularity(COUNTED, pred, **like) == close((3 + 1) / 2)
    assert rd.popularity(COUNTED, pred, unit="rank", divisor="known") == close((4 + 1.5) / 4 / 2)


def test_a_tail_of_some_items():
    pred = {9: ["a", "b", "c", "d", "x"]}
    for tail, expected in [
        (0.5, ["c", "d"]),
        (0.3, ["c"]),
        (0.001, ["c"]),
        (0.75, ["c", "d", "b"]),
        (1, ["c", "d"]),
    ]:
        assert rd.aclt(COUNTED, pred, tail=tail) == len(expected)
        assert rd.aplt(COUNTED, {9: expected}, tail=tail) == 1.0
    assert rd.aplt(COUNTED, pred, tail=2) == close(3 / 5)
    assert rd.aplt({1: [*range(100)]}, {9: [*range(100)]}, k=100, tail=0.29) == close(0.29)
    with pytest.raises(rd.OptionError, match=r"head=0.5 and tail=2 both say what the tail is"):
        rd.aplt(COUNTED, pred, head=0.5, tail=2)
    with pytest.raises(rd.OptionError, match="tail="):
        rd.aplt(COUNTED, pred, tail=0)
