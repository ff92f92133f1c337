"""The statement as a record for the Differential Privacy Deployments Registry of OpenDP, in YAML.

`registry_schema.json` has the registry's field names, types, fixed choices and what it requires, as
of commit 057e5d81 of its data. A record is a draft: the person who submits it has to read it first,
and fill in what was not declared here. A release that is not private names no guarantee.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...base.rounding import decimal_up
from ...base.text import escape_for_terminal
from ...privacy.guarantee import Guarantee, step_name
from .content import APPROVER, Content
from .escape import escape, plain_text
from .plain import plain_lines, released_lines, unprotected_lines, utility_lines
from .technical import (
    WRITTEN_BY,
    digests,
    fit_line,
    mechanism_lines,
    preparation_lines,
    versions_as_text,
)

if TYPE_CHECKING:
    from ..release import Release

TO_FILL = "TO BE FILLED IN"
_KIND = "Industry"


def registry_schema() -> dict[str, Any]:
    """Return the registry's rules for a record, as a JSON Schema."""
    text = files(__package__).joinpath("registry_schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def registry_yaml(release: Release, content: Content) -> str:
    """Write a record of the registry, with a comment on what is left to fill in."""
    import yaml

    left = [*(line.title for line in content.record if line.value is None)]
    left += ["Region"] if content.about.region is None else []
    # The registry has no word for what was not declared.
    left += [f"Kind of curator (until then {_KIND})"] if content.about.curator_type is None else []
    head = [
        "A draft for the deployments registry of OpenDP. Read it before it is sent in.",
        *content.warnings,
        *([f"To be filled in: {', '.join(left)}."] if left else []),
    ]

    class Dumper(yaml.SafeDumper):
        """Writes decimals as they are: the nearest float may be below the cost."""

    def number(dumper: yaml.SafeDumper, value: Decimal) -> yaml.ScalarNode:
        text = f"{value:f}"
        return dumper.represent_scalar("tag:yaml.org,2002:float", text + ".0" * ("." not in text))

    Dumper.add_representer(Decimal, number)
    return "".join(f"# {escape_for_terminal(line)}\n" for line in head) + yaml.dump(
        registry_record(release, content),
        Dumper=Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=100,
    )


def registry_record(release: Release, content: Content) -> dict[str, Any]:
    """Return a record of the registry as plain values."""
    promised = content.promised
    data_set = content.value("data_set")
    title = f"Variable selection from {data_set or 'a data set that was not named'}"
    title = escape_for_terminal(title) if promised else f"NOT PRIVATE: {escape_for_terminal(title)}"
    date = content.value("date") or "1900-01-01"
    found: dict[str, Any] = {
        "basic": _basic(release, content, title, date),
        **(_promised(release, content) if promised else {}),
        "deployment_model": _deployment_model(content),
        "implementation": _implementation(release, content, promised),
        "administrative": {
            "status": "Draft",
            "registry_authors": [_declared_value(content, "operator")],
            "tier": 3 if promised else 1,
        },
    }
    words = f"{title}-{date}-{_declared_value(content, 'release_id')[:8]}"
    slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    return {"url_slug": slug, "deployment": found}


def _declared_value(content: Content, key: str) -> str:
    return content.value(key) or TO_FILL


def _basic(release: Release, content: Content, title: str, date: str) -> dict[str, Any]:
    about = content.about
    answer, *_ = released_lines(release)
    fitted = [fit_line(release.fit, release.model)] if release.model and release.fit else []
    described = " ".join([*content.warnings, *map(plain_text, (answer, *fitted))])
    return {
        "name": title,
        "data_curators": [
            {
                "data_curator_name": _declared_value(content, "curator"),
                "data_curator_type": about.curator_type or _KIND,
            }
        ],
        "description": described,
        "intended_use": _declared_value(content, "purpose"),
        "data_product_type": "Summary statistics"
        if release.model is None
        else "Machine learning model",
        "data_product_region": about.region or TO_FILL,
        **({} if about.sector is None else {"data_product_sector": about.sector}),
        "publication_date": date,
    }


def _promised(release: Release, content: Content) -> dict[str, Any]:
    g, schema = content.guarantee, release.schema
    return {
        "dp_variant": {
            "variant_name": "Approximate DP" if g.delta else "Pure DP",
            "data_domain": (
                f"Tables of {len(schema.features)} declared variables and a response, each within "
                "bounds that were declared beforehand."
            ),
            "unprotected_quantities": _plain_sentences(unprotected_lines(release)),
        },
        "privacy_loss": {
            "privacy_unit": escape_for_terminal(schema.protected),
            "privacy_unit_details": f"Neighbours: {g.neighbours}, in up to {schema.rows_per_unit} "
            f"row{'s' * (schema.rows_per_unit > 1)} of one unit.",
            **({} if content.rows is None else _units(content.rows, schema.rows_per_unit)),
            "privacy_parameters": _privacy_parameters(g),
            "privacy_parameters_details": _plain_sentences(
                [f"{escape(str(g))}.", *plain_lines(release, content)]
            ),
        },
    }


def _units(rows: int, most: int) -> dict[str, int]:
    """Return the number of units, which is known where each unit has one row."""
    return {"number_of_privacy_units": rows} if most == 1 else {}


def _privacy_parameters(g: Guarantee) -> dict[str, Decimal]:
    assert g.epsilon is not None
    return {
        "epsilon": decimal_up(g.epsilon),
        **({"delta": decimal_up(g.delta)} if g.delta else {}),
        **({} if g.rho is None else {"rho": decimal_up(g.rho)}),
    }


def _deployment_model(content: Content) -> dict[str, Any]:
    spent = content.ledger
    counted = (
        "No ledger was used: other releases from the data are not counted here."
        if spent is None
        else f"A ledger counts all releases: with this one {spent.after} of {spent.limit}. "
        f"{spent.proviso}".rstrip()
    )
    return {
        "model_name": "Central",
        "actors": " ".join(
            f"{title}: {_declared_value(content, key)}."
            for key, title in (
                ("curator", "Curator"),
                ("operator", "Operator"),
                ("approver", APPROVER),
                ("recipient", "Recipient"),
            )
        ),
        "release_type": "One release",
        "release_type_details": counted,
        "data_source_type": "Static",
        "access_type": "Non-interactive",
    }


def _implementation(release: Release, content: Content, promised: bool) -> dict[str, Any]:
    parts = release.guarantee.parts
    steps = ", ".join(step_name(name) for name, _ in parts)
    composed = f"Sequential: {steps}." if parts else "One step."
    searched = [] if release.tuned is None else map(escape, release.tuned.lines())
    known = "Proofs" if promised else "What is known of the mechanism"
    return {
        "preprocessing_and_hyperparameter_tuning": _plain_sentences(
            [*preparation_lines(release, content.about.bounds_from, table_follows=False), *searched]
        ),
        "mechanisms": _plain_sentences(
            [*mechanism_lines(release), f"Versions: {escape(versions_as_text(release))}."]
        ),
        "composition": composed,
        "post_processing": "Names of the drawn variables."
        if release.model is None
        else "Names of the drawn variables; a model from the released "
        f"{'values' if release.fit is None else release.fit.kinds} alone.",
        "justification": f"{known}: {', '.join(content.proofs)}. "
        f"Audits: {', '.join(content.audits)}.",
        "utility": _plain_sentences(utility_lines(release)),
        "additional_information": (
            f"Release: {_declared_value(content, 'release_id')}. Version of the data set: "
            f"{_declared_value(content, 'version')}. "
            + " ".join(f"{title}: {value}." for title, value, _ in digests(release, content))
            + f" {WRITTEN_BY} {__version__}."
        ),
    }


def _plain_sentences(lines: list[str]) -> str:
    return " ".join(map(plain_text, lines))
