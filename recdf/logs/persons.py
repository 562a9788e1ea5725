"""Devices to persons: whose device each row of a log is, and the assignment of a person who has
several devices.

Contract: a device that a mapping names several times is that of the person in the first row, by
time if the mapping has times. A device that it does not name is a person of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..errors import OptionError
from ..inputs.codes import check_kinds, encode
from ..inputs.frames import column
from ..inputs.ids import read_ids
from ..inputs.options import as_columns
from ..inputs.sorting import distinct
from .impression_rows import SESSION, Rules, frame_codes, raw_frame


def with_persons(
    frames: Mapping[str, pd.DataFrame],
    persons: Any,
    user_col: str,
    person_col: str,
    time_col: str | None = None,
) -> tuple[dict[str, pd.DataFrame], dict[str, int]]:
    """Return the frames with a column `person_col`, and counts of their devices, which are in
    `user_col`."""
    persons = raw_frame(persons, "persons")
    for role, frame in {**frames, "persons": persons}.items():
        column(frame, user_col, role)
        if role != "persons" and person_col in frame.columns:
            raise OptionError(
                f"{role} has a column {person_col!r}, which comes from ⟦persons=⟧; drop it in "
                f"{role}"
            )
    column(persons, person_col, "persons")
    if time_col in persons.columns:
        persons = persons.sort_values(time_col, kind="stable")
    persons = persons[persons[person_col].notna()].reset_index(drop=True)
    codes, n = frame_codes({**frames, "persons": persons}, [*frames, "persons"], user_col)
    of = codes.pop("persons")
    row = np.flatnonzero(of >= 0)[::-1]
    first = np.full(n + 1, -1, np.int64)  # with one entry more, which the code -1 of a null reads
    first[of[row]] = row
    label, where = persons[person_col], f"persons[{person_col!r}]"
    ids = read_ids(label, where)
    person = encode([ids]).codes[0]
    of_other = distinct(of[row][person[row] != person[first[of[row]]]])
    seen, found = np.zeros(n + 1, bool), {}
    for role, frame in frames.items():
        place, together = first[codes[role]], label
        seen[codes[role]] = True
        own = np.flatnonzero(place < 0)
        if len(own):
            devices = frame[user_col].iloc[own]
            check_kinds([ids, read_ids(devices, f"{role}[{user_col!r}]")])
            together = pd.concat([label, devices], ignore_index=True)
            place[own] = len(label) + np.arange(len(own))
        found[role] = frame.assign(**{person_col: together.take(place).array})
    seen[n] = False
    unknown = seen & (first < 0)
    counts = {"devices": seen, "unknown_devices": unknown, "shared_devices": of_other >= 0}
    return found, {name: int(flags.sum()) for name, flags in counts.items()}


def key_of_lists(
    list_cols: Any, session_gap: Any, user_col: str, person_col: str | None
) -> tuple[str, ...]:
    """Return the columns that name a list of a user: sessions come last; those of a person have a
    device."""
    lists = tuple(as_columns(list_cols))
    if session_gap is not None:
        lists = (*(name for name in lists if name != SESSION), SESSION)
    if person_col is not None and lists:
        lists = (user_col, *(name for name in lists if name != user_col))
    return lists


def read_persons(
    frames: Mapping[str, Any], rules: Rules
) -> tuple[dict[str, Any], dict[str, dict[str, int]]]:
    """Return the log and its events, with their persons if the rules have devices, and then the
    counts of devices as `persons`. `frames` has the persons, too."""
    given = dict(frames)
    persons = given.pop("persons", None)
    if rules.device_col is None and persons is None:
        return given, {}
    if rules.device_col is None or persons is None:
        raise OptionError("⟦persons=⟧ and ⟦person_col=⟧ go together; pass both, or neither")
    given = {role: raw_frame(data, role) for role, data in given.items()}
    found, counts = with_persons(given, persons, rules.device_col, rules.user_col, rules.time_col)
    return dict(found), {"persons": counts}


def assign_persons(
    assignment: Any,
    persons: Any,
    *,
    person_col: str,
    user_col: str = "user_id",
    time_col: str | None = None,
) -> pd.DataFrame:
    """Turn the assignment of devices to variants into one of persons: of each person, the first
    assignment stands.

    Parameters
    ----------
    assignment : DataFrame or Arrow stream
        One row per assigned device: `user_col`, the variant, and any other columns.
    persons : DataFrame or Arrow stream
        One row per device, with `user_col` and `person_col`, as in `from_impressions`.
    person_col : str
        Column of the person in `persons`, and in the result.
    user_col : str, default "user_id"
        Column of the device, in both frames.
    time_col : str, optional
        Time of the assignment in `assignment`. By default its first row is the first assignment. If
        `persons` has this column, it is the time from which the device is the person's.

    Returns
    -------
    DataFrame
        One row per person, in the order of `assignment`: `person_col`, the columns of the first
        assignment, and `n_devices`, how many devices of the person were assigned.

    Raises
    ------
    ColumnError, IdTypeError, OptionError
        A column is missing; ids of devices and persons cannot stand in one column; `assignment` has
        `person_col`.

    Notes
    -----
    Someone who was assigned on the phone first and on the laptop later is analysed in the variant
    of the phone, also if the laptop showed the other one. To leave out these persons would depend
    on what the variants did to them.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> devices = pd.DataFrame(
    ...     {"user_id": ["phone", "laptop", "tv"], "variant": ["A", "B", "B"], "day": [2, 1, 1]}
    ... )
    >>> persons = pd.DataFrame({"user_id": ["phone", "laptop"], "person_id": ["ann", "ann"]})
    >>> rd.logs.assign_persons(devices, persons, person_col="person_id", time_col="day")
      person_id user_id variant  day  n_devices
    0       ann  laptop       B    1          2
    1        tv      tv       B    1          1
    """
    given = {"assignment": raw_frame(assignment, "assignment")}
    frame = with_persons(given, persons, user_col, person_col, time_col)[0][
        "assignment"
    ].reset_index(drop=True)
    frame["n_devices"] = frame.groupby(person_col)[user_col].transform("nunique")
    if time_col is not None:
        column(frame, time_col, "assignment")
        frame = frame.sort_values(time_col, kind="stable")
    frame = frame.drop_duplicates(person_col).sort_index().reset_index(drop=True)
    return frame[[person_col, *(name for name in frame.columns if name != person_col)]]
