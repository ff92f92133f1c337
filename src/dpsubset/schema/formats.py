"""Declared formats of cells that are text. Typed numbers and dates are read by their type.

- The format of a number has the decimal sign, the sign between groups of three digits, a currency
  sign, and whether parentheses mean a negative number. See :class:`NumberFormat`.
- The format of a date is a pattern such as ``%m/%d/%Y``, made of the codes in `DATE_CODES`. Names
  of months are English, whatever the locale.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..base.errors import SchemaError

#: Codes of a date's format, and their meaning.
DATE_CODES = {
    "%Y": "year, four digits",
    "%m": "month, 1 to 12",
    "%b": "month, Jan to Dec",
    "%B": "month, January to December",
    "%d": "day of the month",
    "%H": "hour, 0 to 23",
    "%M": "minute",
    "%S": "second",
    "%f": "digits of a fraction of a second",
    "%%": "a percent sign",
}

#: In characters. A longer format is a mistake.
_LONGEST = 100
_LONGEST_CURRENCY = 8

#: Characters that may separate groups of digits, non-breaking blanks included.
_SEPARATORS = (",", ".", "'", "\u2019", " ", "\u00a0", "\u202f", "_")


@dataclass(frozen=True)
class NumberFormat:
    """Format of numbers that are text.

    Attributes
    ----------
    decimal : {".", ","}
        Decimal sign.
    thousands : str, optional
        Separator of groups of three digits: a comma, a point, an apostrophe, a blank or an
        underscore. A cell has it between all groups, or nowhere.
    currency : str, optional
        Sign before or after the digits, such as ``$``, ``€`` or ``USD``; optional in a cell.
    parentheses : bool
        Whether a number in parentheses is negative, as in accounting.
    """

    decimal: str = "."
    thousands: str | None = None
    currency: str | None = None
    parentheses: bool = False

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise SchemaError("format: decimal must be '.' or ','")
        if self.thousands is not None and (
            self.thousands not in _SEPARATORS or self.thousands == self.decimal
        ):
            raise SchemaError(
                "format: thousands must be one of , . ' _ or a blank, and another than decimal"
            )
        if not isinstance(self.parentheses, bool):
            raise SchemaError("format: parentheses must be true or false")
        if self.currency is not None:
            self._check_currency(self.currency)

    @staticmethod
    def _check_currency(sign: Any) -> None:
        if (
            not isinstance(sign, str)
            or not 0 < len(sign) <= _LONGEST_CURRENCY
            or not sign.isprintable()
            or re.search(r"""[\d\s+\-()"']""", sign)
            or sign[0] in ",._"
        ):
            raise SchemaError(
                f"format: currency must be a sign such as $ or EUR, of at most {_LONGEST_CURRENCY} "
                "characters, without digits, blanks, signs, quotes or parentheses"
            )

    def entry(self) -> dict[str, Any]:
        """The entry in a bounds file, without defaults."""
        return {
            each.name: value
            for each in fields(self)
            if (value := getattr(self, each.name)) != each.default
        }

    def __str__(self) -> str:
        """An example of a number in this format."""
        number = f"1{self.thousands or ''}234{self.decimal}56"
        return f"{self.currency or ''}{number}"


Format = str | NumberFormat


def check_format(given: Any, kind: str, what: str) -> Format | None:
    """Check the format of a column of this kind. None stands for the default format."""
    if kind == "date":
        date_parts(given, what)
        return str(given)
    if kind != "number":
        raise SchemaError(f"{what}: format goes with numbers and dates")
    if isinstance(given, Mapping):
        known = [each.name for each in fields(NumberFormat)]
        extra = sorted(str(key) for key in given if key not in known)
        if extra:
            raise SchemaError(
                f"{what}: format has unknown entries {', '.join(extra)}; known are "
                f"{', '.join(known)}"
            )
        stated = {str(key): value for key, value in given.items() if value is not None}
        given = NumberFormat(**stated)
    if not isinstance(given, NumberFormat):
        raise SchemaError(
            f"{what}: the format of a number is a mapping such as {{thousands: ',', currency: $}}; "
            "that of a date, such as %m/%d/%Y, goes with kind: date"
        )
    return given if given.entry() else None


def date_parts(given: Any, what: str) -> list[str]:
    """Check the format of a date, and split it into codes and the text between them."""
    if not isinstance(given, str) or not 0 < len(given) <= _LONGEST or not given.isprintable():
        raise SchemaError(f"{what}: the format of a date is a text such as %m/%d/%Y")
    found = re.findall(r"%.?|[^%]+", given)
    codes = [part for part in found if part[0] == "%"]
    if "%y" in codes:
        raise SchemaError(
            f"{what}: %y is a year without its century. Only years of four digits, %Y, can be read"
        )
    unknown = [code for code in codes if code not in DATE_CODES]
    if unknown:
        raise SchemaError(
            f"{what}: the format has the unknown code {unknown[0]}; known are "
            f"{' '.join(DATE_CODES)}"
        )
    unit_of = {"%b": "%m", "%B": "%m"}
    units = [unit_of.get(code, code) for code in codes if code != "%%"]
    if len(set(units)) < len(units):
        raise SchemaError(f"{what}: the format has a part of the date twice")
    needs = {"%m": "%Y", "%d": "%m", "%H": "%d", "%M": "%H", "%S": "%M", "%f": "%S"}
    if "%Y" not in units or any(needs[unit] not in units for unit in units if unit != "%Y"):
        raise SchemaError(
            f"{what}: the format must have the year %Y, and a month, day, hour, minute or second "
            "only together with all larger units"
        )
    if '"' in given or given != given.strip():
        raise SchemaError(f"{what}: the format has quotes, or blanks around it")
    return found
