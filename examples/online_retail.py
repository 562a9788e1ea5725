"""Evaluate two honest baselines on the transactions of a UK gift shop (UCI Online Retail, Chen
2015).

    python examples/online_retail.py transactions.parquet

The file has one row per invoice line: invoice, stock_code, description, quantity, invoice_date,
unit_price, customer_id (nullable) and country. The question: from what was bought before, which 20
products would each customer who came back in the last month have to be shown?

* `true`: what each customer bought in the month that ends with the last day of the data, repeat
  purchases included. `value` is the money spent on the product, `quantity` the pieces bought.
* `pred`: 20 products for each of these customers from two models that know the earlier months only.
  `value` is what one piece costs as recommended, the median unit price of the earlier lines.
  - popularity: products by number of customers who bought them; everyone gets the same list.
  - cooccurrence: products by the sum of their cosine similarities (over customers) to the other
    products the customer bought. Customers without history get the popularity list.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import recdf as rd

COLUMNS = [
    "invoice",
    "stock_code",
    "description",
    "quantity",
    "invoice_date",
    "unit_price",
    "customer_id",
    "country",
]
METRICS = [
    "hitrate@10",
    "precision@10",
    "recall@10",
    "ndcg@10",
    "mapr@10",
    "mrr@10",
    "money_precision@10",
    "money_recall@10",
    "revenue@10",
]
N_RECS = 20
# customers scored at once: bounds memory at BLOCK x products x 8 bytes, whatever the size of the
# shop
BLOCK = 512


def clean(transactions: pd.DataFrame) -> pd.DataFrame:
    """Keep the lines in which a known customer bought a product; print how many lines each rule
    drops.

    The rules, in order: exact duplicates of a line; cancellations (the invoice starts with C) - the
    sale that was cancelled stays, for nothing in the data links the two; lines without customer;
    codes that are no product, that is anything but five digits with up to two letters behind (POST,
    DOT, M, D, C2, BANK CHARGES, PADS, gift vouchers); quantity or price that is not positive. Codes
    are written in upper case, for 85123a and 85123A are one product.
    """
    code = transactions["stock_code"].str.upper()
    rules = {
        "exact duplicate": transactions.duplicated(),
        "cancellation": transactions["invoice"].str.upper().str.startswith("C"),
        "no customer": transactions["customer_id"].isna(),
        "no product code": ~code.str.fullmatch(r"[0-9]{5}[A-Z]{0,2}"),
        "quantity or price not positive": (transactions["quantity"] <= 0)
        | (transactions["unit_price"] <= 0),
    }
    keep = np.ones(len(transactions), dtype=bool)
    print(f"{len(transactions):>9,} lines")
    for rule, offends in rules.items():
        dropped = keep & offends.to_numpy(dtype=bool)
        keep &= ~dropped
        print(f"{-dropped.sum():>9,} {rule}")
    print(f"{keep.sum():>9,} lines kept")
    lines = transactions.assign(stock_code=code)[keep].reset_index(drop=True)
    return lines.astype({"customer_id": "int64"})


def build_frames(transactions: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Turn raw invoice lines into what was bought in the last month and what two models recommend
    for it.

    Parameters
    ----------
    transactions : DataFrame
        One row per invoice line, columns as in the module's docstring; not modified.

    Returns
    -------
    true : DataFrame, one row per (customer, product) bought in the last month
        `customer_id`, `stock_code`, `value` (pounds spent), `quantity` (pieces).
    pred : DataFrame, one row per (model, customer, product), best first within each list
        `model`, `customer_id`, `stock_code`, `score`, `value` (pounds per piece).
    """
    lines = clean(transactions)
    end = lines["invoice_date"].max().normalize() + pd.Timedelta(days=1)
    start = end - pd.DateOffset(months=1)
    past, last = lines[lines["invoice_date"] < start], lines[lines["invoice_date"] >= start]
    print(f"past: {len(past):,} lines before {start:%Y-%m-%d}; last month: {len(last):,} lines")

    true = (
        last.assign(value=last["quantity"] * last["unit_price"])
        .groupby(["customer_id", "stock_code"], as_index=False)[["value", "quantity"]]
        .sum()
    )

    # Columns stand in descending order of code, so that a stable sort puts equal scores in the
    # order in which recdf ranks them (larger id first): the 20 kept and the order evaluated then
    # follow one rule.
    products = pd.Index(np.sort(past["stock_code"].unique())[::-1], name="stock_code")
    price = past.groupby("stock_code")["unit_price"].median().reindex(products).to_numpy()
    customers = pd.Index(past["customer_id"].unique())
    bought = np.zeros((len(customers), len(products)), dtype=np.float32)
    bought[customers.get_indexer(past["customer_id"]), products.get_indexer(past["stock_code"])] = 1

    targets = true["customer_id"].unique()
    buyers = bought.sum(axis=0, dtype=np.float64)
    best = _best(buyers[None, :])
    popularity = (
        np.repeat(best, len(targets), axis=0),
        np.repeat(buyers[best], len(targets), axis=0),
    )
    cooccurrence = _cooccurrence(bought, customers.get_indexer(targets), buyers)
    pred = pd.concat(
        [
            pd.DataFrame(
                {
                    "model": model,
                    "customer_id": np.repeat(targets, item.shape[1]),
                    "stock_code": products[item.ravel()],
                    "score": score.ravel(),
                    "value": price[item.ravel()],
                }
            )
            for model, (item, score) in {
                "popularity": popularity,
                "cooccurrence": cooccurrence,
            }.items()
        ],
        ignore_index=True,
    )
    return true, pred


def _cooccurrence(
    bought: np.ndarray, rows: np.ndarray, buyers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Item and score, each (len(rows), 20), for these rows of the 0/1 matrix `bought`; row -1 has
    no history."""
    similarity = (bought.T @ bought).astype(
        np.float64
    )  # customers who bought both: whole numbers, exact in float32
    similarity /= np.sqrt(buyers)[:, None]
    similarity /= np.sqrt(buyers)[None, :]
    np.fill_diagonal(similarity, 0)  # a product is no evidence for itself
    items, scores = [], []
    for begin in range(0, len(rows), BLOCK):
        block = rows[begin : begin + BLOCK]
        # Rounding hides the last bits, in which one machine's matrix product differs from
        # another's.
        score = np.round(bought[block].astype(np.float64) @ similarity, 6)
        score[block < 0] = buyers
        item = _best(score)
        items.append(item)
        scores.append(np.take_along_axis(score, item, axis=1))
    return np.concatenate(items), np.concatenate(scores)


def _best(score: np.ndarray) -> np.ndarray:
    """Columns of the 20 largest scores of each row, best first, equal scores in column order."""
    return np.argsort(-score, axis=1, kind="stable")[:, :N_RECS]


def main(argv: list[str] | None = None) -> int:
    """Read the file, build the frames, evaluate, print; 2 if there is no such file."""
    parser = argparse.ArgumentParser(
        description="Evaluate two baselines on the Online Retail transactions."
    )
    parser.add_argument("path", type=Path, help="transactions.parquet")
    path = parser.parse_args(argv).path
    if not path.is_file():
        print(f"online_retail: no such file: {path}", file=sys.stderr)
        return 2
    true, pred = build_frames(pd.read_parquet(path, columns=COLUMNS))
    print(
        f"true: {len(true):,} rows, {true['customer_id'].nunique():,} customers; pred: "
        f"{len(pred):,} rows\n"
    )
    result = rd.evaluate(
        true,
        pred,
        METRICS,
        by="model",
        user_col="customer_id",
        item_col="stock_code",
        value_col="value",
        score_col="score",
    )
    print(result.summary.to_string(index=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
