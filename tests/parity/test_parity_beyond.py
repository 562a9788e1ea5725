"""The golden numbers of other libraries for what lists look like, against recdf on the same
frames."""

import json
from pathlib import Path

import frames as parity
import numpy as np
import pandas as pd
import pytest
from beyond_cases import CASES, everything

import recdf as rd

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "parity"
FRAMES = parity.parity_frames()


def call(name, frame, k, given, what="__call__"):
    metric = rd.METRICS[name]
    tables = {"true": frame.true, "pred": frame.pred, **frame.side}
    options = {}
    for key, value in given.items():
        if callable(value):
            value = value(frame.side, frame.pred) if value is everything else value(frame.side)
        elif key in ("items", "features") and value in frame.side:
            value = frame.side[value]
        options[key] = value
    arguments = [options.pop(n) if n in options else tables[n] for n in metric.arguments]
    return getattr(metric, what)(*arguments, k, **options)


@pytest.mark.few(10)
@pytest.mark.parametrize("k", parity.K)
@pytest.mark.parametrize(
    ("library", "theirs", "ours", "given", "name"),
    [(*case[:4], name) for case in CASES for name in case[4]],
)
def test_agrees(library, theirs, ours, given, name, k):
    answer = json.loads((GOLDEN / f"{library}.json").read_text(encoding="utf-8"))["frames"][name][
        "beyond"
    ]
    key, frame = f"{theirs}@{k}", FRAMES[name]
    if key not in answer["mean"] and key not in answer["per_user"]:
        assert (library, k) == ("ir_measures", 50)  # ndeval knows no deeper cut-off than 20
        return
    if key not in answer["per_user"]:
        assert call(ours, frame, k, given) == pytest.approx(answer["mean"][key], rel=1e-9)
        return
    table = call(ours, frame, k, given, "per_user")
    found = dict(zip(table["user_id"].astype(str), table.iloc[:, 1], strict=True))
    pairs = [
        (found[str(user)], value)
        for user, value in zip(answer["users"], answer["per_user"][key], strict=True)
        # Lists of one item or none have no pair: undefined here, 0 or 1 elsewhere, and RePlay gives
        # 1 to a user without recommendations.
        if value is not None and str(user) in found and not np.isnan(found[str(user)])
    ]
    assert len(pairs) > 20 or (k == 1 and ours in ("ild", "ils"))
    np.testing.assert_allclose([p[0] for p in pairs], [p[1] for p in pairs], rtol=1e-9, atol=1e-9)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", ["plain", "holes"])
@pytest.mark.parametrize("k", parity.K)
def test_rectools_hamming_counts_positions(name, k):
    """RecTools' Hamming distance is a number of positions, ours a share of them; a list of one item
    is 0 there."""
    answer = json.loads((GOLDEN / "rectools.json").read_text(encoding="utf-8"))["frames"][name][
        "beyond"
    ]
    frame = FRAMES[name]
    given = {"features": "features", "similarity": "hamming", "undefined": "zero"}
    table = call("ild", frame, k, given, "per_user").set_index("user_id")
    theirs = pd.Series(
        answer["per_user"][f"ild[hamming]@{k}"], index=map(int, answer["users"]), dtype=float
    ).dropna()
    ours = 5 * table.iloc[:, 0].reindex(theirs.index).fillna(0)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize("name", ["plain", "holes"])
def test_lenskit_entropy_has_a_pseudocount(name):
    """LensKit adds 1e-5 or so to each count, which ours does not."""
    answer = json.loads((GOLDEN / "lenskit.json").read_text(encoding="utf-8"))["frames"][name][
        "beyond"
    ]
    table = (
        call("category_entropy", FRAMES[name], 10, {"items": "items"}, "per_user")
        .set_index("user_id")
        .iloc[:, 0]
    )
    theirs = pd.Series(
        answer["per_user"]["category_entropy@10"], index=map(int, answer["users"]), dtype=float
    )
    np.testing.assert_allclose(table.reindex(theirs.dropna().index), theirs.dropna(), atol=2e-4)


@pytest.mark.few(6)
@pytest.mark.parametrize(
    "case",
    [
        case
        for case in CASES
        if case[2] in rd.CONVENTIONS.get(case[0], rd.Convention("none")).metrics
    ],
)
def test_the_convention_has_the_parameters(case):
    library, _, ours, given, _ = case
    params = {name: value for name, value in given.items() if name in rd.METRICS[ours].defaults}
    assert rd.CONVENTIONS[library].metrics[ours] == params
    side = {name: value for name, value in given.items() if name not in params}
    explicit = call(ours, FRAMES["plain"], 10, given)
    assert call(ours, FRAMES["plain"], 10, {**side, "like": library}) == pytest.approx(
        explicit, rel=1e-12
    )
