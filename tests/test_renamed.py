"""Old names of arguments: they work for one minor version, with a warning that names the new word."""

import inspect
import pickle
import warnings
from typing import Literal

import pytest

import recdf as rd
from recdf.cli.arguments import Parser, add_parameters
from recdf.errors import renamed

TRUE, PRED = {1: ["a", "b"], 2: ["c"]}, {1: ["a", "x", "b"], 2: ["x", "c"]}
LOG = {1: ["a", "b"], 2: ["b", "b"], 3: ["x"]}


def test_the_logarithm_of_ndcg_has_a_word_of_its_own():
    new = rd.ndcg(TRUE, PRED, k=3, discount="jk", log_base=3)
    with pytest.warns(rd.DeprecatedWarning, match="ndcg: base= is now log_base=") as seen:
        old = rd.ndcg(TRUE, PRED, k=3, discount="jk", base=3)
    assert old == new != rd.ndcg(TRUE, PRED, k=3, discount="jk")
    assert [one.filename for one in seen] == [__file__]
    assert "base" not in inspect.signature(rd.ndcg).parameters
    with pytest.raises(rd.OptionError, match="got base= and log_base="):
        rd.ndcg(TRUE, PRED, base=3, log_base=3)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ndcg(discount=jk,base=3)@3", "ndcg(discount=jk,log_base=3)@3"),
        ("dcg(discount=jk,base=3)@3", "dcg(discount=jk,log_base=3)@3"),
        ("popularity(base=events)@2", "popularity(share_of=events)@2"),
        ("surprisal(base=events)@2", "surprisal(share_of=events)@2"),
        ("arp_ratio(base=events)@2", "arp_ratio(share_of=events)@2"),
    ],
)
def test_metric_strings_take_the_old_word(old, new):
    now = rd.evaluate(TRUE, PRED, new, log=LOG)
    with pytest.warns(rd.DeprecatedWarning, match="is now"):
        before = rd.evaluate(TRUE, PRED, old, log=LOG)
    assert before.per_user[old].tolist() == now.per_user[new].tolist()  # the column keeps the name that was asked for
    assert before.spec["metrics"][old]["definition"] == now.spec["metrics"][new]["definition"]


def test_per_user_and_conventions_take_the_old_word():
    with pytest.warns(rd.DeprecatedWarning):
        found = rd.popularity.per_user(LOG, PRED, 2, base="events")
    assert found.iloc[:, -1].tolist() == rd.popularity.per_user(LOG, PRED, 2, share_of="events").iloc[:, -1].tolist()
    old = rd.Convention("old", metrics={"ndcg": {"discount": "jk", "base": 3}})
    with pytest.warns(rd.DeprecatedWarning):
        assert rd.ndcg(TRUE, PRED, 3, like=old) == rd.ndcg(TRUE, PRED, 3, discount="jk", log_base=3)


@renamed(alpha=("confidence", lambda alpha: 1 - alpha), users="missing")
def summed(frame, *, confidence: float = 0.95, missing: Literal["raise", "inner"] = "raise"):
    """Return the arguments.

    Parameters
    ----------
    frame : object
        Anything.
    missing : {"raise", "inner"}
        What happens.
    """
    return frame, confidence, missing


def test_a_function_takes_its_old_words():
    with pytest.warns(rd.DeprecatedWarning, match="summed: alpha= is now confidence="):
        assert summed(1, alpha=0.25) == (1, 0.75, "raise")
    with pytest.warns(FutureWarning, match="summed: users= is now missing="):
        assert summed(1, users="inner", confidence=0.5) == (1, 0.5, "inner")
    with pytest.raises(rd.OptionError, match="summed got users= and missing="):
        summed(1, users="inner", missing="inner")
    with warnings.catch_warnings(action="error"):
        assert summed(1, confidence=0.9) == (1, 0.9, "raise")
    assert list(inspect.signature(summed).parameters) == ["frame", "confidence", "missing"]
    assert pickle.loads(pickle.dumps(summed)) is summed


def test_a_command_takes_the_old_flag_of_a_function():
    parser = Parser(prog="recdf sum")
    add_parameters(parser.add_argument_group("options"), summed, ["missing"])
    assert "--users" not in parser.format_help()
    assert parser.parse_args(["--users", "inner"]).missing == "inner"
    assert parser.renamed(["--users", "inner"]) == parser.renamed(["--users=inner"]) == {"--users": "--missing"}
    assert parser.renamed(["--missing", "inner"]) == {}
    with pytest.raises(SystemExit):
        parser.parse_args(["--users", "inner", "--missing", "inner"])
