"""The help of each command: a line of usage, examples that run, then the options in groups."""

import re
import shlex

import numpy as np
import pandas as pd
import pytest
from cli.command import run

import recdf as rd
from recdf import cli
from recdf.cli.arguments import EXAMPLES

COMMANDS = cli._parser()[1]


def test_every_command_has_an_example():
    assert EXAMPLES.keys() == COMMANDS.keys()
    assert EXAMPLES["evaluate"].count("\nrecdf ") == 5


@pytest.mark.parametrize("name", COMMANDS)
def test_help_begins_with_usage_and_examples(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = COMMANDS[name].format_help().splitlines()
    assert lines[0].startswith(f"usage: recdf {name} ")
    assert lines[1] == ""
    assert lines[2] in ("example:", "examples:")
    assert lines[3].startswith(f"  recdf {name}")
    assert [line for line in lines if len(line) > 80] == []


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files of the shop that the examples name, and those that the shop does not have."""
    monkeypatch.chdir(tmp_path)
    shop = rd.sample_shop(n_users=400)
    for name in ("true", "pred", "log", "items", "assignment", "shown"):
        getattr(shop, name).to_parquet(f"{name}.parquet")
    rng = np.random.default_rng(0)
    lists = dict(list(shop.pred.groupby("model")))
    for name in ("knn", "popularity"):
        lists[name].to_parquet(f"{name}.parquet")
    shop.true[["user_id", "item_id"]].drop_duplicates().to_parquet("clicks.parquet")
    people = shop.assignment[["user_id", "variant"]]
    browser = np.where(np.arange(len(people)) % 4 == 0, "old", "new")
    people.assign(browser=browser).to_parquet("visitors.parquet")
    people.assign(ms=rng.gamma(2, 50, len(people))).to_parquet("requests.parquet")
    decisions = pd.DataFrame({"user_id": range(2000), "item_id": "tea", "propensity": 0.5})
    decisions["reward"], decisions["target_propensity"] = rng.binomial(1, 0.4, 2000), 0.5
    decisions.to_parquet("decisions.parquet")
    for day in (1, 2, 3):
        rd.evaluate(shop.true, lists["knn"], "ndcg@10").to_parquet(f"nights/2026-11-0{day}")


@pytest.fixture
def impressions():
    """A log of impressions and its clicks, under the names of the example."""
    time = pd.to_datetime(["2026-09-01 10:00", "2026-09-01 10:00"])
    log = pd.DataFrame({"user_id": [1, 1], "session_id": 1, "item_id": ["a", "b"], "time": time})
    log.assign(position=[1, 2]).to_parquet("impressions.parquet")
    log.drop(columns="session_id").iloc[:1].to_parquet("clicks.parquet")


@pytest.mark.slow
def test_the_examples_run(files, capsys, request):
    for name, text in EXAMPLES.items():
        if name == "impressions":
            request.getfixturevalue("impressions")
        for line in re.sub(r"\\\n +", "", text).strip().splitlines():
            code, _, err = run(capsys, *shlex.split(line)[1:])
            assert code == 0, (line, err)
