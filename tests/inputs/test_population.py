"""The record of the option `users`: which lists it asks for, and what follows."""

import pandas as pd
import pytest

from recdf.inputs.options import Options

GIVEN = pd.DataFrame({"user_id": [1, 2, 3]})


@pytest.mark.parametrize(
    ("users", "rule", "frames", "words"),
    [
        ("true", "true", ("true",), "true"),
        ("pred", "pred", ("pred",), "pred"),
        ("both", "both", ("true",), "both"),
        ("all", "all", ("pred", "true"), "all"),
        (["a", "b"], "given", ("given",), "2 given ids"),
        ([], "given", ("given",), "0 given ids"),
        (GIVEN, "given", ("given",), "3 given ids"),
    ],
    ids=["true", "pred", "both", "all", "ids", "no ids", "frame"],
)
def test_what_follows_from_users(users, rule, frames, words):
    options = Options(users=users)
    population = options.population
    assert (population.rule, population.frames) == (rule, frames)
    assert population.words == words
    assert options.spec()["users"] == words
    assert options.users is users
    assert population.given is (users if rule == "given" else None)
