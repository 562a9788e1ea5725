"""`rd.ope`: off-policy evaluation, a log with propensities to the value of a policy that did not
run.

* `propensity_check` says whether the propensities of a log can be right, `diagnostics` what its
  weights say.
* `target_from_recs` makes the recommendations of a model a policy, and `reward_table` predicts
  rewards.
* `estimate` is the value of one policy, `compare` that of several on the same rows.
* `popularity_propensity` estimates how likely it is that a relevant item is observed, for
  `propensity_col=`.
"""

from .public_names import late_names as _late_names

__getattr__, __dir__, __all__ = _late_names(__name__)
