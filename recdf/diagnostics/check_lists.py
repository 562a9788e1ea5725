"""Findings of `check` about lists: repeated rows, users in only one frame, short and long lists, sampled candidates.

It also has what all checks share: the data, and the labels of the lists that a finding concerns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ..inputs.options import Options, as_columns
from ..inputs.true_and_pred import Order
from ..matching.lists import Matched
from ..metrics.per_user import label_frame
from ..tables.findings import FINDING_COLUMNS, Findings, Severity, row_objects


@dataclass(frozen=True)
class Data:
    """The data to check: both frames, the cut-off that findings refer to, the options, and what orders `pred`."""

    true: pd.DataFrame
    pred: pd.DataFrame
    k: int
    options: Options
    order: Order

    @property
    def by(self) -> list[str]:
        """Columns of `pred` that tell recommenders apart."""
        return as_columns(self.options.by)

    @property
    def keys(self) -> list[str]:
        """Columns of the list key."""
        return as_columns(self.options.user_col)

    @property
    def pair(self) -> list[str]:
        """Columns that name an item of a list."""
        return [*self.keys, self.options.item_col]


class ListFindings(Findings):
    """Findings of which some concern lists, whose labels are then the examples, and some one recommender."""

    columns: ClassVar[Mapping[str, str]] = {**FINDING_COLUMNS, "by": "str", "ranges": "str"}

    def lists(
        self, finding: str, severity: Severity, matched: Matched, where: np.ndarray, of: np.ndarray,
        effect: str | Callable[[np.ndarray], tuple[str, str]], once: bool = False,
    ) -> None:  # fmt: skip
        """Add a finding for each recommender with lists for which `where` is true, of those for which `of` is.

        What is true of a list whatever was recommended is said `once`. An effect that depends on the lists is a
        function of them; it returns its words and the ranges of metrics.
        """
        for name, own in [("", next(parts_by(matched))[1])] if once else parts_by(matched):
            found = where & own
            if found.any():
                words, ranges = (effect, "") if isinstance(effect, str) else effect(own)
                some = labels_where(matched, found)
                self.add(finding, severity, found.sum(), (of & own).sum(), some, words, name, ranges)


def parts_by(matched: Matched) -> Iterator[tuple[str, np.ndarray]]:
    """Return every recommender by its label with its lists; all lists without a name where there is no `by`."""
    if not len(matched.by.columns):
        yield "", np.ones(len(matched), bool)
        return
    for code, values in enumerate(matched.by.astype(object).to_numpy().tolist()):
        yield " · ".join(map(str, values)), matched.list_by == code


def labels_where(matched: Matched, where: np.ndarray) -> list[Any]:
    """Return the keys of the first lists for which `where` is true."""
    keys = label_frame(matched).drop(columns=list(matched.by.columns))
    return row_objects(keys.take(np.flatnonzero(where)[:5]))


def check_lists(found: ListFindings, data: Data, matched: Matched) -> None:
    """Add the findings about lists."""
    _check_duplicates(found, data, matched)
    _check_population(found, data, matched)
    _check_lengths(found, data, matched)
    _check_sampled(found, matched)


def _check_duplicates(found: ListFindings, data: Data, matched: Matched) -> None:
    for role, frame, names, lists in (
        ("true", data.true, data.pair, matched.true_lists),
        ("pred", data.pred, [*data.by, *data.pair], matched),
    ):
        count = matched.counts.get(f"{role}_duplicates", 0)
        if not count:
            continue
        effect = 'evaluate keeps the best and warns; ⟦+duplicates="keep"⟧ counts them all'
        if data.options.judged_only:  # other rows are dropped as well
            rows = row_objects(frame[names][frame[names].duplicated().to_numpy()].dropna().head(5))
        else:
            rows = _dropped(frame, names, lists.rows(np.arange(len(lists.item))))
        found.add(f"duplicate rows in {role}", "warning", count, len(frame), rows, effect)


def _dropped(frame: pd.DataFrame, names: list[str], kept: np.ndarray) -> list[Any]:
    """Return the first rows with ids whose positions are not among those `kept`: they repeat another row."""
    gone = np.ones(len(frame), bool)
    gone[kept] = False
    return row_objects(frame[names].take(np.flatnonzero(gone)).dropna().head(5))


def _check_population(found: ListFindings, data: Data, matched: Matched) -> None:
    """Report lists that are in only one of the frames, or that have no relevant item."""
    judged, served = matched.true_list >= 0, matched.n_pred > 0
    effect = 'they score 0; ⟦+users="both"⟧ leaves them out'
    found.lists("lists without recommendations", "warning", matched, judged & ~served, judged, effect)
    effect = 'not evaluated; ⟦+users="pred"⟧ counts them'
    found.lists("lists without truth", "info", matched, served & ~judged, served, effect)
    effect = "recall and ndcg are undefined there and skipped by the mean"
    found.lists("lists without a relevant item", "info", matched, judged & (matched.n_true == 0), judged, effect, True)


def _check_lengths(found: ListFindings, data: Data, matched: Matched) -> None:
    """Report lists shorter than k, and lists with more than k relevant items."""
    k, judged, served = data.k, matched.true_list >= 0, matched.n_pred > 0
    short = served & (matched.n_pred < k)
    effect = f"precision@{k} counts the missing ranks as misses"
    found.lists(f"lists shorter than {k}", "info", matched, short, served, effect)
    long, n_true = matched.n_true > k, matched.n_true[judged]
    if long.any():
        limit = (np.minimum(n_true, k) / np.maximum(n_true, 1))[n_true > 0].mean()
        effect = f"mean recall@{k} cannot pass {limit:.4g}; precision@{k} is not limited there"
        found.lists(f"more than {k} relevant items", "info", matched, long, judged, effect, True)


# Candidates look sampled if there are so many lists, and nearly all of them have all their relevant items beside the
# same number of others.
MANY_LISTS, NEARLY_ALL = 20, 0.95
SAMPLED = "candidates look sampled"
# Slates of a shop, too, can hold one clicked item beside a fixed number of others. These are few, and the same items
# stand in many slates, while random items are spread evenly: the variance of their counts is about the mean.
MANY_OTHERS, FEW_OTHERS, EVEN = 20, 5, 1.5


def _check_sampled(found: ListFindings, matched: Matched) -> None:
    """Report lists that look like the relevant items of a user among a few sampled ones."""
    lists = matched.at(None)
    others = matched.n_pred - lists.n_hits.astype(np.int64)
    counts = np.bincount(matched.item) / len(matched.by)  # recommenders mostly rank the same candidates
    counts = counts[counts > 0]
    for name, own in parts_by(matched):
        served = own & (matched.n_true > 0) & (matched.n_pred > 0)
        if served.sum() < MANY_LISTS:
            continue
        usual = int(np.bincount(others[served]).argmax())
        alike = served & (lists.n_hits == matched.n_true) & (others == usual)
        even = counts.var() < EVEN * counts.mean() and (matched.n_true[alike] == 1).all()
        all_items = len(counts) <= matched.n_pred[served].max()
        if alike.sum() < NEARLY_ALL * served.sum() or all_items or usual < (FEW_OTHERS if even else MANY_OTHERS):
            continue
        effect = (
            f"lists hold all relevant items and {usual:,} others. If these were sampled, metrics may order models "
            "otherwise than over all items: rank all items, or correct lists of one relevant item with "
            f"rd.sampled_values(metric, n_items=..., n_sampled={usual})"
        )
        some = labels_where(matched, alike)
        found.add(SAMPLED, "warning", alike.sum(), served.sum(), some, effect, name)
