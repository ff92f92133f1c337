"""The exact part of a statement: guarantee, mechanism, pre-processing, sentence by sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base.text import escape_for_terminal
from ..mechanisms.shared.base import SYSTEM_NOISE
from ..objective.losses import loss_of
from ..objective.problem import Problem
from ..privacy.guarantee import Guarantee, shown_cost, shown_parts, shown_up
from ..schema.encoding import Design
from ..schema.labels import labels_in_words
from ..schema.schema import Schema
from .declared import MOST_LEVELS, also, ends
from .marked import name, said
from .scale import clip_of

if TYPE_CHECKING:
    from .release import Release

#: Columns that a statement for people lists; the schema's fingerprint stands for all.
_COLUMNS = 50


def guarantee_lines(g: Guarantee, schema: Schema) -> list[str]:
    """Epsilon, delta, the unit, the neighbours, and what all of that rests on."""
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
        *([f"It is the total of {said(shown_parts(g))}."] if g.parts else []),
        *_rho_lines(g),
        *_unit_lines(g, schema),
        f"Neighbours: {g.neighbours}: two tables are neighbours if {relation}.",
        f"For two neighbours, with probabilities P and P', and any set S of answers: {formula}.",
        f"The same release costs {' and '.join(other)}."
        if len(other) > 1
        else "Under add-remove neighbours nothing is promised: what was released tells the number "
        "of rows, or depends on it.",
        f"It holds only if {g.assumes}. Nobody has checked that, and it may be false; without it "
        "there is no guarantee."
        if g.assumes
        else "It holds for any two neighbouring tables and whatever else is known to an "
        "attacker; it assumes nothing about the data.",
    ]
    return _unseeded(lines) if g.seeded else lines


def _unseeded(lines: list[str]) -> list[str]:
    """So that no line of a seeded release can be read as a promise."""
    return [
        "None: the noise can be repeated by whoever knows the seed. What follows would hold for a "
        "draw without one, and does NOT hold for this release.",
        *(f"Without a seed: {line}" for line in lines),
    ]


def _rho_lines(g: Guarantee) -> list[str]:
    rhos = [(cost.rho, relation) for relation, cost in g.costs.items() if cost.rho is not None]
    text = " and ".join(f"rho = {shown_up(rho)} under {relation}" for rho, relation in rhos)
    return [f"It is zero-concentrated differential privacy too, {text}."] if text else []


def _unit_lines(g: Guarantee, schema: Schema) -> list[str]:
    """Whom it protects, and what a unit with more rows has."""
    larger = " (and a larger delta)." if g.delta else "."
    protected, most = said(schema.protected), schema.rows_per_unit
    if g.assumes:
        return [
            f"Unit of privacy: {protected}. Nothing is stated for whoever contributes more rows: "
            "what is assumed is of tables that differ in one unit."
        ]
    if most == 1:
        return [
            f"Unit of privacy: {protected}. Whoever contributes m rows is protected at m times "
            f"epsilon{larger}"
        ]
    return [
        f"Unit of privacy: {protected}. That nobody has more rows was declared by the caller and "
        f"cannot be checked: whoever contributes m > {most} rows is protected at m / {most} times "
        f"epsilon{larger}"
    ]


def mechanism_lines(release: Release) -> list[str]:
    """How it was drawn, with which options, and where the noise came from."""
    always = Design.of(release.schema).names(release.problem.always_include)
    stated = [(key, value) for key, value in release.options.items() if value is not None]
    options = ", ".join(f"{key} = {_written(value)}" for key, value in stated)
    seeded = release.guarantee.seeded
    return [
        f"{name(release.mechanism)}. {escape_for_terminal(release.mechanism_summary)}",
        *map(escape_for_terminal, release.details),
        *([f"Options: {escape_for_terminal(options)}."] if options else []),
        "Noise was drawn from a seeded, reproducible stream."
        if seeded
        else escape_for_terminal(release.randomness),
        *([f"In every candidate set by declaration: {_names(always)}."] if always else []),
        *_check_noise_lines(release),
        *_scale_noise_lines(release),
        *_fit_noise_lines(release),
    ]


def _check_noise_lines(release: Release) -> list[str]:
    if release.readable is None:
        return []
    noise = "" if release.guarantee.seeded else f" {SYSTEM_NOISE}"
    return [
        "Counts of cells without a value: integers with one draw of noise, which falls with its "
        f"largest entry. They are released too.{noise}"
    ]


def _scale_noise_lines(release: Release) -> list[str]:
    """Of the scale's own draw: the mechanism's noise may come from elsewhere."""
    if release.scale is None:
        return []
    noise = "" if release.guarantee.seeded else f" {SYSTEM_NOISE}"
    return [
        "Scale of the response: quantiles by the exponential mechanism over all 65535 values "
        f"that a response can have within its bounds, each with its rank error for a score.{noise}"
    ]


def _fit_noise_lines(release: Release) -> list[str]:
    if release.fit is None:
        return []
    fit = release.fit
    noise = "" if release.guarantee.seeded else f" {fit.randomness}"
    return [f"Fit: {name(fit.mechanism)}, {fit.summary}: {fit.noise}.{noise}"]


def preparation_lines(
    release: Release, bounds_from: str | None, *, table: bool = True
) -> list[str]:
    """What was done to the table before anything was drawn, and on whose word.

    ``table``: whether a table of what was declared follows.
    """
    schema, seeded = release.schema, release.guarantee.seeded
    more = bool(declared_also(schema))
    holds = "Without a seed, the guarantee would hold" if seeded else "The guarantee holds"
    source = f" Their source, as the caller says: {said(bounds_from)}." if bounds_from else ""
    rest = "in the table below" if table else "that was declared of the columns"
    unless = (
        "the table below says otherwise" if table else "something else was declared of a column"
    )
    return [
        f"Bounds{f' and all else {rest}' * more} were given by the caller. {holds} if "
        f"they were not derived from these data. Values outside are clipped.{source}",
        *_paid_lines(schema),
        f"Missing and unreadable cells of features count as the {schema.bad_cells} of their bounds"
        + (f", unless {unless}." if more else "."),
        *_dropped_lines(schema),
        *(f"Types of columns go ill with the schema: {said(w)}." for w in release.column_warnings),
        *_readable_lines(release),
        *_label_lines(schema, release.problem),
        "Values are scaled to [-1, 1] and rounded to multiples of 1/32767.",
        *_rescaling_lines(release),
        *_fit_clip_lines(release),
    ]


def _dropped_lines(schema: Schema) -> list[str]:
    """Which rows do not count."""
    if not schema.response.drops_rows:
        return []
    return [
        f"Rows without a readable value of {name(schema.response.name)} contribute nothing; how "
        "many there are is private, but for what is released with noise."
    ]


def _readable_lines(release: Release) -> list[str]:
    """The counts of cells without a value, where they were released."""
    counted = release.readable
    lines = [*release.warnings_of_counts, *(() if counted is None else counted.lines())]
    return [f"{said(line)}." for line in lines]


def _paid_lines(schema: Schema) -> list[str]:
    """Bounds that were derived from data, and paid for."""
    return [
        f"According to the schema, the bounds of {_names(paid.columns[:MOST_LEVELS])}"
        f"{', ...' * bool(paid.columns[MOST_LEVELS:])} are an exception: they were released "
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
    """The labels, and what becomes of cells with another one."""
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
        f"The labels of {name(response.name)} were given by the caller: "
        f"{said(labels_in_words(response.labels))}; a cell with neither {said(rest)}."
    ]


def _rescaling_lines(release: Release) -> list[str]:
    scale = release.scale
    if scale is None:
        return []
    low, high = map(scale.shown, scale.clipped)
    declared = release.schema.response.missing
    rule = None if declared is None else declared.rule
    missing = (
        "" if rule in (None, "drop", "value") else " Missing and unreadable cells of it count as "
        f"the {rule} of that range."
    )  # fmt: skip
    return [
        f"Then the response was centred on {scale.shown(scale.centre)} and clipped to between "
        f"{low} and {high}, all from the released scale, and scaled and rounded once more.{missing}"
    ]


def _fit_clip_lines(release: Release) -> list[str]:
    if release.fit is None or release.fit.clip is None or release.scale is None:
        return []
    clipped = clip_of(release.schema.response, release.fit.clip)
    low, high = map(release.scale.shown, clipped)
    return [
        f"For the fit the response was clipped to between {low} and {high} instead, from the "
        "same released scale and public facts."
    ]


def declared_also(schema: Schema) -> dict[str, str]:
    """Columns of which more is declared than bounds, and what."""
    columns = (*schema.features[:_COLUMNS], schema.response)
    return {column.name: text for column in columns if (text := also(column))}


def declared_rows(schema: Schema) -> list[list[str]]:
    """A table of what was declared, as people read it; its last column only if there is need."""
    more = declared_also(schema)
    rows = []
    for column in (*schema.features[:_COLUMNS], schema.response):
        texts = ["", ""] if column.levels is not None else ends(column)
        rows.append([column.name, *texts, *([more.get(column.name, "")] if more else [])])
    return rows


def _names(names: Any) -> str:
    return ", ".join(map(name, names))


def _written(value: Any) -> str:
    """An option, as it is or as a file has it."""
    return " and ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
