"""The exact part of a statement: model, guarantee, mechanism, pre-processing, provenance.

Every function returns lines of Markdown, in which untrusted text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...base.rounding import exp_up
from ...mechanisms.shared.base import JOINT_NOISE, SYSTEM_NOISE
from ...objective.losses import loss_of
from ...objective.problem import Problem
from ...privacy.guarantee import Cost, Guarantee, shown_cost, shown_parts, shown_up
from ...schema.encoding import Design
from ...schema.labels import labels_in_words as labels_as_text
from ...schema.schema import Schema
from ..class_share import ReleasedShare
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
    "An interval is for the coefficient in the population that the rows were sampled from. It "
    "accounts for the sampling of the rows, if errors have equal variance, and for the noise that "
    "protects privacy. It does not account for the choice of the variables from the same table."
)
_NO_INTERVALS = "Intervals cannot be computed from what was released."
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
        else f" It explains about {100 * model.r2:.0f} % of the variance of the response on this "
        f"table (R2 = {model.r2:.2f}), estimated from the same sums."
    )  # fmt: skip
    rows = fit.rows_in_words(fit.schema.response.name)
    return [
        f"{fit_line(fit, model)}{r2}",
        markdown_table(["column", "coefficient", "95 % interval", "standardised"], model.rows()),
        *(
            []
            if rows is None
            else [f"The model was fitted on {escape(rows)}. This number was released too."]
        ),
        _meaning_of_coefficients(fit, model),
    ]


def fit_line(fit: ReleasedFit, model: Model) -> str:
    """State what the fit released, and what it is a model of."""
    made = f"from these {fit.kinds} alone"
    released = "; and ".join(escape(part.summary) for part in fit.released_fits)
    return f"Released too: {released}. A {escape(model.heading)} was computed {made}."


def _meaning_of_coefficients(fit: ReleasedFit, model: Model) -> str:
    response = model.schema.response
    units = escape(unit_of(response, model.link, model.loss))
    shrunk = fit.step is None or fit.ridge
    lines = [
        f"Coefficients are in {units} per unit of the column"
        f"{'. They are made smaller where the noise is large' * bool(shrunk)}.",
        *([] if response.labels is not None else
          [f"All numbers of this model refer to {escape(model.target)}. They do not describe "
           "values beyond these limits."]),
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
    by = "any other row" if most == 1 else "as many other rows"
    relation = {
        "replace-one": f"{rows} {verb} replaced by {by}. Both have the same number of rows",
        "add-remove": f"{rows} {verb} added or removed. The number of rows is private",
    }[g.neighbours]
    cost, other = g.costs[g.neighbours], [shown_cost(c) + f" under {r}" for r, c in g.costs.items()]
    kind, rest = ("Approximate", "") if cost.delta else ("Pure", ", delta = 0")
    formula = "P(release in S) <= exp(epsilon) P'(release in S)" + " + delta" * bool(cost.delta)
    lines = [
        f"{kind} differential privacy, {shown_cost(cost)}{rest}.",
        *([f"It is the total of {escape(shown_parts(g))}."] if g.parts else []),
        *_rho_lines(g),
        _unit_line(g, schema),
        f"Neighbours: {g.neighbours}. Two tables are neighbours if one becomes the other when "
        f"{relation}.",
        f"{_factor_in_words(cost)} In a formula, for any set S of answers: {formula}. P and P' are "
        "the probabilities with two neighbouring tables.",
        f"The same release costs {' and '.join(other)}."
        if len(other) > 1
        else "There is no guarantee for tables that differ by a row that is added or removed "
        "(add-remove), because the release states the number of rows or depends on it.",
        f"It holds only if {escape(g.assumes)}. This has not been checked and may be false; "
        "without it there is no guarantee."
        if g.assumes
        else "It holds for any two neighbouring tables and whatever else an attacker knows; it "
        "assumes nothing about the data.",
    ]
    if not g.seeded:
        return lines
    # No line of a seeded release may be read as a guarantee.
    return [
        "None: a person who knows the seed can repeat the noise. What follows would hold for a "
        "draw without a seed, and does NOT hold for this release.",
        *(f"Without a seed: {line}" for line in lines),
    ]


#: The largest epsilon whose factor is written as a number.
_LARGEST_EXPONENT = 10


def _factor_in_words(cost: Cost) -> str:
    """State the inequality in words, with the factor where it is a small number."""
    factor = "exp(epsilon)"
    if cost.epsilon <= _LARGEST_EXPONENT:
        factor += f" = {shown_up(exp_up(cost.epsilon), 4)}"
    if cost.delta:
        return (
            f"The probability of any set of answers with one table is at most {factor} times its "
            f"probability with a neighbouring table, plus delta = {shown_up(cost.delta)}."
        )
    return (
        f"No answer is more than {factor} times as likely with one table as with a neighbouring "
        "table."
    )


def _rho_lines(g: Guarantee) -> list[str]:
    rhos = [(cost.rho, relation) for relation, cost in g.costs.items() if cost.rho is not None]
    text = " and ".join(f"rho = {shown_up(rho)} under {relation}" for rho, relation in rhos)
    measure = "By another measure of the same protection, zero-concentrated differential privacy"
    return [f"{measure}, the release has {text}."] if text else []


def _unit_line(g: Guarantee, schema: Schema) -> str:
    most, unit = schema.rows_per_unit, f"Unit of privacy: {escape(schema.protected)}."
    if g.assumes:
        return (
            f"{unit} There is no guarantee for a person with more rows, because the assumption is "
            "about tables that differ in one unit."
        )
    larger = " and a larger delta." if g.delta else "."
    if most == 1:
        return (
            f"{unit} A person with several rows is protected less: with m rows, at m times epsilon"
            f"{larger}"
        )
    return (
        f"{unit} The caller declared that nobody has more rows, which cannot be checked. A person "
        f"with m rows, more than {most}, is protected less: at m / {most} times epsilon{larger}"
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
        "The noise follows from a fixed seed and can be repeated."
        if seeded
        else escape(release.randomness),
        *([f"Every candidate set contains {_code_spans(always)}, as declared."] if always else []),
    ]
    # Noise of these steps may come from elsewhere than the mechanism's.
    if release.readable is not None:
        lines.append(
            "The numbers of cells without a value were released too, as whole numbers with noise. "
            f"{JOINT_NOISE}{system_noise}"
        )
    if release.scale is not None:
        lines.append(
            "Range of the response: each released quantile was drawn at random from the 65535 "
            "values that a response can have within its bounds, by the exponential mechanism. A "
            "value is more likely, the closer its rank among the responses is to the rank of the "
            f"quantile.{system_noise}"
        )
    if release.class_share is not None:
        lines.append(
            "Class share: the numbers of rows with each label were released, as whole numbers with "
            f"noise. {JOINT_NOISE}{system_noise}"
        )
    if fit is not None:
        for part in fit.released_fits:
            noise = "" if seeded else f" {part.randomness}"
            lines.append(
                f"Fit: {code_span(part.mechanism)}. It released {escape(part.summary)}. "
                f"{part.noise}{noise}"
            )
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
        f"only if they were not derived from these data. Values outside are clipped: they count as "
        f"the nearest bound.{source}",
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
    lines.append(
        "Each value is converted to a number between -1 and 1, which stand for its bounds, and "
        "rounded to a multiple of 1/32767."
    )
    if release.class_share is not None:
        lines.append(_centre_line(release, release.class_share))
    if scale is not None:
        low, high = map(scale.shown, scale.clipped)
        rule = None if schema.response.missing is None else schema.response.missing.rule
        missing = (
            "" if rule in (None, "drop", "value")
            else f" Missing and unreadable cells of it count as the {rule} of that range."
        )  # fmt: skip
        lines.append(
            f"Then the response was clipped to between {low} and {high}, measured from "
            f"{scale.shown(scale.centre)}, and converted and rounded once more. These numbers "
            f"follow from the released range.{missing}"
        )
        if release.fit is not None and release.fit.clip is not None:
            low, high = map(scale.shown, clip_of(schema.response, release.fit.clip))
            lines.append(
                f"For the fit the response was clipped to between {low} and {high} instead, "
                "computed from the same released quantiles and public facts."
            )
    return lines


def _centre_line(release: Release, share: ReleasedShare) -> str:
    """State what labels counted as, and what a cell counts as that is neither of them."""
    response = release.schema.response
    assert response.labels is not None
    counted = " and ".join(
        f"{escape(str(label))} as {value:.6g}"
        for label, value in zip(response.labels, share.counts_as, strict=True)
    )
    rule = None if response.missing is None else response.missing.rule
    other = {"low": -1, "middle": 0, "high": 1}.get(rule or "drop")
    missing = "" if other is None else f" A cell with neither counted as {other}."
    fitted = "" if release.fit is None else " For the fit they counted as -1 and 1."
    return (
        f"For the selection the labels were centred: {counted}. These numbers follow from the "
        f"released counts.{missing}{fitted}"
    )


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


def _option(value: Any) -> str:
    return " and ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
