"""Sums that do not depend on the order of their terms.

Contract: a sum of floats is exact before it is rounded, so that the same numbers in another order,
or cut into other blocks, have the same sum to the last bit.
"""

from __future__ import annotations

from itertools import pairwise
from math import frexp, inf, ldexp

import numpy as np

from .sizes import sizes

# Numbers from here on are scaled down, since adding a larger one to them would overflow.
SCALED_ABOVE = 2.0**900


def exact_sums(
    values: np.ndarray, group: np.ndarray | None = None, n_groups: int = 1
) -> np.ndarray:
    """Sum the values of each group; `group` has the number of each value's group, from 0 to
    n_groups - 1.

    Without groups, `values` may be a matrix, and each of its rows is summed. Many short sums are
    then fast.

    Adding and taking away a large number rounds a value to a multiple of a power of two. Sums of
    such multiples are exact in any order while they need at most 53 bits. What was rounded off is
    summed in the same way, until nothing is left. The sums are added in twice the precision.
    Infinite values and NaN are summed as they are.
    """
    group = None if n_groups == 1 else group
    if (
        group is not None
        and n_groups * sizes().summed_terms < 8 * len(values)
        and (group[1:] >= group[:-1]).all()
    ):
        edges = pairwise(np.searchsorted(group, np.arange(n_groups + 1)).tolist())
        return np.concatenate([exact_sums(values[a:z]) for a, z in edges])
    n_sums = n_groups if values.ndim == 1 else len(values)
    total, low, at_a_time = (
        np.zeros(n_sums),
        np.zeros(n_sums),
        max(sizes().summed_terms, 4 * n_groups),
    )
    with np.errstate(invalid="ignore", over="ignore"):
        for first in range(0, values.shape[-1], at_a_time):
            rest = np.asarray(values[..., first : first + at_a_time], np.float64)
            own = None if group is None else group[first : first + at_a_time]
            while largest := max(float(rest.max()), -float(rest.min())):
                if largest < SCALED_ABOVE:
                    unit = max(frexp(largest)[1] + at_a_time.bit_length() - 52, -1074)
                    shift = ldexp(1.5, unit + 52)
                    some = rest + shift
                    some -= shift
                elif largest < inf and values.ndim > 1:
                    return np.concatenate([exact_sums(row) for row in values])
                elif largest < inf:
                    return exact_sums(values / SCALED_ABOVE, group, n_groups) * SCALED_ABOVE
                else:
                    some = np.where(np.isfinite(rest), 0.0, rest)
                sums = some.sum(axis=-1) if own is None else np.bincount(own, some, n_groups)
                further = total + sums
                moved = further - total
                low += (total - (further - moved)) + (sums - moved)
                total = further
                rest = rest - some if largest < inf else np.where(np.isfinite(rest), rest, 0.0)
    return np.where(np.isfinite(low), total + low, total)
