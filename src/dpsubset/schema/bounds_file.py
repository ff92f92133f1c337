"""Bounds files: the public facts about a table, in YAML or JSON.

This module converts text to plain facts and facts to text; :mod:`dpsubset.schema.schema` makes a
schema of facts. No error quotes the file, which by mistake may be the table.

A key of ``columns`` may be a pattern (``snp_*``) or ``default``, which stand for columns of a
table. Column names are public, so patterns may be expanded by them; callers must not pass a first
line that may be a record.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ..base.errors import SchemaError, TableError, did_you_mean

#: Key of the entry for columns that have no other entry.
DEFAULT = "default"

#: Column separators of text files.
SEPARATORS = (",", ";", "|", "\t")

_HEAD = """\
# Public facts about a table, for dpsubset. Fill in the empty values from what is known about the
# world, never from the rows themselves, and name the response. Forms of a column:
#   {lo: 0, hi: 110}                      a number between bounds
#   {lo: 1, hi: 1e6, transform: log}      a number by its logarithm (or sqrt)
#   {levels: [red, green, 3]}             a category: one of these, selected together
#   {kind: boolean}                       0 or 1
#   {kind: date, lo: 1990-01-01, hi: 2025-12-31}
#   {lo: 0, hi: 1e5, format: {thousands: ",", decimal: ".", currency: $}}   text like $1,187.57
#   {lo: 1990-01-01, hi: 2025-12-31, format: "%m/%d/%Y"}                    text like 01/31/1990
#   {role: ignored}                       not read; role: always is part of every selected set
# A response with two classes has labels in place of bounds: labels: [negative, positive].
# group: name makes one choice of all columns in that group, which k counts once.
# missing: [-9, 999] are codes for missing cells; missing: {codes: [-9], as: indicator} adds a
# column that says where (or as: middle, low, high, or value with value: 3).
# unit: whom the guarantee protects, in words. If one of them may have several rows, declare the
# largest number of rows: rows_per_unit: 3.
# bad_cells: value of other missing or unreadable cells: middle, low or high end of their bounds.
# A row whose response is missing or unreadable contributes nothing (as: drop), unless the response
# has another rule under missing.
# Many columns: "snp_*": {lo: 0, hi: 2} stands for all columns whose names match (* any text, ? one
# character, [abc] one of these), default: {lo: 0, hi: 1} for all others. A column's own name comes
# first, then the first pattern that matches, then the default. patterns: false turns this off.
# separator: separator of the columns of a text file, if not a comma: ";", "|" or "\\t".
# bounds_released: which bounds 'dpsubset bounds suggest' released, and their cost.
"""

#: Entry of a column in a template, by the kind of its type.
_FORMS: dict[str, dict[str, Any]] = {
    "number": {"lo": None, "hi": None},
    "boolean": {"kind": "boolean"},
    "text": {"levels": []},
    "category": {"levels": []},
    "date": {"kind": "date", "lo": None, "hi": None},
    "other": {"role": "ignored"},
}

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

HOW_TO_WRITE_NUMBERS = "numbers are written like 20000, 0.5 or 2e4, without separators"


def load(path: str | Path) -> Any:
    """Read the facts of a file. They are not checked."""
    import yaml

    path = Path(path)
    text = facts = None
    with suppress(OSError, UnicodeDecodeError):
        text = path.read_text(encoding="utf-8")
    if text is None:
        is_url = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(path))
        local = ": this is a URL, and only local files are read" if is_url else ""
        raise SchemaError(f"cannot read the schema file {path.name}{local}")
    place = ""
    # The errors of the parsers quote the file, so only the position is kept.
    try:
        # JSON is parsed as JSON: YAML would read its 1e3 as text.
        if path.suffix == ".json":
            facts = json.loads(text, object_pairs_hook=_without_duplicates)
        else:
            facts = _with_numbers(yaml.load(text, _loader()))
    except _DuplicateKey as twice:
        where = f": see the entries from {twice} on" if str(twice) else ""
        raise SchemaError(
            f"the schema file {path.name} declares something twice{where}. Keep one of the "
            "declarations"
        ) from None
    except json.JSONDecodeError as error:
        place = _place(error.lineno, error.colno)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = _place(mark.line + 1, mark.column + 1) if mark else ""
    except yaml.reader.ReaderError as error:
        before = text[: error.position].split("\n")
        place = _place(len(before), len(before[-1]) + 1)
    except Exception:  # YAML tags may raise errors of any kind, which quote the file
        facts = None
    if facts is None:
        kind = "JSON" if path.suffix == ".json" else "YAML"
        wrong = f"not valid {kind}: see {place}" if place else f"empty or not valid {kind}"
        raise SchemaError(f"the schema file {path.name} is {wrong}")
    return facts


def facts_of(source: str | Path | Mapping[str, Any]) -> Any:
    """The facts of a file, or of a dict as a reader of YAML or JSON makes it of a file."""
    return _with_numbers(source) if isinstance(source, Mapping) else load(source)


def dump(facts: dict[str, Any], path: Path) -> None:
    """Write facts to a file: JSON if its name ends in .json, otherwise YAML."""
    if path.suffix == ".json":
        text = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    else:
        text = _HEAD + yaml_text(facts)
    path.write_text(text, encoding="utf-8")


def yaml_text(facts: dict[str, Any]) -> str:
    """Return facts as YAML, one column a line."""
    import yaml

    # With allow_unicode PyYAML folds unusual line breaks (U+0085) in names.
    readable = all(text.isprintable() for text in _strings(facts))
    lines = {name: _Line(entry) for name, entry in facts["columns"].items()}
    facts = {**facts, "response": _Line(facts["response"]), "columns": lines}
    text: str = yaml.dump(
        facts, Dumper=_dumper(), sort_keys=False, allow_unicode=readable, width=100
    )
    return text


def _strings(facts: Any) -> Iterator[str]:
    """All text in facts, keys included."""
    if isinstance(facts, str):
        yield facts
    elif isinstance(facts, Mapping):
        for key, value in facts.items():
            yield from (*_strings(key), *_strings(value))
    elif isinstance(facts, list):
        for value in facts:
            yield from _strings(value)


def check_separator(separator: Any) -> str | None:
    """Check the column separator of a text file; None stands for the default."""
    if separator is None or (isinstance(separator, str) and separator in SEPARATORS):
        return separator
    raise SchemaError('separator must be one of , ; | or a tab ("\\t")')


def separator_of(facts: Any) -> str | None:
    return check_separator(facts.get("separator")) if isinstance(facts, Mapping) else None


def template(
    names: Sequence[str],
    path: str | Path,
    kinds: Mapping[str, str] | None = None,
    separator: str | None = None,
) -> None:
    """Write a bounds file with these column names and *empty* bounds, for a person to fill in.

    ``kinds`` says what the types of columns hold (see :mod:`dpsubset.data.type_checks`), if they
    are known: a column of text has empty levels, one of dates has empty dates.
    """
    dump(template_facts(names, kinds, separator), Path(path))


def template_facts(
    names: Sequence[str], kinds: Mapping[str, str] | None = None, separator: str | None = None
) -> dict[str, Any]:
    known = kinds or {}
    return {
        "version": 1,
        "unit": "one row",
        "bad_cells": "middle",
        **({} if separator is None else {"separator": separator}),
        **taken_literally(names),
        "response": {"name": None, "lo": None, "hi": None},
        "columns": {name: {**_FORMS[known.get(name, "number")]} for name in names},
    }


def taken_literally(names: Sequence[str]) -> dict[str, bool]:
    """The facts that turn patterns off, if some names look like patterns."""
    return {"patterns": False} if any(map(_is_pattern, names)) else {}


def has_patterns(facts: Any) -> bool:
    """Whether facts have patterns, so that a schema needs the column names of a table."""
    if not isinstance(facts, Mapping) or facts.get("patterns", True) is False:
        return False
    columns, response = facts.get("columns"), response_name(facts)
    return isinstance(columns, Mapping) and any(
        _is_pattern(str(key)) for key in columns if str(key) != response
    )


def response_name(facts: Any) -> str | None:
    response = facts.get("response") if isinstance(facts, Mapping) else None
    name = response.get("name") if isinstance(response, Mapping) else None
    return name if isinstance(name, str) else None


def expand(
    entries: Mapping[str, Any], response: str, names: Sequence[str] | None
) -> dict[str, Any]:
    """Replace patterns by the columns that they match, in the order of the table.

    ``entries`` are those of the file by name, pattern or ``default``, without the response, which
    no pattern matches. ``names`` are the table's columns, in order, the response included; they are
    required if there are patterns.
    """
    present = set(names or ())
    patterns = [key for key in entries if _is_pattern(key) and key not in present]
    if not patterns:
        return dict(entries)
    if names is None:
        raise SchemaError(
            "the schema has patterns (names with *, ? or [ ], or 'default'), which stand for the "
            "columns of a table with names: a file or a data frame. Where there is no table, give "
            "its names: Schema.read(path, names), or --table of the commands that have it. If "
            "these are names of columns, say so with 'patterns: false'"
        )
    if len(present) < len(names):
        raise TableError("the table has several columns of one name: names must be unique")
    exact = [key for key in entries if key not in patterns]
    wanted = [response, *(key for key in exact if not _is_ignored(entries[key]))]
    missing = [name for name in wanted if name not in present]
    if missing:
        # Checked before names of the table count as declared: its first line may be a record.
        hint = did_you_mean(missing[0], set(wanted) - set(missing))
        raise TableError(
            f"the table has no column {missing[0]!r}{hint}, which the schema declares. Compare the "
            "schema with the table's header (a table without a header line needs one)"
        )
    taken = {response, *exact}
    owners = _owners([name for name in names if name not in taken], patterns)
    unused = [key for key in patterns if key != DEFAULT and key not in owners.values()]
    if unused:
        raise SchemaError(
            f"the pattern {unused[0]!r} stands for no column of the table: none matches it, or a "
            "name or an earlier pattern stands for those that do"
        )
    found: dict[str, Any] = {}
    for key, entry in entries.items():
        if key in patterns:
            found |= {name: entry for name, owner in owners.items() if owner == key}
        else:
            found[key] = entry
    return found


def _with_numbers(facts: Any) -> Any:
    """Convert bounds such as 2e4, which YAML reads as text, to numbers.

    Only bounds are converted, since a column or a label may have such a name.
    """
    if not isinstance(facts, Mapping):
        return facts
    columns, response = facts.get("columns"), facts.get("response")
    changed = {**facts, "response": _entry_with_numbers(response)} if response else {**facts}
    if isinstance(columns, Mapping):
        changed["columns"] = {name: _entry_with_numbers(entry) for name, entry in columns.items()}
    return changed


def _entry_with_numbers(entry: Any) -> Any:
    if isinstance(entry, Mapping):
        changed = {k: _number_of_text(v) if k in ("lo", "hi") else v for k, v in entry.items()}
        missing = entry.get("missing")
        if isinstance(missing, Mapping) and "value" in missing:
            changed["missing"] = {**missing, "value": _number_of_text(missing["value"])}
        return changed
    return [*map(_number_of_text, entry)] if isinstance(entry, list) else entry


def _number_of_text(value: Any) -> Any:
    return float(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value


def _owners(names: Sequence[str], patterns: Sequence[str]) -> dict[str, str]:
    """The pattern of each column: the first that matches, else the default."""
    ordered = [key for key in patterns if key != DEFAULT]
    last = DEFAULT if DEFAULT in patterns else None
    first = {n: next((k for k in ordered if fnmatchcase(n, k)), last) for n in names}
    return {name: key for name, key in first.items() if key is not None}


def _is_pattern(key: str) -> bool:
    return key == DEFAULT or re.search(r"[*?]|\[.+\]", key, re.DOTALL) is not None


def _is_ignored(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("role") == "ignored"


def _place(line: int, column: int) -> str:
    return f"line {line}, column {column}"


class _Line(dict[str, Any]):
    """An entry that is written on one line."""


@functools.cache
def _dumper() -> Any:
    """YAML's safe dumper, with one column on a line and without aliases."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def line(dumper: Any, entry: _Line) -> Any:
        return dumper.represent_mapping("tag:yaml.org,2002:map", entry.items(), flow_style=True)

    Dumper.add_representer(_Line, line)
    return Dumper


@functools.cache
def _loader() -> Any:
    """YAML's safe loader, without YAML 1.1's surprising conversions and without duplicate keys.

    Yes, no, on and off are text; 010 is not 8, and 1:30 is not 90. A date is text, too: its meaning
    depends on its place, and an invalid one must get an error that says so.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            if len(set(map(str, keys))) < len(keys):
                raise _DuplicateKey(_place(node.start_mark.line + 1, node.start_mark.column + 1))
            return super().construct_mapping(node, deep)

    # Text that PyYAML writes without quotes must not be read as a number here.
    replaced = (":bool", ":int", ":float", ":timestamp")
    Loader.yaml_implicit_resolvers = {
        first: [(tag, form) for tag, form in rules if not tag.endswith(replaced)]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    for kind, form, firsts in (
        ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
        ("int", "[+-]?(?:0|[1-9][0-9]*)", "+-0123456789"),
        ("float", r"[+-]?[0-9]+\.[0-9]*(?:[eE][+-][0-9]+)?|\.[0-9]+(?:[eE][+-][0-9]+)?"
         r"|[+-]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "+-.0123456789"),
    ):  # fmt: skip
        tag = f"tag:yaml.org,2002:{kind}"
        Loader.add_implicit_resolver(tag, re.compile(f"^(?:{form})$"), list(firsts))
    return Loader


class _DuplicateKey(Exception):
    """A key occurs twice; the message is the position."""


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise _DuplicateKey("")
    return dict(pairs)
