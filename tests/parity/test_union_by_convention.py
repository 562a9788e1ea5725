"""Conventions against the numbers of their libraries for the frames of golden/union, computed with
`like=`."""

import csv
import json

import dialects
import pytest
from registry.union.frames import GOLDEN, Frames, parsed

import recdf as rd

LIVE = json.loads((GOLDEN / "live.json").read_text(encoding="utf-8"))
CASES = [(like, name) for like, numbers in LIVE.items() for name in numbers]


def ten(pred):
    """The lists of users that have ten items or more."""
    return pred[pred.groupby("user_id")["item_id"].transform("size") >= 10]


@pytest.mark.few(6)
@pytest.mark.parametrize(("like", "name"), CASES)
def test_rated_rows_and_full_lists(like, name):
    frames, metric = Frames(), rd.METRICS[name.partition("@")[0]]
    items, features = frames.items[["item_id"]], frames.items.set_index("item_id")[["x", "y", "z"]]
    if "@" in name:
        sides = {"items": items, "log": frames.log, "features": features}
        given = [sides[one] for one in metric.arguments if one not in ("true", "pred")]
        options = {"features": features} if "features" in metric.needs else {}
        found = metric(*given, ten(frames.pred), 10, like=like, users="pred", **options)
    else:
        rows, label, score = (frames.ratings, "rating", "prediction")
        if "log_loss" in name:
            rows, label, score = (frames.clicks, "label", "probability")
        key = rows[["user_id", "item_id"]]
        found = metric(key.assign(relevance=rows[label]), key.assign(score=rows[score]), like=like)
    assert found == pytest.approx(LIVE[like][name], abs=1e-9)


# A stored number proves a convention where it was computed with the parameters that the convention
# sets. These rows name a parameter that the library has no default for, or of which every value is
# right.
FREE = {
    "rbp": {"p"},
    "utility": {"b", "c"},
    "iprecision": {"at"},
    "overlap": {"base_k"},
    "user_model": {"model", "measure", "p", "max_gain", "beta", "T"},
    "rbp_residual": {"p", "beyond"},
    "aplt": {"tail"},
    "intent_aware": {"metric"},
    "bias_disparity": {"of"},
}


def parameters_of(like, metric):
    record = rd.METRICS[metric]
    return {**record.defaults, **rd.CONVENTIONS[like].metrics[metric]}


def union_rows():
    with (GOLDEN / "expected.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            like = dialects.UNION_NAMES.get(row["library"], row["library"])
            params, trap = parsed(row["params"])
            if (
                like in rd.CONVENTIONS
                and row["metric"] in rd.CONVENTIONS[like].metrics
                and not trap
            ):
                yield like, row["metric"], tuple(sorted(params.items(), key=str))


def compared(like):
    """Metrics that generated frames compare."""
    return (
        {name.partition("[")[0] for name, _ in dialects.compare(like)}
        if like in dialects.LIKE
        else set()
    )


STORED = sorted({(like, metric) for like, metric, _ in union_rows()})


@pytest.mark.few(8)
@pytest.mark.filterwarnings("ignore::recdf.JudgedWarning")
@pytest.mark.parametrize(("like", "metric"), STORED)
def test_a_stored_number_has_the_parameters_of_the_convention(like, metric):
    if metric in compared(like):
        return
    ours, free = parameters_of(like, metric), FREE.get(metric, set())
    rows = [dict(params) for one, name, params in union_rows() if (one, name) == (like, metric)]
    rows = [
        {"log_base" if name == "base" else name: value for name, value in row.items()}
        for row in rows
    ]
    named = [
        {**rd.METRICS[metric].defaults, **{n: v for n, v in row.items() if n in ours}}
        for row in rows
    ]
    differ = [
        {n for n in ours if n not in free and ours[n] != row[n] and str(ours[n]) != str(row[n])}
        for row in named
    ]
    assert set() in differ, differ
