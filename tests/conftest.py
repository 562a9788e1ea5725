"""Hypothesis without deadlines or chance: the same examples on every run, and no minutes spent on shrinking them.

The profile `soak` tries many more examples, which differ from run to run: `pytest --hypothesis-profile=soak`.
"""

from hypothesis import HealthCheck, Phase, settings

QUICK = {
    "max_examples": 60,
    "derandomize": True,
    "deadline": None,
    "database": None,
    "phases": [Phase.explicit, Phase.generate],
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("recdf", **QUICK)
settings.register_profile("soak", **{**QUICK, "max_examples": 2000, "derandomize": False, "phases": list(Phase)})
settings.load_profile("recdf")
