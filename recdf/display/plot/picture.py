"""What a picture is: a function that draws a table, and `.data`, which returns the frame that it
draws; and what the docstrings of both say."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper
from typing import Generic, ParamSpec, TypeVar

import pandas as pd

from ...docstrings import fill

# What the docstrings of several pictures say, and those of their `.data`. Later texts stand in
# earlier ones.
PARAMETER_TEXTS = {
    "ax_returns_raises": """\
ax : Axes, optional
    Where to draw. Default: a new figure.

Returns
-------
Axes{raises}""",
    "axes_returns_raises": """\
ax : Axes or list of Axes, optional
    Where to draw, one per metric. Default: a new figure.

Returns
-------
Axes or array of Axes
    One Axes for one metric, else a flat array.{raises}""",
    "highlight": """\
highlight : str or list of str, optional
    Models that keep a colour of their own where there are more than eight, such as the baseline.
    The five best keep theirs too; all others are grey.""",
    "raises": "\n\nRaises\n------\nMissingExtraError\n    If matplotlib is not installed.",
    "parameters_returns": """\
Parameters
----------
{names}
    As in `rd.plot.{picture}`.

Returns
-------
DataFrame""",
}

PlotArguments = ParamSpec("PlotArguments")
Read = ParamSpec("Read")
Drawn = TypeVar("Drawn")


class Picture(Generic[PlotArguments, Drawn, Read]):
    """A function that draws a table, and `.data`, the function that returns the frame that is
    drawn."""

    def __init__(
        self, draw: Callable[PlotArguments, Drawn], data: Callable[Read, pd.DataFrame]
    ) -> None:
        self._draw, self.data = draw, data
        update_wrapper(self, draw)

    def __call__(self, *args: PlotArguments.args, **kwargs: PlotArguments.kwargs) -> Drawn:
        return self._draw(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<recdf picture {self._draw.__name__}>"


def drawn_from(
    data: Callable[Read, pd.DataFrame],
) -> Callable[[Callable[PlotArguments, Drawn]], Picture[PlotArguments, Drawn, Read]]:
    """Make a picture of a drawing function, beside the function that gives its data, with the
    `TEXTS` of both."""

    def with_data(draw: Callable[PlotArguments, Drawn]) -> Picture[PlotArguments, Drawn, Read]:
        names = ", ".join(inspect.signature(data).parameters)
        texts = {**PARAMETER_TEXTS, "names": names, "picture": draw.__name__}
        return Picture(fill(draw, texts), fill(data, texts))

    return with_data
