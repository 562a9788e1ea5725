"""The public names of recdf/public_names.py, as type checkers see them. Written by
`python tests/generated.py`.
"""

from .off_policy.compare_targets import ope_compare as compare
from .off_policy.estimate_value import ope_estimate as estimate
from .off_policy.propensity_check import popularity_propensity as popularity_propensity
from .off_policy.propensity_check import propensity_check as propensity_check
from .off_policy.reward_table import reward_table as reward_table
from .off_policy.target_from_recs import target_from_recs as target_from_recs
from .off_policy.weight_diagnostics import ope_diagnostics as diagnostics

__all__ = [
    "compare",
    "diagnostics",
    "estimate",
    "popularity_propensity",
    "propensity_check",
    "reward_table",
    "target_from_recs",
]
