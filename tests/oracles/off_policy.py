"""Off-policy estimators as plain loops over the rows of a log, and standard errors by numerical
derivatives.

Slow and obvious. A log is a list of dicts; a unit is a list of rows in the order of their
positions.
"""

import math


def weight_after_clip(name, w, clip):
    if clip is None:
        return w
    if name == "switch_dr":
        return w if w <= clip else 0.0
    if name == "dros":
        return clip * w / (w * w + clip)
    return min(w, clip)


def row_weights(unit, interaction):
    """Weight of every row of a unit. The probabilities are conditional ones for cascade and
    standard."""
    ratios = [row["target_propensity"] / row["propensity"] for row in unit]
    if interaction in (None, "independent"):
        return ratios
    down = [math.prod(ratios[: k + 1]) for k in range(len(ratios))]
    return down if interaction == "cascade" else [down[-1]] * len(ratios)


def value(units, name, clip=None, interaction=None, multiplicity=None):
    """Estimate from units, each counted as often as `multiplicity` says."""
    multiplicity = multiplicity or [1.0] * len(units)
    times = [m * unit[0].get("kept", 1.0) for m, unit in zip(multiplicity, units, strict=True)]
    n = sum(times)
    rows = []  # (times, position, weight, row)
    for t, unit in zip(times, units, strict=True):
        weights = row_weights(unit, interaction)
        rows += [(t, k, w, row) for k, (w, row) in enumerate(zip(weights, unit, strict=True))]
    if name == "dm":
        return sum(t * row["q_target"] for t, _, _, row in rows) / n
    model = name in ("dr", "sndr", "switch_dr", "dros")
    mean_weight = {}
    if name in ("snips", "sndr"):
        for k in {k for _, k, _, _ in rows}:
            own = [(t, weight_after_clip(name, w, clip)) for t, place, w, _ in rows if place == k]
            mean_weight[k] = sum(t * w for t, w in own) / sum(t for t, _ in own)
    total = 0.0
    for t, k, w, row in rows:
        g = weight_after_clip(name, w, clip) / mean_weight.get(k, 1.0)
        total += t * (
            (row["q_target"] if model else 0.0)
            + g * (row["reward"] - (row["q_logged"] if model else 0.0))
        )
    return total / n


def logging_value(units, multiplicity=None):
    multiplicity = multiplicity or [1.0] * len(units)
    times = [m * unit[0].get("kept", 1.0) for m, unit in zip(multiplicity, units, strict=True)]
    return sum(
        t * row["reward"] for t, unit in zip(times, units, strict=True) for row in unit
    ) / sum(times)


def standard_error(function, units, clusters):
    """√(U/(U−1)·Σ_c(dV/dω_c)²): how the estimate moves when one cluster counts a little more."""
    names = sorted(set(clusters))
    step, total = 1e-5, 0.0
    for name in names:
        ends = []
        for sign in (1, -1):
            ends.append(
                function(units, multiplicity=[1 + sign * step * (c == name) for c in clusters])
            )
        total += ((ends[0] - ends[1]) / (2 * step)) ** 2
    return math.sqrt(len(names) / (len(names) - 1) * total)


def units_of(log, unit=None, position="position"):
    """Rows of a frame as units, sorted by position."""
    rows = log.to_dict("records")
    if unit is None:
        return [[row] for row in rows]
    found = {}
    for row in rows:
        found.setdefault(row[unit], []).append(row)
    return [sorted(own, key=lambda row: row[position]) for own in found.values()]
