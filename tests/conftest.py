"""Hypothesis without deadlines or chance: the same examples on every run, and no minutes spent on shrinking them."""

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "recdf",
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("recdf")
