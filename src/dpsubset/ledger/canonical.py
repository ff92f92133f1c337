"""Canonical JSON, which has one text for equal facts, and its SHA-256.

Facts of a ledger consist of text, integers, booleans, None, lists and mappings. A rational is
written as text, "1/3", so that nothing is rounded on its way to a file and back; floats are
refused.
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

_NOT_RATIONAL = "the ledger contains a value that is not a rational number in lowest terms"

#: Digits of a rational: Python does not convert more of them to text.
MAX_DIGITS = 4000


def canonical(facts: Any) -> str:
    """Write facts as JSON: sorted, without blanks, in ASCII. Floats are refused."""
    _refuse_floats(facts)
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)


def sha256_of_facts(facts: Any) -> str:
    """SHA-256 of facts in any order; floats, which a release may hold, have one form in JSON."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def parse_rational(text: Any) -> Fraction:
    """Return the rational that ``str`` writes as this text; refuse anything else."""
    if not isinstance(text, str):
        raise LedgerError(_NOT_RATIONAL)
    return _parse_rational(text)


@lru_cache(maxsize=1024)
def _parse_rational(text: str) -> Fraction:
    if len(text) <= 2 * MAX_DIGITS and _RATIONAL.fullmatch(text):
        number = Fraction(text)
        if str(number) == text:
            return number
    raise LedgerError(_NOT_RATIONAL)


def without_floats(value: Any) -> Any:
    """Return an option of a mechanism as a ledger writes it: rationals and floats as text."""
    if value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [without_floats(each) for each in value]
    if isinstance(value, dict):
        return {str(name): without_floats(each) for name, each in value.items()}
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
