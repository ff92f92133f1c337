"""Numbers that users pass: what counts as one, and which one it is.

Python's and NumPy's integers and floats, fractions and decimals are numbers, taken exactly.
Booleans, text, times, complex numbers and arrays of any shape are not, whatever they convert to.
"""

from __future__ import annotations

import math
import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from .errors import ArgumentError

#: Of numerator and denominator: every float fits, and any of these can still be written out, which
#: Python refuses to do for numbers of more than 4300 digits.
_MOST_BITS = 4096

#: Decimals beyond 10 to this power do not fit, and must not be multiplied out to find that.
_MOST_DIGITS = 1300


def as_fraction(value: Any) -> Fraction | None:
    """A finite number as the rational that it is; None for anything else."""
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
    except Exception:  # infinite, not a number, or a subclass with methods of its own
        return None
    bits = max(found.numerator.bit_length(), found.denominator.bit_length())
    return found if bits <= _MOST_BITS else None


def as_decimal_fraction(value: Any) -> Fraction | None:
    """The same, but a float is the shortest decimal that stands for it: 0.1 is one tenth.

    So that Python, JSON and the command line mean the same number by the same digits.
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
    """An integer argument, or a clear error."""
    typed = isinstance(value, np.integer) and value.dtype.kind in "iu"
    if typed or not (isinstance(value, bool) or hasattr(value, "dtype")):
        try:
            return int(operator.index(value))
        except Exception:  # no integer, or an object with methods of its own
            pass
    raise ArgumentError(f"{what} must be a whole number, not {type(value).__name__}")


def check_fraction(value: Any, what: str) -> Fraction:
    """A finite number as the exact rational it was given as, or a clear error."""
    found = as_fraction(value)
    if found is None:
        raise ArgumentError(f"{what} must be a finite number, of at most {_MOST_BITS} bits")
    return found


def check_float(value: Any, what: str) -> float:
    """A finite float argument, or a clear error."""
    found = as_float(value)
    if found is None or not math.isfinite(found):
        raise ArgumentError(f"{what} must be a finite number")
    return found


def check_positive(value: Any, what: str) -> float:
    """A finite float argument above 0, or a clear error."""
    result = check_float(value, what)
    if result <= 0:
        raise ArgumentError(f"{what} must be greater than 0")
    return result


def check_seed(value: Any) -> int:
    """A seed, of a size that can be written out."""
    seed = check_int(value, "seed")
    if seed.bit_length() > _MOST_BITS:
        raise ArgumentError(f"seed must be a whole number of at most {_MOST_BITS} bits")
    return seed


def check_choice(value: Any, allowed: Any, what: str) -> str:
    """One of a few words, or a clear error."""
    if not isinstance(value, str) or value not in allowed:
        raise ArgumentError(f"{what} must be one of {', '.join(allowed)}")
    return value


def check_progress(progress: Any) -> None:
    """Refuse what cannot be told of progress, before anything is spent."""
    if progress is not None and not callable(progress):
        raise ArgumentError(
            "progress must be a function that takes the fraction of the work that is done, or None"
        )
