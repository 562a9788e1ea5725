"""recdf: evaluate logged recommendations in pandas. Two long frames in, two tidy metric tables out.

Start with these; `help` of each says more:

* `rd.evaluate(true, pred, ["ndcg", "recall"], k=10)` is the way in: what users found relevant and
  what was recommended to them give an `Evaluation` with `.per_user` (one row per list) and
  `.summary` (one row per metric). Its help explains the options that all functions share: columns,
  order, ties, population, `by=`, `like=`.
* `rd.check(true, pred)` lists what is odd in the data, before you believe a number.
* `rd.ndcg(true, pred, k=10)` is one number, `rd.ndcg.per_user(true, pred, k=10)` one row per user.
  Every metric is such a function: `rd.metrics_table()` lists them, and `help(rd.ndcg)` says when to
  use it and when not.
* `rd.compare_models(result.per_user)` and, for an experiment, `rd.compare_variants` tell
  differences from chance.
* `rd.evaluate_parquet` takes files larger than memory, `rd.spark.evaluate` and `rd.dask.evaluate`
  frames of these engines; `rd.sample_shop()` makes data to try things on.

Examples
--------
>>> import recdf as rd
>>> shop = rd.sample_shop()
>>> result = rd.evaluate(shop.true, shop.pred, ["ndcg", "recall"], k=10, by="model")
>>> result.summary[["model", "metric", "k", "value"]].round(3).head(2)
  model  metric   k  value
0   knn    ndcg  10  0.185
1   knn  recall  10  0.231
"""

from . import metrics as metrics
from ._version import __version__ as __version__
from .evaluation import evaluate as _evaluate  # noqa: F401  (importing recdf loads what evaluating needs)
from .inputs import frames as _frames
from .metrics import *  # noqa: F403
from .public_names import late_names as _late_names

__getattr__, __dir__, __all__ = _late_names(__name__)
__all__ += metrics.__all__


def _made_by_user(*given):
    from .partitions.users_elsewhere import made_by_user

    return made_by_user(*given)


_frames.DEALERS.append(_made_by_user)
