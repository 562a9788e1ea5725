"""Which lists people should judge next: a random sample by stratum, with the chance of every list."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd

from ..errors import DataError, DuplicateError, EmptyPopulationError, OptionError
from ..experiments.decide.experiment_health import hash_users
from ..experiments.experiment_columns import key_codes, require, some_keys
from ..experiments.plan.interleaving import user_coins
from ..inputs.codes import Codes, first_rows, group_codes
from ..inputs.constraints import NATURAL, POSITIVE, check_value
from ..inputs.door import takes_options
from ..inputs.frames import as_frame, read_values
from ..inputs.options import CallArguments, as_columns
from ..inputs.sorting import spans
from ..metrics.call import Call, check_k
from ..metrics.compute import label_frame
from ..stats.numbers import Floats

Allocation = Literal["proportional", "neyman"]


@takes_options
def sample_to_judge(
    pred: Any,
    n: int,
    *,
    k: int = 10,
    strata: Any = None,
    spread: Any = None,
    allocation: Allocation = "proportional",
    judged: Any = None,
    seed: int = 0,
    **options: Unpack[CallArguments],
) -> pd.DataFrame:
    """Choose at random which lists people should judge next, and return their items with the chance of being chosen.

    The items of a list are pooled: whoever judges them has judged the first k of every recommender of `by`.

    Formula
    -------
    Of the N_h lists of stratum h, n_h are drawn without replacement, each with probability n_h/N_h. The estimate of a
    mean weighs them by 1/probability (Horvitz & Thompson). "proportional" takes n_h ∝ N_h, and "neyman" n_h ∝ N_h·S_h
    with S_h the standard deviation (n − 1) of `spread` in the stratum, which makes the variance of the mean least. Both
    in whole numbers: every stratum gets two lists (or its only one), and each further list goes to the stratum with the
    largest N_h·S_h/√(n_h(n_h + 1)) that has lists left (Wright 2012).

    Parameters
    ----------
    pred : DataFrame, mapping or Arrow stream
        Recommendations, as for `evaluate`.
    n : int
        Number of lists to draw.
    k : int, default 10
        Depth of the pool: ranks 1 to k.
    strata : str or DataFrame, optional
        Column of `pred`, or a frame of the list key and one more column: the stratum of every list. Default: one.
    spread : DataFrame, optional
        For "neyman": a frame of the list key and one column of numbers that vary as the value to be judged is expected
        to, such as the difference between two models under cheap labels, or between cheap and human values of before.
    allocation : {"proportional", "neyman"}, default "proportional"
        How many lists each stratum gets.
    judged : DataFrame, mapping or Arrow stream, optional
        Rows of (list key, item) that people have judged. They are left out, and so are lists with nothing else: their
        value is known, so that they are a stratum of their own with probability 1 in an estimate.
    seed : int, default 0
        Of the draw. The chance of a list depends on the seed and its key alone: the order of rows does not matter, and
        a larger n with the same strata draws the same lists and more.
    {options}

    Returns
    -------
    DataFrame
        One row per list and item to judge, ordered by key and item, which tells judges nothing of ranks and models:
        columns of the list key, item, `stratum` ("all" without `strata`) and `probability`.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError
        As `evaluate` does. OptionError also if n is above the number of lists, or below two per stratum, or if
        `spread` is not given with "neyman" alone; DataError if a list has no stratum or no number.
    DuplicateError
        A list has two strata or two numbers.

    Notes
    -----
    Use it where people can judge few lists, and the estimate shall hold for all of them. Lists that were picked because
    they look odd or because models differ most give no mean of anything; a stratum of such lists does. Neyman's
    allocation is best for the value that `spread` describes, and may be worse than the proportional one for another.

    References
    ----------
    Neyman (1934), Journal of the Royal Statistical Society 97; Horvitz & Thompson (1952), Journal of the American
    Statistical Association 47; Wright (2012), The American Statistician 66.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> pred = {user: ["tea", "jam", "rye"] for user in range(6)}
    >>> users = pd.DataFrame({"user_id": range(6), "plan": ["free"] * 4 + ["paid"] * 2})
    >>> rows = rd.sample_to_judge(pred, 4, k=1, strata=users)
    >>> rows[["item_id", "stratum", "probability"]]
      item_id stratum  probability
    0     tea    free          0.5
    1     tea    free          0.5
    2     tea    paid          1.0
    3     tea    paid          1.0
    """
    for name, value, hint in (("n", n, POSITIVE), ("seed", seed, NATURAL), ("allocation", allocation, Allocation)):
        check_value(name, value, hint)
    if (allocation == "neyman") != (spread is not None):
        raise OptionError('⟦allocation="neyman"⟧ and ⟦spread=⟧ go together; pass both, or neither', argument="spread")
    call = Call.from_arguments(sample_to_judge, options)
    keys, item_col = as_columns(call.options.user_col), call.options.item_col
    frame = as_frame(pred, "pred", call.options.user_col, item_col)
    if clash := [name for name in (*keys, item_col) if name in ("stratum", "probability")]:
        raise OptionError(f"the column {clash[0]!r} has the name of a column of the result; rename it")
    pool = _pool(call, frame, check_k(k), judged)
    (code,), n_lists = key_codes([("pred", pool)], keys)
    lists = pool[keys].iloc[first_rows(code, n_lists)].reset_index(drop=True)
    if isinstance(strata, str):
        strata = frame[require(frame, "pred", [*keys, strata])].drop_duplicates()
    label = pd.Series("all", index=lists.index, dtype=str) if strata is None else _of_lists(lists, strata, "strata")
    stratum, names = group_codes(label.to_frame("stratum"), "strata", ["stratum"])
    size = np.bincount(stratum)
    weight = size.astype(np.float64)
    if spread is not None:
        values = read_values(_of_lists(lists, spread, "spread").to_frame("spread"), "spread", "lists")
        weight *= np.nan_to_num(pd.Series(values).groupby(stratum).std().to_numpy())
    drawn = _allocate(n, size, weight)
    coin = user_coins(hash_users(lists, keys, "pred"), seed)(0)
    order = np.lexsort((coin, stratum))
    place = np.empty(n_lists, np.int64)
    place[order] = np.arange(n_lists) - np.repeat(np.cumsum(size) - size, size)
    chosen = (place < drawn[stratum])[code]
    found, of = pool[chosen].reset_index(drop=True), stratum[code[chosen]]
    return found.assign(stratum=names["stratum"].take(of).array, probability=(drawn / size)[of])


def _pool(call: Call, frame: pd.DataFrame, k: int, judged: Any) -> pd.DataFrame:
    """Return the items of each list in the first k of any recommender that are not judged, in the order of ids."""
    keys, item_col = as_columns(call.options.user_col), call.options.item_col
    with call.match(None, frame) as matched:
        lists = matched.at(k)
        places, of_list = spans(matched.start, lists.n_shown), np.repeat(np.arange(len(lists)), lists.n_shown)
        pool = label_frame(matched)[keys].take(of_list).reset_index(drop=True)
        pool[item_col] = frame[item_col].take(matched.rows(places)).reset_index(drop=True)
    tables = [("pred", pool)]
    if judged is not None:
        tables.append(("judged", as_frame(judged, "judged", call.options.user_col, item_col)))
    codes, n = key_codes(tables, [*keys, item_col])
    first = first_rows(codes[0], n)
    if judged is not None:
        first[codes[1]] = -1
    pool = pool.iloc[first[first >= 0]].reset_index(drop=True)
    if pool.empty:
        raise EmptyPopulationError("pred has no item to judge: it is empty, or judged has all of its first items")
    return pool


def _of_lists(lists: pd.DataFrame, given: Any, role: str) -> pd.Series:
    """Return what a frame of the list key and one more column says of every list."""
    keys = list(lists.columns)
    frame = as_frame(given, role, keys)
    require(frame, role, keys)
    names = [name for name in frame.columns if name not in keys]
    if len(names) != 1:
        raise OptionError(f"{role} has the columns {names} beside the key {keys}; expected one", argument=role)
    codes, n = key_codes([("pred", lists), (role, frame)], keys)
    rows = first_rows(codes[1], n)
    again = rows[codes[1]] != np.arange(len(frame))
    if again.any():
        raise DuplicateError(
            f"{role} has several rows for a list ({some_keys(frame, again, keys)}); expected one", argument=role,
            count=int(again.sum()),
        )  # fmt: skip
    values = frame[names[0]].reset_index(drop=True).reindex(rows[codes[0]]).reset_index(drop=True)
    null = values.isna().to_numpy()
    if null.any():
        raise DataError(
            f"{role} has no {names[0]!r} for {int(null.sum()):,} of {len(lists):,} lists "
            f"({some_keys(lists, null, keys)})", column=f"{role}[{names[0]!r}]", count=int(null.sum()),
        )  # fmt: skip
    return frame[names[0]].take(rows[codes[0]]).reset_index(drop=True)


def _allocate(n: int, size: Codes, weight: Floats) -> Codes:
    """Return how many lists each stratum gets; strata of equal weight, such as 0, get further lists by their size."""
    if n > size.sum():
        raise OptionError(f"⟦n={n}⟧ is above the {int(size.sum()):,} lists to choose from", argument="n", value=n)
    least = np.minimum(size, 2)
    if n < least.sum():
        raise OptionError(
            f"⟦n={n}⟧ is below two lists for each of {len(size):,} strata ({int(least.sum()):,}); raise it, or join "
            "strata", argument="n", value=n,
        )  # fmt: skip
    more = size - least
    stratum = np.repeat(np.arange(len(size)), more)
    rank = np.arange(len(stratum)) - np.repeat(np.cumsum(more) - more, more) + least[stratum]
    falls = 1 / np.sqrt(rank * (rank + 1.0))
    best = np.lexsort((-size[stratum] * falls, -weight[stratum] * falls))[: n - least.sum()]
    return np.asarray(least + np.bincount(stratum[best], minlength=len(size)))
