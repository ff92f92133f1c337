"""Labels: the classes of a response, the levels of a category, the codes for missing cells.

Labels are public and declared, as bounds are. A label is text or a number. A cell has a label if
both have the same canonical form: a number if the text spells one (1, "1", "1.0", True and the word
true in any case are equal), and otherwise the text without the blanks around it, letter for letter.
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

#: Values of the two labels of a response.
IMAGES = (-1.0, 1.0)

#: Blanks, which are ignored around a label or a cell.
BLANKS = " \t"

#: Text that spells a number, blanks included; valid in Python and in RE2.
NUMBER = r"[ \t]*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:inf|infinity))[ \t]*"

#: In characters. A longer label is a mistake.
LONGEST = 1000

#: Words that are equal to 0 and 1.
WORDS = {"false": 0.0, "true": 1.0}


def check_labels(labels: Any, what: str) -> tuple[Label, Label]:
    """Check a pair of labels, the negative one first, and return one form for equal labels."""
    if (
        isinstance(labels, (str, bytes))
        or not isinstance(labels, (Sequence, np.ndarray))
        or getattr(labels, "ndim", 1) != 1
        or len(labels) != 2
    ):
        raise SchemaError(
            f"{what}: labels must be a pair, first the label that counts as -1, then the one that "
            "counts as 1; all other cells are bad cells"
        )
    first, second = (_check_label(label, what) for label in labels)
    if canonical(first) == canonical(second):
        raise SchemaError(f"{what}: the two labels read the same; they must differ")
    return first, second


def check_label_list(labels: Any, what: str, name: str) -> tuple[Label, ...]:
    """Check a list of labels. An error names equal labels by their positions."""
    if isinstance(labels, (str, bytes)) or not isinstance(labels, (Sequence, np.ndarray)):
        raise SchemaError(f"{what}: {name} must be a list of texts or numbers")
    if getattr(labels, "ndim", 1) != 1:
        raise SchemaError(f"{what}: {name} must be a list, not a table")
    found = tuple(_check_label(label, what, f"an entry of {name}") for label in labels)
    first: dict[float | str, int] = {}
    for place, label in enumerate(found, 1):
        earlier = first.setdefault(canonical(label), place)
        if earlier != place:
            raise SchemaError(
                f"{what}: entries {earlier} and {place} of {name} read the same (1, '1' and 1.0 "
                "do, and true; blanks around a text do not count): keep one of them"
            )
    return found


def canonical(label: Label) -> float | str:
    """The canonical form of a label: cells with an equal form have this label."""
    if not isinstance(label, str):
        return float(label)
    if re.fullmatch(NUMBER, label):
        return float(label.strip(BLANKS))
    return WORDS.get(label.lower(), label)


def labels_of_kind(
    checked: tuple[Label, Label], declared: tuple[Any, Any], kind: str | None
) -> Any:
    """Both labels as values of a response of this kind (see `type_checks.response_kind`).

    They are returned as declared if the kind is unknown, or cannot have these labels.
    """
    forms = [canonical(label) for label in checked]
    numbers = [form for form in forms if isinstance(form, float)]
    if kind == "text":
        return tuple(label if isinstance(label, str) else str(label) for label in checked)
    if len(numbers) == 2:
        if kind == "boolean" and set(numbers) == {0.0, 1.0}:
            return tuple(map(bool, numbers))
        if kind == "integer" and all(number.is_integer() for number in numbers):
            return tuple(map(int, numbers))
        if kind in ("integer", "float"):
            return tuple(numbers)
    return tuple(label.item() if isinstance(label, np.generic) else label for label in declared)


def with_booleans(labels: tuple[Label, Label]) -> tuple[Any, Any]:
    """Labels of a schema, with the words false and true as booleans."""
    if set(labels) == set(WORDS):
        return labels[0] == "true", labels[1] == "true"
    return labels


def labels_in_words(labels: tuple[Label, Label]) -> str:
    """The values of the labels, in words."""
    return f"{labels[0]} counts as -1, {labels[1]} as 1"


def _check_label(label: Any, what: str, name: str = "a label") -> Label:
    if isinstance(label, (bool, np.bool_)):
        return "true" if label else "false"
    if isinstance(label, str):
        text = str(label).strip(BLANKS)
        if 0 < len(text) <= LONGEST and _is_unicode(text) and not _is_infinite(text):
            return text
    elif isinstance(label, (int, float, np.integer, np.floating)):
        number = as_float(label)
        if number is not None:
            # One form for 1 and 1.0. Beyond 2**53 not every integer is a float.
            return int(number) if number.is_integer() and abs(number) <= 2**53 else number
    raise SchemaError(
        f"{what}: {name} must be a text of 1 to {LONGEST} characters, a finite number, True or "
        "False"
    )


def _is_infinite(text: str) -> bool:
    return isinstance(form := canonical(text), float) and math.isinf(form)


def _is_unicode(text: str) -> bool:
    """Whether text can be encoded; a lone surrogate cannot."""
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in text)
