"""The lists of one user side by side: what each model showed, and what of it was right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...errors import OptionError
from ...tables.cells import short_names
from ..given_tables import JOINED_BY, check_model, labels, need
from . import space, style
from .shades import ON_LIGHT
from .style import Axes

__all__ = ["lists"]

HIT_TABLE = "what rd.diagnostics.hit_table returned"
HIT = "#cfe6d6"  # light in a dark style too, so that dark texts stand on it
ROW_HEIGHT = 0.3  # inches


def _lists_data(
    hit_table: pd.DataFrame,
    user: Any,
    *,
    models: Sequence[Any] | None = None,
    name_col: str | None = None,
) -> pd.DataFrame:
    """Return what `lists` draws: `model`, `rank`, `item`, `hit`.

    {parameters_returns}
        One row per item, list after list, best rank first; a relevant item that was not shown has a
        null rank.
    """
    need(hit_table, "hit_table", ["rank", "hit"], HIT_TABLE)
    before = list(hit_table.columns[: list(hit_table.columns).index("rank")])
    key = user if isinstance(user, tuple) else (user,)
    if len(before) < len(key) + 1:
        raise OptionError(
            f"user={user!r} has {len(key)} parts; hit_table has {before} before 'rank', the item "
            "last"
        )
    item, keys, by = before[-1], before[-1 - len(key) : -1], before[: -1 - len(key)]
    need(hit_table, "hit_table", [item if name_col is None else name_col], HIT_TABLE)
    same = [(hit_table[name] == value).to_numpy() for name, value in zip(keys, key, strict=True)]
    rows = hit_table[np.logical_and.reduce(same)]
    if not len(rows):
        raise OptionError(f"user={user!r} has no list in hit_table[{JOINED_BY.join(keys)!r}]")
    shown = rows[item if name_col is None else name_col]
    data = pd.DataFrame(
        {
            "model": labels(rows, by),
            "rank": rows["rank"].astype("Int64").array,
            "item": shown.where(shown.notna(), rows[item]).map(str).array,
            "hit": rows["hit"].astype(bool).array,
        }
    )
    known = list(dict.fromkeys(data["model"]))
    wanted = known if models is None else [check_model("models", name, known) for name in models]
    data = data[data["model"].isin(wanted)]
    data["model"] = pd.Categorical(data["model"], list(dict.fromkeys(wanted)), ordered=True)
    data = data.sort_values(["model", "rank"], kind="stable", ignore_index=True)
    return data.astype({"model": "str"})


@style.drawn_from(_lists_data)
def lists(
    hit_table: pd.DataFrame,
    user: Any,
    *,
    models: Sequence[Any] | None = None,
    name_col: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what each model showed one user, side by side, with the hits marked.

    Parameters
    ----------
    hit_table : DataFrame
        What `rd.diagnostics.hit_table` returned. Relevant items without a rank stand below the
        list, as missed.
    user : label or tuple
        The value of the list key, one for each of its columns.
    models : list of labels, optional
        The models to draw, from left to right. Default: all of the table.
    name_col : str, optional
        Column with the names of the items. Default: the ids.
    {ax_returns_raises}
    ColumnError, OptionError
        If a column is missing, or a user or model unknown.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> hits = rd.diagnostics.hit_table(shop.true, shop.pred, k=5, by="model")
    >>> rd.plot.lists.data(hits, "u0001", models=["knn", "popularity"]).head(3)
      model  rank   item    hit
    0   knn     1  i0085   True
    1   knn     2  i0021  False
    2   knn     3  i0185  False
    >>> ax = rd.plot.lists(hits, "u0001", models=["knn", "popularity"])
    """
    data = _lists_data(hit_table, user, models=models, name_col=name_col)
    found = list(dict.fromkeys(data["model"]))
    missing = data["rank"].isna()
    depth = int(data.loc[~missing, "rank"].max()) if not missing.all() else 0
    place = (
        data["rank"]
        .astype("float64")
        .where(~missing, depth + 0.5 + missing.groupby(data["model"]).cumsum())
    )
    last = float(place.max())
    ax = style.new_axes(ax, width=1.0 + 2.2 * len(found), height=1.6 + ROW_HEIGHT * last)
    ax.grid(False)
    hits, fits = data[~missing].groupby("model", sort=False)["hit"].sum(), space.rows_that_fit(ax)
    left = f"; {(place > fits).sum()} items have no room here" if last > fits else ""
    data, place, last, depth = (
        data[place <= fits],
        place[place <= fits],
        min(last, fits),
        min(depth, fits),
    )
    missing = missing.loc[data.index]
    width = space.letters(space.room(ax)[0] / len(found), 0.9) - 4
    for x, model in enumerate(found):
        own = data[data["model"] == model]
        for y, hit, name, item in zip(
            place.loc[own.index],
            own["hit"],
            short_names(own["item"], width),
            own["item"],
            strict=True,
        ):
            _item(
                ax, x, y, hit, name, f"{model}, {'missed' if y > depth else f'rank {y:g}'}: {item}"
            )
    ax.set_xlim(-0.5, len(found) - 0.5)
    ax.set_ylim(last + 0.6, 0.4)
    style.tick_names(ax.xaxis, found)
    ranks = [str(rank) for rank in range(1, depth + 1)]
    ax.set_yticks(
        [*range(1, depth + 1), *([depth + 1.5] if missing.any() else [])],
        [*ranks, *(["missed"] if missing.any() else [])],
    )
    ax.tick_params(length=0)
    style.axis_names(ax, "", "rank")
    style.title(
        ax, f"Lists of {JOINED_BY.join(map(str, user)) if isinstance(user, tuple) else user}"
    )
    style.caption(ax, "✓ hits: " + ", ".join(f"{model} {n}" for model, n in hits.items()) + left)
    return ax


def _item(ax: Axes, x: int, y: float, hit: bool, name: str, words: str) -> None:
    """Draw one item: a filled box with a mark where it is a hit."""
    from matplotlib.patches import Rectangle

    edge, size = space.tone(ax, space.GRID), space.points(0.9)
    box = Rectangle(
        (x - 0.47, y - 0.44), 0.94, 0.88, facecolor=HIT if hit else "none", edgecolor=edge
    )
    style.says(ax.add_patch(box), [f"{words}, a hit" if hit else words])
    text = ax.text(x - 0.44, y, f"✓ {name}" if hit else name, ha="left", va="center", fontsize=size)
    style.plain_text(text).set_color(ON_LIGHT if hit else space.tone(ax))
