"""Errors and warnings carry data; Python, the command and the engines write the sentence, whatever
its words are."""

import ast
import copy
import json
import pickle
import re
from pathlib import Path

import dask
import dask.dataframe
import pandas as pd
import pytest
from inputs.small_frames import PRED, TRUE
from inputs.test_bad_input import run

import recdf as rd
from recdf import errors
from recdf.cli import main
from recdf.evaluation.part import Failure, PartResult, result_bytes
from recdf.inputs.options import NAMES

PACKAGE = Path(rd.__path__[0])
NULL_USER = TRUE.assign(user_id=[1.0, None, 2.0])
TEXT_ITEMS = TRUE.assign(item_id=["a", "b", "c"])


def raised(call, error=rd.RecdfError):
    with pytest.raises(error) as found:
        call()
    return found.value


# (call, attributes of its error)
DATA = [
    ({"ties": "rows"}, {"argument": "ties", "value": "rows", "advice": []}),
    ({"users": 7}, {"argument": "users", "value": 7}),
    ({"propensity_floor": 2}, {"argument": "propensity_floor", "value": 2}),
    (
        {"propensity_floor": 0.5},
        {"argument": "propensity_floor", "value": 0.5, "advice": [("propensity_col", "")]},
    ),
    ({"k": 0, "metrics": "ndcg"}, {"argument": "k", "value": 0}),
    ({"metrics": "rbp(p=1)"}, {"argument": "p", "value": 1}),
    ({"metrics": "revenue@10"}, {"argument": None, "advice": [("value_col", "")]}),
    (
        {"true": NULL_USER},
        {"column": "true['user_id']", "count": 1, "advice": [("null_keys", '"drop"')]},
    ),
    ({"score_col": "scor"}, {"column": "pred['scor']"}),
    (
        {"pred": PRED.rename(columns={"user_id": "userid"})},
        {"column": "pred['user_id']", "advice": [("user_col", "'userid'")]},
    ),
    (
        {"true": TRUE.assign(relevance=[1, -2, -3]), "relevance_col": "relevance"},
        {"column": "true['relevance']", "count": 2, "examples": [-2.0, -3.0]},
    ),
    (
        {"pred": pd.concat([PRED, PRED[:1]]), "duplicates": "raise"},
        {"count": 1, "examples": [(1, 10)], "advice": [("duplicates", '"drop"')]},
    ),
    ({"pred": PRED.assign(score=1), "ties": "raise"}, {"argument": "ties", "count": 1}),
    ({"true": TEXT_ITEMS}, {"column": "pred['item_id']"}),
    (
        {"metrics": "recall@3", "undefined": "raise", "users": [1, 9]},
        {"argument": "undefined", "column": "recall@3", "count": 1},
    ),
]


@pytest.mark.parametrize(("call", "data"), DATA, ids=[str(data)[:60] for _, data in DATA])
def test_an_error_carries_what_it_speaks_of(call, data):
    """Also when it has travelled between processes."""
    error = raised(lambda: run(**call))
    assert {name: getattr(error, name) for name in data} == data
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), error.within()):
        assert (type(again), str(again), again.data) == (type(error), str(error), error.data)
        assert again.advice == error.advice
    sent = result_bytes(PartResult(frozenset([3]), failure=Failure(error, 3)))
    again = pickle.loads(sent).failure.error
    assert (type(again), str(again), again.advice) == (type(error), str(error), error.advice)
    assert json.loads(json.dumps(error.data, default=str)) == again.data


def test_a_warning_carries_its_count():
    with pytest.warns(rd.DuplicateWarning) as found:
        run(pred=pd.concat([PRED, PRED[:2]]))
    assert found[0].message.count == 2
    assert ("duplicates", '"keep"') in found[0].message.advice


def test_no_mark_is_left_in_findings():
    found = rd.check(
        pd.concat([NULL_USER, TRUE[:1]]), pd.concat([PRED, PRED[:2]]).assign(relevance=1, rating=1)
    )
    assert len(found) > 2
    assert not found.astype(str).apply(lambda column: column.str.contains("[⟦⟧]")).any(axis=None)


# -- other words

# Sentences as someone might write them anew, around parts that stay.
SENTENCES = [
    "{}",
    "First {} and then more",
    "null ids ids of {}!",
    "Take (rather) {}, or 3 ids of yours.",
    "«{}»",
]
# A part of a message: in Python, on the command line, in Spark.
PARTS = {
    '⟦+null_keys="drop"⟧': ('null_keys="drop"', "--null-keys drop", 'null_keys="drop"'),
    "⟦+by=⟧": ("by=", "--by", "by="),
    "⟦+user_col='customer id'⟧": (
        "user_col='customer id'",
        "--user-col customer id",
        "user_col='customer id'",
    ),
    "⟦judged_only=True⟧": ("judged_only=True", "--judged-only", "judged_only=True"),
    "⟦+score_col=False⟧": ("score_col=False", "--score-col False", "score_col=False"),
    "⟦k=0⟧": ("k=0", "-k 0", "k=0"),
    "⟦+by=['model', 'day']⟧": ("by=['model', 'day']", "--by model day", "by=['model', 'day']"),
    "⟦unknown='x'⟧": ("unknown='x'", "unknown='x'", "unknown='x'"),
    "⟦rd.check(true, pred)⟧": ("rd.check(true, pred)", "recdf check", "rd.check(true, pred)"),
    "⟦with .astype(str)⟧": ("with .astype(str)", "to text", 'with .cast("string")'),
    "⟦pred['a'].astype(str)⟧": (
        "pred['a'].astype(str)",
        "pred['a'] as text",
        "pred['a'].cast(\"string\")",
    ),
    "⟦both pred['a'].astype(str)⟧": (
        "both with .astype(str) on pred['a']",
        "both as text: pred['a']",
        "both with .cast(\"string\") on pred['a']",
    ),
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TRUE.to_csv("true.csv", index=False)
    PRED.to_csv("pred.csv", index=False)
    return ["evaluate", "--true", "true.csv", "--pred", "pred.csv", "-m", "ndcg"]


@pytest.mark.few(8)
@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("part", PARTS)
def test_a_sentence_in_other_words_is_still_right_for_every_reader(
    part, sentence, files, capsys, monkeypatch
):
    from recdf.partitions.spark import _spark_words

    python, command, spark = PARTS[part]
    error = rd.DataError(sentence.format(part), count=3)
    assert str(error) == sentence.format(python)
    told = error.within()
    told.reword(_spark_words)
    assert str(told) == sentence.format(spark)

    def refuse(*_, **__):
        raise error

    monkeypatch.setattr("recdf.cli.evaluating.evaluate", refuse)
    assert main(files) == 2
    assert capsys.readouterr().err == f"recdf evaluate: error: {sentence.format(command)}\n"
    assert str(error) == sentence.format(python)  # the command's words end with it

    def warn(*_, **__):
        errors.warn_user(sentence.format(part), rd.RankWarning)
        raise error

    monkeypatch.setattr("recdf.cli.evaluating.evaluate", warn)
    assert main(files) == 2
    assert capsys.readouterr().err.splitlines()[0] == f"recdf: warning: {sentence.format(command)}"


# Cases whose message names an argument: what the command and Dask must say, besides Python.
COMMANDS = [
    ([], {"true": NULL_USER}, "--null-keys drop"),
    (
        ["--duplicates", "raise"],
        {"pred": pd.concat([PRED, PRED[:1]]), "duplicates": "raise"},
        "--duplicates drop",
    ),
    (
        ["--score-col", "score"],
        {"pred": PRED.assign(score=[None, 1, 2]), "score_col": "score"},
        "--nan-score last",
    ),
    ([], {"pred": PRED.rename(columns={"user_id": "userid"})}, "--user-col userid"),
    (
        ["--ties", "raise"],
        {"pred": PRED.assign(score=1), "ties": "raise", "score_col": None},
        "--ties raise",
    ),
    (
        ["--propensity-floor", "0.5"],
        {"propensity_floor": 0.5},
        "--propensity-floor 0.5 needs --propensity-col",
    ),
    (["-m", "revenue"], {"metrics": "revenue"}, "needs --value-col"),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("flags", "call", "words"), COMMANDS, ids=[one[2] for one in COMMANDS])
def test_command_and_dask_say_the_same_data(flags, call, words, files, capsys):
    frames = {"true": TRUE, "pred": PRED.assign(score=[0.3, 0.2, 0.1]), **call}
    error = raised(lambda: run(**{"metrics": "ndcg", **frames}))
    for name in ("true", "pred"):
        frames[name].to_csv(f"{name}.csv", index=False)
    assert main([*files[:5], *(flags if "-m" in flags else ["-m", "ndcg", *flags])]) == 2
    assert words in capsys.readouterr().err
    lazy = {
        name: dask.dataframe.from_pandas(frames[name], npartitions=1) for name in ("true", "pred")
    }
    options = {
        "metrics": "ndcg",
        "score_col": "score",
        **{n: v for n, v in call.items() if v is not None},
        **lazy,
    }
    with dask.config.set(scheduler="synchronous"):
        told = raised(lambda: rd.dask.evaluate(**options, partitions=1))
    assert (type(told), told.advice) == (type(error), error.advice)
    assert (told.argument, told.column, told.count) == (error.argument, error.column, error.count)


# -- static


def reads_of_messages(source):
    """Lines that look into the text of an exception or warning: by `in`, methods of strings, or
    regular expressions."""
    found = []
    for handler in ast.walk(ast.parse(source)):
        if not (isinstance(handler, ast.ExceptHandler) and handler.name):
            continue

        def is_text(node, name=handler.name):
            said = (
                isinstance(node, ast.Call) and getattr(node.func, "id", "") == "str" and node.args
            )
            if said and isinstance(node.args[0], ast.Name) and node.args[0].id == name:
                return True
            args = (
                node.value
                if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute)
                else None
            )
            return (
                args is not None and args.attr == "args" and getattr(args.value, "id", "") == name
            )

        for node in ast.walk(handler):
            compared = isinstance(node, ast.Compare) and any(
                map(is_text, [node.left, *node.comparators])
            )
            method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            searched = (
                method
                and getattr(node.func.value, "id", "") == "re"
                and any(map(is_text, node.args))
            )
            asked = (
                method
                and is_text(node.func.value)
                and node.func.attr not in ("split", "splitlines")
            )
            if compared or searched or asked:
                found.append(node.lineno)
    return found


@pytest.mark.long
def test_no_module_reads_a_message_back():
    sources = {path: path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    wrong = {
        str(path): lines
        for path, source in sources.items()
        if "except " in source and (lines := reads_of_messages(source))
    }
    assert not wrong


@pytest.mark.parametrize(
    "line",
    ['"ids" in str(e)', 're.search("ids", str(e))', 'str(e).replace("a", "b")', 'e.args[0] == "x"'],
)
def test_a_planted_reading_is_found(line):
    assert reads_of_messages(f"try:\n    f()\nexcept ValueError as e:\n    x = {line}\n")


def unmarked(source):
    """Lines of messages that name a shared option without a mark, so that the command would not
    write its flag."""
    option = re.compile(rf"(?<![\w.+⟦{{])(?:{'|'.join(NAMES)})=")
    found = []
    for node in ast.walk(ast.parse(source)):
        name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
        if name == "warn_user" or (
            name.endswith("Error") and issubclass(getattr(rd, name, int), rd.RecdfError)
        ):
            texts = [str(one.value) for one in ast.walk(node) if isinstance(one, ast.Constant)]
            found += [
                node.lineno for text in texts if option.search(re.sub(r"rd\.\w+\(.*", "", text))
            ]
    return found


@pytest.mark.long
def test_every_message_marks_the_options_that_it_names():
    sources = {path: path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    wrong = {
        str(path): lines
        for path, source in sources.items()
        if ("Error(" in source or "warn_user(" in source) and (lines := unmarked(source))
    }
    assert not wrong, (
        'write ⟦+ties="row"⟧ for an argument to pass, and ⟦ties="row"⟧ for one that was passed'
    )
