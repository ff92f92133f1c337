"""Declared dates as days since 1970-01-01, with times of day as fractions of days.

A time with a zone is converted to universal time; one without a zone is taken as written.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

_ORIGIN = datetime(1970, 1, 1)
_DAY = timedelta(days=1)

#: Year, month and day with dashes, and optionally a time. 19900101 is a number.
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.,]+(Z|[+-][0-9:]+)?)?")


def today() -> str:
    """The current date in UTC."""
    return datetime.now(UTC).date().isoformat()


def days(value: Any) -> float | None:
    """Days of a date, a date-time or their ISO 8601 text; None for anything else."""
    if isinstance(value, str):
        text = value.strip(" \t")
        value = None
        if _ISO.fullmatch(text):
            with suppress(ValueError):
                value = datetime.fromisoformat(text)
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if not isinstance(value, date):
        return None
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    try:
        if value.tzinfo is not None:
            value = value.astimezone(UTC).replace(tzinfo=None)
        found = float((value - _ORIGIN) / _DAY)
    except (TypeError, ValueError, OverflowError):  # a zone beyond the first or last year
        return None
    return found if math.isfinite(found) else None  # pandas counts NaT among the dates


def iso_text(number: float) -> str | float:
    """ISO 8601 text that stands for exactly this number of days; the number itself if none does."""
    try:
        moment = _ORIGIN + timedelta(days=number)
    except OverflowError:
        return number
    text = moment.date().isoformat() if number == int(number) else moment.isoformat()
    return text if days(text) == number else number


def day_text(number: float) -> str:
    """The date of a number of days, for display; the number itself beyond the calendar."""
    try:
        return (_ORIGIN + timedelta(days=number)).date().isoformat()
    except OverflowError:
        return f"{number:.6g}"
