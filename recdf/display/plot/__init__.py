"""Pictures of tables (extra `recdf[plot]`): each takes a table and `ax=`, and returns the Axes.

`rd.plot.<name>.data(...)` returns the frame that a picture draws, for seaborn, altair or plotnine.
"""

from .diagnosed import exposure, history, longtail, position, proxy_metrics
from .effects import forest, over_time
from .models import curve, tradeoff, users, winners
from .shades import heat, lists, pairs

__all__ = [
    "curve",
    "exposure",
    "forest",
    "heat",
    "history",
    "lists",
    "longtail",
    "over_time",
    "pairs",
    "position",
    "proxy_metrics",
    "tradeoff",
    "users",
    "winners",
]


def __dir__() -> list[str]:
    return __all__
