"""Every option of every command: from a file, with the flag repeated, and with several values it is
one call.

The cases come from the parsers, so that a new option is tested without a change here. One test
tries all options of a command.
"""

import argparse
import inspect
import json
import re

import pytest
from cases import case
from cli.command import fails, run

import recdf as rd
from recdf import cli
from recdf.experiments.compare.compare_models import compare_models
from recdf.off_policy.beside_estimates import ope_compare

PARSER, COMMANDS = cli._parser()
OPTIONS = [
    (name, action)
    for name, parser in COMMANDS.items()
    for action in parser._actions
    if action.dest != "help"
]
OF_FILES = ("config", "project")
FLAGS = [
    (command, action)
    for command, action in OPTIONS
    if action.option_strings and action.dest not in OF_FILES
]
LISTS = [(command, action) for command, action in FLAGS if action.nargs in ("+", "*")]
SCALARS = [(command, action) for command, action in FLAGS if action.nargs is None]
SWITCHES = [(command, action) for command, action in FLAGS if action.nargs == 0]

# The functions that a command calls, whose parameters of lists are options of lists.
FUNCTIONS = {
    "evaluate": [rd.evaluate],
    "check": [rd.check],
    "impressions": [rd.from_impressions],
    "compare": [compare_models, rd.compare_variants],
    "experiment": [rd.compare_variants, rd.join_experiment],
    "ope": [rd.ope.estimate, ope_compare],
}


def by_command(options):
    """One case for each command that has such options, with all of them."""
    found = {}
    for command, action in options:
        found.setdefault(command, []).append(action)
    return pytest.mark.parametrize(("command", "actions"), found.items(), ids=found)


def two_values(action):
    """Two values that the option takes, as they are typed."""
    if action.choices:
        return list(action.choices)[:2]
    return {int: ["3", "4"], float: ["0.5", "-0.25"]}.get(action.type, ["a", "b"])


def needed(command, besides):
    """The words that the command needs, without those of one option."""
    words = []
    for action in COMMANDS[command]._actions:
        if (
            action is not besides
            and (action.required or not action.option_strings)
            and action.nargs != 0
        ):
            words += [*action.option_strings[-1:], "needed"]
    for group in COMMANDS[command]._mutually_exclusive_groups:
        first = group._group_actions[0]
        if group.required and besides not in group._group_actions:
            words += [first.option_strings[-1], "needed"]
    return words


@pytest.fixture
def called(monkeypatch, capsys, tmp_path):
    """What the command is called with, or the line with which it fails."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "_run_command", lambda given, _: calls.append(vars(given)) or 0)
    calls = []

    def call(command, words, keys=None, besides=None):
        calls.clear()
        if keys is not None:
            lines = [f"{key} = {json.dumps(value, default=str)}\n" for key, value in keys.items()]
            (tmp_path / "job.toml").write_text("".join(lines), encoding="utf-8")
        file = [] if keys is None else ["--config", "job.toml"]
        code, _, err = run(capsys, command, *needed(command, besides), *file, *words)
        assert bool(calls) is (code == 0)
        return {k: v for k, v in calls[0].items() if k not in ("seen", "config")} if calls else err

    return call


def key_of(action):
    return action.option_strings[-1].lstrip("-")


@pytest.mark.few(1)
@by_command(LISTS)
def test_a_list_is_one_call_however_it_is_given(called, command, actions):
    for action in actions:
        with case(command, action.option_strings[-1]):
            flag, texts = action.option_strings[-1], two_values(action)
            values = [(action.type or str)(text) for text in texts]
            together = called(command, [flag, *texts], besides=action)
            assert together[action.dest] == values
            assert called(command, [flag, texts[0], flag, texts[1]], besides=action) == together
            assert (
                called(
                    command,
                    [f"{flag}{'=' if '--' in flag else ''}{text}" for text in texts],
                    besides=action,
                )
                == together
            )
            assert called(command, [], {key_of(action): values}, besides=action) == together
            assert (
                called(command, [], {key_of(action).replace("-", "_"): values}, besides=action)
                == together
            )
            one = called(command, [flag, texts[1]], besides=action)
            assert one[action.dest] == values[1:]
            assert called(command, [], {key_of(action): values[1]}, besides=action) == one
            assert (
                called(command, [flag, texts[1]], {key_of(action): values}, besides=action) == one
            )
            empty = called(command, [], {key_of(action): []}, besides=action)
            if action.nargs == "*":
                assert empty == called(command, [flag], besides=action)
                assert empty[action.dest] == []
            else:
                assert f"{key_of(action)} = []" in empty


@pytest.mark.few(1)
@by_command(SCALARS)
def test_a_scalar_is_given_once(called, command, actions):
    for action in actions:
        with case(command, action.option_strings[-1]):
            flag, texts = action.option_strings[-1], two_values(action)
            one, other = ([f"{flag}{'=' if '--' in flag else ''}{text}"] for text in texts)
            expected = called(command, one, besides=action)
            in_file = json.loads(texts[0]) if action.type in (int, float) else texts[0]
            assert called(command, [], {key_of(action): in_file}, besides=action) == expected
            assert called(command, one, {key_of(action): texts[1]}, besides=action) == expected
            assert "given twice; expected one value" in called(
                command, [*one, *other], besides=action
            )
            assert "expected one value" in called(
                command, [], {key_of(action): texts}, besides=action
            )
            assert f"{key_of(action)} = []" in called(
                command, [], {key_of(action): []}, besides=action
            )


@pytest.mark.few(2)
@by_command(SWITCHES)
def test_a_switch_of_a_file_is_true_or_false(called, command, actions):
    for action in actions:
        with case(command, action.option_strings[-1]):
            typed = called(command, [action.option_strings[-1]], besides=action)
            assert called(command, [], {key_of(action): True}, besides=action) == typed
            assert called(command, [], {key_of(action): False}, besides=action) == called(
                command, [], besides=action
            )
            assert "expected true or false" in called(
                command, [], {key_of(action): "yes"}, besides=action
            )


def test_every_parameter_of_a_list_is_an_option_of_a_list():
    for command, functions in FUNCTIONS.items():
        actions = {action.dest: action for _, action in OPTIONS if _ == command}
        for function in functions:
            doc = inspect.getdoc(function)
            for names, kind in re.findall(r"^(\w[\w, ]*?) : (.*)", doc, flags=re.M):
                for name in set(names.split(", ")) & set(actions):
                    if re.search(r"\blist of (str|int|float)|\(float, float\)", kind):
                        with case(f"{command} {name}: {kind}"):
                            assert actions[name].nargs in ("+", "*")


def test_no_option_goes_past_the_one_mechanism():
    for command, action in OPTIONS:
        with case(f"{command} {action.dest}"):
            assert action.nargs in (None, 0, "?", "+", "*")
            assert isinstance(
                action, cli.arguments._Given if action.nargs != 0 else argparse.Action
            )


EVALUATE = ["--true", "t", "--pred", "p"]


@pytest.mark.parametrize("typed", [["-k5"], ["-vk5"], ["-k", "5"]])
def test_a_short_flag_wins_too(called, typed):
    assert called("evaluate", typed, {"k": [10, 20]})["k"] == [5]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('metrics = ["a"]\nm = ["b"]', "m is given twice, as metrics too"),
        ('user-col = "a"\nuser_col = "b"', "user_col is given twice"),
        ('format = "json"\n[evaluate]\nmetrics = "a"', "format stands outside of the tables"),
    ],
)
def test_a_file_says_each_thing_once(capsys, tmp_path, text, words):
    (tmp_path / "job.toml").write_text(text, encoding="utf-8")
    assert words in fails(capsys, "evaluate", *EVALUATE, "--config", tmp_path / "job.toml")


def test_one_file_of_options_is_read(capsys, tmp_path):
    (tmp_path / "job.toml").write_text("", encoding="utf-8")
    two = ["--config", tmp_path / "job.toml"] * 2
    assert "--config: given twice" in fails(capsys, "evaluate", *EVALUATE, "-m", "mrr", *two)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["--cap", "revenue@10=.9", "revenue@10=.99"], "revenue@10"),
        (["--expected", "A=.5", "A=.6"], "A"),
        (["--metric", "x=revenue@10/n_pred", "x=hits@10/n_pred"], "x"),
    ],
)
def test_a_name_is_given_one_value(capsys, words, name):
    call = [
        "experiment",
        "ab",
        "--assignment",
        "groups.parquet",
        "--control",
        "A",
        "--missing",
        "zero",
    ]
    assert f"{name} is given twice" in fails(capsys, *call, *words)


def test_verbose_wins_over_a_quiet_file(called):
    given = called("evaluate", ["-v"], {"quiet": True})
    assert (given["verbose"], given["quiet"]) == (True, False)


@pytest.mark.parametrize("flag", ["--offline", "--online"])
def test_what_a_command_gives_itself_is_no_flag(capsys, flag):
    # The table of proxies is about all metrics, so a flag would be taken and not read.
    assert f"unrecognized arguments: {flag}" in fails(capsys, "history", "nights", flag, "ndcg")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["compare", "results", "--basline", "knn"], "'--baseline'"),
        (["history", "nights", "--max-ag=3"], "'--max-age'"),
        (["leaderboard", "results", "--baselin", "knn"], "'--baseline'"),
    ],
)
def test_a_flag_that_is_nearly_right_is_named(capsys, words, meant):
    said = fails(capsys, *words)
    assert f"did you mean {meant}? (see recdf {words[0]} --help)" in said
