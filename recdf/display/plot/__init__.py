"""Pictures of tables (extra `recdf[plot]`): each takes a table and `ax=`, and returns the Axes.

`rd.plot.<name>.data(...)` returns the frame that a picture draws, for seaborn, altair or plotnine.
"""

from .diagnosed import exposure, history, lists, longtail, position, proxy_metrics
from .effects import forest, over_time, pairs
from .models import curve, heat, tradeoff, users, winners

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
