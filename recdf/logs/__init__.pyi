"""The public names of recdf/public_names.py, as type checkers see them. Written by
`python tests/generated.py`.
"""

from ..inputs.frames import from_dict as from_dict
from ..inputs.frames import from_labelled as from_labelled
from ..inputs.list_cells import from_sparse as from_sparse
from ..inputs.list_cells import from_top_k as from_top_k
from ..logs.impressions import Impressions as Impressions
from ..logs.impressions import assign_persons as assign_persons
from ..logs.impressions import from_impressions as from_impressions
from ..logs.log_checks import check_log as check_log
from ..logs.times import time_slice as time_slice
from ..partitions.dealt_users import impressions_parquet as impressions_parquet

__all__ = [
    "Impressions",
    "assign_persons",
    "check_log",
    "from_dict",
    "from_impressions",
    "from_labelled",
    "from_sparse",
    "from_top_k",
    "impressions_parquet",
    "time_slice",
]
