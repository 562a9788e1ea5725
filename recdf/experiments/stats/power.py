"""How large a true effect must be to be found."""

from __future__ import annotations

from statistics import NormalDist

from .numbers import Alternative

__all__: list[str] = []


def detectable(alpha: float, power: float, alternative: Alternative = "two-sided") -> float:
    """z_{1−α/2} + z_power (z_{1−α} one-sided): the smallest true effect, in standard errors, found with `power`."""
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / (2 if alternative == "two-sided" else 1)) + normal.inv_cdf(power)
