"""`rd.experiments`: per-user tables to decisions. Join, compare, decide, plan.

* Join: `join_experiment` puts the metrics of each user beside the variant; `roll_up` makes one row
  a user of several.
* Compare: `compare_models`, `compare_variants`, `compare_quantiles`, `compare_zero_inflated`,
  `compare_interleaved`, `bootstrap_ci`; `prediction_powered` with few human labels;
  `effect_over_time` by period, `segment_effects` between segments; for users beyond memory
  `variant_moments` and `compare_variants_from_moments`.
* Decide: `experiment_health` says whether an experiment is sound, `find_srm` why not,
  `decide_experiment` whether to ship by the roles of its metrics (`role_verdicts`) or by a plan
  (`read_plan`), `adjust_pvalues` corrects for many tests, `report_table` makes a comparison a table
  to print, and `proxy_metrics` says which offline metric predicts.
* Plan: `plan_experiment` says how many users it takes, and days with `arrivals_by_day`;
  `plan_comparison` how many lists models take, `aa_test` whether the tests hold; `interleave` mixes
  the lists of two recommenders.

The four folders have these names. The modules beside them read the rows of an experiment, once for
all of them.
"""

from ..public_names import late_names as _late_names

__getattr__, __dir__, __all__ = _late_names(__name__)
