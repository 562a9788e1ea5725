"""The public names of recdf/public_names.py, as type checkers see them. Written by
`python tests/generated.py`.
"""

from .off_policy.beside_estimates import ope_compare as compare
from .off_policy.beside_estimates import ope_diagnostics as diagnostics
from .off_policy.beside_estimates import propensity_check as propensity_check
from .off_policy.estimate_value import ope_estimate as estimate
from .off_policy.log_additions import popularity_propensity as popularity_propensity
from .off_policy.log_additions import reward_table as reward_table
from .off_policy.log_additions import target_from_recs as target_from_recs

__all__ = [
    "compare",
    "diagnostics",
    "estimate",
    "popularity_propensity",
    "propensity_check",
    "reward_table",
    "target_from_recs",
]
