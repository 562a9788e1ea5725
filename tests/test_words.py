"""One word for one thing: the signatures of all public functions hold the table "Arguments" of
docs/design.md."""

import inspect
import re
from pathlib import Path

import pytest

import recdf as rd

NO_DEFAULT = inspect.Parameter.empty


def public_functions():
    """Every public function and metric, and the methods of public classes, by the name that users
    write."""
    found = {f"rd.{name}": getattr(rd, name) for name in rd.__all__}
    for space in ("experiments", "ope", "logs", "diagnostics", "plot", "spark", "dask"):
        module = getattr(rd, space)
        found |= {f"rd.{space}.{name}": getattr(module, name) for name in module.__all__}
    methods = {
        f"{name}.{method}": function
        for name, one in found.items()
        if isinstance(one, type) and not issubclass(one, Exception)
        for method, function in vars(one).items()
        if inspect.isfunction(function) and not method.startswith("_")
    }
    return {name: one for name, one in found.items() if not isinstance(one, type)} | methods


FUNCTIONS = public_functions()
SIGNATURES = {name: inspect.signature(one).parameters for name, one in FUNCTIONS.items()}

# Words that are not used, and the word that stands for each.
NOT_USED = {
    "method": "correction=, interval=, estimators= or test=",
    "sample_weight_col": "weight_col=",
    "weights_col": "weight_col=",
    "unit": "unit_col= (who is counted once), slate_col= (what is a slate) or cluster= (what "
    "varies together)",
    "units": "unit_col=",
    "alpha": "confidence=",
    "n_boot": "n_resamples=",
    "n_bootstrap": "n_resamples=",
    "random_state": "seed=",
    "metric_names": "metrics=",
    "estimator": "estimators=",
    "ci_level": "confidence=",
    "user_column": "user_col=",
    "item_column": "item_col=",
    "group_by": "by=",
}
REASONS = {
    ("rd.experiments.plan_experiment", "alpha"): "a plan is about its error rates, alpha and power",
    ("rd.experiments.plan_comparison", "alpha"): "a plan is about its error rates, alpha and power",
    ("rd.gate", "alpha"): "a gate is about its error rate",
    ("rd.diagnostics.gate", "alpha"): "a gate is about its error rate",
    (
        "rd.experiments.interleave",
        "method",
    ): "the literature calls the ways of mixing lists methods",
    ("rd.popularity", "unit"): "what popularity is counted in: a share, a count or a rank",
    ("rd.summarize", "alpha"): "the literature calls this parameter of the risk so",
    ("rd.a_ndcg", "alpha"): "the literature calls this parameter of α-NDCG so",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_word_for_one_thing(name):
    for word in SIGNATURES[name]:
        assert word not in NOT_USED or (name, word) in REASONS, (
            f"{name}: {word}= is {NOT_USED.get(word)}"
        )


def is_frame_of_baseline(name, parameter):
    """Whether `base` is an optional frame, or the first argument of a metric that compares with
    one."""
    compares = name in ("rd.unexpectedness", "rd.overlap", "rd.least_promoted")
    return parameter.default is None or (compares and parameter.default is NO_DEFAULT)


# What a word means, told by its defaults: a function in which it has another one uses it for
# another thing.
DEFAULTS = {
    "users": {"true", None},
    "user_col": {"user_id", None},  # None: the key that the table records
    "item_col": {"item_id", None},  # None: the item column of a table of items
    "variant_col": {"variant", None},
    "k": {10, None},
    "seed": {0},
    "confidence": {0.95, 0.999},  # 0.999 in experiment_health, whose checks run on every experiment
    "n_resamples": {2000},
    "log_base": {2},
    "share_of": {"users"},
    "correction": {"holm", "none", None, "auto"},
    "like": {None},
    "weight_col": {None},
    "overwrite": {False},
    "progress": {None},
}


@pytest.mark.parametrize("word", DEFAULTS)
def test_a_word_has_one_default(word):
    for name, parameters in SIGNATURES.items():
        if word in parameters:
            default = parameters[word].default
            required = (
                {NO_DEFAULT}
                if parameters[word].kind is not inspect.Parameter.KEYWORD_ONLY
                else set()
            )
            assert default in DEFAULTS[word] | required, f"{name}({word}={default!r})"


def test_base_is_a_frame_of_recommendations():
    for name, parameters in SIGNATURES.items():
        assert "base" not in parameters or is_frame_of_baseline(name, parameters["base"]), name


def test_frames_come_first_then_metrics_then_k():
    order = ["true", "pred", "metrics", "k"]
    for name, parameters in SIGNATURES.items():
        by_place = [
            one for one, p in parameters.items() if p.kind is not inspect.Parameter.KEYWORD_ONLY
        ]
        if {"true", "pred"} <= {*by_place}:
            known = [one for one in by_place if one in order]
            assert known == [one for one in order if one in known], f"{name}{tuple(by_place)}"
            assert "metrics" not in parameters or by_place[2] == "metrics", name


def test_columns_are_named_by_words_that_say_so():
    """A parameter that ends in _column or begins with col_ would be a second way to say _col."""
    for name, parameters in SIGNATURES.items():
        odd = [one for one in parameters if re.search(r"_column$|^col_|_name$", one)]
        assert (
            odd == []
            or (name[-9:], odd) == ("from_dict", ["value_name"])
            or name == "rd.logs.from_sparse"
        ), f"{name}: {odd}"


def test_the_page_lists_these_words():
    page = (Path(__file__).parents[1] / "docs/design.md").read_text(encoding="utf-8")
    table = page.partition("## Arguments")[2].partition("\n## ")[0]
    words = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.+?) \|", table, flags=re.M)))) - {
        "..._col"
    }
    used = {word for parameters in SIGNATURES.values() for word in parameters}
    assert words <= used
