"""Chance levels: what a random order of the catalogue reaches, in closed form or by simulation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from ..errors import DataError, OptionError, RecdfWarning
from ..inputs.codes import first_rows
from ..inputs.constraints import NATURAL, POSITIVE, check_value
from ..inputs.door import takes_options
from ..inputs.frames import id_frame
from ..inputs.options import CallArguments, Options, as_columns
from ..matching.hits import ratio
from ..matching.lists import Lists
from ..metrics.call import Call
from ..metrics.compute import compute, label_frame, mean, per_user_frame, settle_undefined
from ..metrics.metric import find
from ..metrics.ranking.dcg import gain_values, sum_of_discounts
from ..metrics.record import Request
from ..metrics.strings import parse
from ..stats.numbers import Floats
from .floors import BEST_GAIN, Levels, Metrics, is_among, levels_of, list_codes, pair_codes, row_gains, with_keys

DRAW = "recdf_draw"  # key of the lists of a simulation
DRAWN_ROWS = 1_000_000  # recommendations that a simulation draws, over all lists and repetitions
MOST_DRAWS = 20_000


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
        return ratio((urn.hits + urn.first_hit(lambda rank: 1.0)) / 2, np.maximum(urn.n_true, 1))
    return _per_relevant(urn, urn.more_pairs / np.maximum(urn.n_true, 1), normalizer)


def _chance_dcg(urn: Urn, gain: str, discount: Any, log_base: float, tied: str) -> Floats:
    return urn.gain(gain) * urn.over_ranks(lambda m: sum_of_discounts(discount, log_base, m))


def _chance_ndcg(urn: Urn, ideal: str, **how: Any) -> Floats | None:
    if ideal == "k":
        return _chance_dcg(urn, **how) / sum_of_discounts(how["discount"], how["log_base"], int(urn.k))
    return None if ideal != "relevant" else _chance_dcg(urn, **how)  # over the ideal, which `_expected` knows


def _rbp(urn: Urn, p: float, gain: str) -> Floats:
    return urn.gain(gain) * (1 - p**urn.m)


CLOSED_FORMS: dict[str, Callable[..., Floats | None]] = {
    "precision": _precision, "recall": _recall, "f1": _f1, "rprecision": _rprecision, "mrr": _reciprocal,
    "mapr": _average_precision, "mar": _average_recall, "dcg": _chance_dcg, "ndcg": _chance_ndcg, "rbp": _rbp,
    "hits": lambda urn: urn.hits,
    "hitrate": lambda urn: urn.first_hit(lambda rank: 1.0),
    "arhr": lambda urn: urn.over_ranks(_harmonic) * urn.r / urn.n,
}  # fmt: skip


def _expected(request: Request, best: Any, n: Floats, options: Options) -> Floats | None:
    """Return the expectation per list in closed form, None for a metric that has none here."""
    if request.metric.name not in CLOSED_FORMS or not request.metric.built_in or options.propensity_col is not None:
        return None
    whole = best.at(None)
    k = float(n.max(initial=1) if request.k is None else request.k)
    urn = Urn(n, whole.n_hits.astype(float), whole.n_true.astype(float), np.minimum(k, n), k, whole)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Any = CLOSED_FORMS[request.metric.name](urn, **request.params)
        if found is not None and request.metric.name == "ndcg" and request.params["ideal"] == "relevant":
            lists, how = best.at(request.k), {**request.params, "tied": "ranked"}
            own = request.metric.kernel(lists, **how)  # of the best order of the candidates, as is the gain below
            how.pop("ideal")
            there = find("dcg").kernel(lists, **how)
            found = np.asarray(np.where(np.isnan(own), np.nan, np.where(there > 0, found * ratio(own, there), 0.0)))
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
        value = np.where(is_among(grid.ravel(), blocked), np.inf, rng.random(grid.size)).reshape(grid.shape)
        order = np.argsort(value, axis=1)[:, :length]
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
            known = ~np.isnan(by_draw)
            found[column] = ratio(np.nansum(by_draw, axis=1), np.count_nonzero(known, axis=1))
            shares = np.ones(n_lists) if weight is None else weight
            means = ratio(shares @ np.where(known, by_draw, 0.0), shares @ known)
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
        Pairs of list key (or some of its columns) and item that are neither recommended nor relevant.
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
    users = "true" if isinstance(call.options.users, str) else call.options.users
    shared = call.options.updated(score_col=False, rank_col=None, users=users)
    true, best, labels, pairs = _candidates(true, exclude, items, shared)
    table: list[dict[str, Any]] = []
    found: dict[str, Floats] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecdfWarning)
        call = replace(call, options=shared)
        with replace(call, options=shared.updated(score_col=BEST_GAIN, rank_col=None)).match(true, best) as matched:
            lists = label_frame(matched)
            blocked = _excluded_of_lists(pairs, lists, labels, shared)
            n = len(labels) - np.bincount(blocked // len(labels), minlength=len(lists)).astype(float)
            if (matched.at(None).n_hits > n).any():
                raise DataError("items has fewer items than a list of true has relevant ones", argument="items")
            for request in call.requests:
                exact = _expected(request, matched, n, shared)
                errors: dict[str, float] = {}
                values = {} if exact is None else {request.columns[0]: exact}
                if exact is None:
                    values, errors = _simulated(request, call, true, lists, labels, blocked, matched.weight, seed)
                found |= values
                table += [_level_row(column, one, request, errors, matched.weight) for column, one in values.items()]
            return levels_of(table, per_user_frame(matched, found))


def _level_row(
    column: str, values: Floats, request: Request, errors: Mapping[str, float], weight: Floats | None
) -> dict[str, Any]:
    return {
        "metric": column.rpartition("@")[0] if request.k is not None else column, "k": request.k,
        "value": mean(values, weight), "se": errors.get(column, 0.0), "how": "simulated" if errors else "exact",
        "n": int(np.count_nonzero(~np.isnan(values))),
    }  # fmt: skip


def _candidates(
    true: Any, exclude: Any, items: Any, options: Options
) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series, pd.DataFrame | None]:
    """Return `true`, those of its rows that can be recommended, the ids of the catalogue, and the excluded pairs."""
    keys, item = as_columns(options.user_col), options.item_col
    true = with_keys(true, "true", options)
    frames, excluded = {"true": true}, None
    if exclude is not None:
        frames["exclude"] = excluded = with_keys(exclude, "exclude", options)
    if not isinstance(items, Integral):
        frames["items"] = id_frame(items, "items", [item])
    own = keys if excluded is None else [key for key in keys if key in excluded.columns] or keys
    codes = pair_codes(frames, own, item)
    kept = np.ones(len(true), bool) if excluded is None else ~codes.found("true", "exclude")
    inside = kept if "items" not in frames else kept & is_among(codes.items["true"], codes.items["items"])
    best = true[inside].assign(**{BEST_GAIN: row_gains(true, options)[inside]})
    if "items" in frames:
        labels = frames["items"][item].drop_duplicates()
    else:
        known = [true[item]] if excluded is None else [true[item], excluded[item]]
        labels = _counted_items(pd.concat(known).drop_duplicates(), int(items))
    return true[kept], best, labels, None if excluded is None else excluded[[*own, item]]


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


def _excluded_of_lists(
    pairs: pd.DataFrame | None, lists: pd.DataFrame, labels: pd.Series, options: Options
) -> np.ndarray:
    """Return the excluded pairs of these lists and items as numbers list · n_items + item, each once."""
    if pairs is None:
        return np.zeros(0, np.int64)
    own = [key for key in as_columns(options.user_col) if key in pairs.columns]
    codes = pair_codes(
        {"lists": lists, "exclude": pairs, "items": labels.to_frame(options.item_col)}, own, options.item_col
    )
    place = first_rows(codes.items["items"], codes.n_items)[codes.items["exclude"]]
    rows = pd.DataFrame({"user": codes.users["exclude"], "place": place})[place >= 0]
    rows = rows.merge(pd.DataFrame({"user": codes.users["lists"], "list": np.arange(len(lists))}), on="user")
    there: np.ndarray = np.unique((rows["list"] * len(labels) + rows["place"]).to_numpy(np.int64))
    return there
