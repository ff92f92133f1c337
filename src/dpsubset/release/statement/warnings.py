"""Warnings that come first in every statement."""

from __future__ import annotations

from ...privacy.guarantee import Guarantee

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


def warnings_of_guarantee(g: Guarantee) -> list[str]:
    """List why a release is not private, or what its guarantee assumes."""
    found = [SEEDED_WARNING] if g.seeded else []
    if not g.proven:
        found.append(UNPROVEN_WARNING)
    if g.assumes:
        found.append(
            f"The guarantee holds only if {g.assumes}. Nobody has checked that, and it may be "
            "false."
        )
    return found
