"""Numbers of eighteen libraries and of plain loops for the same nine frames:
`golden/union/expected.csv`.

Its README says how they were made. A row that is marked as a trap is a library's mistake, and has
to differ.
"""

import csv
from collections import defaultdict

import numpy as np
import pytest
from registry.union import lists_and_items, ranking, reductions, user_models
from registry.union.frames import GOLDEN, NOTHING_RELEVANT, Frames, parsed

SECTIONS = (user_models, ranking, lists_and_items, reductions)
ADAPTERS = {key: adapter for section in SECTIONS for key, adapter in section.ADAPTERS.items()}


# trec_eval counts a phantom miss for the user without a list, which its mean then has too.
BUGS = {("utility", "trec_eval", -0.25, user) for user in ("4", "all")}


def calls():
    """Expected values by user, for each call of a library."""
    found = defaultdict(dict)
    with (GOLDEN / "expected.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found[row["metric"], row["params"], row["library"], row["call"]][row["user"]] = float(
                row["value"]
            )
    return dict(found)


CALLS = calls()


def key_of(metric, params, library):
    """The most specific key of an adapter."""
    keys = [f"{metric}:{name}={value}" for name, value in params.items()]
    keys += [*(f"{metric}:{name}" for name in params), f"{metric}:{library}", metric]
    return next((key for key in keys if key in ADAPTERS), None)


@pytest.mark.few(30)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: " | ".join(call))
def test_equals_the_libraries(call):
    metric, text, library, _ = call
    params, trap = parsed(text)
    key = key_of(metric, params, library)
    assert key is not None, f"no adapter for {metric} with {params}"
    found, expected = ADAPTERS[key](Frames(), params), CALLS[call]
    found = (
        {"all": found}
        if isinstance(found, float)
        else {str(user): value for user, value in found.items()}
    )
    within = 1e-6 if library == "torchmetrics" or "32 bit" in call[-1] else 1e-9
    for user in NOTHING_RELEVANT & set(expected) & set(found):
        found[user] = 0.0 if expected[user] == 0 and np.isnan(found[user]) else found[user]
    if "all" in expected and "all" not in found:
        found["all"] = np.nanmean([found[user] for user in expected if user != "all"])
    expected = {
        user: value
        for user, value in expected.items()
        if (metric, library, params.get("c"), user) not in BUGS
    }
    near = {
        user: np.isclose(found[user], value, within, within, equal_nan=True)
        for user, value in expected.items()
    }
    if trap:
        assert not all(near.values())
    else:
        wrong = {user: (found[user], expected[user]) for user, equal in near.items() if not equal}
        assert not wrong, f"{len(wrong)} of {len(near)} users (found, expected): {wrong}"


def test_every_row_and_every_key_is_used():
    keys = {key_of(metric, parsed(text)[0], library) for metric, text, library, _ in CALLS}
    assert keys == set(ADAPTERS)
    assert sum(len(section.ADAPTERS) for section in SECTIONS) == len(ADAPTERS), (
        "two sections have one key"
    )
    assert sum(map(len, CALLS.values())) == 1692
