"""Check a statement: write it again from its release, and compare line by line.

A statement is a function of the release, the schema, what the caller declares, the digests of two
files and the version of dpsubset. It has no date of its own, and the sums of a ledger are those in
the release's receipt. So a statement can be written again later, whatever the ledger counts by
then. Lines to fill in by hand may have been filled in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from ... import __version__
from ...base.errors import ArgumentError
from ..about import About
from ..files import FileDigests, sha256_of_bytes, sha256_of_file
from ..verify import Check
from .page import BLANK
from .registry import TO_FILL
from .technical import RELEASE_FILE, SCHEMA_FILE, WRITTEN_BY
from .write import Form, form_of_path, write_statement

if TYPE_CHECKING:
    from ..release import Release

#: Most lines that are shown of a difference.
_SHOWN = 20

#: What is left to fill in, by form, and what may stand there later. Tags may not: a style can hide
#: sentences.
_TO_FILL: Mapping[Form, tuple[str, str]] = {
    "markdown": (BLANK, r"((?:\\.|[^<>\\])+)"),
    "html": ('<dd class="blank"></dd>', '<dd(?: class="blank")?>([^<>]+)</dd>'),
    "yaml": (TO_FILL, "(.+)"),
}


def statement_checks(
    statement: Path, release: Release, about: About | None, release_file: Path, schema_file: Path
) -> list[Check]:
    """Compare a statement with the one that its release has, and with the files that it names.

    Parameters
    ----------
    statement : Path
        The statement; the extension of its name determines its form.
    release : Release
        The release that the statement is of.
    about : About, optional
        What the caller declared for the statement.
    release_file, schema_file : Path
        The files of the release and of its schema.

    Raises
    ------
    ArgumentError
        If the statement cannot be read.
    """
    form = form_of_path(statement)
    text = _text_of(statement)
    stated = FileDigests(_stated_digest(text, RELEASE_FILE), _stated_digest(text, SCHEMA_FILE))
    found, expected = _lines(text), _lines(write_statement(release, about, form, stated))
    filled: list[str] = []
    masked = list(_as_unfilled(found, expected, form, filled))
    differences = list(_differences(expected, masked))
    return [
        *_compared(differences, text, about, form),
        *_files(stated, release, release_file, schema_file),
        *(
            [Check(None, "what was filled in by hand or declared", tuple(map(_shown, filled)))]
            if filled
            else []
        ),
    ]


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError:
        raise ArgumentError(f"{path} cannot be read") from None
    except UnicodeDecodeError:
        raise ArgumentError(
            f"{path} is not a statement of dpsubset: it is not UTF-8 text"
        ) from None


def _lines(text: str) -> list[str]:
    # str.splitlines also splits at separators where Markdown goes on with the line: it would hide
    # that two rows of a table were joined, of which a reader sees the first.
    return [line.rstrip(" \t") for line in text.split("\n")]


def _stated_digest(text: str, title: str) -> str | None:
    """Return the SHA-256 that a statement names; the first one, if there are several."""
    words = r"\s+".join(map(re.escape, title.split()))  # YAML breaks long lines
    hit = re.search(rf"{words}\W+(?:code\W+)?([0-9a-f]{{64}})\b", text)
    return None if hit is None else hit[1]


def _as_unfilled(
    found: Sequence[str], expected: Sequence[str], form: Form, filled: list[str]
) -> Iterator[str]:
    """Replace lines that were filled in by the line to fill in, and list them."""
    blank, content = _TO_FILL.get(form, (None, ""))
    forms = {
        line: re.compile(re.escape(line).replace(re.escape(blank), content))
        for line in expected
        if blank is not None and blank in line
    }
    known = set(expected)
    for line in found:
        unfilled = None
        if line not in known:
            unfilled = next((each for each, form in forms.items() if form.fullmatch(line)), None)
        if unfilled is None:
            yield line
        else:
            filled.append(line)
            yield unfilled


def _differences(expected: Sequence[str], found: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield lines that differ: "stated" in the statement, or "expected" from the release."""
    matcher = SequenceMatcher(None, expected, found, autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind != "equal":
            yield from (("stated", line) for line in found[k:m] if line)
            yield from (("expected", line) for line in expected[i:j] if line)


def _compared(
    differences: list[tuple[str, str]], text: str, about: About | None, form: Form
) -> list[Check]:
    if not differences:
        return [Check(True, "the statement, every sentence against the release")]
    says = "the statement differs from the one computed from this release and schema"
    words = r"\s+".join(WRITTEN_BY.split())
    hit = re.search(rf"{words}\s+([\w.+!-]*\w)", text)
    version = None if hit is None else hit[1]
    if form != "html" and text.lstrip().lower().startswith("<!doctype html"):
        says += ". It is HTML: let its name end in .html"
    elif version != __version__:
        says += (
            f". It was written by dpsubset {version or 'of a version that it does not name'}, and "
            f"this is {__version__}, whose sentences may differ: compare it with that version"
        )
    elif about is None:
        says += ". If it was written with --about, give the same file here"
    lines = [f"{title + ':':9} {line}" for title, line in _told_apart(differences[:_SHOWN])]
    if differences[_SHOWN:]:
        lines.append(f"... and {len(differences) - _SHOWN} more lines")
    return [Check(False, says, tuple(lines))]


def _told_apart(differences: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield differences as they are shown: what looks the same is written out.

    That is tags around the same text, and letters that the expected lines do not have.
    """
    texts = {
        title: {_shown(line) for side, line in differences if side == title}
        for title in ("stated", "expected")
    }
    known = set("".join(line for title, line in differences if title == "expected"))
    for title, line in differences:
        text = _shown(line)
        if text in texts["stated"] & texts["expected"]:
            text = line.strip()
        written = (
            each if each.isascii() or each in known else each.encode("unicode_escape").decode()
            for each in text
        )
        yield title, "".join(written)


def _shown(line: str) -> str:
    """Return the text of a line of HTML without its tags, if it has any text."""
    text = unescape(re.sub(r"<[^<>]*>", " ", line)).strip()
    return re.sub(r" {2,}", " ", text) if line.startswith("<") and text else line.strip()


def _files(
    stated: FileDigests, release: Release, release_file: Path, schema_file: Path
) -> Iterator[Check]:
    """Compare the SHA-256 of files that a statement names with the files at hand."""
    if stated.release is None:
        yield Check(None, "the file of the release, since the statement names no SHA-256 of it")
    else:
        # A release file that was indented anew says the same: it is compared as it was written.
        written = sha256_of_bytes(f"{release.to_json()}\n".encode())
        same = stated.release in (sha256_of_file(release_file), written)
        yield Check(same, f"the SHA-256 of the release file in the statement, {stated.release}")
    if stated.schema is None:
        yield Check(None, "the bounds file, since the statement names no SHA-256 of it")
    else:
        same = stated.schema == sha256_of_file(schema_file)
        yield Check(same, f"the SHA-256 of the bounds file in the statement, {stated.schema}")
