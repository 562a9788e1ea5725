"""Diversity by hand: golden cases, identities, and every form that features, categories and aspects
come in."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from close import close

import recdf as rd

# Examples are small, so that side tables lack much of them.
pytestmark = pytest.mark.filterwarnings("ignore::recdf.UnknownWarning")

CASES = json.loads(
    (Path(__file__).parents[1] / "golden" / "cases.json").read_text(encoding="utf-8")
)
COURSE = CASES["course_diversity"]
KEEP = {"duplicates": "keep", "undefined": "zero"}


def integers(mapping):
    return {int(user): items for user, items in mapping.items()}


# -- golden cases


@pytest.mark.parametrize("form", ["mapping", "frame", "series", "columns"])
def test_course(form):
    table = pd.DataFrame.from_dict(COURSE["features"], orient="index", columns=list("abcd"))
    given = {
        "mapping": {"features": COURSE["features"]},
        "frame": {"features": table},
        "series": {"features": pd.Series(COURSE["features"])},
        "columns": {"features": list("abcd"), "items": table.rename_axis("item_id").reset_index()},
    }[form]
    expected = COURSE["expected"]
    assert rd.ild(COURSE["pred"], 100, **given, **KEEP) == close(expected["ild"])
    assert rd.ils(COURSE["pred"], 100, **given, **KEEP) == close(expected["ils"])
    kept = rd.ild.per_user(COURSE["pred"], 100, **given, **KEEP)
    assert kept["ild@100"].tolist() == close(expected["ild per user (duplicates=keep)"])
    with pytest.warns(rd.DuplicateWarning):
        dropped = rd.ild.per_user(COURSE["pred"], 100, **given)
    assert dropped["ild@100"].tolist() == close(expected["ild per user (duplicates=drop)"])


def test_course_coverage_and_serendipity():
    expected = COURSE["expected"]
    with pytest.warns(rd.DuplicateWarning):
        assert rd.coverage(list(COURSE["features"]), COURSE["pred"]) == expected["coverage"]
    side = {"log": COURSE["history"], "features": COURSE["features"], "popular": COURSE["popular"]}
    found = rd.serendipity.per_user(
        None, COURSE["pred"], 5, relevant=False, threshold=0.7, **side, **KEEP
    )
    assert found.iloc[:, 1].tolist() == close(
        expected["serendipity per user (relevant=False, threshold=0.7)"]
    )
    assert found.iloc[:, 1].mean() == close(expected["serendipity"])


def test_a_ndcg_on_mappings():
    case = CASES["frames"]["a_ndcg"]
    true, pred, aspects = (integers(case[name]) for name in ("true", "pred", "aspects"))
    with pytest.warns(rd.DuplicateWarning):
        assert rd.a_ndcg(
            true, pred, aspects, case["k"], case["alpha"], ideal=case["ideal"]
        ) == close(case["value"])
    frame = pd.DataFrame(
        [
            (user, number, item)
            for user, sets in aspects.items()
            for number, items in enumerate(sets)
            for item in items
        ],
        columns=["user_id", "aspect", "item_id"],
    )
    with pytest.warns(rd.DuplicateWarning):
        found = rd.a_ndcg(
            rd.logs.from_dict(true),
            rd.logs.from_dict(pred),
            frame,
            case["k"],
            case["alpha"],
            ideal="even",
        )
    assert found == close(case["value"])


# ----------------------------------------------------------------------------------------------
# identities


@pytest.mark.parametrize("similarity", ["cosine", "jaccard", "hamming"])
def test_ild_and_ils_are_one_and_bounded(similarity):
    rng = np.random.default_rng(0)
    features = pd.DataFrame(rng.integers(0, 2, (30, 6)))
    pred = {user: rng.permutation(30)[: 2 + user] for user in range(20)}
    ild = rd.ild.per_user(pred, 9, features=features, similarity=similarity).iloc[:, 1]
    ils = rd.ils.per_user(pred, 9, features=features, similarity=similarity).iloc[:, 1]
    assert (ild + ils).tolist() == close([1.0] * 20)
    assert ild.between(0, 1).all()


def test_equal_items_have_no_diversity_and_opposite_ones_the_most():
    equal = {key: [0.1, 0.2, 0.7] for key in "abcdefg"}
    assert rd.ild({"u": list("abcdefg")}, features=equal) == close(0.0)
    assert rd.ild({"u": list("abcdefg")}, features=equal) >= 0
    assert rd.ild({"u": ["a", "b"]}, features={"a": [1.0, 0.0], "b": [-1.0, 0.0]}) == 2.0


def test_a_vector_of_zeros_is_like_nothing():
    features = {"a": [0, 0], "b": [0, 0], "c": [1, 0]}
    assert rd.ild({"u": ["a", "b", "c"]}, features=features) == 1.0
    assert rd.ild({"u": ["a", "b", "c"]}, features=features, similarity="jaccard") == 1.0


def test_lists_without_a_pair_are_undefined_and_unknown_items_left_out():
    features = {"a": [1, 0], "b": [0, 1], "n": [math.nan, 1]}
    pred = {"one": ["a"], "none": ["x", "y"], "two": ["a", "x", "n", "b"], "half": ["a", "n"]}
    result = rd.evaluate(None, pred, "ild", k=5, features=features, users="pred")
    assert result.per_user["ild@5"].tolist() == close([math.nan, math.nan, 1.0, math.nan])
    assert result.summary[["n", "n_undefined"]].to_numpy().tolist() == [[1, 3]]
    assert result.spec["counts"]["pred_without_features"] == 5


def test_one_category_has_entropy_zero():
    items = pd.DataFrame({"item_id": list("abcd"), "category": ["x", "x", "y", "z"]})
    assert rd.category_entropy({"u": ["a", "b"]}, items=items) == 0.0
    assert rd.category_entropy({"u": ["a", "c", "d"]}, items=items) == close(math.log2(3))


def test_category_entropy_equals_scipy():
    entropy = pytest.importorskip("scipy.stats").entropy
    rng = np.random.default_rng(1)
    items = pd.DataFrame({"item_id": range(50), "category": rng.integers(0, 7, 50)})
    pred = {user: rng.permutation(50)[:20] for user in range(10)}
    found = rd.category_entropy.per_user(pred, 15, items=items).iloc[:, 1]
    counts = [np.bincount(items["category"].to_numpy()[shown[:15]]) for shown in pred.values()]
    assert found.tolist() == close([entropy(count, base=2) for count in counts])


def test_calibration_equals_scipy():
    stats = pytest.importorskip("scipy.stats")
    distance = pytest.importorskip("scipy.spatial.distance")
    items = pd.DataFrame({"item_id": range(6), "category": list("aabbbc")})
    p, q = np.array([1, 2, 1]) / 4, np.array([2, 1, 0]) / 3
    log, pred = {1: [0, 2, 3, 5]}, {1: [0, 1, 2]}
    smoothed = 0.9 * q + 0.1 * p
    assert rd.calibration(log, pred, 5, items=items, smoothing=0.1) == close(
        stats.entropy(p, smoothed)
    )
    js = distance.jensenshannon(p, q) ** 2
    assert rd.calibration(log, pred, 5, items=items, divergence="js") == close(js)
    assert rd.calibration(log, log, 5, items=items) == close(0.0)


def test_calibration_of_a_user_without_past_is_counted():
    items = pd.DataFrame({"item_id": [1, 2], "category": ["a", None]})
    pred = {1: [1], 2: [1], 3: [2]}
    result = rd.evaluate(
        None, pred, "calibration", k=1, items=items, log={1: [1], 3: [1]}, users="pred"
    )
    assert result.per_user["calibration@1"].tolist() == close([0.0, math.nan, math.nan])
    assert result.summary["n_undefined"].tolist() == [2]
    counts = result.spec["counts"]
    assert (counts["lists_without_log"], counts["pred_without_category"]) == (1, 1)


# -- forms of features and categories


ITEMS = pd.DataFrame(
    {
        "item_id": ["a", "b", "c"],
        "genre": ["x|y", "y", "z"],
        "x": [1, 0, 0],
        "y": [1, 1, 0],
        "z": [0, 0, 1],
    }
).assign(
    vector=lambda t: t[["x", "y", "z"]].to_numpy(float).tolist(),
    array=lambda t: list(t[["x", "y", "z"]].to_numpy(np.float32)),
    sets=[["x", "y"], ["y"], ["z"]],
    category=lambda t: t["genre"].astype("category"),
    objects=lambda t: t["genre"].astype(object),
    flag=lambda t: t["x"].astype(bool),
    nullable=lambda t: t["y"].astype("Int64"),
)
# cos(a, b) = 1/√2, the others 0.
PAIR_MEAN = 1 / math.sqrt(2) / 3


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "features",
    [
        ["x", "y", "z"],
        "vector",
        "array",
        "genre",
        "sets",
        "category",
        "objects",
        ["flag", "nullable", "z"],
    ],
    ids=str,
)
def test_all_forms_of_features_are_one(features):
    given = ITEMS[["item_id", *([features] if isinstance(features, str) else features)]]
    assert rd.ils({"u": ["a", "b", "c"]}, items=ITEMS, features=features) == close(PAIR_MEAN)
    assert rd.ils({"u": ["a", "b", "c"]}, features=given) == close(PAIR_MEAN)
    assert rd.ils({"u": ["a", "b", "c"]}, features=given.set_index("item_id")) == close(PAIR_MEAN)


def test_no_column_of_items_is_a_feature_unless_it_is_named():
    """A price of thousands would decide the cosine, and a title would make all items different."""
    items = ITEMS.assign(price=[1000.0, 2000.0, 3000.0])
    pred, log = {"u": ["a", "b", "c"]}, {"u": ["a"]}
    for call in (
        lambda: rd.ild(pred, items=items),
        lambda: rd.ils(pred, items=items),
        lambda: rd.serendipity(pred, pred, log=log, items=items),
        lambda: rd.evaluate(pred, pred, "ild@3", items=items),
    ):
        with pytest.raises(rd.OptionError, match="needs features="):
            call()
    assert rd.ils(pred, items=items, features=["x", "y", "z"]) == close(PAIR_MEAN)


@pytest.mark.long
def test_spec_records_every_side_table():
    pred, log = {"u": ["a", "b", "c"]}, {"u": ["a"]}

    def tables(**given):
        return rd.evaluate(pred, pred, ["ild@3", "unseen@3"], log=log, **given).spec["side_tables"]

    frame = ITEMS[["item_id", "x", "y"]]
    found = tables(items=frame, features=["x", "y"])
    assert {name: (one["columns"], one["rows"]) for name, one in found.items()} == {
        "items": (["item_id", "x", "y"], 3),
        "features": (["item_id", "x", "y"], 3),
        "log": (["user_id", "item_id"], 1),
    }
    other = tables(items=frame, features=["y"])
    assert found["features"]["digest"] != other["features"]["digest"]
    assert found["items"] == other["items"]
    alone = tables(features=frame)["features"]
    assert alone == found["features"]
    swapped = tables(features=frame.assign(item_id=["b", "a", "c"]))["features"]
    assert alone["digest"] != swapped["digest"]
    narrow = frame.astype({"x": "int8", "y": "Int32", "item_id": "category"})
    assert tables(features=narrow)["features"]["digest"] == alone["digest"]
    assert tables(features=frame.set_index("item_id"))["features"]["digest"] == alone["digest"]
    assert "side_tables" not in rd.evaluate(pred, pred, "mrr@3").spec


def test_parquet_vectors(tmp_path):
    ITEMS[["item_id", "vector"]].to_parquet(tmp_path / "items.parquet")
    numpy_like = pd.read_parquet(tmp_path / "items.parquet")
    arrow = pd.read_parquet(tmp_path / "items.parquet", dtype_backend="pyarrow")
    for items in (numpy_like, arrow):
        assert rd.ils({"u": ["a", "b", "c"]}, items=items, features="vector") == close(PAIR_MEAN)


def test_another_separator():
    items = ITEMS.assign(genre=["x, y", "y", "z"])
    assert rd.ils({"u": ["a", "b", "c"]}, items=items, features="genre", separator=",") == close(
        PAIR_MEAN
    )
    assert rd.ils({"u": ["a", "b", "c"]}, items=items, features="genre") == 0.0


def test_plain_categories_are_one_position_for_hamming():
    items = pd.DataFrame(
        {"item_id": ["a", "b"], "brand": ["p", "q"], "colour": ["red", "red"], "size": [1, 2]}
    )
    found = rd.ils(
        {"u": ["a", "b"]}, items=items, features=["brand", "colour", "size"], similarity="hamming"
    )
    assert found == close(1 / 3)


def test_a_function_of_positions():
    table = np.array([[1.0, 0.5, 0.25], [0.5, 1.0, 0.0], [0.25, 0.0, 1.0]])
    calls = []

    def similar(one, two):
        calls.append(len(one))
        return table[one, two]

    expected = close(0.75 / 3)
    pred = {"u": ["c", "unknown", "a", "b"]}
    assert rd.ils(pred, items=["a", "b", "c"], features=similar) == expected
    assert rd.ils(pred, items=["a", "b", "c"], similarity=similar) == expected
    assert rd.ils(pred, features=ITEMS[["item_id", "x"]], similarity=similar) == expected
    assert calls == [3, 3, 3]
    with pytest.raises(rd.DataError, match=r"shape \(\) for 3 pairs"):
        rd.ils(pred, items=["a", "b", "c"], features=lambda one, two: 1.0)


def test_bad_features_are_refused():
    pred = {"u": ["a", "b"]}
    with pytest.raises(rd.OptionError, match=r"^ild@10 needs features="):
        rd.ild(pred)
    with pytest.raises(rd.ColumnError, match=r"items has no column 'genra'.*did you mean 'genre'"):
        rd.ild(pred, items=ITEMS, features="genra")
    with pytest.raises(rd.OptionError, match=r"features='genre' names columns of items="):
        rd.ild(pred, features="genre")
    with pytest.raises(rd.OptionError, match="needs feature columns"):
        rd.ild(pred, items=["a", "b"], features=[])
    with pytest.raises(rd.DataError, match="1 repeated ids"):
        rd.ild(pred, features=pd.DataFrame({"item_id": ["a", "a"], "x": [1, 2]}))
    with pytest.raises(rd.DataError, match="vectors of 2 lengths"):
        rd.ild(pred, features={"a": [1, 2], "b": [1, 2, 3]})
    with pytest.raises(rd.DataError, match="1 infinite"):
        rd.ild(pred, features={"a": 1.0, "b": math.inf})
    with pytest.raises(rd.IdTypeError, match="features"):
        rd.ild(pred, features={1: 1.0, 2: 2.0})
    with pytest.raises(rd.OptionError, match=r"similarity='cosin'.*did you mean"):
        rd.ild(pred, features={"a": 1.0, "b": 1.0}, similarity="cosin")


@pytest.mark.long
def test_blocks_do_not_matter(resized):
    rng = np.random.default_rng(2)
    features = pd.DataFrame(rng.normal(size=(40, 5))).round()
    pred = {user: rng.permutation(40)[: rng.integers(0, 30)] for user in range(60)}
    log = {user: rng.permutation(40)[: rng.integers(1, 9)] for user in range(60)}
    items = pd.DataFrame({"item_id": range(40), "category": rng.integers(0, 5, 40)})

    def values():
        side = {"features": features, "log": log, "items": items}
        metrics = [
            *(f"ild(similarity={s})" for s in ("cosine", "jaccard", "hamming")),
            "categories",
            "calibration",
        ]
        metrics += [
            f"serendipity(relevant=False,similarity={s})" for s in ("cosine", "jaccard", "hamming")
        ]
        return rd.evaluate(None, pred, metrics, k=[3, 20], users=range(60), **side).per_user

    whole = values()
    resized(feature_bytes=1000, product=150, most_indicators=0, category_cells=7)
    pd.testing.assert_frame_equal(values(), whole, rtol=1e-12)


@pytest.mark.parametrize(
    ("divisor", "expected"),
    [("k", [2 / 4, 1 / 4, 0.0]), ("shown", [2 / 3, 1.0, math.nan]), ("catalogue", [1, 0.5, 0])],
)
def test_categories(divisor, expected):
    items = pd.DataFrame({"item_id": [1, 2, 3], "topic": ["a", "b", "a"]})
    pred = {1: [1, 2, 3], 2: [3], 3: []}
    found = rd.categories.per_user(
        pred, 4, items=items, category_col="topic", divisor=divisor, users=[1, 2, 3]
    )
    assert found.iloc[:, 1].tolist() == close(expected)


# --------------------------------------------------------------------------------------------------
# aspects


def test_greedy_ideal_by_hand():
    # a has both aspects, so it goes first; then b and c add 1 - alpha each.
    aspects = {"u": [["a", "b"], ["a", "c"]]}
    true = {"u": ["c", "b", "a"]}
    ideal = 2 + 0.5 / math.log2(3) + 0.5 / 2
    found = (1 + (1 + 0.5) / math.log2(3) + 0.5 / 2) / ideal
    assert rd.a_ndcg(true, {"u": ["c", "a", "b"]}, aspects, 3) == close(found)
    assert rd.a_ndcg(true, {"u": ["a", "b", "c"]}, aspects, 3) == close(1.0)
    assert rd.a_ndcg(true, {"u": ["a"]}, aspects, 1, 0.5) == close(1.0)


def test_without_penalty_or_aspects_in_common_it_is_ndcg():
    true, pred = {"u": ["a", "b", "c"]}, {"u": ["x", "a", "y", "c"]}
    one_each = pd.DataFrame({"aspect": list("abc"), "item_id": list("abc")})
    assert rd.a_ndcg(true, pred, one_each, 4, 0.9) == close(rd.ndcg(true, pred, 4))
    the_same = one_each.assign(aspect="all")
    assert rd.a_ndcg(true, pred, the_same, 4, 0.0) == close(rd.ndcg(true, pred, 4))


def test_aspect_columns():
    true, pred = {"u": ["a", "b"]}, {"u": ["a", "b"]}
    frame = pd.DataFrame({"topic": [1, 2], "item_id": ["a", "b"], "weight": [1, 1]})
    assert rd.subtopic_recall(true, pred, frame, 1, aspect_col="topic") == 0.5
    assert rd.subtopic_recall(true, pred, frame.drop(columns="weight"), 1) == 0.5
    with pytest.raises(rd.ColumnError, match="aspects has no column 'aspect'"):
        rd.subtopic_recall(true, pred, frame, 1)
    with pytest.raises(rd.OptionError, match=r"alpha=1.5; expected a number from 0 to 1"):
        rd.a_ndcg(true, pred, frame, 1, 1.5, aspect_col="topic")


def test_users_without_aspects_are_undefined():
    result = rd.evaluate(
        {1: ["a"], 2: ["a"]},
        {1: ["a"], 2: ["a"]},
        ["a_ndcg", "subtopic_recall"],
        aspects={1: [["a"]]},
    )
    assert result.per_user["a_ndcg@10"].tolist() == close([1.0, math.nan])
    assert result.per_user["subtopic_recall@10"].tolist() == close([1.0, math.nan])


def test_category_entropy_by_rank_and_smoothed():
    items = pd.DataFrame({"item_id": list("abc"), "category": ["x", "y|z", None]})
    q = [1, 0.25, 0.25]  # of a at rank 1, of b at rank 2
    expected = -sum(one / 1.5 * math.log2(one / 1.5) for one in q)
    assert rd.category_entropy({1: ["a", "b"]}, items=items, discount="geometric", p=0.5) == close(
        expected
    )
    q = [1.5, 0.5, 0.5]
    expected = -sum(one / 2.5 * math.log2(one / 2.5) for one in q)
    assert rd.category_entropy({1: ["a"]}, items=items, smoothing=0.5) == close(expected)
    assert math.isnan(rd.category_entropy({1: ["c"]}, items=items, smoothing=0.5))
    with pytest.raises(rd.OptionError, match="smoothing="):
        rd.category_entropy({1: ["a"]}, items=items, smoothing=-1)


@pytest.mark.parametrize("sets", [["tea", "jam"], 5, "tea", None, [["tea"], 5]])
def test_aspects_that_are_no_sets_of_items_are_refused(sets):
    with pytest.raises(rd.DataError, match=r"^aspects\['u'\] is .*; expected a list of sets"):
        rd.a_ndcg({"u": ["tea"]}, {"u": ["tea"]}, aspects={"u": sets})
