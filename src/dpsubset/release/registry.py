"""The statement as a record for the Differential Privacy Deployments Registry of OpenDP, in YAML.

`registry_schema.json` has the registry's field names, types, fixed choices and what it requires, as
of commit 057e5d81 of its data. A record is a draft: who sends it in has to read it first, and fill
in what was not declared here. A release that is not private names no guarantee.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ..base.rounding import float_up
from ..base.text import escape_for_terminal
from ..privacy.guarantee import Guarantee
from .facts import Facts
from .marked import as_plain
from .terms import mechanism_lines, preparation_lines
from .words import fit_line, plain_lines, released_line, unprotected_lines, utility_lines

if TYPE_CHECKING:
    from .release import Release

_TO_FILL = "TO BE FILLED IN"
_KIND = "Industry"


def registry_schema() -> dict[str, Any]:
    """What the registry asks of a record, as a JSON Schema."""
    text = files(__package__).joinpath("registry_schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def registry_yaml(release: Release, facts: Facts) -> str:
    """A record of the registry."""
    import yaml

    left = [*(line.title for line in facts.record if line.value is None)]
    left += ["Region"] if facts.about.region is None else []
    # The registry has no word for what was not declared.
    left += [f"Kind of curator (until then {_KIND})"] if facts.about.curator_type is None else []
    head = [
        "A draft for the deployments registry of OpenDP. Read it before it is sent in.",
        *facts.warnings,
        *([f"To be filled in: {', '.join(left)}."] if left else []),
    ]
    return "".join(f"# {line}\n" for line in head) + yaml.safe_dump(
        registry_record(release, facts), sort_keys=False, allow_unicode=True, width=100
    )


def registry_record(release: Release, facts: Facts) -> dict[str, Any]:
    """The same as plain values."""
    promised = facts.promised
    data_set = facts.line("data_set").value
    title = f"Variable selection from {data_set or 'a data set that was not named'}"
    title = escape_for_terminal(title) if promised else f"NOT PRIVATE: {escape_for_terminal(title)}"
    date = facts.line("date").value or "1900-01-01"
    found: dict[str, Any] = {
        "basic": _basic(release, facts, title, date),
        **(_promised(release, facts) if promised else {}),
        "deployment_model": _model(facts),
        "implementation": _implementation(release, facts, promised),
        "administrative": {
            "status": "Draft",
            "registry_authors": [_said(facts, "operator")],
            "tier": 3 if promised else 1,
        },
    }
    words = f"{title}-{date}-{_said(facts, 'release_id')[:8]}"
    slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    return {"url_slug": slug, "deployment": found}


def _said(facts: Facts, key: str) -> str:
    return facts.line(key).value or _TO_FILL


def _basic(release: Release, facts: Facts, title: str, date: str) -> dict[str, Any]:
    about = facts.about
    described = " ".join(
        [
            *facts.warnings,
            as_plain(released_line(release)),
            *(
                [as_plain(fit_line(release.fit, release.model))]
                if release.model and release.fit
                else []
            ),
        ]
    )
    return {
        "name": title,
        "data_curators": [
            {
                "data_curator_name": _said(facts, "curator"),
                "data_curator_type": about.curator_type or _KIND,
            }
        ],
        "description": described,
        "intended_use": _said(facts, "purpose"),
        "data_product_type": "Summary statistics"
        if release.model is None
        else "Machine learning model",
        "data_product_region": about.region or _TO_FILL,
        **({} if about.sector is None else {"data_product_sector": about.sector}),
        "publication_date": date,
    }


def _promised(release: Release, facts: Facts) -> dict[str, Any]:
    """Variant, unit and parameters of a release that promises something."""
    g, schema = facts.guarantee, release.schema
    return {
        "dp_variant": {
            "variant_name": "Approximate DP" if g.delta else "Pure DP",
            "data_domain": (
                f"Tables of {len(schema.features)} declared variables and a response, each within "
                "bounds that were declared beforehand."
            ),
            "unprotected_quantities": _text(unprotected_lines(release)),
        },
        "privacy_loss": {
            "privacy_unit": escape_for_terminal(schema.protected),
            "privacy_unit_details": f"Neighbours: {g.neighbours}, in up to {schema.rows_per_unit} "
            f"row{'s' * (schema.rows_per_unit > 1)} of one unit.",
            **({} if facts.rows is None else _units(facts.rows, schema.rows_per_unit)),
            "privacy_parameters": _parameters(g),
            "privacy_parameters_details": _text([str(g), *plain_lines(release, facts)]),
        },
    }


def _units(rows: int, most: int) -> dict[str, int]:
    """Their number is known where each has a row, and that number is public."""
    return {"number_of_privacy_units": rows} if most == 1 else {}


def _parameters(g: Guarantee) -> dict[str, float]:
    assert g.epsilon is not None
    return {
        "epsilon": float_up(g.epsilon),
        **({"delta": float_up(g.delta)} if g.delta else {}),
        **({} if g.rho is None else {"rho": float_up(g.rho)}),
    }


def _model(facts: Facts) -> dict[str, Any]:
    spent = facts.spending
    counted = (
        "No ledger was used: other releases from the data are not counted here."
        if spent is None
        else f"A ledger counts all releases: with this one {spent.after} of {spent.limit}. "
        f"{spent.proviso}".rstrip()
    )
    return {
        "model_name": "Central",
        "actors": (
            f"Curator: {_said(facts, 'curator')}. Operator: {_said(facts, 'operator')}. "
            f"Approver: {_said(facts, 'approver')}. Recipient: {_said(facts, 'recipient')}."
        ),
        "release_type": "One release",
        "release_type_details": counted,
        "data_source_type": "Static",
        "access_type": "Non-interactive",
    }


def _implementation(release: Release, facts: Facts, promised: bool) -> dict[str, Any]:
    parts = release.guarantee.parts
    made = ", ".join(f"{package} {number}" for package, number in release.versions.items())
    composed = "One step." if not parts else f"Sequential: {', '.join(each for each, _ in parts)}."
    searched = [] if release.tuned is None else release.tuned.lines()
    known = "Proofs" if promised else "What is known of the mechanism"
    return {
        "preprocessing_and_hyperparameter_tuning": _text(
            [*preparation_lines(release, facts.bounds_from, table=False), *searched]
        ),
        "mechanisms": _text([*mechanism_lines(release), f"Versions: {made}."]),
        "composition": composed,
        "post_processing": "Names of the drawn variables."
        if release.model is None
        else "Names of the drawn variables; a model from the released "
        f"{'coefficients' if release.fit and release.fit.step is not None else 'sums'} alone.",
        "justification": f"{known}: {', '.join(facts.proofs)}. Audits: {', '.join(facts.audits)}.",
        "utility": _text(utility_lines(release)),
        "additional_information": (
            f"Release: {_said(facts, 'release_id')}. Version of the data set: "
            f"{_said(facts, 'version')}."
        ),
    }


def _text(lines: list[str]) -> str:
    return " ".join(escape_for_terminal(as_plain(line)) for line in lines)
