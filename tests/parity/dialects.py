"""Compare every convention of `recdf` with the golden numbers of its library, and write the pages
that say so.

    python tests/parity/dialects.py        # writes docs/conventions.md and three beside it

`EXPECTED_DIFFERENCES` is what cannot be equal, with the reason; everything else must be.
"""

from __future__ import annotations

import csv
import json
import math
import re
import sys
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import recdf as rd

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "parity"
UNION = ROOT / "tests" / "golden" / "union"
DOCS = ROOT / "docs"
sys.path.insert(0, str(Path(__file__).parent))

import frames as parity  # noqa: E402 (after the path is set)
from beyond_cases import CASES as BEYOND  # noqa: E402

TOLERANCE = 1e-9
OF_32_BITS = {"torchmetrics": 1e-6, "tf_ranking": 1e-6, "lightfm": 1e-6}
ALL_ITEMS = ("implicit", "lightfm", "torchmetrics")  # they rank a catalogue
CATALOGUE = ("auc", "fallout")  # metrics for which every item up to the last one is a candidate
WHOLE_LIST = 10_000

# Conventions whose metrics are compared with the numbers of golden/union alone, or read.
UNION_ONLY = ("elliot", "surprise", "ndeval", "cwl_eval")
# convention -> golden file
LIKE = {name: name for name in rd.CONVENTIONS if name not in UNION_ONLY} | {
    "trec_eval": "pytrec_eval"
}

# The library's further parameters, as a metric string beside its convention.
VARIANTS = {
    ("trec_eval", "precision[set]"): "precision(divisor=shown)",
    ("ranx", "ndcg[burges]"): "ndcg(gain=exp2)",
    ("ranx", "dcg[burges]"): "dcg(gain=exp2)",
    ("ranx", "rbp[p=0.8]"): "rbp(p=0.8)",
    ("rectools", "mapr[divide_by_k=True]"): "mapr(normalizer=k)",
    ("rectools", "ndcg[divide_by_achievable=True]"): "ndcg(ideal=relevant)",
    ("rectools", "precision[r_precision=True]"): "precision(divisor=achievable)",
    ("recommenders", "mapr[function=map]"): "mapr(normalizer=relevant)",
    ("recommenders", "ndcg[score_type=raw]"): "ndcg(gain=linear)",
    ("recommenders", "ndcg[score_type=exp]"): "ndcg(gain=exp2)",
    ("lenskit", "ndcg[offset=1]"): "ndcg(discount=log)",
    ("lenskit", "ndcg[gain=relevance]"): "ndcg(gain=linear)",
    ("recpack", "recall[calibrated]"): "recall(divisor=achievable)",
    ("recmetrics", "mapr[mark]"): "mapr",
}

# Names of libraries in golden/union, and what a row of it is called there that proves a metric of a
# convention.
UNION_NAMES = {
    "pytrec_eval-terrier": "trec_eval",
    "RecTools": "rectools",
    "cwl-eval": "cwl_eval",
    "pyndeval": "ndeval",
    "scikit-surprise": "surprise",
    "scikit-learn": "sklearn",
}
STORED_AS = {
    ("recbole", "auc"),
    ("surprise", "pair_accuracy"),
    ("ranx", "rbp"),
}

LIVE = json.loads((UNION / "live.json").read_text(encoding="utf-8"))
# Metrics whose definition was read in the code of the library, which was not run.
READ = {
    "trec_eval": "rbp",
    "rectools": "ild user_coverage",
    "replay": "coverage",
    "recommenders": "surprisal coverage pooled_rmse pooled_mae",
    "evidently": "surprisal personalization mar",
    "lenskit": "pooled_rmse pooled_mae",
    "recpack": "coverage",
    "cornac": "mrr",
    "recbole": "pooled_auc",
    "elliot": "hitrate precision recall f1 mrr ndcg coverage user_coverage entropy popularity aplt "
    "aclt epc efd pop_reo pop_rsp gini item_gap subtopic_recall pooled_mae pooled_mse "
    "pooled_rmse",
    "fuxictr": "pooled_log_loss pooled_auc",
    "recmetrics": "surprisal",
    "cwl_eval": "rbp rbp_residual mrr precision",
}

# What names_elsewhere.toml calls a library -> its convention.
LIBRARIES = {
    "RecTools": "rectools",
    "RePlay": "replay",
    "LensKit": "lenskit",
    "scikit-learn": "sklearn",
    "RecBole": "recbole",
    "Cornac": "cornac",
    "TorchMetrics": "torchmetrics",
    "TF-Ranking": "tf_ranking",
    "LightFM": "lightfm",
    "Surprise": "surprise",
    "FuxiCTR": "fuxictr",
    **{name: name for name in rd.CONVENTIONS},
}
# Measures that are a metric with parameters which their convention does not set.
BY_PARAMETER = [
    ("trec_eval", "dcg", "dcg(of=ideal)"),
    ("trec_eval", "judged", "judged(of=unjudged,divisor=k); judged(of=nonrelevant,divisor=none)"),
    ("trec_eval", "intent_aware", "intent_aware(metric=mapr)"),
    ("tf_ranking", "intent_aware", "intent_aware(metric=precision)"),
    ("lenskit", "user_model", "user_model(model=weights,weights=jk,gain=binary)"),
    ("rectools", "rprecision", "rprecision"),
    ("rectools", "unexpectedness", "unexpectedness"),
]

UNSTABLE = "equal scores stand in no defined order"
BOTH = "its mean is over the users that have recommendations"
# (convention, golden metric or *, frame or *) -> (what differs: "values" or "mean", why)
EXPECTED_DIFFERENCES = {
    ("trec_eval", "*", "holes"): ("mean", BOTH),
    ("trec_eval", "*", "gaps"): ("mean", BOTH),
    ("ranx", "*", "ties"): ("values", "lists of more than 15 items: " + UNSTABLE),
    ("ranx", "*", "ties_strings"): ("values", "lists of more than 15 items: " + UNSTABLE),
    ("ranx", "rbp[p=0.8]", "graded"): ("error", "gains above 1"),
    ("ranx", "rbp[p=0.8]", "judged"): ("error", "gains above 1"),
    ("ranx", "rbp[p=0.8]", "gaps"): ("error", "gains above 1"),
    ("sklearn", "*", "gaps"): ("mean", "ndcg_score refuses a list of one item"),
    ("rs_metrics", "precision", "holes"): ("mean", "NaN as soon as a user has no recommendations"),
    ("rs_metrics", "precision", "gaps"): ("mean", "NaN as soon as a user has no recommendations"),
    ("recpack", "*", "ties"): ("values", UNSTABLE),
    ("recpack", "*", "ties_short"): ("values", UNSTABLE),
    ("recpack", "*", "ties_strings"): ("values", UNSTABLE),
    ("ranx", "bpref", "*"): (
        "values",
        "no value for a list without judged items that are not relevant",
    ),
    ("recommenders", "rprecision", "*"): ("mean", "its mean leaves out users without a hit"),
    ("implicit", "auc", "plain"): ("mean", "a list shorter than k is filled with misses"),
    ("implicit", "auc", "holes"): ("mean", "a list shorter than k is filled with misses"),
    ("cornac", "mapr", "plain"): ("mean", "its lists hold every item, so that each has a hit"),
    ("cornac", "mapr", "holes"): ("mean", "its lists hold every item, so that each has a hit"),
    ("evidently", "f1", "whole"): (
        "mean",
        "it is the mean of no list, but the F of mean precision and mean recall",
    ),
}


def expected(convention: str, metric: str, frame: str) -> tuple[str, str]:
    for key in ((convention, metric, frame), (convention, metric, "*"), (convention, "*", frame)):
        if key in EXPECTED_DIFFERENCES:
            return EXPECTED_DIFFERENCES[key]
    return ("equal", "")


def metric_string(convention: str, golden: str) -> str | None:
    """How recdf says what the golden metric (without its k) is; None: it does not."""
    if (convention, golden) in VARIANTS:
        return VARIANTS[convention, golden]
    return golden if golden in rd.CONVENTIONS[convention].metrics else None


@cache
def compare(convention: str) -> dict[tuple[str, str], str]:
    """(golden metric, frame) -> "equal", or what differs most: "mean", "values", "error"."""
    golden = json.loads((GOLDEN / f"{LIKE[convention]}.json").read_text(encoding="utf-8"))
    frames = parity.parity_frames()
    outcome: dict[tuple[str, str], str] = {}
    for frame_name, groups in golden["frames"].items():
        group = groups["accuracy"]
        keys = {*group.get("per_user", {}), *group.get("mean", {})}
        texts = {key: metric_string(convention, key.partition("@")[0]) for key in sorted(keys)}
        asked = {
            key: f"{text}@{key.partition('@')[2] or WHOLE_LIST}"
            for key, text in texts.items()
            if text is not None
        }
        frame = frames[frame_name]
        true = frame.true if golden["judged"] else frame.relevant
        result = _evaluate(true, frame.pred, convention, asked)
        tolerance = OF_32_BITS.get(convention, TOLERANCE)
        for key in asked:
            name = key.partition("@")[0]
            found = _one(result, group, key, tolerance)
            worst = ("equal", "mean", "values", "error")
            outcome[name, frame_name] = max(
                outcome.get((name, frame_name), "equal"), found, key=worst.index
            )
    return outcome


def _evaluate(
    true: pd.DataFrame, pred: pd.DataFrame, convention: str, asked: dict[str, str]
) -> dict[str, tuple[dict[str, float], float]]:
    """Values per user and mean of each metric that does not refuse the frame."""
    relevance = "relevance" if "relevance" in true.columns else None
    try:
        whole = [
            text for text in asked.values() if text.partition("(")[0].partition("@")[0] in CATALOGUE
        ]
        last = max(true["item_id"].max(), pred["item_id"].max()) if whole else None
        items = (
            pd.DataFrame({"item_id": range(last + 1)})
            if convention in ALL_ITEMS and whole
            else None
        )
        result = rd.evaluate(
            true, pred, asked, like=convention, relevance_col=relevance, items=items
        )
    except rd.DataError:
        if len(asked) == 1:
            return {}
        keys, half = list(asked), len(asked) // 2
        parts = [{key: asked[key] for key in some} for some in (keys[:half], keys[half:])]
        found = [_evaluate(true, pred, convention, part) for part in parts]
        return {**found[0], **found[1]}
    users = result.per_user["user_id"].astype(str)
    means = result.summary["value"].tolist()
    lists = [
        result.per_user.get(key, result.per_user["n_pred"] * math.nan) for key in asked
    ]  # none of a pooled one
    per_user = [dict(zip(users, values, strict=True)) for values in lists]
    return dict(zip(asked, zip(per_user, means, strict=True), strict=True))


def _one(
    result: dict[str, tuple[dict[str, float], float]], group: dict, key: str, tolerance: float
) -> str:
    if key not in result:
        return "error"
    mine, mean = result[key]
    if key in group["per_user"]:
        theirs = dict(zip(group["users"], group["per_user"][key], strict=True))
        there = {user: value for user, value in theirs.items() if value is not None}
        if any(
            not _equal(mine.get(user, math.nan), value, tolerance) for user, value in there.items()
        ):
            return "values"
    own = group["mean"].get(key)
    return "equal" if own is None or _equal(mean, own, tolerance) else "mean"


def _equal(one: float, two: float, tolerance: float = TOLERANCE) -> bool:
    return (math.isnan(one) and math.isnan(two)) or abs(one - two) <= tolerance * max(1.0, abs(two))


FROM = {"trec_eval": "ir_measures"} | {
    name: name
    for name in ("ranx", "rectools", "replay", "recommenders", "lenskit", "implicit", "evidently")
}
PARTS = ("average_precision", "measures", "ir_measures", "wrong_numbers")


def pages() -> dict[str, str]:
    """The text of each page, by its name. How it begins, and its line of words, are in heads.md."""
    outcomes = {name: compare(name) if name in LIKE else {} for name in rd.CONVENTIONS}
    here = Path(__file__).parent
    parts = {name: (here / f"{name}.md").read_text(encoding="utf-8").rstrip() for name in PARTS}
    users = f"## The same five users by every convention, at k = 10\n\n{_section9()}"
    own = parts["measures"].partition("\n\n")[2]
    wrong = parts["wrong_numbers"].partition("\n\n")[2].replace("\n### ", "\n## ")
    made = {
        "conventions": [parts["average_precision"], users],
        "convention_rules": _rules(),
        "convention_table": _table(outcomes),
        "convention_names": [own, parts["ir_measures"]],
        "wrong_numbers": [wrong],
    }
    heads = (here / "heads.md").read_text(encoding="utf-8")
    found = re.findall(r"<!-- (\w+) -->\n\n(.*?)\n\n(<!-- Also called: .*? -->)", heads, flags=re.S)
    return {
        name: "\n\n".join([head.replace("@rows", _chooser(outcomes)), *made[name], words]) + "\n"
        for name, head, words in found
    }


def _chooser(outcomes: dict) -> str:
    """Where each reader comes from, and how much of that library is proven equal."""
    rows = [
        "| I come from | pass | equal in all tests | equal to stored numbers | more |",
        "|---|---|---|---|---|",
    ]
    for name, record in rd.CONVENTIONS.items():
        cells = [_cell(name, metric, outcomes[name], []) for metric in rd.METRICS]
        equal, stored = sum(cell.startswith("equal") for cell in cells), cells.count("stored")
        links = [f"[rules](convention_rules.md#{name})"]
        if name in FROM:
            links.append(f"[its calls](migrate/{FROM[name]}.md)")
        shown = [record.library, f'`like="{name}"`', str(equal or "–"), str(stored or "–")]
        rows.append(f"| {' | '.join([*shown, ', '.join(links)])} |")
    return "\n".join(rows)


def _rules() -> list[str]:
    found = []
    for record in rd.CONVENTIONS.values():
        differs = [
            text if key == "*" else f"`{key}`: {text}" for key, text in record.differs.items()
        ]
        lines = [f"## {record.name}", f"Compared with {record.library}. {record.rules}"]
        if differs:
            lines.append("Not reproduced: " + " ".join(differs))
        found += lines
    found += [
        "## Parameters of the libraries",
        "\n".join(
            ["| library | its metric | in `recdf`, with `like=` |", "|---|---|---|"]
            + [f"| {name} | `{theirs}` | `{ours}` |" for (name, theirs), ours in VARIANTS.items()]
        ),
    ]
    return found


def _table(outcomes: dict) -> list[str]:
    """Each metric, with the libraries whose numbers it equals."""
    notes: list[str] = []
    rows = [
        "| metric | equal | equal to stored numbers | by its code | other |",
        "|---|---|---|---|---|",
    ]
    for metric in rd.METRICS:
        cells = {name: _cell(name, metric, found, notes) for name, found in outcomes.items()}
        if not any(metric in record.metrics for record in rd.CONVENTIONS.values()):
            continue
        kinds: dict[str, list[str]] = {"equal": [], "stored": [], "read": [], "other": []}
        for name, cell in cells.items():
            kind, _, but = cell.partition(" but ")
            if kind != "–":
                kinds[kind].append(f"{name} {but}".strip())
        shown = (", ".join(one) or "–" for one in kinds.values())
        rows.append(f"| `{metric}` | {' | '.join(shown)} |")
    numbered = "\n".join(f"{number}. {note}" for number, note in enumerate(notes, start=1))
    return [
        "\n".join(rows),
        numbered,
    ]


def _cell(convention: str, metric: str, found: dict[tuple[str, str], str], notes: list[str]) -> str:
    own = {
        theirs for (like, theirs), ours in VARIANTS.items() if like == convention and ours == metric
    }
    frames = {frame: what for (name, frame), what in found.items() if name in {metric, *own}}
    if not frames:
        if metric in rd.CONVENTIONS[convention].metrics:
            return how_known(convention, metric)
        return "other" if metric in rd.CONVENTIONS[convention].differs else "–"
    reasons = [
        expected(convention, metric, frame) for frame, what in frames.items() if what != "equal"
    ]
    if not reasons:
        return "equal"
    numbers = []
    for what, why in dict.fromkeys(reasons):
        note = f"{convention}: {why}" + (
            "; per user equal"
            if what == "mean"
            else "; equal without ties"
            if "scores" in why
            else ""
        )
        if note not in notes:
            notes.append(note)
        numbers.append(str(notes.index(note) + 1))
    return f"equal but [{', '.join(numbers)}]"


@cache
def _stored() -> set[tuple[str, str]]:
    """Conventions and metrics of which golden numbers are stored."""
    found = {(like, name.partition("@")[0]) for like, numbers in LIVE.items() for name in numbers}
    with (UNION / "expected.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found.add((UNION_NAMES.get(row["library"], row["library"]), row["metric"]))
    return found | {(one[0], one[2]) for one in BEYOND} | STORED_AS


def how_known(convention: str, metric: str) -> str:
    """How a metric that no generated frame compares is known to be that of the library."""
    stored = (convention, metric) in _stored()
    read = metric in READ.get(convention, "").split()
    assert stored != read, f"{convention} {metric}: say how it is known"
    return "stored" if stored else "read"


def _section9() -> str:
    """The table of five users, at k = 10, by each convention."""
    frame = parity.section9()
    metrics = ["hitrate", "precision", "recall", "mapr", "ndcg", "mrr"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = rd.diagnostics.compare_conventions(frame.true, frame.pred, k=10, metrics=metrics)
    wide = table.pivot(index="convention", columns="metric", values="value").reindex(
        index=list(rd.CONVENTIONS), columns=metrics
    )
    lines = ["| `like=` | " + " | ".join(metrics) + " |", "|---" * (len(metrics) + 1) + "|"]
    for name, row in wide.iterrows():
        cells = ["" if np.isnan(value) else f"{value:.4f}" for value in row]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / f"{name}.md").write_text(text, encoding="utf-8")
