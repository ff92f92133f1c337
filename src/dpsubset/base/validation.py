"""Check numeric arguments and convert them exactly.

Python's and NumPy's integers and floats, fractions and decimals are numbers and are converted
exactly. Booleans, text, times, complex numbers and arrays of any shape are refused, whatever they
convert to.
"""

from __future__ import annotations

import math
import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from .errors import ArgumentError

#: Most bits of numerator and denominator. Every float fits, and every such number can be written in
#: decimal, which Python refuses for more than 4300 digits.
_MOST_BITS = 4096

#: Decimals above 10 to this power do not fit. Expanding them to find out would take too long.
_MOST_DIGITS = 1300


def as_fraction(value: Any) -> Fraction | None:
    """A finite number as an exact rational; None for anything else."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        if isinstance(value, np.generic):
            # By kind, because a timedelta64 is an integer to NumPy.
            if value.dtype.kind not in "iuf":
                return None
            if isinstance(value, np.floating):
                above, below = value.as_integer_ratio()
                found = Fraction(int(above), int(below))
            else:
                found = Fraction(int(value))
        elif isinstance(value, Decimal):
            if not value.is_finite():
                return None
            if value and abs(value.adjusted()) > _MOST_DIGITS:
                return None
            found = Fraction(value) if value else Fraction(0)
        elif isinstance(value, (int, float, Fraction)):
            found = Fraction(value)
            found = Fraction(int(found.numerator), int(found.denominator))
        else:
            return None
    except Exception:  # infinite, NaN, or a subclass whose methods raise
        return None
    bits = max(found.numerator.bit_length(), found.denominator.bit_length())
    return found if bits <= _MOST_BITS else None


def as_decimal_fraction(value: Any) -> Fraction | None:
    """A finite number as a rational, where a float stands for its shortest decimal: 0.1 is one
    tenth.

    Python, JSON and the command line then mean the same number by the same digits.
    """
    found = as_fraction(value)
    if found is None or not isinstance(value, (float, np.floating)):
        return found
    # np.float64 is a float; the others have digits of their own.
    text = float.__repr__(value) if isinstance(value, float) else str(value)
    return Fraction(text)


def as_float(value: Any) -> float | None:
    """The float nearest to a finite number; None for anything else."""
    found = as_fraction(value)
    try:
        return None if found is None else float(found)
    except OverflowError:
        return None


def check_int(value: Any, what: str) -> int:
    """Return an integer argument, or raise ArgumentError."""
    typed = isinstance(value, np.integer) and value.dtype.kind in "iu"
    if typed or not (isinstance(value, bool) or hasattr(value, "dtype")):
        try:
            return int(operator.index(value))
        except Exception:  # not an integer, or an object whose methods raise
            pass
    raise ArgumentError(f"{what} must be a whole number, not {type(value).__name__}")


def check_fraction(value: Any, what: str) -> Fraction:
    """Return a finite number as an exact rational, or raise ArgumentError."""
    found = as_fraction(value)
    if found is None:
        raise ArgumentError(f"{what} must be a finite number, of at most {_MOST_BITS} bits")
    return found


def check_float(value: Any, what: str) -> float:
    """Return a finite float, or raise ArgumentError."""
    found = as_float(value)
    if found is None or not math.isfinite(found):
        raise ArgumentError(f"{what} must be a finite number")
    return found


def check_positive(value: Any, what: str) -> float:
    """Return a finite float above 0, or raise ArgumentError."""
    result = check_float(value, what)
    if result <= 0:
        raise ArgumentError(f"{what} must be greater than 0")
    return result


def check_seed(value: Any) -> int:
    """Return an integer seed of at most `_MOST_BITS` bits, or raise ArgumentError."""
    seed = check_int(value, "seed")
    if seed.bit_length() > _MOST_BITS:
        raise ArgumentError(f"seed must be a whole number of at most {_MOST_BITS} bits")
    return seed


def check_choice(value: Any, allowed: Any, what: str) -> str:
    """Return one of a few words, or raise ArgumentError."""
    if not isinstance(value, str) or value not in allowed:
        raise ArgumentError(f"{what} must be one of {', '.join(allowed)}")
    return value


def check_progress(progress: Any) -> None:
    """Raise ArgumentError unless ``progress`` is callable or None."""
    if progress is not None and not callable(progress):
        raise ArgumentError(
            "progress must be a function that takes the fraction of the work done so far, or None"
        )
