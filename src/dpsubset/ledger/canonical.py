"""One text for equal facts: canonical JSON, rationals written as "1/3", and their SHA-256.

Facts of a ledger are made of text, whole numbers, booleans, None, lists and mappings. A rational is
text, so that nothing is rounded on its way to a file and back; a float is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ..base.errors import LedgerError

_RATIONAL = re.compile(r"(0|[1-9][0-9]*)(/[1-9][0-9]*)?", re.ASCII)

_NO_RATIONAL = "the ledger holds something that is no rational number in lowest terms"

#: Digits of a rational: Python does not convert more of them to text.
LONGEST = 4000


def canonical(facts: Any) -> str:
    """Sorted, without blanks, in ASCII. Facts with a float in them are refused."""
    _refuse_floats(facts)
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def released_digest(facts: Any) -> str:
    """Of what was released, which may hold floats: these have one shortest form in JSON."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=True)
    return digest(text)


def written(number: Fraction) -> str:
    """A rational as text."""
    return str(number)


def rational(text: Any) -> Fraction:
    """The rational that a text of :func:`written` stands for; anything else is refused."""
    if not isinstance(text, str):
        raise LedgerError(_NO_RATIONAL)
    return _rational(text)


@lru_cache(maxsize=1024)
def _rational(text: str) -> Fraction:
    if len(text) <= 2 * LONGEST and _RATIONAL.fullmatch(text):
        number = Fraction(text)
        if written(number) == text:
            return number
    raise LedgerError(_NO_RATIONAL)


def plain(value: Any) -> Any:
    """An option of a mechanism as facts have it: rationals and floats as text."""
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, Fraction):
        return written(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    return str(value)


def _refuse_floats(facts: Any) -> None:
    if isinstance(facts, float):
        raise TypeError("a ledger holds no floats")
    if isinstance(facts, dict):
        for name, each in facts.items():
            if not isinstance(name, str):
                raise TypeError("names of facts are text")
            _refuse_floats(each)
    elif isinstance(facts, (list, tuple)):
        for each in facts:
            _refuse_floats(each)
