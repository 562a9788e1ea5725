"""Whether a reward model fits the target policy: arrays in, a number out.

Contract: q_target of a row is the mean of the model under the target policy, so the weighted mean
of q_logged must equal the mean of q_target, whatever the rewards are and however bad the model is.
"""

from __future__ import annotations

import numpy as np

from ..stats.numbers import Floats
from .influence import clustered_error
from .rows import LogGroup, dot

# What rounding may make of two equal means, as a share of their size.
FIT_ROUNDING = 1e-9


def model_mismatch_z(rows: LogGroup) -> float:
    """Return (Σw·q_logged/Σw − mean(q_target))/se over clusters, and 0 without a model.

    Dividing by the sum of the weights leaves chance in the weights out, which would hide a mismatch
    of a model whose values are nearly equal. What the mean weight has to say, `mean_weight` says.
    """
    if rows.q_logged is None or rows.q_target is None:
        return 0.0
    weights, units, logged, target = 0.0, 0.0, 0.0, 0.0
    for piece in rows.pieces():
        w = rows.weighted(rows.weight[piece], piece)
        weights, logged = weights + float(w.sum()), logged + float((w * rows.q_logged[piece]).sum())
        units += float(rows.unit_weights(piece).sum())
        target += float(rows.weighted(rows.q_target[piece], piece).sum())
    if not weights:
        return 0.0
    logged, target, mean_weight = logged / weights, target / units, weights / units
    above = logged - target
    if abs(above) <= FIT_ROUNDING * max(abs(logged), abs(target)):
        return 0.0
    q_logged, q_target, square = rows.q_logged, rows.q_target, 0.0

    def influence(piece: slice) -> list[Floats]:
        """w·(q_logged − its mean)/mean(w) − (q_target − its mean)."""
        psi: Floats = rows.weight[piece] * (q_logged[piece] - logged) / mean_weight
        return [rows.weighted(psi - (q_target[piece] - target), piece)]

    for (psi,) in rows.per_cluster(influence):
        square += dot(psi, psi)
    se = float(clustered_error(np.array([square]), rows.n_clusters, units)[0])
    return above / se if se > 0 else float(np.copysign(np.inf, above))
