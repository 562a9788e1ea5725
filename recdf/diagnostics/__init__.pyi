"""The public names of recdf/public_names.py, as type checkers see them. Written by
`python tests/generated.py`.
"""

from ..diagnostics.audits import audit as audit
from ..diagnostics.conventions_compared import compare_conventions as compare_conventions
from ..diagnostics.count_tables import exposure_table as exposure_table
from ..diagnostics.count_tables import hit_table as hit_table
from ..diagnostics.count_tables import position_table as position_table
from ..diagnostics.count_tables import user_gap as user_gap
from ..diagnostics.data_checks import check as check
from ..diagnostics.data_checks import data_profile as data_profile
from ..diagnostics.gates import gate as gate
from ..diagnostics.history import History as History
from ..diagnostics.judging import label_agreement as label_agreement
from ..diagnostics.judging import sample_to_judge as sample_to_judge
from ..diagnostics.levels import ceiling as ceiling
from ..diagnostics.levels import chance_level as chance_level
from ..diagnostics.list_changes import diff as diff
from ..diagnostics.run_records import past_runs as past_runs
from ..diagnostics.run_records import past_tests as past_tests
from ..metrics.sampled import sampled_values as sampled_values

__all__ = [
    "History",
    "audit",
    "ceiling",
    "chance_level",
    "check",
    "compare_conventions",
    "data_profile",
    "diff",
    "exposure_table",
    "gate",
    "hit_table",
    "label_agreement",
    "past_runs",
    "past_tests",
    "position_table",
    "sample_to_judge",
    "sampled_values",
    "user_gap",
]
