"""The exact part of a statement: model, guarantee, mechanism, pre-processing, provenance.

Every function returns lines of Markdown, in which untrusted text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...mechanisms.shared.base import SYSTEM_NOISE
from ...objective.losses import loss_of
from ...objective.problem import Problem
from ...privacy.guarantee import Guarantee, shown_cost, shown_parts, shown_up
from ...schema.encoding import Design
from ...schema.labels import labels_in_words as labels_as_text
from ...schema.schema import Schema
from ..response_range import clip_of
from ..target import unit_of
from .columns import MAX_LEVELS, declares_more, markdown_table
from .content import Content
from .escape import code_span, escape

if TYPE_CHECKING:
    from ..fitted import ReleasedFit
    from ..model import Model
    from ..release import Release

#: What a statement calls the digests of files, and the version that wrote the statement.
RELEASE_FILE, SCHEMA_FILE = "SHA-256 of the release file", "SHA-256 of the bounds file"
WRITTEN_BY = "Statement written by dpsubset"

_INTERVALS = (
    "Intervals are for the population that the rows are a sample of: they include sampling, with "
    "errors of equal variance, and the noise for privacy. They are not corrected for the selection."
)
_NO_INTERVALS = "Nothing was released that intervals could be computed from."
_REFERENCE_LEVEL = (
    "The other levels of a category are compared with its first level. A missing category counts "
    "as the first level, unless it has an indicator."
)


def model_blocks(release: Release) -> list[str]:
    """Write the model: how it was fitted, its coefficients, and what these are of."""
    model, fit = release.model, release.fit
    if model is None or fit is None:
        return []
    r2 = (
        "" if model.r2 is None
        else f" Its R2 on this table is about {model.r2:.2f}, estimated from the same sums."
    )  # fmt: skip
    rows = fit.rows_in_words(fit.schema.response.name)
    return [
        f"{fit_line(fit, model)}{r2}",
        markdown_table(["column", "coefficient", "95 % interval", "standardised"], model.rows()),
        *([] if rows is None else [f"The model is of {escape(rows)}: a released number."]),
        _meaning_of_coefficients(fit, model),
    ]


def fit_line(fit: ReleasedFit, model: Model) -> str:
    """State what the fit released, and what it is a model of."""
    made = f"From these {'sums' if fit.step is None else 'coefficients'} alone follows"
    return f"Released too: {escape(fit.summary)}. {made} a {escape(model.heading)}."


def _meaning_of_coefficients(fit: ReleasedFit, model: Model) -> str:
    response = model.schema.response
    units = escape(unit_of(response, model.link, model.loss))
    shrunk = fit.step is None or fit.ridge
    lines = [
        f"Coefficients are in {units} per unit of the column"
        f"{', and shrunk towards 0 where noise is large' * bool(shrunk)}.",
        *([] if response.labels is not None else
          [f"All numbers of this model are of {escape(model.target)}, and not of values beyond."]),
        _INTERVALS if fit.step is None else _NO_INTERVALS,
        _REFERENCE_LEVEL,
    ]  # fmt: skip
    return " ".join(lines)


def guarantee_lines(g: Guarantee, schema: Schema) -> list[str]:
    """State epsilon, delta, the unit, the neighbours, and what all of that assumes."""
    if not g.proven:
        return [
            "None. This mechanism is known not to keep the epsilon it was run with; it exists to "
            "reproduce published figures on data that are not sensitive."
        ]
    most = schema.rows_per_unit
    rows, verb = ("one row", "is") if most == 1 else (f"up to {most} rows of one unit", "are")
    by = "any other" if most == 1 else "as many others"
    relation = {
        "replace-one": f"{rows} {verb} replaced by {by} (both have the same number of rows)",
        "add-remove": f"{rows} {verb} added or removed (the number of rows is private)",
    }[g.neighbours]
    cost, other = g.costs[g.neighbours], [shown_cost(c) + f" under {r}" for r, c in g.costs.items()]
    kind, rest = ("Approximate", "") if cost.delta else ("Pure", ", delta = 0")
    formula = "P(release in S) <= exp(epsilon) P'(release in S)" + " + delta" * bool(cost.delta)
    lines = [
        f"{kind} differential privacy, {shown_cost(cost)}{rest}.",
        *([f"It is the total of {escape(_parts_as_text(g))}."] if g.parts else []),
        *_rho_lines(g),
        _unit_line(g, schema),
        f"Neighbours: {g.neighbours}: two tables are neighbours if {relation}.",
        f"For two neighbours, with probabilities P and P', and any set S of answers: {formula}.",
        f"The same release costs {' and '.join(other)}."
        if len(other) > 1
        else "Under add-remove neighbours nothing is promised, because the release tells the "
        "number of rows, or depends on it.",
        f"It holds only if {escape(g.assumes)}. Nobody has checked that, and it may be false; "
        "without it there is no guarantee."
        if g.assumes
        else "It holds for any two neighbouring tables and whatever else an attacker knows; it "
        "assumes nothing about the data.",
    ]
    if not g.seeded:
        return lines
    # No line of a seeded release may be read as a promise.
    return [
        "None: whoever knows the seed can repeat the noise. What follows would hold for a draw "
        "without a seed, and does NOT hold for this release.",
        *(f"Without a seed: {line}" for line in lines),
    ]


def _rho_lines(g: Guarantee) -> list[str]:
    rhos = [(cost.rho, relation) for relation, cost in g.costs.items() if cost.rho is not None]
    text = " and ".join(f"rho = {shown_up(rho)} under {relation}" for rho, relation in rhos)
    return [f"It is also zero-concentrated differential privacy, {text}."] if text else []


def _unit_line(g: Guarantee, schema: Schema) -> str:
    most, unit = schema.rows_per_unit, f"Unit of privacy: {escape(schema.protected)}."
    if g.assumes:
        return (
            f"{unit} Nothing is stated for a contributor of more rows, because the assumption is "
            "about tables that differ in one unit."
        )
    larger = " (and a larger delta)." if g.delta else "."
    if most == 1:
        return f"{unit} Whoever contributes m rows is protected at m times epsilon{larger}"
    return (
        f"{unit} That nobody has more rows was declared by the caller and cannot be checked: "
        f"whoever contributes m > {most} rows is protected at m / {most} times epsilon{larger}"
    )


def mechanism_lines(release: Release) -> list[str]:
    """State how the release was drawn, with which options, and where the noise came from."""
    seeded, fit = release.guarantee.seeded, release.fit
    always = Design.of(release.schema).names(release.problem.always_include)
    options = ", ".join(
        f"{key} = {_option(value)}" for key, value in release.options.items() if value is not None
    )
    system_noise = "" if seeded else f" {SYSTEM_NOISE}"
    lines = [
        f"{code_span(release.mechanism)}. {escape(release.mechanism_summary)}",
        *map(escape, release.details),
        *([f"Options: {escape(options)}."] if options else []),
        "Noise was drawn from a seeded, reproducible stream."
        if seeded
        else escape(release.randomness),
        *([f"In every candidate set by declaration: {_code_spans(always)}."] if always else []),
    ]
    # Noise of these steps may come from elsewhere than the mechanism's.
    if release.readable is not None:
        lines.append(
            "Counts of cells without a value: integers with one draw of noise, whose probability "
            f"falls with its largest entry. They are released too.{system_noise}"
        )
    if release.scale is not None:
        lines.append(
            "Range of the response: quantiles by the exponential mechanism over all 65535 values "
            "that a response can have within its bounds; the score of a value is its rank error."
            f"{system_noise}"
        )
    if fit is not None:
        noise = "" if seeded else f" {fit.randomness}"
        lines.append(f"Fit: {code_span(fit.mechanism)}, {escape(fit.summary)}: {fit.noise}.{noise}")
    return lines


def preparation_lines(
    release: Release, bounds_from: str | None, *, table_follows: bool = True
) -> list[str]:
    """State what was done to the table before anything was drawn, and on whose word."""
    schema, scale = release.schema, release.scale
    more = declares_more(schema)
    holds = (
        "Without a seed, the guarantee would hold"
        if release.guarantee.seeded
        else "The guarantee holds"
    )
    source = (
        f" Their source, according to the caller: {escape(bounds_from)}." if bounds_from else ""
    )
    rest = "in the table below" if table_follows else "that was declared of the columns"
    unless = (
        "the table below says otherwise"
        if table_follows
        else "something else was declared of a column"
    )
    lines = [
        f"Bounds{f' and everything else {rest}' * more} were given by the caller. {holds} "
        f"provided that they were not derived from these data. Values outside are clipped.{source}",
        *_paid_lines(schema),
        f"Missing and unreadable cells of features count as the {schema.bad_cells} of their bounds"
        + (f", unless {unless}." if more else "."),
    ]
    if schema.response.drops_rows:
        lines.append(
            f"Rows without a readable value of {code_span(schema.response.name)} contribute "
            "nothing; how many there are is private, except for what is released with noise."
        )
    lines += [
        "Types of columns do not match what the schema declares: " + escape(warning) + "."
        for warning in release.column_warnings
    ]
    counts = () if release.readable is None else release.readable.lines()
    lines += [f"{escape(line)}." for line in (*release.warnings_of_counts, *counts)]
    lines += _label_lines(schema, release.problem)
    lines.append("Values are scaled to [-1, 1] and rounded to multiples of 1/32767.")
    if scale is not None:
        low, high = map(scale.shown, scale.clipped)
        rule = None if schema.response.missing is None else schema.response.missing.rule
        missing = (
            "" if rule in (None, "drop", "value")
            else f" Missing and unreadable cells of it count as the {rule} of that range."
        )  # fmt: skip
        lines.append(
            f"Then the response was centred on {scale.shown(scale.centre)} and clipped to between "
            f"{low} and {high}, all by the released range, and scaled and rounded once more."
            f"{missing}"
        )
        if release.fit is not None and release.fit.clip is not None:
            low, high = map(scale.shown, clip_of(schema.response, release.fit.clip))
            lines.append(
                f"For the fit the response was clipped to between {low} and {high} instead, "
                "computed from the same released quantiles and public facts."
            )
    return lines


def _paid_lines(schema: Schema) -> list[str]:
    """State which bounds were derived from data, and at what cost."""
    return [
        f"According to the schema, the bounds of {_code_spans(paid.columns[:MAX_LEVELS])}"
        f"{', ...' * bool(paid.columns[MAX_LEVELS:])} are an exception: they were released "
        "before, "
        + (
            "WITH A SEED, hence not privately."
            if paid.seeded
            else f"privately, for epsilon = {shown_up(paid.epsilon)} under {paid.neighbours} "
            "neighbours. If that was done on this table, it adds to what this release costs."
        )
        for paid in schema.paid
    ]


def _label_lines(schema: Schema, problem: Problem) -> list[str]:
    """State the labels, and how cells with another value count."""
    response = schema.response
    if response.labels is None:
        return []
    takes_labels = loss_of(problem).labels  # the sign of the response, 1 for 0
    rest = {
        "low": f"counts as {response.labels[0]}",
        "high": f"counts as {response.labels[1]}",
        "middle": f"counts as {response.labels[1]}" if takes_labels else "counts as 0",
        "drop": "cannot be read",
    }[(response.missing and response.missing.rule) or "drop"]
    return [
        f"The labels of {code_span(response.name)} were given by the caller: "
        f"{escape(labels_as_text(response.labels))}; a cell with neither {escape(rest)}."
    ]


def provenance_lines(release: Release, content: Content) -> list[str]:
    """State the schema's fingerprint, versions, proofs and audits."""
    files = "Proofs" if content.guarantee.proven else "What is known of the mechanism"
    return [
        *(f"{title}: {code_span(value)}{note}" for title, value, note in digests(release, content)),
        f"{WRITTEN_BY} {escape(__version__)}",
        f"Versions: {escape(versions_as_text(release))}",
        f"{files}, files of the package: {_code_spans(content.proofs)}",
        "Audits, which try to refute the guarantee on simulated data: "
        + _code_spans(content.audits),
    ]


def digests(release: Release, content: Content) -> list[tuple[str, str, str]]:
    """List the digests of release and schema: title, value, and the command that prints it.

    The SHA-256 of a file is known where the file is. A content digest is not that of a file: it
    stays the same if the file is formatted anew.
    """
    files, by_sum = content.files, " (as printed by 'sha256sum')"
    by_verify = " (not that of a file; computed by 'dpsubset verify')"
    found = [
        ("Content digest of the release", release.content_digest, by_verify),
        (RELEASE_FILE, files.release, by_sum),
        ("Content digest of the schema", release.schema.fingerprint(), by_verify),
        (SCHEMA_FILE, files.schema, by_sum),
    ]
    return [(title, value, note) for title, value, note in found if value is not None]


def versions_as_text(release: Release) -> str:
    """List the packages that the release was made with."""
    return ", ".join(f"{package} {number}" for package, number in release.versions.items())


def _code_spans(names: Iterable[str]) -> str:
    return ", ".join(map(code_span, names))


def _parts_as_text(g: Guarantee) -> str:
    steps = tuple((step_name(name), part) for name, part in g.parts)
    return shown_parts(replace(g, parts=steps))


def step_name(name: str) -> str:
    """Return what the statement calls a step of a release; files keep an older name of one."""
    return "the range of the response" if name == "the scale of the response" else name


def _option(value: Any) -> str:
    return " and ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
