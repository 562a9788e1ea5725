"""Levels beside a metric: what a random order reaches, what the most popular items reach, and what the items allow.

Contract: each level is a metric of lists that no model made, computed by the same code as the metric of a model. Only
the chance levels of some metrics are sums over all orders, in closed form.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np
import pandas as pd

from ..errors import DataError, OptionError, RecdfWarning
from ..evaluation.evaluate import EvaluateArguments, evaluate, takes_evaluate_arguments
from ..inputs.codes import encode, encode_keys, first_rows, known_ids
from ..inputs.constraints import NATURAL, POSITIVE, check_value
from ..inputs.door import takes_options
from ..inputs.frames import as_frame, id_frame
from ..inputs.ids import read_ids
from ..inputs.options import CallArguments, Options, as_columns
from ..inputs.true_and_pred import gains, read_relevance, relevance_source
from ..matching.hits import ratio
from ..matching.lists import Lists
from ..metrics.call import Call
from ..metrics.compute import compute, label_frame, mean, per_user_frame, settle_undefined
from ..metrics.metric import Metric, find
from ..metrics.ranking.dcg import gain_values, sum_of_discounts
from ..metrics.record import Request
from ..metrics.strings import parse
from ..stats.numbers import Floats
from ..tables.shown_frames import AnyFrame

Metrics = str | Metric | Sequence[str | Metric] | Mapping[str, str | Metric]
BEST = "recdf_gain"  # column of scores that order a list by its gains
DRAW = "recdf_draw"  # key of the lists of a simulation
DRAWN_ROWS = 1_000_000  # recommendations that a simulation draws, over all lists and repetitions
MOST_DRAWS = 20_000


class Levels(pd.DataFrame, metaclass=AnyFrame):
    """A tidy table of levels, one row per metric and k; `.per_user` has the level of each list."""

    _metadata: ClassVar[list[str]] = ["per_user"]
    per_user: pd.DataFrame


def _levels(rows: Any, per_user: pd.DataFrame) -> Levels:
    found = Levels(rows)
    found.per_user = per_user
    return found


# ------------------------------------------------------------------------------------- rows of the same list and item


class PairCodes(NamedTuple):
    """Lists and items of several frames as codes, which are the same where the ids are."""

    users: dict[str, np.ndarray]
    items: dict[str, np.ndarray]
    n_users: int
    n_items: int

    def pair(self, role: str) -> np.ndarray:
        """One number for the list and the item of each row."""
        pairs: np.ndarray = self.users[role].astype(np.int64) * self.n_items + self.items[role]
        return pairs

    def found(self, role: str, other: str) -> np.ndarray:
        """Tell of each row whether another frame has its list and item."""
        near = np.zeros(self.n_users, bool)
        near[self.users[role]] = True
        return is_among(self.pair(role), self.pair(other)[near[self.users[other]]])


def is_among(numbers: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Tell which numbers are among others, by hashes: `np.isin` sorts both, which takes ten times as long."""
    found: np.ndarray = pd.Series(numbers).isin(others).to_numpy()
    return found


def pair_codes(frames: Mapping[str, pd.DataFrame], keys: Sequence[str], item_col: str) -> PairCodes:
    """Code lists and items of frames together; a frame may lack the item, as lists do, or the keys, as items do."""
    keyed = {role: one for role, one in frames.items() if role != "items"}
    held = {role: one for role, one in frames.items() if role != "lists"}
    users, n_users = encode_keys([[known_ids(one, role, key) for key in keys] for role, one in keyed.items()])
    items = encode([known_ids(one, role, item_col) for role, one in held.items()])
    by_role = dict(zip(keyed, [one.all() for one in users], strict=True))
    return PairCodes(by_role, dict(zip(held, items.codes, strict=True)), n_users, items.n)


def with_keys(data: Any, role: str, options: Options) -> pd.DataFrame:
    """Return a frame of pairs, without the rows that `null_keys="drop"` leaves out."""
    frame = as_frame(data, role, options.user_col, options.item_col)
    if options.null_keys != "drop":
        return frame
    there = [name for name in (*as_columns(options.user_col), options.item_col) if name in frame.columns]
    return frame[frame[there].notna().all(axis=1)]


def row_gains(true: pd.DataFrame, options: Options) -> Floats:
    """Return the gain of each row of `true`."""
    name = relevance_source(true, options)
    return np.ones(len(true)) if name is None else gains(read_relevance(true, name, options), options)


# ------------------------------------------------------------------------------------------------------------- chance


class Urn(NamedTuple):
    """What a random order of a list is drawn from, as arrays with one number per list.

    n : candidates · r : relevant ones among them · n_true : relevant items, also those that are no candidates ·
    m : ranks that the candidates fill, at most k · whole : the lists of all relevant candidates.
    """

    n: Floats
    r: Floats
    n_true: Floats
    m: Floats
    k: float
    whole: Lists

    @property
    def hits(self) -> Floats:
        """Expected hits."""
        return self.m * self.r / self.n

    @property
    def more_pairs(self) -> Floats:
        """Expected Σ j over hits j = 1, 2, ..., which is hits·(hits + 1)/2."""
        return self.hits + self.m * (self.m - 1) * self.r * (self.r - 1) / (2 * self.n * np.maximum(self.n - 1, 1))

    def first_hit(self, value: Callable[[int], float]) -> Floats:
        """Return the expected value of the rank of the first hit, 0 without one."""
        total, none = np.zeros(len(self.n)), np.ones(len(self.n))
        for rank in range(1, int(self.m.max(initial=0)) + 1):
            share = np.where(rank <= self.m, self.r / np.maximum(self.n - rank + 1, 1), 0.0).clip(0, 1)
            total += none * share * value(rank)
            none *= 1 - share
        return total

    def over_ranks(self, total: Callable[[int], float]) -> Floats:
        """Return a sum over the ranks that are filled, of which there are few different numbers."""
        lengths, place = np.unique(self.m, return_inverse=True)
        return np.array([total(int(m)) if m else 0.0 for m in lengths])[place]

    def gain(self, kind: str) -> Floats:
        """Return the expected gain of a rank."""
        return self.whole.sum(gain_values(kind, self.whole.hits.gain)) / self.n


def _harmonic(m: int) -> float:
    return float(np.sum(1 / np.arange(1, m + 1)))


def _per_relevant(urn: Urn, total: Floats, normalizer: str) -> Floats | None:
    """Divide as average precision does; None where the divisor depends on the hits."""
    below = {"relevant": urn.n_true, "achievable": np.minimum(urn.k, urn.n_true), "k": urn.k,
             "shown": np.minimum(urn.n_true, urn.m)}  # fmt: skip
    return ratio(total, below[normalizer]) if normalizer in below else None


def _precision(urn: Urn, divisor: str) -> Floats:
    return ratio(urn.hits, {"k": urn.k, "shown": urn.m, "achievable": np.minimum(urn.k, urn.n_true)}[divisor])


def _recall(urn: Urn, divisor: str) -> Floats:
    return ratio(urn.hits, urn.n_true if divisor == "relevant" else np.minimum(urn.k, urn.n_true))


def _f1(urn: Urn, beta: float) -> Floats:
    return np.where(urn.n_true > 0, (1 + beta**2) * urn.hits / (beta**2 * urn.n_true + urn.k), np.nan)


def _rprecision(urn: Urn) -> Floats:
    return ratio(np.minimum(urn.n, urn.n_true) * urn.r / urn.n, urn.n_true)


def _reciprocal(urn: Urn, of: str) -> Floats:
    first = urn.first_hit(lambda rank: 1 / rank)
    return first if of == "first" else ratio(urn.over_ranks(_harmonic) * urn.r / urn.n, urn.n_true)


def _average_precision(urn: Urn, normalizer: str) -> Floats | None:
    each, others = urn.over_ranks(_harmonic), (urn.r - 1) / np.maximum(urn.n - 1, 1)
    return _per_relevant(urn, urn.r / urn.n * (each + others * (urn.m - each)), normalizer)


def _average_recall(urn: Urn, normalizer: str) -> Floats | None:
    if normalizer == "hits":
        return (urn.hits + urn.first_hit(lambda rank: 1.0)) / (2 * np.maximum(urn.n_true, 1))
    return _per_relevant(urn, urn.more_pairs / np.maximum(urn.n_true, 1), normalizer)


def _dcg(urn: Urn, gain: str, discount: Any, log_base: float, tied: str) -> Floats:
    return urn.gain(gain) * urn.over_ranks(lambda m: sum_of_discounts(discount, log_base, m))


def _ndcg(urn: Urn, ideal: str, **how: Any) -> Floats | None:
    if ideal == "k":
        return _dcg(urn, **how) / sum_of_discounts(how["discount"], how["log_base"], int(urn.k))
    return None if ideal != "relevant" else _dcg(urn, **how)  # over the ideal, which `_expected` knows


def _rbp(urn: Urn, p: float, gain: str) -> Floats:
    return urn.gain(gain) * (1 - p**urn.m)


EXPECTED: dict[str, Callable[..., Floats | None]] = {
    "precision": _precision, "recall": _recall, "f1": _f1, "rprecision": _rprecision, "mrr": _reciprocal,
    "mapr": _average_precision, "mar": _average_recall, "dcg": _dcg, "ndcg": _ndcg, "rbp": _rbp,
    "hits": lambda urn: urn.hits,
    "hitrate": lambda urn: urn.first_hit(lambda rank: 1.0),
    "arhr": lambda urn: urn.over_ranks(_harmonic) * urn.r / urn.n,
}  # fmt: skip


def _expected(request: Request, best: Any, n: Floats, options: Options) -> Floats | None:
    """Return the expectation per list in closed form, None for a metric that has none here."""
    if request.metric.name not in EXPECTED or not request.metric.built_in or options.propensity_col is not None:
        return None
    whole = best.at(None)
    k = float(n.max(initial=1) if request.k is None else request.k)
    urn = Urn(n, whole.n_hits.astype(float), whole.n_true.astype(float), np.minimum(k, n), k, whole)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = EXPECTED[request.metric.name](urn, **request.params)
        if found is not None and request.metric.name == "ndcg" and request.params["ideal"] == "relevant":
            lists, how = best.at(request.k), {**request.params, "tied": "ranked"}
            own = request.metric.kernel(lists, **how)  # of the best order of the candidates, as is the gain below
            how.pop("ideal")
            there = find("dcg").kernel(lists, **how)
            found = np.where(np.isnan(own), np.nan, np.where(there > 0, found * ratio(own, there), 0.0))
    return None if found is None else settle_undefined(found, request, options)


def _random_orders(
    rng: np.random.Generator, n_lists: int, n_items: int, length: int, blocked: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the first items of a random order for each list, without the blocked pairs (list · n_items + item).

    Returns the list and the item of each row, by list and rank. Uniform draws, less what was drawn before, are a
    random order. Lists for which too few draws remain get an order of all items.
    """
    n_drawn = 2 * length + 16
    if n_drawn < n_items:
        pair = (np.arange(n_lists)[:, None] * n_items + rng.integers(0, n_items, (n_lists, n_drawn))).ravel()
        fresh = np.zeros(len(pair), bool)
        fresh[np.unique(pair, return_index=True)[1]] = True
        fresh &= ~is_among(pair, blocked)
        rank = np.cumsum(fresh.reshape(n_lists, -1), axis=1)
        pair = pair[fresh & (rank.ravel() <= length)]
        few = rank[:, -1] < length
        pair, short = pair[~few[pair // n_items]], np.flatnonzero(few)
    else:
        pair, short = np.zeros(0, np.int64), np.arange(n_lists)
    parts, at_once = [pair], max(1, 2**22 // n_items)
    for first in range(0, len(short), at_once):
        some = short[first : first + at_once]
        grid = some[:, None] * n_items + np.arange(n_items)
        order = np.argsort(np.where(is_among(grid.ravel(), blocked).reshape(grid.shape), np.inf, rng.random(grid.shape)), axis=1)[:, :length]
        drawn = np.take_along_axis(grid, order, axis=1).ravel()
        parts.append(drawn[~is_among(drawn, blocked)])
    pair = np.concatenate(parts)
    return pair // n_items, pair % n_items


def _simulated(
    request: Request, call: Call, true: pd.DataFrame, lists: pd.DataFrame, labels: pd.Series, blocked: np.ndarray,
    weight: Floats | None, seed: int,
) -> tuple[dict[str, Floats], dict[str, float]]:  # fmt: skip
    """Return the mean over random orders of each list, and the standard error of the mean over all lists.

    Every list is evaluated with many orders at once, each as a list of its own, numbered list · n_draws + draw.
    """
    n_lists, n_items = len(lists), len(labels)
    length = n_items if request.k is None else min(request.k, n_items)
    n_draws = int(np.clip(DRAWN_ROWS // max(n_lists * length, len(true), 1), 2, MOST_DRAWS))
    of_list = np.arange(n_draws)
    again = (blocked // n_items * n_draws)[:, None] + of_list
    drawn, item = _random_orders(
        np.random.default_rng(seed), n_lists * n_draws, n_items, length,
        (again * n_items + (blocked % n_items)[:, None]).ravel(),
    )  # fmt: skip
    user = list_codes(lists, {"true": true}, call.options)["true"]
    true = true.take(np.repeat(np.flatnonzero(user >= 0), n_draws))
    name = call.options.item_col
    true = true.assign(**{DRAW: (user[user >= 0][:, None] * n_draws + of_list).ravel()})
    pred = pd.DataFrame({DRAW: drawn, name: labels.take(item).array})
    options = call.options.updated(user_col=DRAW, weight_col=None, users="true")
    found, errors = {}, {}
    with replace(call, options=options).match(true, pred) as matched:
        of_row = label_frame(matched)[DRAW].to_numpy()
        for column, values in compute(matched, request, options).items():
            table = np.full(n_lists * n_draws, np.nan)
            table[of_row] = values
            by_draw = table.reshape(n_lists, n_draws)
            found[column] = ratio(np.nansum(by_draw, axis=1), np.count_nonzero(~np.isnan(by_draw), axis=1))
            means = [mean(one, weight) for one in by_draw.T]
            errors[column] = float(np.nanstd(means, ddof=1) / np.sqrt(n_draws))
    return found, errors


NOT_OF_CHANCE = ("by", "by_in_true", "judged_only")


@takes_options
def chance_level(
    true: Any, metrics: Metrics, k: int | Sequence[int] = 10, *, items: Any, exclude: Any = None, seed: int = 0,
    **options: Unpack[CallArguments],
) -> Levels:  # fmt: skip
    """Return what a random order of the catalogue reaches on average: the level below which a model knows nothing.

    Parameters
    ----------
    true : DataFrame, mapping or Arrow stream
        As for `evaluate`.
    metrics : str, Metric, list of them, or mapping of own names to them
        As for `evaluate`. Metrics of exposure have no chance level.
    k : int or list of int, default 10
        Cut-offs of the metrics whose string has none.
    items : int, DataFrame, list, Series or Index
        The catalogue, or the number of its items. A relevant item outside the catalogue is never recommended.
    exclude : DataFrame, optional
        Pairs of list key and item, such as past interactions, that are neither recommended nor relevant.
    seed : int, default 0
        Seed of the simulation.
    {options}

    Returns
    -------
    DataFrame
        `metric`, `k`, `value`, `se` (standard error of a simulated value, 0 for an exact one), `how` ("exact" or
        "simulated"), `n` (lists with a value). Its attribute `per_user` has the level of each list.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError
        If the input is wrong, such as a catalogue with fewer items than a list has relevant ones.

    Notes
    -----
    Let a list have N candidates, of which n are relevant, and m = min(k, N). Then precision has n/N (if k ≤ N), recall
    m/N, hitrate 1 − C(N−n, m)/C(N, m), mrr Σ_r P(first hit at r)/r, ndcg (Σ gain/N)·Σ_{i ≤ m} disc(i)/IDCG and mapr
    (1/n) Σ_{i ≤ m} (n/N)(1 + (i−1)(n−1)/(N−1))/i. In the same way f1, rprecision, mar, hits, arhr, dcg and rbp are
    exact. Other metrics, and parameters that make a divisor depend on the hits, are simulated with random orders.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.chance_level({"u": ["a", "b"], "v": ["c"]}, ["hitrate", "recall"], k=2, items=4)
        metric  k     value   se    how  n
    0  hitrate  2  0.666667  0.0  exact  2
    1   recall  2  0.500000  0.0  exact  2
    """
    check_value("seed", seed, NATURAL)
    counted = isinstance(items, Integral) and not isinstance(items, bool)
    if counted:
        POSITIVE.check("items", items)
    given = {**options} if counted else {**options, "items": items}
    call = Call.from_arguments(chance_level, given, true, lambda checked: parse(metrics, k, checked))
    for name in NOT_OF_CHANCE:
        if getattr(call.options, name):
            raise OptionError(f"⟦{name}=⟧ has no meaning for a random order of the catalogue", argument=name)
    if call.per_item:
        raise OptionError(f"{call.per_item[0].name} is a metric of exposure, which has no chance level")
    users = "true" if call.options.users in ("pred", "both") else call.options.users
    shared = call.options.updated(score_col=False, rank_col=None, users=users)
    true, best, labels, pairs = _candidates(true, exclude, None if counted else items, int(items) if counted else 0, shared)
    table: list[dict[str, Any]] = []
    found: dict[str, Floats] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecdfWarning)
        call = replace(call, options=shared)
        with replace(call, options=shared.updated(score_col=BEST, rank_col=None)).match(true, best) as matched:
            lists = label_frame(matched)
            blocked = _of_lists(pairs, lists, labels, shared)
            n = len(labels) - np.bincount(blocked // len(labels), minlength=len(lists)).astype(float)
            if (matched.at(None).n_hits > n).any():
                raise DataError("items has fewer items than a list of true has relevant ones", argument="items")
            for request in call.requests:
                exact, errors = _expected(request, matched, n, shared), {}
                values = {} if exact is None else {request.columns[0]: exact}
                if exact is None:
                    values, errors = _simulated(request, call, true, lists, labels, blocked, matched.weight, seed)
                found |= values
                table += [_level_row(column, one, request, errors, matched.weight) for column, one in values.items()]
            return _levels(table, per_user_frame(matched, found))


def _level_row(
    column: str, values: Floats, request: Request, errors: Mapping[str, float], weight: Floats | None
) -> dict[str, Any]:
    return {
        "metric": column.rpartition("@")[0] if request.k is not None else column, "k": request.k,
        "value": mean(values, weight), "se": errors.get(column, 0.0), "how": "simulated" if errors else "exact",
        "n": int(np.count_nonzero(~np.isnan(values))),
    }  # fmt: skip


def _candidates(
    true: Any, exclude: Any, items: Any, n_items: int, options: Options
) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series, pd.DataFrame | None]:
    """Return `true`, those of its rows that can be recommended, the ids of the catalogue, and the excluded pairs."""
    keys, item = as_columns(options.user_col), options.item_col
    true = with_keys(true, "true", options)
    frames, excluded = {"true": true}, None
    if exclude is not None:
        frames["exclude"] = excluded = with_keys(exclude, "exclude", options)
    if items is not None:
        frames["items"] = id_frame(items, "items", [item])
    codes = pair_codes(frames, keys, item)
    kept = np.ones(len(true), bool) if excluded is None else ~codes.found("true", "exclude")
    inside = kept if items is None else kept & is_among(codes.items["true"], codes.items["items"])
    best = true[inside].assign(**{BEST: row_gains(true, options)[inside]})
    if items is not None:
        labels = frames["items"][item].drop_duplicates()
    else:
        known = [true[item]] if excluded is None else [true[item], excluded[item]]
        labels = _counted_items(pd.concat(known).drop_duplicates(), n_items)
    return true[kept], best, labels, None if excluded is None else excluded[[*keys, item]]


def _counted_items(known: pd.Series, n_items: int) -> pd.Series:
    """Return as many ids as the catalogue is said to have: those that are known, and more of their kind."""
    more = n_items - len(known)
    if more < 0:
        raise DataError(f"items={n_items:,}, but true and exclude have {len(known):,} items", argument="items")
    if pd.api.types.is_numeric_dtype(known.dtype):
        other = pd.Series(np.arange(more) + (int(known.max()) if len(known) else 0) + 1)
    else:
        known, other = known.astype(object), pd.Series([f"recdf item {i}" for i in range(more)], dtype=object)
    return pd.concat([known, other], ignore_index=True)


def list_codes(lists: pd.DataFrame, frames: Mapping[str, pd.DataFrame], options: Options) -> dict[str, np.ndarray]:
    """Return the place among some lists of the list of each row, -1 for another list."""
    keys, roles = as_columns(options.user_col), ["lists", *frames]
    tables = [lists, *frames.values()]
    users, n = encode_keys(
        [[known_ids(one, role, key) for key in keys] for role, one in zip(roles, tables, strict=True)]
    )
    place = first_rows(users[0].all(), n)
    return {role: place[own.all()] for role, own in zip(frames, users[1:], strict=True)}


def _of_lists(pairs: pd.DataFrame | None, lists: pd.DataFrame, labels: pd.Series, options: Options) -> np.ndarray:
    """Return the excluded pairs of these lists and items as numbers list · n_items + item, each once."""
    if pairs is None:
        return np.zeros(0, np.int64)
    user = list_codes(lists, {"exclude": pairs}, options)["exclude"]
    items = encode([read_ids(labels, "items"), known_ids(pairs, "exclude", options.item_col)])
    place = first_rows(items.codes[0], items.n)[items.codes[1]]
    there: np.ndarray = np.unique((user * len(labels) + place)[(user >= 0) & (place >= 0)])
    return there


# ------------------------------------------------------------------------------------------------ ceiling, popularity


@takes_evaluate_arguments
def ceiling(
    true: Any, pred: Any, metrics: Metrics, k: int | Sequence[int] = 10, **arguments: Unpack[EvaluateArguments]
) -> Levels:
    """Return the metrics of the best order of the items that each list holds: what a better ranking could reach.

    The whole list of `pred` counts, also below k, so that long lists of candidates say what a second stage can make of
    them. The recall of all candidates is `recall` at a k that no list exceeds.

    Parameters
    ----------
    true : DataFrame, mapping or Arrow stream
        As for `evaluate`.
    pred : DataFrame, mapping or Arrow stream
        As for `evaluate`; scores and ranks are not read. Each list is ordered by descending gain.
    {metrics}
    {side_tables}
    {options}

    Returns
    -------
    DataFrame
        The `by` columns, `metric`, `k`, `value`, `n` (lists with a value). Its attribute `per_user` has the ceiling of
        each list.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError
        As for `evaluate`.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.ceiling({"u": ["a", "b"]}, {"u": ["x", "y", "a"]}, ["ndcg", "recall"], k=2)
       metric  k     value  n
    0    ndcg  2  0.613147  1
    1  recall  2  0.500000  1
    """
    options = Call.from_arguments(ceiling, arguments, true).options
    keys, by = as_columns(options.user_col), as_columns(options.by)
    true = with_keys(true, "true", options)
    pred = with_keys(pred, "pred", options)
    shared = keys + [name for name in by if options.by_in_true and name in true.columns]
    codes = pair_codes({"true": true, "pred": pred}, shared, options.item_col)
    order = np.lexsort((row_gains(true, options), codes.pair("true")))  # the best of equal pairs comes last
    pairs, gain = codes.pair("true")[order], row_gains(true, options)[order]
    place = np.searchsorted(pairs, codes.pair("pred"), side="right") - 1
    hit = (place >= 0) & (np.append(pairs, -1)[place] == codes.pair("pred"))
    best = pred.assign(**{BEST: np.where(hit, np.append(gain, 0.0)[place], 0.0)})
    given = {**arguments, "score_col": BEST, "rank_col": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecdfWarning)
        found = evaluate(true, best, metrics, k, **given)
    return _levels(found.summary[[*by, "metric", "k", "value", "n"]], found.per_user)


def popular_lists(users: np.ndarray, items: np.ndarray, n_users: int, popular: np.ndarray, k: int) -> list[np.ndarray]:
    """Return lists of the k most popular items less those of the user's own rows, as user and item of each row.

    `users` and `items` are the codes of the user's rows, and `popular` has the codes of items, the most popular first.
    A list is ready when so many items from the top are not its user's; for the others, more items are looked at.
    """
    place = np.full(max(items.max(initial=-1), popular.max(initial=-1)) + 1, len(popular))
    place[popular] = np.arange(len(popular))
    rank_of_row, left, parts, depth = place[items], np.arange(n_users), [], 0
    while len(left) and depth < len(popular):
        depth = min(max(2 * k, 4 * depth), len(popular))
        row_of = np.full(n_users, -1)
        row_of[left] = np.arange(len(left))
        near = (rank_of_row < depth) & (row_of[users] >= 0)
        fresh = np.ones((len(left), depth), bool)
        fresh[row_of[users[near]], rank_of_row[near]] = False
        count = np.cumsum(fresh, axis=1, dtype=np.int32)
        ready = (count[:, -1] >= k) | (depth == len(popular))
        who, rank = np.nonzero(fresh & (count <= k) & ready[:, None])
        parts.append((left[who], popular[rank]))
        left = left[~ready]
    return [np.concatenate(one) for one in zip(*parts, strict=True)] if parts else [np.zeros(0, np.int64)] * 2
