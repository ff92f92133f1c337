"""Select which k of p variables matter in a sensitive table, under pure differential privacy.

The public API is what `__init__.pyi` lists and this module exports; every other name may change.
Names are imported when first used: numba and scikit-learn would make ``dpsubset --help`` slow.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Lines of the form "from .module import name as name".
with open(f"{__file__.removesuffix('c')}i", encoding="utf-8") as _listed:
    _MODULE_OF = {line.split()[3]: line.split()[1] for line in _listed if line.startswith("from .")}

__all__ = sorted(_MODULE_OF)


#: Former names, which still work with a warning.
_FORMER = {"ResponseScale": "ResponseRange", "ScaleRule": "QuantileRule"}


def __getattr__(name: str) -> Any:
    if name in _FORMER:
        import warnings

        warnings.warn(f"dpsubset.{name} is called {_FORMER[name]} now", FutureWarning, stacklevel=2)
        name = _FORMER[name]
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
