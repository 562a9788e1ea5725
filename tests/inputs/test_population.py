"""The record of the option `users`: which lists it asks for, and what follows."""

import pandas as pd
import pytest

from recdf.inputs.options import Options

GIVEN = pd.DataFrame({"user_id": [1, 2, 3]})


@pytest.mark.parametrize(
    ("users", "rule", "frames", "knows_its_keys", "words"),
    [
        ("true", "true", ("true",), True, "true"),
        ("pred", "pred", ("pred",), False, "pred"),
        ("both", "both", ("true",), True, "both"),
        ("all", "all", ("pred", "true"), False, "all"),
        (["a", "b"], "given", ("given",), True, "2 given ids"),
        ([], "given", ("given",), True, "0 given ids"),
        (GIVEN, "given", ("given",), True, "3 given ids"),
    ],
    ids=["true", "pred", "both", "all", "ids", "no ids", "frame"],
)
def test_what_follows_from_users(users, rule, frames, knows_its_keys, words):
    options = Options(users=users)
    population = options.population
    assert (population.rule, population.frames) == (rule, frames)
    assert (population.knows_its_keys, population.words) == (knows_its_keys, words)
    assert options.spec()["users"] == words
    assert options.users is users
    assert population.given is (users if rule == "given" else None)
