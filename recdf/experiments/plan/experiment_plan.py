"""A plan that was written before an experiment, and what was done otherwise."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from ...errors import OptionError, closest
from ...inputs.constraints import NONE, Share, a_number, check_record, either
from ...inputs.options import as_columns
from ...judge.choices import VariantTest, check_value
from ...tables.cells import amount

# More users than planned by this share are an experiment that ran on.
RAN_ON = 0.1


@dataclass(frozen=True)
class ExperimentPlan:
    """What was decided before an experiment, as `read_plan` reads it; `roles=` takes it in place of
    a mapping.

    `digest` is the SHA-256 of the file. Fields that are None were left open.
    """

    hypothesis: str
    primary: tuple[str, ...]
    digest: str
    guardrails: Mapping[str, Any] | None = None
    control: Any = None
    unit: tuple[str, ...] | None = None
    segments: tuple[str, ...] | None = None
    method: VariantTest | None = None
    n: Annotated[int | None, either(a_number(4, whole=True), NONE)] = None
    looks: int | str | None = None
    confidence: Share = 0.95

    def __post_init__(self) -> None:
        check_record(self)
        if self.looks not in (None, "any"):
            check_value("looks", self.looks, a_number(1, whole=True))

    @property
    def roles(self) -> dict[str, Any]:
        """The role of every metric that was planned."""
        margins = {name: ("guardrail", margin) for name, margin in (self.guardrails or {}).items()}
        return dict.fromkeys(self.primary, "success") | margins

    def deviations(self, table: pd.DataFrame, ran: Mapping[str, Any] | None = None) -> list[str]:
        """Say what a comparison of variants, and `ran` (unit, segments, looks), have otherwise than
        planned."""
        own = table[table["metric"].isin(list(self.roles))]
        always = own["method"].str.startswith("sequential")
        test = own["method"].str.split("+").str[0].replace("welch", "t").where(~always, "t")
        n = _planned_users(own)
        done = {
            name: tuple(as_columns(value)) for name, value in (ran or {}).items() if name != "looks"
        }
        looks = (ran or {}).get("looks")
        found = [
            f"{name} was not compared" for name in self.roles if name not in set(table["metric"])
        ]
        if self.control is not None and set(table["control"].map(str)) != {str(self.control)}:
            found.append(f"control {table['control'].iloc[0]} instead of {self.control}")
        if self.method is not None:
            other = own["metric"] + ": test " + test + f" instead of {self.method}"
            found += other[test != self.method].drop_duplicates().tolist()
        for name in ("unit", "segments"):
            planned = getattr(self, name)
            if planned is not None and name in done and set(done[name]) != set(planned):
                found.append(f"{name} {_names(done[name])} instead of {_names(planned)}")
        if self.n is not None and not self.n <= n <= (1 + RAN_ON) * self.n:
            how = "stopped early" if n < self.n else "ran on"
            found.append(f"{how}: {amount(n, 'user')} instead of {self.n:,}")
        if self.looks == "any" and not always.all():
            found.append("the test does not hold at every look (sequential_n), as planned")
        elif isinstance(self.looks, int) and looks is not None and looks > self.looks:
            found.append(f"{amount(looks, 'look')} instead of {self.looks}")
        if not (own["confidence"] - self.confidence).abs().lt(1e-12).all():
            found.append(f"confidence {own['confidence'].iloc[0]:g} instead of {self.confidence:g}")
        return found

    def unknown(self, ran: Mapping[str, Any] | None = None) -> list[str]:
        """Name what was planned and neither a table nor `ran` tells."""
        told = {name for name, value in (ran or {}).items() if value is not None}
        told |= {"looks"} if self.looks == "any" else set()
        planned = ("unit", "segments", "looks")
        return [name for name in planned if getattr(self, name) is not None and name not in told]


def read_plan(path: str | os.PathLike[str]) -> ExperimentPlan:
    """Read the plan of an experiment from a TOML file that was written before it.

    Parameters
    ----------
    path : path
        A file with `hypothesis` (text) and `primary` (the success metrics), and, if they are
        planned, `control`, `unit` (the columns that were assigned), `segments`, `method` (a test of
        `compare_variants`), `n` (users of all variants, or clusters), `looks` (a number, or "any"
        for a test that holds at every look), `confidence` (0.95), and a table `[guardrails]` of
        metrics and margins.

    Returns
    -------
    ExperimentPlan
        Pass it as `roles=` to `decide_experiment` and `rd.report`: each deviation is then named,
        and `digest`, the SHA-256 of the file, stands in the result.

    Raises
    ------
    OptionError
        The file is no TOML, lacks a hypothesis or primary metric, or has a key or value that a plan
        has not.

    Examples
    --------
    >>> import pathlib, tempfile, recdf as rd
    >>> text = "hypothesis = 'Longer lists'\\nprimary = 'ctr'\\nn = 400\\n"
    >>> text += "[guardrails]\\nspend = '-2%'"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "plan.toml")
    ...     _ = path.write_text(text)
    ...     plan = rd.experiments.read_plan(path)
    >>> plan.roles, plan.n
    ({'ctr': 'success', 'spend': ('guardrail', '-2%')}, 400)
    """
    content = Path(path).expanduser().read_bytes()
    try:
        keys = tomllib.loads(content.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OptionError(f"plan {path} is no TOML file: {error}") from None
    known = [field.name for field in fields(ExperimentPlan) if field.name != "digest"]
    for name in keys:
        if name not in known:
            raise OptionError(f"plan {path} has {name!r}, which no plan has{closest(name, known)}")
    for name in ("hypothesis", "primary"):
        if not keys.get(name):
            raise OptionError(f"plan {path} has no {name}; expected a text")
    lists: dict[str, Any] = {
        name: tuple(as_columns(keys[name]))
        for name in ("primary", "unit", "segments")
        if name in keys
    }
    return ExperimentPlan(**(keys | lists), digest=hashlib.sha256(content).hexdigest())


def _planned_users(table: pd.DataFrame) -> int:
    """Users of all variants, also those whose metric is null; clusters where these are compared."""
    rows = ~table["method"].str.endswith("+cluster")
    arms = [
        table[f"n_{arm}"] + table[f"n_dropped_{arm}"].fillna(0).where(rows, 0)
        for arm in ("control", "treatment")
    ]
    total = arms[0].groupby(table["metric"]).max() + arms[1].groupby(table["metric"]).sum()
    return int(total.max()) if len(total) else 0


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"
