"""`rd.logs`: from raw logs to the two tables `true` and `pred`.

* `from_impressions` takes impressions, clicks and purchases, `impressions_parquet` files of them
  beyond memory.
* `assign_persons` turns the assignment of devices to variants into one of persons.
* `from_labelled` takes one frame with a label for each recommendation, `from_dict` a mapping of
  users to items.
* `from_sparse` takes a sparse matrix of users by items, and `from_top_k` an array with the best
  items of each user.
* `check_log` lists what is odd in a log, and `time_slice` cuts it into what was known and what came
  after.

The modules are about impressions, attribution, sessions, time, and the checks of a log.
"""

from ..public_names import late_names as _late_names

__getattr__, __dir__, __all__ = _late_names(__name__)
