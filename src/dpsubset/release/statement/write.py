"""Write the privacy statement: what was released, what it costs and what that rests on.

The statement is for the person who signs. It is written once, as Markdown; the page is converted
from it, and the lines of the machine-readable forms are read back from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, get_args

from ... import __version__
from ...base.errors import ArgumentError
from ...base.validation import check_choice
from ..about import About
from ..files import FileDigests, facts_to_json
from .columns import columns_table
from .content import APPROVER, Content, content_of
from .escape import code_span, escape
from .page import BLANK, html_page, text_lines
from .plain import (
    ledger_line,
    plain_lines,
    record_lines,
    released_lines,
    unprotected_lines,
    utility_lines,
)
from .registry import registry_yaml
from .technical import (
    guarantee_lines,
    mechanism_lines,
    model_blocks,
    preparation_lines,
    provenance_lines,
)

if TYPE_CHECKING:
    from ..release import Release

Form = Literal["markdown", "html", "json", "yaml"]
FORMAT = "dpsubset statement 1"

_SUFFIXES: dict[str, Form] = {
    ".html": "html", ".htm": "html", ".json": "json", ".yaml": "yaml", ".yml": "yaml"
}  # fmt: skip

#: Extensions of documents that are not text.
_NOT_TEXT = (".pdf", ".doc", ".docx", ".odt", ".rtf", ".ps")


@dataclass(frozen=True)
class Section:
    """A title, empty at the top of the statement, and blocks of Markdown."""

    title: str
    blocks: tuple[str, ...]

    @property
    def markdown(self) -> str:
        """The section with its heading."""
        heading = [f"## {self.title}"] if self.title else []
        return "\n\n".join((*heading, *self.blocks))


def form_of_path(path: PurePath) -> Form:
    """Return the form for the extension of a file name: Markdown if it is not known.

    Raises
    ------
    ArgumentError
        If it is that of documents that are not text.
    """
    if path.suffix.lower() in _NOT_TEXT:
        raise ArgumentError(
            f"{path.name}: a statement is written as .html, .md, .json or .yaml. Print the .html "
            "form from a browser for a PDF"
        )
    return _SUFFIXES.get(path.suffix.lower(), "markdown")


def write_statement(
    release: Release, about: About | None, form: Form, files: FileDigests | None = None
) -> str:
    """Write the statement of a release in one of its forms, with the digests of its files."""
    check_choice(form, get_args(Form), "form")
    if about is not None and not isinstance(about, About):
        raise ArgumentError("about must be a dpsubset.About")
    content = content_of(release, about, files or FileDigests())
    if form == "yaml":
        return registry_yaml(release, content)
    sections = _sections(release, content)
    if form == "json":
        return facts_to_json(_json_values(release, content, sections)) + "\n"
    title = "Privacy statement" + ": NOT PRIVATE" * (not content.promised)
    warnings = [f"> **{escape(warning)}**" for warning in content.warnings]
    body = (each.markdown for each in sections)
    text = "\n\n".join((f"# {title}", *warnings, *body)) + "\n"
    return html_page(title, text) if form == "html" else text


def _sections(release: Release, content: Content) -> tuple[Section, ...]:
    """Write all sections, in the order in which they are read."""
    schema, tuned = release.schema, release.tuned
    prepared = _bullets(preparation_lines(release, content.about.bounds_from))
    found = [
        ("", released_lines(release)),
        ("In plain words", [_bullets(plain_lines(release, content))]),
        ("Record", [_fields(record_lines(content)), ledger_line(content)]),
        ("Model", model_blocks(release)),
        ("Choice of the setting", [_bullets(map(escape, tuned.lines()))] if tuned else []),
        ("Guarantee", [_bullets(guarantee_lines(content.guarantee, schema))]),
        ("Mechanism", [_bullets(mechanism_lines(release))]),
        ("Pre-processing", [prepared, columns_table(schema)]),
        ("What to expect of the answer", [_bullets(utility_lines(release))]),
        ("Not protected", [_bullets(unprotected_lines(release))]),
        ("Provenance", [_bullets(provenance_lines(release, content))]),
        ("Signature", _signature(content)),
    ]
    return tuple(Section(title, tuple(blocks)) for title, blocks in found if blocks)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _fields(entries: Iterable[tuple[str, str | None]]) -> str:
    return _bullets(f"{title}: {BLANK if value is None else value}" for title, value in entries)


def _signature(content: Content) -> list[str]:
    if not content.promised:
        return ["Not to be signed: this release is NOT PRIVATE."]
    approver, release_id = content.value("approver"), content.value("release_id")
    return [
        "The person who signs has to check what no program can: where the bounds come from, that "
        "the unit is the right one and has no more rows than declared, and what else was released "
        "from these data.",
        _fields([("Release", code_span(release_id) if release_id else None),
                 (APPROVER, escape(approver) if approver else None),
                 ("Signature", None), ("On", None)]),
    ]  # fmt: skip


def _json_values(
    release: Release, content: Content, sections: tuple[Section, ...]
) -> dict[str, Any]:
    """Collect the content as plain values, with all sentences."""
    g, schema, spent = content.guarantee, release.schema, content.ledger
    promised: dict[str, Any] = {
        "neighbours": g.neighbours,
        "unit": schema.privacy_unit,
        "rows_per_unit": schema.rows_per_unit,
        "assumes": g.assumes,
        "costs": {
            relation: {key: cost.to_dict()[key] for key in ("epsilon", "delta", "rho")}
            for relation, cost in g.costs.items()
        },
    }
    return {
        "format": FORMAT,
        "private": g.private,
        "seeded": g.seeded,
        "warnings": list(content.warnings),
        "record": {
            entry.key: {
                "value": entry.value,
                "source": entry.source,
                **({} if entry.disputed is None else {"the_caller_says": entry.disputed}),
            }
            for entry in content.record
        },
        "features": list(release.features),
        "response": schema.response.name,
        **({} if release.tuned is None else {"tuned": release.tuned.to_dict()}),
        "rows": content.rows,
        # What a seeded release would have promised is never called its guarantee.
        **({"guarantee": None, "without_a_seed_it_would_be": promised} if g.seeded
           else {"guarantee": promised if g.proven else None}),
        "beliefs": [each.to_dict() for each in content.posteriors],
        "ledger": None
        if spent is None
        else {
            "relation": spent.relation,
            **spent.facts,
            "spent_with_this": spent.after,
            "left_after_this": spent.left,
            "assumes": spent.assumes,
            "belief_with_this": spent.posterior and spent.posterior.to_dict(),
        },
        "bounds": [each.to_dict() for each in content.columns],
        "bounds_from": content.about.bounds_from,
        "release_content_digest": release.content_digest,
        "release_file_sha256": content.files.release,
        "schema_content_digest": schema.fingerprint(),
        "schema_file_sha256": content.files.schema,
        "written_by": f"dpsubset {__version__}",
        "proofs": list(content.proofs),
        "audits": list(content.audits),
        "versions": dict(release.versions),
        "text": [
            {"title": each.title or "Released", "lines": text_lines(each.markdown)}
            for each in sections
        ],
    }  # fmt: skip
