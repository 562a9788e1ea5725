"""Conventions: what other libraries mean by a metric's name, as plain data.

Contract: a `Convention` holds defaults of options and of metric parameters. `like=` applies them, and options that are
given explicitly take precedence. Nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pandas as pd

from .constraints import NONE, Constraint, either, one_of


@dataclass(frozen=True)
class Convention:
    """Rules of one library.

    Attributes
    ----------
    name, library : str
        Name for `like=`; library and version that it was compared with.
    rules : str
        The rules in words.
    order : {"rank", "score", "row"}
        Which column orders `pred` when neither `score_col` nor `rank_col` is given: one named `rank`, else
        `score`; one named `score`, else `rank`; or row order.
    options : mapping
        Defaults of the shared options, such as {"users": "pred"}.
    metrics : mapping
        Metric → defaults of its parameters, for each metric that the library has.
    undefined : mapping
        Metric → "n_true" or "n_pred": it has no value for a list where that is 0, so the mean skips the list.
    differs : mapping
        Metric (or "*") → what cannot be reproduced.

    Examples
    --------
    >>> import recdf as rd
    >>> ours = rd.Convention("ours", metrics={"precision": {"divisor": "shown"}})
    >>> rd.precision({"u": ["a"]}, {"u": ["a"]}, k=10, like=ours)
    1.0
    """

    name: str
    library: str = ""
    rules: str = ""
    order: Literal["rank", "score", "row"] = "rank"
    options: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    undefined: Mapping[str, Literal["n_true", "n_pred"]] = field(default_factory=dict)
    differs: Mapping[str, str] = field(default_factory=dict)


BINARY: dict[str, Any] = {"gain": "binary"}


def _as_recdf(names: str) -> dict[str, dict[str, Any]]:
    """Return metrics that a library computes as recdf does by default."""
    return {name: {} for name in names.split()}


CONVENTIONS: dict[str, Convention] = {
    record.name: record
    for record in (
        Convention(
            name="trec_eval", library="trec_eval 9, by pytrec_eval-terrier 0.5.11",
            rules="The defaults of recdf, ordered by score: larger item id first among equal scores. A list without "
            "relevant items has the value 0 and counts in the mean.",
            order="score", options={"undefined": "zero"},
            metrics=_as_recdf("hitrate hits precision recall rprecision mapr mrr ndcg bpref"),
            differs={
                "*": "trec_eval keeps scores in 32 bits: scores that differ less than that are ties for it. "
                "pytrec_eval reports only users with recommendations; recdf, like trec_eval -c, all users of true."
            },
        ),
        Convention(
            name="ranx", library="ranx 0.3.21",
            rules="Score order, row order among equal scores; linear gains. A list without relevant items has the "
            "value 0 and counts in the mean.",
            order="score", options={"ties": "row", "undefined": "zero"},
            metrics=_as_recdf("hitrate hits precision recall f1 rprecision mapr mrr ndcg dcg rbp"),
            differs={
                "*": "In lists of more than 15 items its sort is not stable: equal scores stand in no defined order.",
                "rbp": "ranx also takes gains above 1.",
                "bpref": "ranx gives NaN without judged items that are not relevant.",
            },
        ),
        Convention(
            name="rectools", library="RecTools 0.19.0",
            rules="Rank order; binary; NDCG divides by the gain of k relevant items, however few there are; a list has "
            "k − TP false positives, however short it is.",
            options={"ties": "row"},
            metrics={
                **_as_recdf("hitrate precision recall f1 mapr mrr"), "ndcg": {**BINARY, "ideal": "k"},
                **_as_recdf("pauc pap"), "accuracy": {"length": "k"}, "mcc": {"length": "k"}, "surprisal": {},
                "popularity": {"share_of": "events"}, "ild": {"similarity": "hamming"},
            },
            differs={
                "*": "RecTools takes ranks as they are, gaps included; recdf ranks anew, so gaps close up.",
                "accuracy": "RecTools counts below 0 where the catalogue is too small for k ranks; recdf has no value.",
                "mcc": "RecTools gives 0 where a factor under the root is 0; recdf leaves it undefined.",
                "popularity": "RecTools has it so with normalize=True and counts interactions without.",
                "ild": "RecTools counts positions, ours times the number of features, and gives 0 to one item.",
            },
        ),
        Convention(
            name="replay", library="RePlay 0.22.0",
            rules="Score order, larger item id first among equal scores; binary; MAP divides by min(k, n_true).",
            order="score",
            metrics={
                **_as_recdf("hitrate precision recall"), "mapr": {"normalizer": "achievable"}, "mrr": {},
                "ndcg": BINARY, "auc": {"tied": "ranked", "one_class": "share"}, "unseen": {},
                "surprisal": {"normalize": True, "divisor": "k"}, "unexpectedness": {"divisor": "k"}, "categories": {},
            },
            differs={
                "unseen": "RePlay gives 1 to a user without recommendations; recdf leaves it undefined.",
                "unexpectedness": "RePlay gives 0 to a user without recommendations or baseline; recdf gives 1.",
            },
        ),
        Convention(
            name="recommenders", library="recommenders 1.2.1",
            rules="Score order, row order among equal scores; binary; MAP divides by min(k, n_true); means over the "
            "users of both frames, of NDCG over the users of true.",
            order="score", options={"ties": "row"},
            metrics={
                **_as_recdf("precision recall"), "mapr": {"normalizer": "achievable"}, "ndcg": BINARY,
                **_as_recdf("ild entropy"),
            },
            undefined={"precision": "n_pred", "recall": "n_pred", "mapr": "n_pred"},
            differs={"rprecision": "Its mean leaves out users by a rule of its own."},
        ),
        Convention(
            name="rs_metrics", library="rs_metrics 0.6.0",
            rules="Row order; binary; precision divides by the items shown.", order="row",
            metrics={
                "hitrate": {}, "precision": {"divisor": "shown"}, **_as_recdf("recall mapr mrr"), "ndcg": BINARY,
                **_as_recdf("popularity surprisal coverage"),
            },
            differs={
                "precision": "A user without recommendations makes its mean NaN; recdf skips that user and counts it."
            },
        ),
        Convention(
            name="lenskit", library="LensKit 2026.4.0",
            rules="Rank order; binary; the lists of pred; precision divides by the items shown, recall by "
            "min(k, n_true), average precision by min(n_true, items shown); discount 1 to rank 2, then 1/log2(rank).",
            options={"users": "pred", "ties": "row"},
            metrics={
                "hitrate": {}, "precision": {"divisor": "shown"}, "recall": {"divisor": "achievable"},
                "mapr": {"normalizer": "shown"}, "mrr": {}, "ndcg": {**BINARY, "discount": "jk"},
                "dcg": {**BINARY, "discount": "jk"}, "rbp": {"p": 0.85, **BINARY}, **_as_recdf("ils gini"),
            },
            undefined={"hitrate": "n_true", "mrr": "n_true", "dcg": "n_true", "rbp": "n_true", "mapr": "n_pred"},
            differs={
                "*": "LensKit also takes negative gains; recdf refuses them.",
                "mapr": "LensKit raises for a list without relevant items; recdf leaves it undefined.",
                "ils": "LensKit gives 1 to a list of one item; recdf leaves it undefined.",
            },
        ),
        Convention(
            name="recpack", library="recpack 0.3.6", rules="Score order; binary; users of true.", order="score",
            metrics={
                **_as_recdf("hits precision recall mrr"), "ndcg": BINARY, "dcg": BINARY,
                "ild": {"similarity": "jaccard"},
            },
            differs={"*": "Equal scores stand in no defined order, and a score of 0 is not a recommendation."},
        ),
        Convention(
            name="sklearn", library="scikit-learn 1.9.1",
            rules="ndcg_score on a scored candidate list: equal scores share their mean gain; the ideal is the "
            "candidate list itself, re-sorted.",
            order="score", options={"users": "pred"},
            metrics={"ndcg": {"ideal": "listed", "tied": "averaged"}, "dcg": {"tied": "averaged"}, "auc": {}},
            differs={"*": "Only a list of candidates is seen: relevant items that are not among them do not count."},
        ),
    )
}  # fmt: skip


LIKE = either(
    replace(one_of(tuple(CONVENTIONS)), typed="str"),
    Constraint("a Convention of your own", lambda value: isinstance(value, Convention), "Convention"),
    NONE,
)


def find_convention(like: str | Convention | None) -> Convention | None:
    """Return the convention of this name, or the caller's own `Convention` as it is."""
    LIKE.check("like", like)
    return CONVENTIONS[like] if isinstance(like, str) else like


def conventions_table() -> pd.DataFrame:
    """All conventions as a frame, one row per convention and metric that the library has.

    Returns
    -------
    DataFrame
        `convention`, `library`, `metric`, `parameters` (that differ from recdf's defaults), `options`, `rules`,
        `differs` (what cannot be reproduced; empty: nothing).

    Examples
    --------
    >>> import recdf as rd
    >>> table = rd.conventions_table().set_index(["convention", "metric"])
    >>> table.loc[("rectools", "ndcg"), "parameters"]
    'gain=binary, ideal=k'
    """
    rows = [
        {
            "convention": record.name, "library": record.library, "metric": metric,
            "parameters": _settings_text(params), "options": _settings_text({"order": record.order, **record.options}),
            "rules": record.rules,
            "differs": " ".join(filter(None, (record.differs.get("*", ""), record.differs.get(metric, "")))),
        }
        for record in CONVENTIONS.values()
        for metric, params in record.metrics.items()
    ]  # fmt: skip
    return pd.DataFrame(rows)


def _settings_text(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())
