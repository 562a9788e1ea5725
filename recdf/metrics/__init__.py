"""The metrics, one module a family, each metric one function of `Lists` (or of `Counts`, for
metrics of exposure).

To add a metric, write its function under `@metric` in the module of its family, and its slow oracle
in `tests/oracles/`. Everything else follows from the registry: this package loads all its modules
and exports the metrics that they register. `python tests/generated.py` then writes what type
checkers and readers see of them: `__init__.pyi` beside this file, and the tables of the pages.
"""

from importlib import import_module as _import_module
from pkgutil import walk_packages as _walk_packages

from .metric import METRICS as _METRICS

for _module in _walk_packages(__path__, f"{__name__}."):
    _import_module(_module.name)

__all__ = sorted(name for name, one in _METRICS.items() if one.built_in)
globals().update({name: _METRICS[name] for name in __all__})
