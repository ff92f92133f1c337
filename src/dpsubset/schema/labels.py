"""Labels: the two classes of a response, the levels of a category, the codes of what is missing.

They are public and declared, as bounds are. A label is text or a number. It stands for the cells
that *read* the same: as a number where it reads as one (1, "1" and "1.0" are the same, and True,
which is also what the words true and false read as, in any case), else as text without the blanks
around it, letter for letter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import SchemaError
from ..base.validation import as_float

Label = str | int | float

#: What a label of each position counts as.
IMAGES = (-1.0, 1.0)

#: Around a cell these do not count.
BLANKS = " \t"

#: Text that reads as a number, blanks included; the same in Python's syntax and in RE2's.
NUMBER = r"[ \t]*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:inf|infinity))[ \t]*"

#: In characters. A longer one is no label but a mistake, and no pattern to search for.
LONGEST = 1000

#: Text that reads as 0 or 1.
WORDS = {"false": 0.0, "true": 1.0}


def settle(labels: Any, what: str) -> tuple[Label, Label]:
    """Two labels, the negative one first, each in one form for all that are equal."""
    if (
        isinstance(labels, (str, bytes))
        or not isinstance(labels, (Sequence, np.ndarray))
        or getattr(labels, "ndim", 1) != 1
        or len(labels) != 2
    ):
        raise SchemaError(
            f"{what}: labels must be a pair, first the label that counts as -1, then the one that "
            "counts as 1; cells with any other are bad cells"
        )
    first, second = (_settled(label, what) for label in labels)
    if reading(first) == reading(second):
        raise SchemaError(f"{what}: the two labels read the same; they must differ")
    return first, second


def settle_all(labels: Any, what: str, name: str) -> tuple[Label, ...]:
    """Any number of labels, in order; those that read the same are told by their positions."""
    if isinstance(labels, (str, bytes)) or not isinstance(labels, (Sequence, np.ndarray)):
        raise SchemaError(f"{what}: {name} must be a list of texts or numbers")
    if getattr(labels, "ndim", 1) != 1:
        raise SchemaError(f"{what}: {name} must be a list, not a table")
    found = tuple(_settled(label, what, f"an entry of {name}") for label in labels)
    first: dict[float | str, int] = {}
    for place, label in enumerate(found, 1):
        earlier = first.setdefault(reading(label), place)
        if earlier != place:
            raise SchemaError(
                f"{what}: entries {earlier} and {place} of {name} read the same (1, '1' and 1.0 "
                "do, and true; blanks around a text do not count): keep one of them"
            )
    return found


def reading(label: Label) -> float | str:
    """What a cell has to read as to have this label."""
    if not isinstance(label, str):
        return float(label)
    if re.fullmatch(NUMBER, label):
        return float(label.strip(BLANKS))
    return WORDS.get(label.lower(), label)


def typed(settled: tuple[Label, Label], declared: tuple[Any, Any], sort: str | None) -> Any:
    """Both labels as values of a response of this sort: one that is known by its type.

    As they were declared where the type says nothing, or is not one that can have these labels.
    """
    readings = [reading(label) for label in settled]
    numbers = [read for read in readings if isinstance(read, float)]
    if sort == "text":
        return tuple(label if isinstance(label, str) else str(label) for label in settled)
    if len(numbers) == 2:
        if sort == "boolean" and set(numbers) == {0.0, 1.0}:
            return tuple(map(bool, numbers))
        if sort == "integer" and all(number.is_integer() for number in numbers):
            return tuple(map(int, numbers))
        if sort in ("integer", "float"):
            return tuple(numbers)
    return tuple(label.item() if isinstance(label, np.generic) else label for label in declared)


def with_booleans(settled: tuple[Label, Label]) -> tuple[Any, Any]:
    """The same, but false and true, which a schema keeps as words, are booleans again."""
    if set(settled) == set(WORDS):
        return settled[0] == "true", settled[1] == "true"
    return settled


def shown(labels: tuple[Label, Label]) -> str:
    """For people: what counts as what."""
    return f"{labels[0]} counts as -1, {labels[1]} as 1"


def _settled(label: Any, what: str, name: str = "a label") -> Label:
    if isinstance(label, (bool, np.bool_)):
        return "true" if label else "false"
    if isinstance(label, str):
        text = str(label).strip(BLANKS)
        if 0 < len(text) <= LONGEST and _is_unicode(text) and not _is_infinite(text):
            return text
    elif isinstance(label, (int, float, np.integer, np.floating)):
        number = as_float(label)
        if number is not None:
            # One form for 1 and 1.0; floats hold larger integers only in part.
            return int(number) if number.is_integer() and abs(number) <= 2**53 else number
    raise SchemaError(
        f"{what}: {name} must be a text of 1 to {LONGEST} characters, a finite number, True or "
        "False"
    )


def _is_infinite(text: str) -> bool:
    return isinstance(read := reading(text), float) and math.isinf(read)


def _is_unicode(text: str) -> bool:
    """Whether it can be written to a file: half a surrogate pair cannot."""
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in text)
