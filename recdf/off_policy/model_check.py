"""Whether a reward model fits the target policy: arrays in, a number out.

Contract: q_target of a row is the mean of the model under the target policy, so the weighted mean of q_logged must
equal the mean of q_target, whatever the rewards are and however bad the model is.
"""

from __future__ import annotations

import numpy as np

from ..stats.numbers import Floats
from .rows import LogGroup

# What rounding may make of two equal means, as a share of their size.
FIT_ROUNDING = 1e-9


def model_mismatch_z(rows: LogGroup) -> float:
    """Return (Σw·q_logged/Σw − mean(q_target))/se over clusters, and 0 without a model.

    Dividing by the sum of the weights leaves chance in the weights out, which would hide a mismatch of a model whose
    values are nearly equal. What the mean weight has to say, `mean_weight` says.
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
    se = _standard_error(rows, logged, target, mean_weight) / units
    return above / se if se > 0 else float(np.copysign(np.inf, above))


def _standard_error(rows: LogGroup, logged: float, target: float, mean_weight: float) -> float:
    """√(U/(U−1)·Σ(Σψ)²) over U clusters, with ψ = w·(q_logged − its mean)/mean(w) − (q_target − its mean)."""
    if rows.q_logged is None or rows.q_target is None:
        return 0.0
    square, n, sums = 0.0, len(rows), np.zeros(rows.n_codes)
    for piece in rows.pieces():
        psi: Floats = rows.weight[piece] * (rows.q_logged[piece] - logged) / mean_weight
        psi = rows.weighted(psi - (rows.q_target[piece] - target), piece)
        if rows.cluster is None:
            square += float((psi * psi).sum())
        else:
            sums += np.bincount(rows.cluster[piece].astype(np.intp, copy=False), psi, rows.n_codes)
    if rows.cluster is not None:
        square, n = float((sums * sums).sum()), int(np.count_nonzero(np.bincount(rows.cluster, minlength=rows.n_codes)))
    return float(np.sqrt(n / (n - 1) * square)) if n > 1 else 0.0
