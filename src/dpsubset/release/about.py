"""About: facts about a release that only the caller knows. They are not checked.

Everything is optional. A statement shows what is missing as a line to fill in by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..base.errors import ArgumentError
from ..base.validation import check_choice
from ..ledger.standing import check_text

#: As the deployments registry lists them.
CURATORS = ("Government", "Industry", "Nonprofit")
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")


@dataclass(frozen=True)
class About:
    """Who is responsible for a release, from which data and what for. Public.

    Attributes
    ----------
    data_set, version : str, optional
        The data set and its version: a date, a number, a SHA-256.
    curator : str, optional
        Who is responsible for the data set.
    operator : str, optional
        Who made the release.
    approver : str, optional
        Who approves the release.
    purpose, recipient : str, optional
        The purpose of the release, and who receives it.
    bounds_from : str, optional
        Where the declared bounds come from: a codebook, a law, an instrument.
    curator_type, region, sector : str, optional
        For the deployments registry: the kind of curator, the region of the data or of the laws
        that apply, and one of the registry's sectors.
    """

    data_set: str | None = None
    version: str | None = None
    curator: str | None = None
    operator: str | None = None
    approver: str | None = None
    purpose: str | None = None
    recipient: str | None = None
    bounds_from: str | None = None
    curator_type: str | None = None
    region: str | None = None
    sector: str | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            if (value := getattr(self, field.name)) is not None:
                check_text(value, field.name)
        if self.curator_type is not None:
            check_choice(self.curator_type, CURATORS, "curator_type")
        if self.sector is not None:
            check_choice(self.sector, SECTORS, "sector")

    @classmethod
    def load(cls, path: str | Path) -> About:
        """Read a YAML or JSON file that has these names and a text for each."""
        import yaml

        try:
            # All scalars stay text: a version 1.10 is not 1.1, and a date not an object.
            found: Any = yaml.load(Path(path).read_text(encoding="utf-8"), yaml.BaseLoader)
        except OSError:
            raise ArgumentError(f"there is no file {Path(path).name}") from None
        except (yaml.YAMLError, UnicodeDecodeError):
            raise ArgumentError(f"{Path(path).name} cannot be read as YAML") from None
        known = [field.name for field in fields(cls)]
        if not isinstance(found, dict) or not set(found) <= set(known):
            raise ArgumentError(
                f"{Path(path).name} must have a line each for some of {', '.join(known)}, and no "
                "others"
            )
        return cls(**{key: value for key, value in found.items() if value not in ("", "null")})
