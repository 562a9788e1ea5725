"""Generated results of two models, half with a fault planted in the data, and what their pages must
say.

As a script it tries 200: python -m tests.display.planted 200
"""

import re
import sys
import tempfile
import warnings
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd

import recdf as rd
from recdf.judge.verdict import sentence

K = 5
FAULTS = ["lists", "ties", "few", "ids", "sampled", "no variance"]


def plant(seed):
    """Return true, pred and the fault; models `old` and `new` hit at rates that the seed
    decides."""
    rng = np.random.default_rng(seed)
    fault = FAULTS[seed // 2 % len(FAULTS)] if seed % 2 else ""
    n = int(rng.integers(8, 28)) if fault == "few" else int(rng.integers(60, 400))
    rates = {"old": rng.uniform(0.2, 0.5)}
    rates["new"] = rates["old"] + rng.choice([-0.2, -0.05, 0.0, 0.05, 0.2, 0.3])
    rates["new"] = max(rates["new"], 0.1)
    users, rows = np.arange(n), []
    others = 1 + (users[:, None] * 7 + np.arange(K + 3)) % 50
    for model, rate in rates.items():
        place = np.where(rng.random(n) < rate, rng.integers(0, K, n), K + 2)
        items = others.copy()
        items[users, place] = 0
        depth = K + 1 if fault != "sampled" else K + 3
        frame = pd.DataFrame(
            {
                "model": model,
                "user_id": np.repeat(users, depth),
                "item_id": items[:, :depth].ravel(),
                "score": np.tile(-np.arange(depth, dtype=float), n),
            }
        )
        rows.append(frame)
    pred = pd.concat(rows, ignore_index=True)
    new = pred["model"] == "new"
    if fault == "lists":
        pred = pred[~(new & (pred["user_id"] < n * rng.uniform(0.1, 0.8)))]
    elif fault == "ties":
        pred.loc[new, "score"] = 0.0
    elif fault == "ids":
        pred.loc[new, "item_id"] += 100_000
    elif fault == "no variance":
        pred = pred[pred["item_id"] != 0]
    return pd.DataFrame({"user_id": users, "item_id": 0}), pred.reset_index(drop=True), fault


def card_of(path):
    """The five lines of the verdict, and its badge."""
    source = path.read_text(encoding="utf-8")
    found = re.search(r'<dl class="card">(.*?)</dl>', source, re.S)[1]
    lines = {
        unescape(re.sub("<[^>]+>", "", name)).strip(): " ".join(
            unescape(re.sub("<[^>]+>", " ", text)).split()
        )
        for name, text in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", found, re.S)
    }
    badge = re.search(r'<span class="badge (\w+)[^"]*"><span[^>]*>[^<]*</span>&nbsp;([^<]*)', found)
    return lines, badge[1], unescape(badge[2])


def numbers(text):
    return [float(one.replace("−", "-")) for one in re.findall(r"[+−]?\d+\.\d+", text)]


def try_one(seed, folder):
    """Make one page and hold it against the tables; return the fault and the badge."""
    true, pred, fault = plant(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rd.RecdfWarning)
        result = rd.evaluate(true, pred, ["ndcg", "recall"], k=K, by="model")
        check = rd.check(true, pred, K, by="model")
    path = rd.report(
        result, Path(folder) / f"{seed}.html", k=K, baseline="old", check=check, overwrite=True
    )
    lines, kind, badge = card_of(path)
    assert list(lines)[:5] == [
        "Which",
        "By how much",
        "How sure",
        "For whom worse",
        "What could overturn it",
    ]
    row = table_row(result)
    _hold_numbers(lines, row)
    _hold_badge(lines, kind, badge, row, fault, (true, pred, result))
    return fault, badge


def table_row(result):
    """The row of the primary metric in the comparison of all metrics, as the page makes it."""
    table = result.compare_models([f"ndcg@{K}", f"recall@{K}"], baseline="old", details=True)
    return table[table["metric"] == f"ndcg@{K}"].iloc[0]


def _hold_numbers(lines, row):
    """The difference and its interval on the page are those of the table."""
    found = numbers(lines["By how much"])
    if row["diff"] == 0 and re.match(r"new − old : 0[ .]", lines["By how much"]):
        found = [0.0, *found]  # an exact 0 has no decimals
    assert found, lines
    assert abs(found[0] - row["diff"]) < 0.006 * max(1, abs(row["diff"]))
    if pd.notna(row["ci_low"]):
        assert abs(found[1] - row["ci_low"]) < 0.006
        assert abs(found[2] - row["ci_high"]) < 0.006
        outside = row["ci_low"] > 0 or row["ci_high"] < 0
        assert outside == (row["effect"] in ("better", "worse")) or row["withheld"]
    else:
        assert "0.000 ± 0.000" not in str(lines)


def _hold_badge(lines, kind, badge, row, fault, data):
    verdict = row["verdict"]
    if not fault:
        assert kind != "error"
        assert (badge == "better") == (verdict == "better"), (badge, verdict)
        if verdict == "worse":
            assert badge == "keep the baseline"
        if verdict == "no difference shown":
            assert badge in ("no difference shown", "keep the baseline")
        return
    overturn = lines["What could overturn it"]
    if fault == "few":
        assert badge == "too few lists to tell", badge
    elif fault == "lists":
        assert "new lacks" in overturn
        both = sentence("models", row["effect_both"], row["withheld_both"])
        assert f"{row['metric']} is" in overturn
        assert both in overturn
        if row["effect_both"] != row["effect"] and not row["withheld"]:
            assert "where both have lists" in badge, (badge, verdict, both)
            assert kind == "warning"
    elif fault == "ids":
        assert "has no hit" in badge or "the data have errors" in badge
        assert kind == "warning"
    elif fault == "sampled":
        assert "candidates look sampled" in overturn
        assert badge.endswith("among sampled candidates") or row["withheld"], badge
        assert kind == "warning"
    elif fault == "ties":
        _hold_ties(overturn, badge, verdict, data)


def _hold_ties(overturn, badge, verdict, data):
    """Where the worst or best order of ties shows another verdict, the badge says so."""
    true, pred, _ = data
    words = set()
    for sign in (1, -1):
        order = pred.assign(score=pred["score"] + sign * 0.001 * (pred["item_id"] == 0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rd.RecdfWarning)
            one = rd.evaluate(true, order, ["ndcg", "recall"], k=K, by="model")
        words.add(table_row(one)["verdict"])
    assert f"ndcg@{K} of new could be" in overturn
    if words == {verdict}:
        return  # an interval that only moves may still turn
    if {"better", "worse"} <= words:
        assert "not robust: ties" in badge, (words, badge)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        seen = [try_one(seed, place) for seed in range(int(sys.argv[1]))]
    print(
        pd.Series([f"{fault or 'none'}: {badge}" for fault, badge in seen])
        .value_counts()
        .sort_index()
        .to_string()
    )
