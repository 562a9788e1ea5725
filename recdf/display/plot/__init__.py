"""Pictures of tables (extra `recdf[plot]`): each takes a table and `ax=`, and returns the Axes.

`rd.plot.<name>.data(...)` returns the frame that a picture draws, for seaborn, altair or plotnine.
"""

from .effect_plots import forest, gate, over_time
from .items import exposure, longtail, position
from .models import curve, tradeoff
from .past_effects import history, proxy_metrics
from .shades import heat, pairs
from .side_by_side import lists
from .user_plots import performance, users, winners

__all__ = [
    "curve",
    "exposure",
    "forest",
    "gate",
    "heat",
    "history",
    "lists",
    "longtail",
    "over_time",
    "pairs",
    "performance",
    "position",
    "proxy_metrics",
    "tradeoff",
    "users",
    "winners",
]


def __dir__() -> list[str]:
    return __all__
