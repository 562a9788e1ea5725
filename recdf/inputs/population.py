"""The population of an evaluation: what the option `users` asks for, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .accepted import Ids, PopulationRule

PopulationFrame = Literal["true", "pred", "given"]

# The frames that name the lists of a population. Where there are two, labels of the first come first.
FRAMES_OF_RULE: dict[str, tuple[PopulationFrame, ...]] = {
    "true": ("true",),
    "pred": ("pred",),
    "both": ("true",),
    "all": ("pred", "true"),
    "given": ("given",),
}


@dataclass(frozen=True, eq=False)
class Population:
    """The lists over which a mean is taken.

    Attributes
    ----------
    rule : {"true", "pred", "both", "all", "given"}
        Which lists they are: those of a frame, those that stand in both frames or in any, or those of given ids.
    given : ids or frame of ids, optional
        The ids as the caller gave them, with the rule "given" only.
    """

    rule: PopulationRule | Literal["given"]
    given: Ids | None = None

    @classmethod
    def of(cls, users: PopulationRule | Ids) -> Population:
        """The population that a value of the option `users` asks for."""
        return cls(users) if isinstance(users, str) else cls("given", users)

    @property
    def frames(self) -> tuple[PopulationFrame, ...]:
        """The frames that name the lists, and whose labels and dtypes the keys of the result have."""
        return FRAMES_OF_RULE[self.rule]

    @property
    def knows_its_keys(self) -> bool:
        """Whether the keys of all lists are known without `pred`, so that other rows of `pred` can be left out."""
        return "pred" not in self.frames

    @property
    def words(self) -> str:
        """The population in the spec and in messages: ids are counted, not listed."""
        return self.rule if self.given is None else f"{len(self.given)} given ids"
