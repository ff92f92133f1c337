"""What must be said first of a release, and what it was made with."""

from __future__ import annotations

import platform
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
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed as a package"
    return found
