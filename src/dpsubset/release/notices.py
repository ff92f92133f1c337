"""What must be said first of a release, and what it was made with."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from ..privacy.guarantee import Guarantee

_PACKAGES = ("dpsubset", "numpy", "scipy", "numba", "python-flint", "scikit-learn", "opendp")

SEEDED_WARNING = (
    "This draw was made with a fixed seed. Whoever knows the seed can repeat the noise, so the "
    "release is NOT PRIVATE. Seeds are for tests and simulation only."
)

UNPROVEN_WARNING = (
    "This mechanism has NO PRIVACY GUARANTEE: whoever sees the release may learn about single rows."
)


MADE_IN_SEARCH = (
    "Made within a search, a cross-validation, a calibration or a stacking of scikit-learn. The "
    "guarantee is that of this release alone. Scores and predictions of held-out rows, and what "
    "was chosen or fitted by them, come from rows without noise and are NOT PRIVATE."
)


def warnings(g: Guarantee) -> list[str]:
    """What must be said first."""
    found = [SEEDED_WARNING] if g.seeded else []
    if not g.proven:
        found.append(UNPROVEN_WARNING)
    if g.assumes:
        found.append(
            f"The guarantee holds only if {g.assumes}. Nobody has checked that, and it may be "
            "false."
        )
    return found


def versions() -> dict[str, str]:
    """Of what a release was made with."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}


@cache
def _version(package: str) -> str:
    """Looked up once: it takes longer than a small selection."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed as a package"
