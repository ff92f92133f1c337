"""The privacy statement: what was released, what it costs and what that rests on.

For the person who signs. Made of the release, of what the caller declares and of public facts,
nothing else; the facts are gathered once and written in one of four forms.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, get_args

from ..base.errors import ArgumentError
from ..base.text import markdown
from ..base.validation import check_choice
from ..privacy.guarantee import Cost, Guarantee
from .about import About
from .facts import Belief, Facts, facts_of
from .files import written
from .marked import as_markdown, as_plain
from .page import page
from .registry import registry_yaml
from .words import Block, Fields, Items, Section, Table, sections_of

if TYPE_CHECKING:
    from .release import Release

Form = Literal["markdown", "html", "json", "yaml"]
FORMAT = "dpsubset statement 1"

_SUFFIXES: dict[str, Form] = {
    ".html": "html", ".htm": "html", ".json": "json", ".yaml": "yaml", ".yml": "yaml"
}  # fmt: skip

#: Where something is to be filled in by hand.
BLANK = "_" * 24


def form_of(path: PurePath) -> Form:
    """By the ending of a file's name; Markdown for all that are not known."""
    return _SUFFIXES.get(path.suffix.lower(), "markdown")


def statement(release: Release, about: About | None, form: Form) -> str:
    """Of a release."""
    check_choice(form, get_args(Form), "form")
    if about is not None and not isinstance(about, About):
        raise ArgumentError("about must be a dpsubset.About")
    facts = facts_of(release, about)
    if form == "yaml":
        return registry_yaml(release, facts)
    sections = sections_of(release, facts)
    if form == "html":
        return page(facts, sections)
    if form == "json":
        return written(_plain_values(release, facts, sections)) + "\n"
    return _markdown(facts, sections)


def _markdown(facts: Facts, sections: tuple[Section, ...]) -> str:
    lines = ["# Privacy statement", ""]
    for warning in facts.warnings:
        lines += [f"> **{warning}**", ""]
    for section in sections:
        lines += [f"## {section.title}", ""] if section.title else []
        for block in section.blocks:
            lines += [*_markdown_block(block), ""]
    return "\n".join(lines)


def _markdown_block(block: Block) -> list[str]:
    if isinstance(block, str):
        return [as_markdown(block)]
    if isinstance(block, Items):
        return [f"- {as_markdown(line)}" for line in block.lines]
    if isinstance(block, Fields):
        return [
            f"- {title}: {BLANK if value is None else as_markdown(value)}"
            for title, value in block.lines
        ]
    rows = [f"| {' | '.join(map(markdown, row))} |" for row in block.rows]
    return [f"| {' | '.join(block.head)} |", "|" + "---|" * len(block.head), *rows]


def _plain_values(release: Release, facts: Facts, sections: tuple[Section, ...]) -> dict[str, Any]:
    """For machines: values where there are any, and all sentences."""
    g, schema = facts.guarantee, release.schema
    promised: dict[str, Any] = {
        "neighbours": g.neighbours,
        "unit": schema.privacy_unit,
        "rows_per_unit": schema.rows_per_unit,
        "assumes": g.assumes,
        "costs": {relation: _cost(cost) for relation, cost in g.costs.items()},
    }
    spent = facts.spending
    return {
        "format": FORMAT,
        "private": g.private,
        "seeded": g.seeded,
        "warnings": list(facts.warnings),
        "record": {
            line.key: {
                "value": line.value,
                "source": line.source,
                **({} if line.disputed is None else {"the_caller_says": line.disputed}),
            }
            for line in facts.record
        },
        "features": list(release.features),
        "response": schema.response.name,
        **({} if release.tuned is None else {"tuned": release.tuned.to_dict()}),
        "rows": facts.rows,
        **_under_its_name(g, promised),
        "beliefs": [_belief(each) for each in facts.beliefs],
        "ledger": None
        if spent is None
        else {
            "relation": spent.relation,
            **spent.facts,
            "spent_with_this": spent.after,
            "assumes": spent.assumes,
            "belief_with_this": None if spent.belief is None else _belief(spent.belief),
        },
        "bounds": [each.to_dict() for each in facts.bounds],
        "bounds_from": facts.bounds_from,
        "schema_sha256": schema.fingerprint(),
        "proofs": list(facts.proofs),
        "audits": list(facts.audits),
        "versions": dict(release.versions),
        "text": [
            {"title": section.title or "Released", "lines": _lines(section)} for section in sections
        ],
    }


def _belief(belief: Belief) -> dict[str, Any]:
    return {
        "relation": belief.relation,
        "from_percent": 50,
        "to_at_most_percent": float(belief.percent),
        "of": "every release" if not belief.delta else "guesses, on average",
    }


def _under_its_name(g: Guarantee, promised: dict[str, Any]) -> dict[str, Any]:
    """What a seeded release would have promised is never called its guarantee."""
    if g.seeded:
        return {"guarantee": None, "without_a_seed_it_would_be": promised}
    return {"guarantee": promised if g.proven else None}


def _cost(cost: Cost) -> dict[str, str | None]:
    rho = None if cost.rho is None else str(cost.rho)
    return {"epsilon": str(cost.epsilon), "delta": str(cost.delta), "rho": rho}


def _lines(section: Section) -> list[str]:
    lines: list[str] = []
    for block in section.blocks:
        if isinstance(block, str):
            lines.append(as_plain(block))
        elif isinstance(block, Items):
            lines += map(as_plain, block.lines)
        elif isinstance(block, Table):
            lines += [", ".join(filter(None, row)) for row in block.rows]
        else:
            lines += [
                f"{title}: {as_plain(value)}" for title, value in block.lines if value is not None
            ]
    return lines
