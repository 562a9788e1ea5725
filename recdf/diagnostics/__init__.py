"""`rd.diagnostics`: why a number is what it is, and whether it may be believed.

* `check` lists what is odd in `true` and `pred`; `compare_conventions` says what other libraries
  would have computed.
* `audit` finds leaks, and models no better than chance, popularity or their own ceiling;
  `chance_level` and `ceiling` are levels of metrics.
* `gate` says whether a candidate may replace a baseline; `diff` says what changed from one version
  to another.
* `hit_table`, `exposure_table`, `position_table` and `user_gap` show where hits come from: items,
  ranks, users.
* `History` says when metrics or data of a job changed, from its results and what `data_profile`
  describes; `past_runs` and `past_tests` list what was run and decided.
* `label_agreement` says how well cheap labels agree with those of people; `sample_to_judge` chooses
  the lists that people should judge next.
* `sampled_values` corrects metrics that were computed among sampled negatives.
"""

from ..public_names import late_names as _late_names

__getattr__, __dir__, __all__ = _late_names(__name__)
