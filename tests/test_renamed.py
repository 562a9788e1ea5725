"""Old names of arguments: they work for one minor version, with a warning that names the new
word."""

import inspect
import pickle
import warnings
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.cli import main
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
    assert (
        before.per_user[old].tolist() == now.per_user[new].tolist()
    )  # the column keeps the name that was asked for
    assert before.spec["metrics"][old]["definition"] == now.spec["metrics"][new]["definition"]


def test_per_user_and_conventions_take_the_old_word():
    with pytest.warns(rd.DeprecatedWarning):
        found = rd.popularity.per_user(LOG, PRED, 2, base="events")
    assert (
        found.iloc[:, -1].tolist()
        == rd.popularity.per_user(LOG, PRED, 2, share_of="events").iloc[:, -1].tolist()
    )
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


PAIRS = pd.DataFrame(
    {"model": ["a"] * 40 + ["b"] * 40, "user_id": [*range(40)] * 2, "mrr@5": np.arange(80) % 7 / 7}
)
USERS = pd.DataFrame({"user_id": range(60), "variant": ["A", "B"] * 30, "m": np.arange(60) % 5})
USERS["hit"] = USERS["m"] % 2
DECISIONS = pd.DataFrame(
    {
        "user_id": np.arange(60) // 3,
        "slate": np.arange(60) // 3,
        "position": np.arange(60) % 3,
        "kept": 1.5,
        "reward": np.arange(60) % 2,
        "propensity": 0.5,
        "target_propensity": np.arange(60) % 4 / 3,
    }
)
ASSIGNMENT, MOMENTS = USERS[["user_id", "variant"]], rd.variant_moments(USERS, "m")
SLATES = {"interaction": "independent", "estimators": "ips"}
TWICE = pd.concat([DECISIONS.assign(model=name) for name in "ab"])
models = partial(rd.compare_models, PAIRS[1:])
variants = partial(rd.compare_variants, USERS, "m", control="A")


@pytest.mark.parametrize(
    ("call", "old", "new"),
    [
        (models, {"users": "zero"}, {"missing": "zero"}),
        (models, {"users": "inner"}, {"missing": "drop"}),
        (models, {"missing": "inner"}, {"missing": "drop"}),
        (variants, {"method": "welch"}, {"test": "t"}),
        (variants, {"method": "bootstrap"}, {"test": "bootstrap"}),
        (variants, {"test": "mean"}, {"test": "t"}),
        (variants, {"test": {"m": "mean"}}, {"test": {"m": "t"}}),
        (
            partial(rd.compare_variants_from_moments, MOMENTS, control="A"),
            {"method": "welch"},
            {"test": "t"},
        ),
        (
            partial(rd.adjust_pvalues, pd.DataFrame({"p_value": [0.01, 0.04]})),
            {"method": "bh"},
            {"correction": "bh"},
        ),
        (
            partial(rd.adjust_pvalues, pd.DataFrame({"p_value": [0.01, 0.04]})),
            {"alpha": 0.5},
            {"confidence": 0.5},
        ),
        (
            partial(rd.experiment_health, USERS[["user_id", "m"]], ASSIGNMENT),
            {"alpha": 0.25},
            {"confidence": 0.75},
        ),
        (partial(rd.bootstrap_ci, USERS, "m"), {"unit": "variant"}, {"cluster": "variant"}),
        (partial(rd.bootstrap_ci, USERS, "m"), {"unit_col": "variant"}, {"cluster": "variant"}),
        (partial(rd.bootstrap_ci, USERS, "m"), {"method": "basic"}, {"interval": "basic"}),
        (
            partial(rd.roll_up, USERS, how={"m": "sum"}),
            {"unit": "variant"},
            {"unit_col": "variant"},
        ),
        (
            partial(rd.summarize, USERS, [], metrics=["m"]),
            {"unit": "variant"},
            {"unit_col": "variant"},
        ),
        (partial(rd.ope_estimate, DECISIONS, **SLATES), {"unit": "slate"}, {"slate_col": "slate"}),
        (partial(rd.ope_estimate, DECISIONS), {"method": "bootstrap"}, {"interval": "bootstrap"}),
        (
            partial(rd.ope_estimate, DECISIONS),
            {"sample_weight_col": "kept"},
            {"weight_col": "kept"},
        ),
        (
            partial(rd.ope_diagnostics, DECISIONS),
            {"sample_weight_col": "kept"},
            {"weight_col": "kept"},
        ),
        (partial(rd.ope_compare, TWICE, **SLATES), {"unit": "slate"}, {"slate_col": "slate"}),
    ],
)
def test_comparisons_and_estimates_take_their_old_words(call, old, new):
    (name,), (word,) = old, new
    wanted = call(**new)
    with pytest.warns(rd.DeprecatedWarning, match=rf"{name}.* is now {word}") as seen:
        pd.testing.assert_frame_equal(call(**old), wanted)
    assert [one.filename for one in seen] == [__file__]
    if name != word:
        with pytest.raises(rd.OptionError, match=f"got {name}= and {word}="):
            call(**old, **new)


def test_both_comparisons_have_one_list_of_tests_and_say_which_they_take():
    for test in ("permutation", "proportion"):
        with pytest.raises(
            rd.OptionError, match=f"test='{test}' is about two groups.*'t', 'randomization', 'wil"
        ):
            rd.compare_models(PAIRS, test=test)
    for test in ("randomization", "wilcoxon"):
        with pytest.raises(
            rd.OptionError,
            match=f"test='{test}' is about the differences.*'t', 'permutation', 'boot",
        ):
            rd.compare_variants(USERS, "m", control="A", test=test)
    # Each metric may have a test of its own, whose row is that of a call for this metric alone.
    tests = {"hit": "proportion", "m": "bootstrap"}
    mixed = rd.compare_variants(USERS, ["hit", "m"], control="A", test=tests, correction="none")
    assert mixed["method"].tolist() == ["proportion", "bootstrap"]
    for name, test in tests.items():
        alone = rd.compare_variants(USERS, name, control="A", test=test, correction="none")
        pd.testing.assert_frame_equal(mixed[mixed["metric"] == name].reset_index(drop=True), alone)


def test_a_command_takes_old_flags_with_their_old_values(tmp_path, capsys):
    shop = rd.sample_shop(n_users=200)
    rd.evaluate(shop.true, shop.pred, "ndcg", by="model").to_parquet(tmp_path / "r")
    texts = []
    for words in (["--users", "inner"], ["--missing", "drop"]):
        assert main(["compare", str(tmp_path / "r"), *words]) == 0
        texts.append(capsys.readouterr())
    assert texts[0].out == texts[1].out
    assert "--users is now --missing" in texts[0].err
    DECISIONS.to_csv(tmp_path / "log.csv", index=False)
    assert (
        main(["ope", str(tmp_path / "log.csv"), "--method", "delta", "--sample-weight-col", "kept"])
        == 0
    )
    said = capsys.readouterr().err
    assert "--method is now --interval" in said
    assert "--sample-weight-col is now --weight-col" in said


def test_a_command_takes_the_old_flag_of_a_function():
    parser = Parser(prog="recdf sum")
    add_parameters(parser.add_argument_group("options"), summed, ["missing"])
    assert "--users" not in parser.format_help()
    assert parser.parse_args(["--users", "inner"]).missing == "inner"
    assert (
        parser.renamed(["--users", "inner"])
        == parser.renamed(["--users=inner"])
        == {"--users": "--missing"}
    )
    assert parser.renamed(["--missing", "inner"]) == {}
    with pytest.raises(SystemExit):
        parser.parse_args(["--users", "inner", "--missing", "inner"])
