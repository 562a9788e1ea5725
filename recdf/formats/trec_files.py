"""Frames and results as the files that trec_eval, pytrec_eval, ir_measures and ranx read, or that
trec_eval writes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas import DataFrame, Series

from ..errors import DataError, DuplicateError, OptionError
from ..inputs.door import takes_options
from ..inputs.frames import column, float_column, read_frame, read_numbers
from ..inputs.options import Options
from ..inputs.true_and_pred import Order, order_source, read_pred, relevance_source
from ..publishing import published

LONG = partial(pa.scalar, type=pa.large_string())


@takes_options("user_col", "item_col", "score_col", "rank_col", "relevance_col")
def write_trec(
    frame: Any,
    path: Any,
    kind: Literal["run", "qrels"] | None = None,
    *,
    tag: str = "recdf",
    user_col: str | None = None,
    item_col: str | None = None,
    score_col: str | None = None,
    rank_col: str | None = None,
    relevance_col: str | None = None,
    options: Options | None = None,
) -> None:
    """Write recommendations as a run of TREC, or what is relevant as qrels.

    trec_eval orders a run by its scores, in 32 bits, and equal scores by item id as text. So that
    it sees the order of recdf, a score that is not smaller in 32 bits than the one before it is
    written as the next smaller number. Where `frame` has ranks, or only the order of its rows,
    scores count down to 1.

    Parameters
    ----------
    frame : DataFrame, mapping, or any object with the Arrow stream interface
        `pred` or `true`, as `rd.evaluate` takes it.
    path : path
        The file to write; .gz and .bz2 compress it.
    kind : {"run", "qrels"}, optional
        By default a run if there is a score or a rank, and qrels if there is a relevance.
    tag : str, default "recdf"
        Name of the run, the last field of each line.
    user_col, item_col, score_col, rank_col, relevance_col : str, optional
        Columns, by default those that `rd.evaluate` finds. A null relevance is written as −1: not
        judged.

    Raises
    ------
    OptionError
        If the columns do not tell the kind, or the list key has several columns.
    DataError
        If an id is empty, holds white space, or is a float, or if a relevance is no integer.
    DuplicateError
        If an item stands twice in a list, as it does in a frame of several models: write one file
        for each.
    NullKeyError, ColumnError
        As in `rd.evaluate`.

    Examples
    --------
    >>> import pathlib, tempfile, recdf as rd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = pathlib.Path(folder, "als.run")
    ...     rd.write_trec({"u1": {"a": 0.5, "b": 0.5}}, run, kind="run", tag="als")
    ...     print(run.read_text(), end="")
    u1 Q0 b 1 0.5 als
    u1 Q0 a 2 0.4999999701976776 als
    """
    own = Options(
        user_col="user_id" if user_col is None else user_col,
        item_col="item_id" if item_col is None else item_col,
        score_col=score_col,
        rank_col=rank_col,
        relevance_col=relevance_col,
    )
    if not isinstance(own.user_col, str):
        raise OptionError(
            f"⟦user_col={own.user_col!r}⟧; a query of TREC has one id: join these columns to one "
            "first"
        )
    if isinstance(frame, Mapping) and kind is None:
        raise OptionError('a mapping may be either; pass ⟦+kind="run"⟧ or ⟦+kind="qrels"⟧')
    role = "true" if kind == "qrels" else "pred"
    frame = read_frame(frame, role, own)
    order = order_source(frame, own)
    relevance = relevance_source(frame, own)
    if kind is None:
        if (order["by"] == "row") == (relevance is None):
            has = ", ".join(map(repr, frame.columns))
            raise OptionError(
                f'the columns may be of a run or of qrels ({has}); pass ⟦+kind="run"⟧ or '
                '⟦+kind="qrels"⟧'
            )
        kind = "run" if relevance is None else "qrels"
    read_pred(
        frame, order if kind == "run" else {"by": "row", "column": None}, own, role
    )  # refuses nulls
    if (twice := frame.duplicated([own.user_col, own.item_col])).any():
        raise DuplicateError(
            f"{role} has {twice.sum():,} repeated (list, item) rows; of several models, write a "
            "file for each",
            count=int(twice.sum()),
        )
    ids = [
        _one_word(column(frame, name, role), f"{role}[{name!r}]")
        for name in (own.user_col, own.item_col)
    ]
    if kind == "run":
        fields = _run(frame, order, own, ids, tag)
    else:
        gains = np.ones(len(frame))
        if relevance is not None:
            gains = Series(float_column(frame, relevance, "true")).fillna(-1).to_numpy()
        if (odd := (gains != gains.round()) | (np.abs(gains) >= 2**31)).any():
            raise DataError(
                f"true[{relevance!r}] holds {gains[odd][0]:g}; a relevance of TREC is an integer "
                "of 32 bits"
            )
        fields = [ids[0], LONG("0"), ids[1], _as_text(gains.astype(np.int64))]
    _write_lines(path, fields, " ")


def _one_word(values: Any, where: str) -> Any:
    """Return ids as an Arrow array of text that is one word each."""
    text = pa.array(values.astype(str).astype(object), pa.large_string())
    bad = text.filter(pc.or_(pc.match_substring_regex(text, r"\s"), pc.equal(text, "")))
    if (pd.api.types.is_float_dtype(values.dtype) and len(values)) or len(bad):
        some = repr(bad[0].as_py()) if len(bad) else "floats"
        raise DataError(
            f"{where} holds {some}; an id of TREC is one word: convert these ids first",
            column=where,
        )
    return text


def _run(frame: DataFrame, order: Order, own: Options, ids: list[Any], tag: str) -> list[Any]:
    """Return the fields of a run, lists in the order of the frame and the best item first."""
    name = order["column"]
    by = order["by"]
    number = np.arange(len(frame)) if name is None else read_numbers(frame[name], f"pred[{name!r}]")
    users = frame[own.user_col]
    rows = DataFrame(
        {"list": pd.factorize(users)[0], "number": number, "item": frame[own.item_col].array}
    )
    rows = rows.sort_values(
        ["list", "number", "item"], ascending=[True, by != "score", False], kind="stable"
    )
    of_list = rows.groupby("list")["list"]
    rank = of_list.cumcount() + 1
    score = of_list.transform("size") - rank + 1
    if by == "score":
        with np.errstate(over="ignore"):
            short = rows["number"].to_numpy(dtype=np.float32)
        if np.isfinite(short).all():
            # As integers, 32-bit floats that follow each other differ by 1.
            bits = short.view(np.int32).astype(np.int64)
            place = Series(np.where(bits < 0, -(bits & 0x7FFFFFFF), bits), index=rows.index)
            lower = (place + rank).groupby(rows["list"]).cummin() - rank
            bits = np.where(lower < 0, -lower | 0x80000000, lower).astype(np.uint32)
            score = rows["number"].where(place == lower, bits.view(np.float32).astype(float))
    (word,) = _one_word(Series([tag]), "tag").to_pylist()
    user, item = (one.take(pa.array(rows.index)) for one in ids)
    return [user, LONG("Q0"), item, _as_text(rank), _as_text(score), LONG(word)]


def _as_text(numbers: Any) -> Any:
    return pa.array(np.asarray(numbers)).cast(pa.large_string())


def _write_lines(path: Any, fields: list[Any], separator: str) -> None:
    lines = pc.binary_join_element_wise(*fields, LONG(separator))
    target = Path(path).expanduser()
    with (
        published([], overwrite=True, verdicts=[target]) as place,
        pa.output_stream(os.fspath(place(target)), compression="detect") as file,
    ):
        file.write("".join(f"{line}\n" for line in lines.to_pylist()).encode())


# How trec_eval calls a metric at k, and where the list is not cut; by what spec["metrics"] says of
# it, without k.
TREC_MEASURES = {
    "ndcg(gain=linear,discount=log,log_base=2,ideal=relevant,tied=ranked,average=none)": (
        "ndcg_cut_{}",
        "ndcg",
    ),
    "mapr(normalizer=relevant,transform=none,tied=ranked)": ("map_cut_{}", "map"),
    "precision(divisor=k,pooled=False)": ("P_{}", None),
    "recall(divisor=relevant)": ("recall_{}", None),
    "hitrate": ("success_{}", None),
    "hits": (None, "num_rel_ret"),
    "mrr(of=first,tied=ranked)": (None, "recip_rank"),
    "rprecision(multiple=1,at_most=None)": (None, "Rprec"),
    "bpref": (None, "bpref"),
    "infap": (None, "infAP"),
}
TREC_DEPTH = 1000  # a run of TREC is not longer


def write_trec_values(
    per_user: DataFrame, summary: DataFrame, spec: Mapping[str, Any], path: Any
) -> None:
    """Write the values of lists and their means as trec_eval -q prints them."""
    if spec["by"] or len(spec["user_col"]) > 1:
        several = f"by={spec['by']!r}" if spec["by"] else f"user_col={spec['user_col']!r}"
        raise OptionError(
            f"trec_eval prints one run, whose queries have one id, and the result has ⟦{several}⟧; "
            "evaluate one model, with one id per list"
        )
    called = dict[str, str]()
    longest = per_user["n_pred"].max() if len(per_user) else 0
    for name, metric in spec["metrics"].items():
        k, called[name] = metric["k"], name
        at_k, whole = TREC_MEASURES.get(metric["definition"].partition("@")[0], (None, None))
        if whole is not None and (k is None or (k >= longest and (k >= TREC_DEPTH or not at_k))):
            called[name] = whole
        elif at_k is not None:
            called[name] = at_k.format(k)
    words = [name.ljust(22) for name in called.values()]
    users = np.repeat(per_user[spec["user_col"][0]].astype(str).to_numpy(object), len(words))
    values = per_user.reindex(columns=list(called)).to_numpy(float).ravel()
    there = ~np.isnan(values)
    metrics = np.tile(np.array(words, object), len(per_user))
    fields = (
        [*metrics[there], *words],
        [*users[there], *(["all"] * len(words))],
        np.char.mod("%6.4f", np.append(values[there], summary["value"].to_numpy(float))),
    )
    _write_lines(path, [pa.array(list(one), pa.large_string()) for one in fields], "\t")
