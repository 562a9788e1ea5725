"""What pictures, leaderboard and report read from a result: one row per model and metric, or one
column per model; also from a result of few labels of people and many cheap ones.

Contract: a function here takes an evaluation or one of its tables and returns a plain frame in
fixed columns. The `by` columns of an evaluation become one text column, `model`, so that nothing
behind this door asks how many there are. In a result of both labels, the rows are the lists of the
cheap one, with the values of people in the columns of the metrics, null where nobody judged, and
the cheap ones beside them, which `compare_models` knows; means and intervals are of both.

The tests of one comparison are one family. Where all models were evaluated on the same lists in
the same order, lists are paired by their place, so that their ids need not be coded again.
Otherwise they are paired by their keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..diagnostics.gate_records import CHECK_COLUMNS, GATE_COLUMNS, Gate
from ..diagnostics.history import History
from ..errors import ColumnError, DataError, OptionError, closest, kind_of
from ..evaluation.result import Evaluation, Result, join_results
from ..evaluation.spec import better_of
from ..evaluation.value_moments import CONFIDENCE, groups_of, means, unit_codes
from ..experiments.compare.cheap_labels import (
    JUDGED,
    cheap_column,
    join_labels,
    label_sentences,
    labelled_row,
    share_samples,
)
from ..experiments.compare.compare_models import compare_models
from ..experiments.metric_bounds import bounds_of, bounds_of_result, seen_bounds
from ..experiments.samples import declared_bounds
from ..judge.cautions.table import CAUTIONS
from ..judge.choices import Columns, as_columns
from ..judge.comparability import spec_of_numbered
from ..judge.per_user_columns import Floats, frame_of, split, unit_of, unit_word
from ..judge.users import repeated_unit
from ..judge.verdict import has, remark
from ..tables.cells import amount, beside_columns, columns_before

# The label of a result that was evaluated without by=.
ONLY = "all lists"
JOINED_BY = " · "
LISTS_ARE_UNITS = "lists are units"  # in the spec: the caller says so
LABELS = "labels"  # in the spec of such a result: sentences that say what the means are made of
RESTATED = ["value", "se", "ci_low", "ci_high", "n", "n_undefined"]
EVALUATION = "an Evaluation, as rd.evaluate returns"
SUMMARY_VALUES = ("metric", "k", "value", "ci_low", "ci_high", "n", "n_undefined")


# Columns of the tables that recdf makes which hold numbers; a file that was made or changed
# elsewhere may hold text.
NUMBER_COLUMNS = (
    "count share diff rel_diff ci_low ci_high p_adj value confidence n_users n_control "
    "n_treatment wins ties losses change change_low change_high mean_baseline mean_candidate "
    "alpha n_assigned expected_share missing_rate srm_p missing_p"
)


def need(frame: Any, role: str, names: Iterable[str], source: str) -> DataFrame:
    """Return the frame if it has these columns, and numbers where recdf writes numbers.

    The error names the first column that is missing, or holds no numbers, and where the table
    should come from.
    """
    frame_of(role, need_a(DataFrame, frame, role, source))
    if missing := [name for name in names if name not in [*frame.columns]]:
        raise ColumnError(
            f"{role} has no column {missing[0]!r}; it has {', '.join(map(repr, frame.columns))}; "
            f"expected {source}{closest(missing[0], frame.columns)}"
        )
    for name, column in frame[frame.columns.intersection(NUMBER_COLUMNS.split())].items():
        if len(frame) and not pd.api.types.is_numeric_dtype(column.dtype):
            raise DataError(f"{role}[{name!r}] is {column.dtype}; expected numbers: pass {source}")
    return frame


def need_a(kind: type, given: Any, role: str, source: str) -> Any:
    """Return what is of a class; anything else raises."""
    if not isinstance(given, kind):
        raise TypeError(f"{role} is {kind_of(given)}; expected {source}")
    return given


def need_gate(gate: Any) -> Gate:
    """Return what is a gate; a table of something else in it raises."""
    source = "what rd.gate returned"
    table = need(need_a(Gate, gate, "gate", source).table, "gate", GATE_COLUMNS, source)
    need(gate.checks, "checks of the gate", CHECK_COLUMNS, source)
    if table.empty:
        raise DataError(f"gate has no rows; leave it out, or pass {source}")
    return gate


def need_history(history: Any) -> History:
    """Return what is a history; anything else raises."""
    return need_a(History, history, "history", "rd.diagnostics.History(folder)")


def picked(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return some columns as a frame of its own, without what pandas keeps beside them."""
    return DataFrame({name: frame[name].array for name in names})


def labels(frame: DataFrame, by: Sequence[str]) -> list[str]:
    """Return the text of the `by` values of every row, several columns joined by a dot."""
    if not by:
        return [ONLY] * len(frame)
    parts = (
        frame[name].astype(object).where(frame[name].notna(), "(null)").map(str) for name in by
    )
    return list(map(JOINED_BY.join, zip(*parts, strict=True)))


def as_result(given: Any) -> Evaluation:
    """Return a result, or several by model as one; anything else raises."""
    if isinstance(given, Mapping):
        return join_results(given)
    if isinstance(given, Result) and hasattr(given, "to_pandas"):  # that of an engine
        given = given.to_pandas()
    return need_a(Evaluation, given, "result", EVALUATION)


def in_buckets(given: Any, of_rows: Mapping[str, Any]) -> bool:
    """Return whether the rows of a result stay where they are, dealt to buckets. `of_rows` are
    arguments that need the rows in memory."""
    if not getattr(given, "rows_stay", False):
        return False
    asked = [name for name, value in of_rows.items() if value is not None]
    if asked and not isinstance(given, Evaluation):
        raise OptionError(
            f"⟦{asked[0]}=⟧ needs the rows of all lists in one process; pass result.to_pandas(), "
            "which brings them into memory",
            argument=asked[0],
        )
    return not asked


def spec_with_bounds(spec: dict[str, Any], bounds: Any) -> dict[str, Any]:
    """Return the record of a result with the bounds that the caller declares."""
    if bounds is None:
        return spec
    return {**spec, "bounds": declared_bounds(bounds, spec["metrics"])}


def with_units(result: Evaluation, unit_col: Columns | None = None) -> Evaluation:
    """Return the result with intervals that hold where a unit has several lists; its spec then has
    `unit_col`.

    The unit is `user_id`, or else the first column of the list key, unless the caller names
    another.
    """
    spec = dict(result.spec)
    per_user = result.per_user
    key = spec["user_col"]
    units = as_columns(unit_col) or unit_of(key)
    if "unit_col" in spec or LISTS_ARE_UNITS in spec:
        return result
    if unit_col is not None and units == key:
        spec[LISTS_ARE_UNITS] = units
    elif unit_col is None and len(per_user):
        first = per_user.take(next(iter(model_rows(result).values())))
        if repeated_unit(first, key, len(first)) and first[units[0]].is_unique:
            spec["repeated_units"] = True
    names = [name for name in spec["metrics"] if name in per_user]
    if units == key or not names:
        return Evaluation(per_user, result.summary, spec)
    spec["unit_col"] = units
    need(per_user, "per_user", units, "the column of unit_col=")
    own = means_of_lists(per_user, spec["by"], names, spec, units)
    return Evaluation(per_user, restated(result, own), spec)


def means_of_lists(
    rows: DataFrame,
    by: list[str],
    names: list[str],
    spec: Mapping[str, Any],
    units: Sequence[str] = (),
) -> DataFrame:
    """Return the mean and the interval of some metrics in each group of the lists of a result."""
    weights = rows[spec["weight"]].to_numpy(float) if "weight" in spec else None
    return means(rows, by, names, spec, spec.get("confidence", CONFIDENCE), units, weights)


def restated(result: Result, own: DataFrame) -> DataFrame:
    """Return the summary with the errors and intervals of `own` in the rows of metrics over all
    lists."""
    summary = result.summary.copy(deep=False)
    keys = [*result.spec["by"], "metric", "k"]
    columns = ["se", "ci_low", "ci_high"]
    found = summary[keys].merge(own[[*keys, *columns]], "left", validate="m:1", indicator=True)
    kept = found["_merge"].ne("both").to_numpy()
    if "item_by" in result.spec:
        kept |= summary[result.spec["item_by"]].notna().to_numpy()
    for name in columns:
        summary[name] = summary[name].where(kept, found[name].to_numpy())
    return summary


def summary_of(result: Any, apart: str | None = None) -> DataFrame:
    """Return the summary as `model`, `column` (such as ndcg@10), `better`, `metric`, `k`, `value`,
    interval, counts.

    `apart` is a column of `by` that tells no models apart, such as a week; its values are in a
    column `x` then. `better` is "larger", "smaller" or an empty text. Rows of single item groups
    (`item_by=`) are left out: they are another population.
    """
    if isinstance(result, Evaluation):
        frame = with_units(result).summary
        by = result.spec["by"]
        if "item_by" in result.spec:
            frame = frame[frame[result.spec["item_by"]].isna()]
    else:
        frame = need(result, "result", SUMMARY_VALUES, "an Evaluation or its summary")
        by = columns_before(frame, "metric")
    table = picked(frame, SUMMARY_VALUES)
    if apart is not None:
        need(frame, "result", [apart], f"an evaluation with by=[..., {apart!r}], or its summary")
        table["x"] = frame[apart].to_numpy() if frame[apart].dtype == object else frame[apart].array
    table.insert(0, "model", labels(frame, [name for name in by if name != apart]))
    table.insert(1, "column", column_names(table, result))
    known = {name: direction_word(result, name) for name in table["column"].unique()}
    table.insert(2, "better", table["column"].map(known))
    return table


def direction_word(result: Any, column: str) -> str:
    """Return "larger", "smaller" or an empty text for one column of an evaluation.

    It is that of the metric's definition, since a name of the caller's own says nothing; without
    one, that of the name.
    """
    own = result.spec["metrics"].get(column, {}) if isinstance(result, Evaluation) else {}
    return better_of(own.get("name", column)) or better_of(own.get("definition", column)) or ""


def column_names(summary: DataFrame, result: Any = None) -> list[str]:
    """Return the name of the per-user column of every row: `ndcg@10`, `mae` where k is ignored, or
    an own name."""
    spec = result.spec["metrics"] if isinstance(result, Evaluation) else {}
    known = {(found["name"], found["k"]): column for column, found in spec.items()}
    rows = zip(summary["metric"].map(str), summary["k"], strict=True)
    keys = [(metric, None if pd.isna(k) else int(k)) for metric, k in rows]
    return [known.get(key, key[0] if key[1] is None else f"{key[0]}@{key[1]}") for key in keys]


def model_values(result: Any, metric: str) -> dict[str, Floats]:
    """Return the values of one metric for every model: one number per list, NaN where the metric is
    undefined."""
    found = as_result(result)
    per_user = need(found.per_user, "per_user", [metric], "a metric column of the evaluation")
    values = per_user[metric].to_numpy(float, na_value=np.nan)
    return {label: values[rows] for label, rows in model_rows(found).items()}


def chosen(argument: str, wanted: Any, known: Iterable[Any], what: str = "model") -> str:
    """Return the model, metric or variant that a caller names, or the only one that there is."""
    names = list(dict.fromkeys(map(str, known)))
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted is None:
        raise OptionError(f"⟦+{argument}=⟧ is not given; name one of {names}")
    text = JOINED_BY.join(map(str, wanted)) if isinstance(wanted, tuple) else str(wanted)
    if text in names:
        return text
    raise OptionError(
        f"⟦{argument}={wanted!r}⟧ is not a {what}; expected one of {names}{closest(text, names)}"
    )


def interval_percent(result: Any) -> str:
    """Return the confidence of the intervals of a result for a caption, such as '95 %
    intervals'."""
    if not isinstance(result, Evaluation):
        return "intervals"
    return f"{100 * result.spec.get('confidence', 0.95):g} % intervals"


def count_text(numbers: Iterable[Any], noun: str) -> str:
    """Return 'n = 1,537 users', or the range when counts differ."""
    counted = count_range(numbers, noun)
    return counted and f"n = {counted}"


def count_range(numbers: Iterable[Any], noun: str) -> str:
    """Return '1,537 users', or '1,200 to 1,537 users' when counts differ."""
    found = {int(n) for n in numbers if pd.notna(n)}
    least = f"{min(found):,} to " if len(found) > 1 else ""
    return f"{least}{amount(max(found), noun)}" if found else ""


# -- labels of people and cheap ones


def with_both_labels(people: Evaluation, cheap: Any) -> Evaluation:
    """Return the result of both; `people` has its units already."""
    need_a(Evaluation, cheap, "cheap", EVALUATION)
    for name in ("user_col", "by", "weight"):
        if (own := people.spec.get(name)) != (other := cheap.spec.get(name)):
            raise OptionError(f"result and cheap differ in {name}: {own} and {other}")
    by = cheap.spec["by"]
    metrics = people.spec["metrics"]
    known = cheap.spec["metrics"]
    if unlike := [name for name in metrics if metrics[name] != known.get(name)]:
        raise OptionError(
            f"result and cheap differ in metrics: cheap lacks {unlike}, or defines them in another "
            "way"
        )
    names = [name for name in metrics if name in people.per_user]
    keys = [*by, *cheap.spec["user_col"]]
    rows = join_labels(people.per_user, cheap.per_user, names, keys, "result")
    if by:  # models that people have not judged
        rows = rows[rows.groupby(by, observed=True)[JUDGED].transform("any")].reset_index(drop=True)
    rows.attrs = {}
    item_by = as_columns(cheap.spec.get("item_by"))
    # In the order of `people`.
    same = [*by, "metric", "k", *item_by]
    summary = people.summary[same].merge(cheap.summary, on=same).assign(std=np.nan)
    spec = {**cheap.spec, "metrics": metrics, "labels of people": people.spec}
    for name in {"unit_col", "repeated_units", "bounds"} & people.spec.keys():
        spec[name] = people.spec[name]
    found = Evaluation(rows, summary, spec)
    at = DataFrame({"model": labels(summary, by), "column": column_names(summary, found)})
    at = at[at["column"].isin(names) & summary[item_by].isna().all(axis=1)]
    places = model_rows(found)
    means = [("", column, places[model]) for model, column in at.itertuples(index=False)]
    numbers = powered_means(found, means).set_index(at.index)
    summary.loc[at.index, RESTATED] = numbers[RESTATED]
    numbers["what"] = at["column"] + (" of " + at["model"] if by else "")
    first = numbers[at["column"] == names[0]]
    spec[LABELS] = label_sentences(first["n_human"], first["n_cheap"], first.to_dict("records"))
    for one in CAUTIONS.values():
        if has(numbers["remarks"], one.code).any():
            doubt = one.sentence.replace("verdict", "interval")
            spec[LABELS].append(f"{doubt[0].upper()}{doubt[1:]}.")
    return found


def powered_means(result: Evaluation, means: Sequence[tuple[Any, str, np.ndarray]]) -> DataFrame:
    """Return the numbers of each mean, which is a sample of lists, a column and the rows of some of
    them; in doubt it has no interval."""
    spec = result.spec
    found = []
    for _, column, at in means:
        own = result.per_user.take(at)
        y, f = (own[name].to_numpy(float) for name in (column, cheap_column(column)))
        weights = own[spec["weight"]].to_numpy(float) if "weight" in spec else None
        unit = unit_codes(own, spec["unit_col"]) if "unit_col" in spec else None
        known = bounds_of(
            column,
            spec.get("bounds", {}),
            y,
            f,
            definition=spec["metrics"][column]["definition"],
        )
        judged = own[JUDGED].to_numpy(bool)
        confidence = spec.get("confidence", CONFIDENCE)
        row = labelled_row(y, f, judged, known or seen_bounds(y, f), confidence, weights, unit)
        n_undefined = int(np.isnan(f).sum())
        row |= {"value": row["mean"], "n": len(f) - n_undefined, "n_undefined": n_undefined}
        found.append(row)
    table = DataFrame(found)
    share_samples(table, [sample for sample, *_ in means])
    table.loc[table["remarks"] != "", ["se", "ci_low", "ci_high"]] = np.nan
    return table


# -- models side by side: where their lists stand, and their comparison

# Columns of numbers that stand for labels: coding millions of them again would take longer than the
# tests.
MODEL = "recdf: model"
LIST = "recdf: list"
UNIT = "recdf: unit"
GROUP = "recdf: number of group"


def model_rows(result: Evaluation) -> dict[str, np.ndarray]:
    """Return the rows of `per_user` of every model, by its label, in the order of first
    appearance."""
    frame = result.per_user
    by = result.spec["by"]
    if not by:
        return {ONLY: np.arange(len(frame))}
    # A null is unequal to everything. A shift would make floats of integers.
    before = frame[by].take(np.arange(len(frame)) - 1).set_axis(frame.index)
    changes = [frame[name].ne(before[name]).fillna(True).to_numpy(bool) for name in by]
    changes.append(np.arange(len(frame)) == 0)
    starts = np.flatnonzero(np.any(changes, axis=0))
    first = frame.take(starts)
    rows = np.split(np.arange(len(frame)), starts[1:])
    if first.duplicated(by).any():  # rows of one value stand apart, which is rare
        codes, first = groups_of(frame, by)
        rows = split(codes, len(first))
    return dict(zip(labels(first, by), rows, strict=True))


def list_places(
    result: Evaluation, rows: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return one integer per row of `per_user`, the same for the same list of every model, and the
    first row of each list."""
    key = result.spec["user_col"]
    keys = result.per_user[key]
    of_models = (keys.take(own).reset_index(drop=True) for own in rows.values())
    if rows and all(map(next(of_models).equals, of_models)):
        places = np.empty(len(keys), int)
        for own in rows.values():
            places[own] = np.arange(len(own))
        return places, next(iter(rows.values()))
    places, _ = groups_of(keys, key)
    return places, np.unique(places, return_index=True)[1]


def numbered_lists(
    result: Evaluation, columns: list[str], within: Mapping[Any, np.ndarray]
) -> DataFrame:
    """Return some columns of every list, with the numbers of its model, its unit and itself; with
    `within`, the rows of every group, one group after another."""
    rows = model_rows(result)
    per_user = result.per_user
    spec = result.spec
    models = np.empty(len(per_user), int)
    lists, _ = list_places(result, rows)
    for code, own in enumerate(rows.values()):
        models[own] = code
    frame = per_user[per_user.columns.intersection(columns, sort=False)]
    numbers = {MODEL: models, LIST: lists}
    if "unit_col" in spec:
        numbers[UNIT] = unit_codes(per_user, spec["unit_col"])
    frame = beside_columns(frame, numbers)
    if within:
        group = np.repeat(np.arange(len(within)), [*map(len, within.values())])
        frame = beside_columns(frame.take(np.concatenate([*within.values()])), {GROUP: group})
    return frame


def compare(
    result: Evaluation,
    columns: Sequence[str],
    within: Mapping[Any, np.ndarray] = {},
    **options: Any,
) -> DataFrame:
    """Compare models on their common lists, all pairs or each with a baseline, over all lists or
    within groups; options are those of `compare_models`.

    `within` holds the rows of `per_user` of every group, and a row may be in several; the tests of
    all groups are one family. Returns the columns of `compare_models`, with `group` before them
    where groups are given.
    """
    spec = result.spec
    models = list(model_rows(result))
    weight = spec.get("weight")
    names = [*columns, JUDGED, *map(cheap_column, columns), "n_true", "n_pred", *as_columns(weight)]
    frame = numbered_lists(result, names, within)
    # The comparison reads there whether two models were measured alike.
    word = unit_word(spec.get("unit_col", spec.get(LISTS_ARE_UNITS, ())), spec["user_col"])
    frame.attrs = {"recdf": {**spec_of_numbered(spec, models), "unit_word": word}}
    options |= {"user_col": LIST, "model_col": MODEL, "weight_col": weight}
    options |= {"unit_col": UNIT} if "unit_col" in spec else {}
    return compare_numbered(frame, result, models, columns, [*within], **options)


def compare_numbered(
    rows: Any,
    result: Evaluation,
    models: list[str],
    columns: Sequence[str],
    groups: Sequence[Any],
    *,
    baseline: str | None,
    **options: Any,
) -> DataFrame:
    """Compare the models of some rows, in which numbers stand for the models and the groups."""
    better = {name: direction_word(result, name) for name in columns}
    table = compare_models(
        rows,
        columns,
        by=GROUP if groups else None,
        baseline=None if baseline is None else models.index(baseline),
        missing="drop",
        smaller_is_better=[name for name in columns if better[name] == "smaller"],
        larger_is_better=[name for name in columns if better[name] == "larger"],
        bounds=bounds_of_result(result.spec, getattr(rows, "empty_rows", rows), columns),
        details=True,
        **options,
    )
    if "repeated_units" in result.spec:
        remark(table, [True] * len(table), "repeated_units")
    for column in ("baseline", "model"):
        table[column] = [models[code] for code in table[column]]
    if groups:
        table = table.rename(columns={GROUP: "group"})
        table["group"] = [groups[code] for code in table["group"]]
    return table
