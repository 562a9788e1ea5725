"""Compute what `examples/online_retail.py` prints a second time: plain Python, one loop per sum, no
recdf.

    python tests/slow_online_retail.py transactions.parquet

A script and not a test, for it needs the data. First the frames: `true` and the popularity lists
are built again from the invoice lines, and so are the co-occurrence lists of a few customers. Then
the nine metrics of each list, from the frames, beside those of `rd.evaluate`. Exit code 1 if any of
it differs.
"""

from __future__ import annotations

import importlib.util
import math
import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path

import pandas as pd

import recdf as rd

EXAMPLE = Path(__file__).parents[1] / "examples" / "online_retail.py"
K = 10
N_CHECKED = 8  # customers whose co-occurrence lists are built again, a second or so each


def load_example():
    """The example as a module, wherever this script is started from."""
    spec = importlib.util.spec_from_file_location("online_retail", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def slow_lines(transactions):
    """(customer, product, quantity, price, date) of the invoice lines that stay."""
    seen, kept = set(), []
    for row in transactions.itertuples(index=False):
        line = tuple(None if pd.isna(cell) else cell for cell in row)
        if line in seen:
            continue
        seen.add(line)
        invoice, code, _, quantity, date, price, customer, _ = line
        code = code.upper()
        if invoice[0] in "cC" or customer is None or quantity <= 0 or price <= 0:
            continue
        if re.fullmatch("[0-9]{5}[A-Z]?[A-Z]?", code):
            kept.append((int(customer), code, int(quantity), float(price), date))
    return kept


def check_frames(transactions, true, pred):
    """Differences between the frames and the same built by loops, as a list of messages."""
    lines = slow_lines(transactions)
    last_day = max(line[4] for line in lines).date()
    # One calendar month up to and including the last day, 2011-12-09: it begins on 2011-11-10.
    month = last_day.month - 1 or 12
    start = pd.Timestamp(last_day.year - (month == 12), month, last_day.day + 1)
    spent, pieces, buyers, history, prices = (defaultdict(t) for t in (float, int, set, set, list))
    for customer, code, quantity, price, date in lines:
        if date >= start:
            spent[customer, code] += quantity * price
            pieces[customer, code] += quantity
        else:
            buyers[code].add(customer)
            history[customer].add(code)
            prices[code].append(price)

    wrong = []
    rows = {(row.customer_id, row.stock_code): row for row in true.itertuples()}
    if rows.keys() != spent.keys() or len(rows) != len(true):
        wrong.append(f"true: {len(true)} rows, expected {len(spent)}")
    for key in rows.keys() & spent.keys():
        if (
            not math.isclose(rows[key].value, spent[key], rel_tol=1e-12)
            or rows[key].quantity != pieces[key]
        ):
            wrong.append(
                f"true: {key}: {rows[key].value} for {rows[key].quantity}, expected {spent[key]}"
            )

    def best(score):
        """20 (code, score), largest score first, larger code first among equal scores."""
        return sorted(score.items(), key=lambda pair: (pair[1], pair[0]), reverse=True)[:20]

    popular = best({code: float(len(who)) for code, who in buyers.items()})
    customers = sorted({customer for customer, _ in spent})
    with_history = [customer for customer in customers if customer in history]
    checked = with_history[:: len(with_history) // N_CHECKED][:N_CHECKED]
    expected = {("popularity", customer): popular for customer in customers}
    expected |= {
        ("cooccurrence", customer): popular for customer in customers if customer not in history
    }
    for customer in checked:
        score = {}
        for code, who in buyers.items():
            terms = [
                len(who & buyers[other]) / math.sqrt(len(who) * len(buyers[other]))
                for other in history[customer]
                if other != code
            ]
            score[code] = round(math.fsum(terms), 6)
        expected["cooccurrence", customer] = best(score)
    lists = defaultdict(list)
    for row in pred.itertuples():
        lists[row.model, row.customer_id].append((row.stock_code, row.score))
        if not math.isclose(row.value, statistics.median(prices[row.stock_code]), rel_tol=1e-12):
            wrong.append(f"pred: {row.stock_code} costs {row.value}")
    if lists.keys() != {
        (model, customer) for model in ("popularity", "cooccurrence") for customer in customers
    }:
        wrong.append(
            f"pred: {len(lists)} lists, expected two of each of {len(customers)} customers"
        )
    for key, items in expected.items():
        if lists[key] != items:
            wrong.append(f"pred: list of {key}: {lists[key][:3]}..., expected {items[:3]}...")
    print(
        f"frames: true, {len(expected)} of {len(lists)} lists and all prices built again: "
        f"{len(wrong)} differences"
    )
    return wrong


def slow_metrics(wanted, shown):
    """The nine metrics of one list: `wanted` maps item to money spent, `shown` is (score, item,
    price) in any order."""
    ranked = sorted(shown, key=lambda row: (row[0], row[1]), reverse=True)[:K]
    hits = earned = offered = 0
    precisions = dcg = reciprocal = 0.0
    for rank, (_, item, price) in enumerate(ranked, start=1):
        offered += price
        if item in wanted:
            hits += 1
            earned += price
            precisions += hits / rank
            dcg += 1 / math.log2(rank + 1)
            if hits == 1:
                reciprocal = 1 / rank
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(K, len(wanted)) + 1))
    return {
        "hitrate@10": float(hits > 0),
        "precision@10": hits / K,
        "recall@10": hits / len(wanted),
        "ndcg@10": dcg / ideal,
        "mapr@10": precisions / len(wanted),
        "mrr@10": reciprocal,
        "money_precision@10": earned / offered,
        "money_recall@10": earned / sum(wanted.values()),
        "revenue@10": earned,
    }


def slow_per_user(true, pred):
    """{(model, customer): {metric: value}} for every customer of `true` and every model."""
    wanted, shown = defaultdict(dict), defaultdict(list)
    for row in true.itertuples():
        wanted[row.customer_id][row.stock_code] = row.value
    for row in pred.itertuples():
        shown[row.model, row.customer_id].append((row.score, row.stock_code, row.value))
    models = dict.fromkeys(pred["model"])
    return {
        (m, customer): slow_metrics(wanted[customer], shown[m, customer])
        for m in models
        for customer in wanted
    }


def check_metrics(example, true, pred):
    """Print both computations; differences of more than 1e-12 (relative) as a list of messages."""
    slow = slow_per_user(true, pred)
    models = list(dict.fromkeys(model for model, _ in slow))
    fast, mean = {}, {}
    if hasattr(rd, "evaluate"):
        result = rd.evaluate(
            true,
            pred,
            example.METRICS,
            by="model",
            user_col="customer_id",
            item_col="stock_code",
            value_col="value",
            score_col="score",
        )
        for row in result.per_user.to_dict("records"):
            fast[row["model"], row["customer_id"]] = row
        for row in result.summary.to_dict("records"):
            # The metric column may or may not repeat the k that has a column of its own.
            mean[row["model"], row["metric"].partition("@")[0]] = row["value"]
    wrong = []
    print(f"{'model':<14}{'metric':<20}{'slow':>22}{'rd.evaluate':>22}")
    for model in models:
        for metric in example.METRICS:
            values = [row[metric] for (m, _), row in slow.items() if m == model]
            expected = math.fsum(values) / len(values)
            found = mean.get((model, metric.partition("@")[0]), math.nan)
            print(f"{model:<14}{metric:<20}{expected:>22.16f}{found:>22.16f}")
            if fast and not math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-15):
                wrong.append(f"{model} {metric}: {found}, expected {expected}")
    if fast and fast.keys() != slow.keys():
        wrong.append(f"per_user: {len(fast)} rows, expected {len(slow)}")
    for key in fast.keys() & slow.keys():
        for metric, expected in slow[key].items():
            if not math.isclose(fast[key][metric], expected, rel_tol=1e-12, abs_tol=1e-15):
                wrong.append(f"{key} {metric}: {fast[key][metric]}, expected {expected}")
    return wrong


def main():
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        print(
            "usage: slow_online_retail.py transactions.parquet (an existing file)", file=sys.stderr
        )
        return 2
    example = load_example()
    transactions = pd.read_parquet(sys.argv[1], columns=example.COLUMNS)
    true, pred = example.build_frames(transactions)
    wrong = check_frames(transactions, true, pred) + check_metrics(example, true, pred)
    for message in wrong[:20]:
        print("DIFFERS", message)
    print(f"{len(wrong)} differences")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
