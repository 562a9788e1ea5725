"""Parts of a population, measured alone and added in any order, are the whole."""

import functools
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recdf as rd
from recdf.evaluation.evaluate import call_of as checked_call
from recdf.evaluation.evaluate import checked, finish, finish_summary
from recdf.evaluation.part import Failure, Part, PartResult, measure, result_bytes
from recdf.metrics.compute import per_user_frame

USERS, ITEMS = 9, 8
WEIGHTS = {user: [1.0, 0.25, 0.0][user % 3] for user in range(USERS)}
LISTS = ["ndcg", "err", "recall", "mapr(normalizer=achievable)", "mrr", "precision@3"]
LISTS += ["unseen", "category_entropy", "ild@3", "revenue", "epc", "aplt", "calibration"]
LISTS += ["subtopic_recall", "unexpectedness", "clicked", "ctr", "rbo", "popularity(unit=rank)"]
EXPOSURE = [
    "hhi",
    "coverage",
    "user_coverage",
    "personalization",
    "pop_rsp",
    "exposure_share(group_col=category)",
]
EXPOSURE += [
    "gini(discount=geometric,p=0.5)",
    "gini",
    "coverage(normalize=False)",
    "item_gap(group_col=category)",
]
SIDES = {
    "items": pd.DataFrame({"item_id": range(ITEMS - 1), "category": list("abcabca")}),
    "log": pd.DataFrame({"user_id": [0, 0, 1, 3, 20, None], "item_id": [1, 2, 2, 5, 1, 3]}),
    "features": "category",
    "aspects": pd.DataFrame({"item_id": [0, 1, 1, 2, 5], "aspect": list("xxyzy")}),
    "base": pd.DataFrame(
        {"user_id": [0, 0, 1, 3, 8], "item_id": [1, 2, 2, 5, 1], "rank": [1, 2, 1, 1, 1]}
    ),
}


def rows(columns, nulls, **more):
    """Rows of users and items. With `nulls` every tenth id is null."""
    lowest = -1 if nulls else 0
    cells = {
        "user_id": st.integers(lowest, USERS - 1),
        "item_id": st.integers(lowest, ITEMS - 1),
        **more,
    }
    return st.lists(st.tuples(*(cells[name] for name in columns)), min_size=1, max_size=60).map(
        lambda found: with_null_ids(pd.DataFrame(found, columns=columns))
    )


def with_null_ids(frame):
    """Null stands for -1."""
    ids = {
        name: frame[name].where(frame[name] >= 0).astype("Int64") for name in ("user_id", "item_id")
    }
    return frame.assign(**ids) if any(one.hasnans for one in ids.values()) else frame


# One of these may raise, in a part or of all of them.
STRICT = [
    {},
    {},
    {"null_keys": "raise"},
    {"nan_score": "raise"},
    {"ties": "raise"},
    {"undefined": "raise"},
]
STRICT += [{"duplicates": "raise"}]


@st.composite
def cases(draw):
    """Two frames, options, the bucket of each user, an order of the buckets and a seed for the tree
    of sums."""
    nulls, amounts = draw(st.booleans()), st.sampled_from([0.0, 1.0, 2.0])
    true = draw(
        rows(
            ["user_id", "item_id", "relevance", "clicks"], nulls, relevance=amounts, clicks=amounts
        )
    )
    columns = ["user_id", "item_id", "score"] + (["model"] if draw(st.booleans()) else [])
    scores = st.sampled_from([0.0, 0.5, 1.0, np.nan] if nulls else [0.0, 0.5, 1.0])
    pred = draw(rows(columns, nulls, score=scores, model=st.sampled_from(["a", "b", "c"])))
    for frame in (true, pred):
        frame["paid"] = frame["item_id"].fillna(0).astype(float) % 3 + 0.1
    options = {
        "relevance_col": draw(st.sampled_from([False, "relevance"])),
        "users": draw(st.sampled_from(["true", "pred", "both", "all"])),
        "ties": draw(st.sampled_from(["item_desc", "worst"])),
        "duplicates": draw(st.sampled_from(["drop", "keep"])),
        "null_keys": "drop",
        "nan_score": draw(st.sampled_from(["last", "drop"])),
        "weight_col": draw(st.sampled_from([None, WEIGHTS])),
        "value_col": "paid",
        "by": "model" if "model" in pred else None,
        **draw(st.sampled_from(STRICT)),
    }
    n_buckets = draw(st.integers(1, 5))
    bucket = np.array(draw(st.lists(st.integers(0, n_buckets - 1), min_size=USERS, max_size=USERS)))
    order = draw(st.permutations(range(n_buckets)))
    return true, pred, options, bucket, list(order), draw(st.integers(0, 2**16))


def call_of(options, metrics, true, item_by=None, sides=SIDES):
    arguments = {"null_keys": "drop", **options, **sides, "item_by": item_by}
    return checked_call(rd.evaluate, metrics, [2, 5], arguments, true)


def parts_of(call, true, pred, bucket, order):
    """The result of each bucket of users, which know the largest gain of all."""
    known = true.dropna(subset=["user_id", "item_id"])
    gain = (
        known["relevance"]
        if "relevance" in true and call.options.relevance_col
        else pd.Series([1.0])
    )
    call = call.knowing(max_gain=float(gain.max()))
    by = pred[["model"]].drop_duplicates(ignore_index=True) if "model" in pred else None
    for number in order:
        # Rows with a null key may be in any bucket.
        place = [bucket[frame["user_id"].fillna(0).astype(int)] for frame in (true, pred)]
        frames = [
            frame[at == number].reset_index(drop=True)
            for frame, at in zip((true, pred), place, strict=True)
        ]
        yield measure(call, Part(*frames, frozenset({number}), whole=False, by_values=by))


def tree(results, seed):
    """Their sum, two neighbours at a time at random places."""
    rng, results = np.random.default_rng(seed), list(results)
    while len(results) > 1:
        at = int(rng.integers(len(results) - 1))
        results[at : at + 2] = [results[at] + results[at + 1]]
    return results[0]


def quietly(work, *given, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rd.RecdfWarning)
        try:
            return work(*given, **options)
        except rd.RecdfError as error:
            return error


def assert_same_numbers(found, expected):
    pd.testing.assert_frame_equal(found, expected, rtol=1e-12, atol=1e-12, check_dtype=True)


def in_key_order(per_user):
    keys = [name for name in ("model", "user_id") if name in per_user]
    return per_user.sort_values(keys, ignore_index=True)


@pytest.mark.long
@settings(max_examples=settings.default.max_examples // 2)
@given(cases())
def test_any_split_in_any_order_and_tree_is_the_whole(case):
    true, pred, options, bucket, order, seed = case
    metrics = [
        *LISTS,
        *EXPOSURE,
        *(["pooled_rmse"] if options["relevance_col"] else []),
    ]  # ratings are relevances
    call = call_of(options, metrics, true, item_by="category")
    expected = quietly(
        rd.evaluate, true, pred, metrics, [2, 5], item_by="category", **options, **SIDES
    )
    results = list(parts_of(call, true, pred, bucket, order))
    total = tree(results, seed)
    crossed = tree([pickle.loads(result_bytes(one)) for one in reversed(results)], seed + 1)
    if isinstance(expected, rd.RecdfError):  # there may be no list at all
        for sum_of_all in (total, crossed):
            error = quietly(finish_summary, call, sum_of_all)
            assert type(error) is type(expected)
            if " (found in one of" not in str(
                error
            ):  # else its counts and examples are those of one part
                assert str(error) == str(expected)
        return
    for sum_of_all in (total, crossed):
        summary, spec = quietly(finish_summary, call, sum_of_all)
        assert_same_numbers(summary, expected.summary)
        assert spec == expected.spec
    rows = [one.rows for one in results if one.rows is not None]
    frames = [per_user_frame(one, {**one.carried, **one.columns}) for one in rows]
    found = in_key_order(pd.concat(frames, ignore_index=True))
    assert_same_numbers(found, in_key_order(expected.per_user))


# -- by hand

TRUE = pd.DataFrame({"user_id": [0, 0, 1, 2], "item_id": [1, 2, 1, 3]})
PRED = pd.DataFrame(
    {"user_id": [0, 0, 1, 2, 2], "item_id": [1, 5, 1, 4, 3], "rank": [1, 2, 1, 1, 2]}
)
METRICS = ["mrr", "hhi"]
BUCKET = np.array([0, 1, 2])


def three_parts(metrics=METRICS, **options):
    call = call_of(options, metrics, TRUE)
    return call, list(parts_of(call, TRUE, PRED, BUCKET, range(3)))


def test_three_lists_by_hand():
    call, results = three_parts(["mrr@2", "hhi@2"])
    summary = finish_summary(call, functools.reduce(PartResult.__add__, results))[0]
    # Reciprocal ranks 1, 1, 1/2; item 1 is shown twice, items 3, 4 and 5 once, so the shares are
    # 2/5 and 1/5.
    assert summary["value"].tolist() == pytest.approx(
        [2.5 / 3, (2 / 5) ** 2 + 3 * (1 / 5) ** 2], rel=1e-14
    )
    assert summary["n"].tolist() == [3, 3]


def test_a_split_list_is_refused():
    _, (one, two, three) = three_parts()
    with pytest.raises(
        rd.DataError, match="bucket 0 was measured in two parts, so its lists were split"
    ):
        (one + two) + (three + one)


def test_an_error_about_options_of_a_metric_of_exposure_names_it():
    call, results = three_parts(["pooled_rmse"], relevance_col=False)  # nor does pred have a score
    with pytest.raises(rd.OptionError, match=r"^pooled_rmse: needs score_col="):
        finish(call, functools.reduce(PartResult.__add__, results))


def test_err_within_a_group_has_the_scale_of_all_gains():
    """Item 1 has the gain 2 and item 2 the gain 1, so a first place of item 2 stops (2^1 - 1) / 2^2
    of the users."""
    true = pd.DataFrame({"user_id": [0, 1], "item_id": [1, 2], "relevance": [2.0, 1.0]})
    items = pd.DataFrame({"item_id": [1, 2], "category": ["x", "y"]})
    found = rd.evaluate(true, true.assign(rank=1), "err@1", items=items, item_by="category").summary
    groups = found.dropna(subset="category").set_index("category")["value"].to_dict()
    assert groups == pytest.approx({"x": 0.75, "y": 0.25}, rel=1e-14)


def test_parts_with_other_by_values_are_refused():
    call = call_of({"by": "model"}, "mrr", TRUE)
    one, two = (
        measure(call, Part(TRUE, PRED.assign(model=model), frozenset({i}), whole=False))
        for i, model in enumerate("ab")
    )
    with pytest.raises(ValueError, match="different by values"):
        one + two


def test_nothing_measured_is_no_result():
    with pytest.raises(ValueError, match="there is no part"):
        finish_summary(call_of({}, "mrr", TRUE), PartResult(frozenset()))


@pytest.mark.parametrize("crossing", [lambda one: one, lambda one: pickle.loads(result_bytes(one))])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_error_of_the_first_bucket_is_raised_with_its_class_and_message(crossing, order):
    call, results = three_parts(["recall@1"], relevance_col="gain")  # there is no such column
    results = [crossing(results[i]) for i in order]
    with pytest.raises(
        rd.ColumnError, match=r"^true has no column 'gain'; it has 'user_id', 'item_id'"
    ):
        finish(call, functools.reduce(PartResult.__add__, results))


def test_an_error_that_counts_says_that_it_is_of_one_part():
    call = call_of({"duplicates": "raise"}, "mrr", TRUE, sides={})
    true = pd.concat([TRUE, TRUE[2:3]])
    results = [
        measure(call, Part(frame, PRED[:0], frozenset({i}), whole=False))
        for i, frame in enumerate((TRUE[:0], true))
    ]
    with pytest.raises(
        rd.DuplicateError, match=r"\(found in one of 2 buckets of lists; counts are of that one\)$"
    ):
        finish(call, results[0] + results[1])


@pytest.mark.parametrize("crossing", [lambda one: one, lambda one: pickle.loads(result_bytes(one))])
@pytest.mark.parametrize(
    ("true", "pred", "options", "error", "words"),
    [
        (
            {"user_id": [0, None, 1, None]},
            {},
            {},
            rd.NullKeyError,
            "true has null ids: 2 in true['user_id']; drop",
        ),
        (
            {"user_id": [0, None, 1, 2], "item_id": [None, None, 5, 5]},
            {},
            {},
            rd.NullKeyError,
            "true has null ids: 1 in true['user_id'], 2 in true['item_id']; drop",
        ),
        (
            {},
            {"rank": [None, 1, 2, None]},
            {},
            rd.DataError,
            "pred['rank'] holds 2 null ranks of 4; drop",
        ),
        (
            {"relevance": [-1.0, 2.0, -1.0, -1.0]},
            {"rank": [None, 1, 2, None]},
            {},
            rd.DataError,
            "true['relevance'] holds 3 negative relevances (-1.0); expected",
        ),
        ({}, {"rank": [None, 1, 2, None]}, {"nan_score": "drop"}, None, {"pred_null_scores": 2}),
        ({"user_id": [0, None, 1, None]}, {}, {"null_keys": "drop"}, None, {"true_null_keys": 2}),
    ],
)
def test_broken_rows_are_counted_over_all_parts(crossing, true, pred, options, error, words):
    """The error has the message that the whole has, whichever parts the rows are in."""
    true = pd.DataFrame({"user_id": [0, 0, 1, 2], "item_id": [1, 2, 1, 3], **true})
    pred = pd.DataFrame(
        {"user_id": [0, 0, 1, 2], "item_id": [1, 5, 1, 3], "rank": [1, 2, 1, 1], **pred}
    )
    call = call_of({"null_keys": "raise", **options}, "mrr", true, sides={})
    whole = measure(call, Part(true, pred))
    parts = [Part(true[i : i + 2], pred[i : i + 2], frozenset({i}), whole=False) for i in (0, 2)]
    total = functools.reduce(
        PartResult.__add__, [crossing(measure(call, part)) for part in reversed(parts)]
    )
    if error is None:
        assert quietly(finish_summary, call, total)[1]["counts"] == words
        return
    for result in (whole, total):
        with pytest.raises(error) as caught:
            finish_summary(call, result)
        assert str(caught.value).startswith(words)


def test_an_error_of_another_class_keeps_its_class_message_and_place():
    def unlucky():
        return 1 / 0

    try:
        unlucky()
    except ZeroDivisionError as error:
        failed = PartResult(frozenset({1}), failure=Failure(error, 1))
    with pytest.raises(ZeroDivisionError, match=r"^division by zero") as caught:
        checked(call_of({}, "mrr", TRUE), pickle.loads(result_bytes(failed)))
    assert "return 1 / 0" in caught.value.__notes__[0]
    unknown = PartResult(
        frozenset({1}), failure=Failure(UnicodeDecodeError("utf-8", b"a", 0, 1, "odd"), 1)
    )
    with pytest.raises(RuntimeError, match=r"^UnicodeDecodeError: 'utf-8' codec"):
        checked(call_of({}, "mrr", TRUE), pickle.loads(result_bytes(unknown)))


def test_every_result_crosses_with_its_buckets():
    call, results = three_parts()
    empty = measure(call, Part(TRUE[:0], PRED[:0], frozenset({7}), whole=False))
    failed = measure(call_of({"relevance_col": "gain"}, METRICS, TRUE), Part(TRUE, PRED))
    for result in (*results, empty, failed, results[0] + results[1]):
        assert pickle.loads(result_bytes(result)).buckets == result.buckets


def test_the_rows_of_a_whole_population_do_not_cross():
    call = call_of({}, "hhi", TRUE)
    with pytest.raises(ValueError, match="whole=False"):
        result_bytes(measure(call, Part(TRUE, PRED)))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "items",
    [
        ["x", "y"],
        [2**62 + 1, 2**62],
        [0.0, -0.0],
        pd.to_datetime(["2026-01-01", "2026-01-02"]),
        pd.Categorical(["x", "y"]),
    ],
    ids=["string", "big", "zeros", "instant", "category"],
)
def test_items_of_every_kind_are_added_by_their_label(items):
    pred = pd.DataFrame(
        {"user_id": [0, 1, 1], "item_id": pd.Series(items).take([0, 0, 1]).reset_index(drop=True)}
    )
    true = pred.iloc[:1]
    call = checked_call(rd.evaluate, "hhi", 5, {"users": "pred", "duplicates": "keep"}, true)
    parts = [[frame[frame["user_id"] == i] for frame in (true, pred)] for i in range(2)]
    results = [
        measure(call, Part(*frames, frozenset({i}), whole=False)) for i, frames in enumerate(parts)
    ]
    results = [pickle.loads(result_bytes(one)) for one in results]
    expected = quietly(rd.evaluate, true, pred, "hhi", 5, users="pred", duplicates="keep").summary
    assert_same_numbers(quietly(finish_summary, call, results[0] + results[1])[0], expected)


def test_a_part_without_a_list_counts_its_rows():
    call = call_of({"users": "both"}, METRICS, TRUE)
    twice = pd.concat([TRUE, TRUE])
    alone = measure(call, Part(twice, PRED[:0], frozenset({3}), whole=False))
    assert alone.measured.n_lists.tolist() == [0]
    assert alone.measured.counts == {"true_duplicates": 4}
    assert replace(alone, rows=None).measured is alone.measured
