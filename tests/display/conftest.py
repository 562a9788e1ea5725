"""Frames that the tests of pictures, leaderboard and report share."""

import pandas as pd
import pytest

import recdf as rd

from .page_read import Page, off_policy

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "a\u202eevil\u2066",
    "$\\frac{1}{2}$ | *x* [l](javascript:x) `c` & _u_",
    "n" * 300,
    "_hidden",
    "שלום مرحبا",
    "line\nbreak\tand\x00\x1bcontrols",
    "{{ 7 * 7 }}{% raw %}</style></title>",
]


@pytest.fixture(scope="session")
def shop():
    return rd.sample_shop(n_users=300, n_items=80, n_recs=10)


@pytest.fixture(scope="session")
def result(shop):
    metrics = ["ndcg", "recall", "first_rank", "coverage"]
    return rd.evaluate(shop.true, shop.pred, metrics, k=[2, 5, 10], by="model", items=shop.items)


@pytest.fixture(scope="session")
def small(shop):
    """A result whose report is drawn quickly: one metric at one k."""
    return rd.evaluate(shop.true, shop.pred, "ndcg@5", by="model")


@pytest.fixture(scope="session")
def exposed(shop):
    return rd.diagnostics.exposure_table(shop.pred, by="model", items=shop.items)


@pytest.fixture(scope="session")
def hostile():
    """A result whose models, users and items are named by an adversary."""
    rows = [
        {
            "model": name,
            "user_id": f"{user}{HOSTILE[user % len(HOSTILE)]}",
            "item_id": HOSTILE[(i * user + rank) % 10],
        }
        for i, name in enumerate(HOSTILE)
        for user in range(12)
        for rank in range(3)
    ]
    pred = pd.DataFrame(rows).drop_duplicates()
    true = pred[["user_id", "item_id"]].drop_duplicates().groupby("user_id", sort=False).head(2)
    return rd.evaluate(true, pred, ["ndcg", "recall"], k=[1, 3], by="model")


@pytest.fixture(scope="session")
def full(shop, result, exposed, tmp_path_factory):
    """A report with every section, and the tables that it was made of."""
    users = shop.users[["user_id", "segment", "channel"]]
    options = {"users": "pred", "undefined": "zero", "value_col": "value"}
    shown = rd.evaluate(shop.true, shop.shown, ["revenue@10", "hits@10"], **options)
    assigned = shown.join_experiment(shop.assignment, missing="zero")
    effect = rd.compare_variants(
        assigned, ["revenue@10", "hits@10"], control="A", covariates="pre_spend", details=True
    )
    tables = {
        "experiment": {
            "adjusted": effect,
            "not adjusted": rd.compare_variants(assigned, "revenue@10", control="A", details=True),
        },
        "health": rd.experiments.experiment_health(
            shown.per_user, shop.assignment, expected={"A": 0.5, "B": 0.5}
        ),
        "check": rd.check(shop.true, shop.pred, by="model", items=shop.items, log=shop.log),
        "segments": users,
        "off_policy": off_policy(),
        "exposure": exposed,
        "log": shop.log,
        "position": rd.diagnostics.position_table(shop.true, shop.pred, k=5, by="model"),
    }
    path = rd.report(
        result,
        tmp_path_factory.mktemp("report") / "full.html",
        title="All sections",
        baseline="popularity",
        **tables,
    )
    return Page(path), tables
