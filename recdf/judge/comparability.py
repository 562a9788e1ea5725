"""What two results must share before a sentence compares them.

Contract: a result is known by its spec, a mapping that is empty where it is lost, and by columns of
its table: `n_true` still tells another truth, and `n_pred` shorter lists, where the spec is lost.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..inputs.conventions import find_convention
from ..stats.numbers import Floats
from .choices import AnySpec

# Options that say how the rows of a model are written, so that two models may differ in them. What
# `like` changes stands in definitions.
OF_PRED = ("by", "by_in_true", "score_col", "rank_col", "item_col", "like", "users", "user_col")


class Fact(NamedTuple):
    """What two results were evaluated with, in words: `code` is the caution where they differ."""

    code: str
    own: str | None
    base: str | None

    @property
    def differs(self) -> bool:
        """Tell whether both are known and not the same."""
        return None not in (self.own, self.base) and self.own != self.base


def facts_of(
    own: AnySpec,
    base: AnySpec,
    definitions: Mapping[str, Sequence[str | None]],
    needed: Collection[str] | None,
) -> dict[str, Fact]:
    """Return what two results were evaluated with, by its name; None where nothing tells.

    `definitions` are those of each metric in both, with all parameters, and `needed` the side
    tables that these metrics depend on; None if that is not known. The truth is not among the
    facts, since the counts of the lists tell more of it.
    """
    if not own or not base:
        recorded = (None if not spec else "recorded" for spec in (own, base))
        return {"options and definitions": Fact("other_definition", *recorded)}
    sides = (own, base)
    options = [spec.get("options", {}) for spec in sides]
    found = {"option users": Fact("other_population", *(str(one.get("users")) for one in options))}
    for metric, named in definitions.items():
        meant = [_with_rules(spec, one) for spec, one in zip(sides, named, strict=True)]
        found[f"definition of {metric}"] = Fact("other_definition", *meant)
    for name in {name: None for one in options for name in one if name not in OF_PRED}:
        given = [str(one.get(name)) for one in options]
        if given[0] != given[1]:
            found[f"option {name}"] = Fact("other_options", *given)
    tables = [spec.get("side_tables", {}) for spec in sides]
    for name in {**tables[0], **tables[1]}:
        if needed is not None and name not in needed:
            continue
        if name == "exclude" or all(name in one for one in tables):  # others belong to metrics
            digests = (one.get(name, {"digest": "nothing"})["digest"] for one in tables)
            found[f"{name}="] = Fact("other_side_table", *digests)
    orders: list[str | None] = [spec.get("order", {}).get("by") for spec in sides]
    if orders[0] != orders[1] and "row" in orders:
        # A score and a rank say the same; rows that were not meant as an order do not.
        found["order of pred"] = Fact("other_order", *orders)
    return found


def _with_rules(spec: AnySpec, definition: str | None) -> str | None:
    """Return a definition with what the convention of the call changes beside its parameters."""
    convention = spec.get("options", {}).get("like")
    if definition is None or convention is None:
        return definition
    try:
        rules = find_convention(convention)
    except ValueError:  # a convention of the caller's own
        return f"{definition} like {convention}"
    name = definition.partition("@")[0].partition("(")[0]
    where = "" if rules is None else rules.undefined.get(name, "")
    return f"{definition} without lists where {where} = 0" if where else definition


def other_truth(n_true: Floats, whole: bool) -> tuple[int, int]:
    """Return in how many lists two tables count other relevant items, and how many both count.

    `n_true` has a row for each table, NaN where a list is missing. With `whole`, the population of
    both is that of the truth, so that a list of one alone is another one too.
    """
    both = np.nan_to_num(n_true) if whole else n_true
    compared = ~np.isnan(both).any(axis=0)
    return int(np.count_nonzero((both[0] != both[1]) & compared)), int(compared.sum())


def lists_shorter_than(n_pred: Floats, k: int) -> Floats:
    """Return for each of two tables how many lists end before k where those of the other reach it,
    and of how many.

    `n_pred` has a row for each table. Lists that one of them lacks do not count.
    """
    n = n_pred[:, (np.nan_to_num(n_pred) > 0).all(axis=0)]
    short = n < k
    return np.array([*(short & ~short[::-1]).sum(axis=1), n.shape[1]], np.float64)


def spec_of_each(given: AnySpec, names: Sequence[Any]) -> list[AnySpec]:
    """Return what each model of a result was evaluated with: its own record, if results were
    joined."""
    joined = given.get("joined", {})
    return [joined.get(str(name), given) for name in names]


def spec_of_numbered(given: AnySpec, names: Sequence[Any]) -> AnySpec:
    """Return the record of a result in which numbers stand for the models: what each was evaluated
    with, and its name."""
    joined = {str(code): one for code, one in enumerate(spec_of_each(given, names))}
    return {"joined": joined, "names": dict(enumerate(names))}


def names_of(given: AnySpec, models: Sequence[Any]) -> list[Any]:
    """Return the names of models, for which numbers may stand."""
    names = given.get("names", {})
    return [names.get(model, model) for model in models]
