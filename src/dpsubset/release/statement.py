"""The privacy statement: what was released, what it costs and what that rests on, in Markdown.

For the person who signs. Made of the release and public facts, nothing else.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from ..losses import loss_of
from ..mechanisms.shared.base import SYSTEM_NOISE
from ..privacy.guarantee import Guarantee, shown_cost, shown_parts, shown_up
from ..public.dates import written
from ..public.design import Design
from ..public.labels import shown
from ..public.problem import Problem
from ..public.schema import Column, Schema
from ..text import code, markdown
from .scale import clip_of

if TYPE_CHECKING:
    from .fitted import ReleasedFit
    from .release import Release

_PACKAGES = ("dpsubset", "numpy", "scipy", "numba", "python-flint", "scikit-learn", "opendp")

#: Levels of a column that a statement lists; the schema's fingerprint stands for all.
_LEVELS = 20

SEEDED_WARNING = (
    "This draw was made with a fixed seed. Whoever knows the seed can repeat the noise, so the "
    "release is NOT PRIVATE. Seeds are for tests and simulation only."
)

UNPROVEN_WARNING = (
    "This mechanism has NO PRIVACY GUARANTEE: whoever sees the release may learn about single rows."
)


def statement(release: Release) -> str:
    """Of a release."""
    g, problem, schema = release.guarantee, release.problem, release.schema
    always = [code(name) for name in Design.of(schema).names(problem.always_include)]
    declared = (*_shown(schema), schema.response)
    also = {column.name: text for column in declared if (text := _also(column))}
    labels = [] if schema.response.labels is None else ["the labels of the response"]
    rest = ["what else is declared of the columns"] if also else []
    public = ["column names and bounds", *rest, *labels, "k"] + (
        ["the number of rows"] if g.neighbours == "replace-one" else []
    )
    lines = [
        "# Privacy statement",
        "",
        *(line for warning in warnings(g) for line in (f"> **{warning}**", "")),
        _released(release),
        "",
        *_scale_lines(release),
        *_earlier_lines(release),
        *_model_lines(release),
        "## Guarantee",
        "",
        *_guarantee_lines(g, schema),
        "",
        "## Mechanism",
        "",
        f"- `{release.mechanism}`. {release.mechanism_summary}",
        *(f"- {sentence}" for sentence in release.details),
        *(
            ["- Options: " + ", ".join(f"{name} = {_said(value)}" for name, value in stated) + "."]
            if (stated := [(n, v) for n, v in release.options.items() if v is not None])
            else []
        ),
        f"- {release.randomness}"
        if not g.seeded
        else "- Noise was drawn from a seeded, reproducible stream.",
        *([f"- In every candidate set by declaration: {', '.join(always)}."] if always else []),
        *_scale_noise_lines(release),
        *_fit_noise_lines(release),
        "",
        "## Pre-processing",
        "",
        f"- Bounds{' and all else in the table below' * bool(also)} were given by the caller. The "
        "guarantee holds if they were not derived from these data. Values outside are clipped.",
        *_paid_lines(schema),
        f"- Missing and unreadable cells count as the {schema.bad_cells} of their bounds"
        + (", unless the table below says otherwise." if also else "."),
        *_label_lines(schema, problem),
        "- Values are scaled to [-1, 1] and rounded to multiples of 1/32767.",
        *_rescaling_lines(release),
        *_fit_clip_lines(release),
        "",
        "| variable | low | high |" + " also declared |" * bool(also),
        "|---|---|---|" + "---|" * bool(also),
        *(_bounds_row(column, also) for column in declared),
        "",
        "## Not protected",
        "",
        f"- {', '.join(public)}.",
        "- The running time, memory use and power draw of the computation depend on the data. An "
        "attacker who can observe them learns something this guarantee does not cover.",
        "- So does the chance of passing a node or time limit, where one was set. A search that "
        "passes it ends without a release; its epsilon counts as spent all the same, that of a "
        "scale of the response included.",
        "- Other releases from the same table: their epsilons add up.",
        "",
        "## Provenance",
        "",
        f"- Schema SHA-256: `{schema.fingerprint()}`",
        "- Versions: " + ", ".join(f"{name} {number}" for name, number in versions().items()),
        "",
    ]
    return "\n".join(lines)


def _released(release: Release) -> str:
    problem, response = release.problem, code(release.schema.response.name)
    if release.support is None:
        return (
            f"Released: that no {problem.k} of {problem.p} variables to explain {response} could "
            "be named with this mechanism at this price."
        )
    names = ", ".join(map(code, release.features)) or "none of them"
    return (
        f"Released: the names of {len(release.features)} of {problem.p} variables, chosen to "
        f"explain {response}: {names}."
    )


def _scale_lines(release: Release) -> list[str]:
    """What was released first, and what either step costs."""
    if release.scale is None:
        return []
    g = release.guarantee
    lines = [
        f"A scale of the response was released first: {release.scale.listed}, noise included. "
        "These numbers are public from now on."
    ]
    if g.proven:
        names = dict(zip(_STEPS, g.parts, strict=False))
        each = "; ".join(
            f"{name} costs {shown_cost(part.costs[g.neighbours])}"
            for name, (_, part) in names.items()
        )
        lines.append(f"{each[0].upper()}{each[1:]}; in all {shown_cost(g.costs[g.neighbours])}.")
    return [" ".join(lines), ""]


#: The steps of a release that has a scale, in order.
_STEPS = ("the scale", "the selection", "the fit")


def _earlier_lines(release: Release) -> list[str]:
    """Which release the variables come from, where a model was fitted afterwards."""
    if release.earlier is None:
        return []
    g = release.guarantee
    *_, (_, last) = g.parts
    return [
        "The variables were named by an earlier release, whose digest (SHA-256) is "
        f"`{release.earlier}`. What the fit adds to its cost is "
        f"{shown_cost(last.costs[g.neighbours])}; the guarantee below is that of both together.",
        "",
    ]


def _model_lines(release: Release) -> list[str]:
    """The coefficients, and what their intervals are of."""
    model = release.model
    if model is None or release.fit is None:
        return []
    response, summed = code(release.schema.response.name), release.fit.step is None
    made = f"From these {'sums' if summed else 'coefficients'} alone follows"
    r2 = "" if model.r2 is None else f", with an R2 of about {model.r2:.2f} on this table"
    kind = {"identity": "linear", "logistic": "logistic"}[model.link]
    return [
        "## Model",
        "",
        f"Released too: {release.fit.summary}. {made} a {kind} model of {response}{r2}:",
        "",
        "| column | coefficient | 95 % interval | standardised |",
        "|---|---|---|---|",
        *(f"| {' | '.join(map(markdown, row))} |" for row in model.rows()),
        "",
        _meaning(release.fit, model.link),
        "",
    ]


def _meaning(fit: ReleasedFit, link: str) -> str:
    """What coefficients and intervals are of."""
    units = {
        "identity": "units of the response",
        "logistic": "logarithms of the odds of the second label",
    }[link]
    plain = fit.step is not None and not fit.ridge
    shrunk = "" if plain else ", and shrunk towards 0 where noise is large"
    intervals = _INTERVALS if fit.step is None else _UNKNOWN
    return f"Coefficients are in {units} a unit of the column{shrunk}. {intervals} {_LEVEL}"


_INTERVALS = (
    "Intervals are for the population that the rows are a sample of: they include sampling, with "
    "errors of equal variance, and the noise for privacy. They are not corrected for the selection."
)
_UNKNOWN = "Nothing was released that intervals could be made of."
_LEVEL = (
    "The first level of a category is what its other levels are compared with; a missing one "
    "counts as it, unless it has an indicator."
)


def _scale_noise_lines(release: Release) -> list[str]:
    """Of the scale's own draw: the mechanism's noise may come from elsewhere."""
    if release.scale is None:
        return []
    noise = "" if release.guarantee.seeded else f" {SYSTEM_NOISE}"
    return [
        "- Scale of the response: quantiles by the exponential mechanism over all 65535 values "
        "that a response can have within its bounds, each with its rank error for a score."
        f"{noise}"
    ]


def _fit_noise_lines(release: Release) -> list[str]:
    if release.fit is None:
        return []
    fit = release.fit
    return [f"- Fit: `{fit.mechanism}`, {fit.summary}: {fit.noise}."]


def _fit_clip_lines(release: Release) -> list[str]:
    if release.fit is None or release.fit.clip is None or release.scale is None:
        return []
    clipped = clip_of(release.schema.response, release.fit.clip)
    low, high = map(release.scale.shown, clipped)
    return [
        f"- For the fit the response was clipped to between {low} and {high} instead, from the "
        "same released scale and public facts."
    ]


def _rescaling_lines(release: Release) -> list[str]:
    scale = release.scale
    if scale is None:
        return []
    low, high = map(scale.shown, scale.clipped)
    rule = release.schema.response.missing and release.schema.response.missing.rule
    missing = (
        "" if rule == "value" else " Missing and unreadable cells of it count as the "
        f"{rule or release.schema.bad_cells} of that range."
    )  # fmt: skip
    return [
        f"- Then the response was centred on {scale.shown(scale.centre)} and clipped to between "
        f"{low} and {high}, all from the released scale, and scaled and rounded once more.{missing}"
    ]


def _paid_lines(schema: Schema) -> list[str]:
    """Bounds that were derived from data, and paid for."""
    return [
        f"- According to the schema, the bounds of {', '.join(map(code, paid.columns[:_LEVELS]))}"
        f"{', ...' * bool(paid.columns[_LEVELS:])} are an exception: they were released before, "
        + (
            "WITH A SEED, hence not privately."
            if paid.seeded
            else f"privately, for epsilon = {shown_up(paid.epsilon)} under {paid.neighbours} "
            "neighbours. If that was done on this table, it adds to what this release costs."
        )
        for paid in schema.paid
    ]


def _unit_lines(g: Guarantee, schema: Schema) -> list[str]:
    """Whom it protects, and what a unit with more rows has."""
    larger = " (and a larger delta)." if g.delta else "."
    protected, most = markdown(schema.protected), schema.rows_per_unit
    if most == 1:
        return [
            f"- Unit of privacy: {protected}. Whoever contributes m rows is protected at m times "
            f"epsilon{larger}"
        ]
    return [
        f"- Unit of privacy: {protected}. That nobody has more rows was declared by the caller and "
        f"cannot be checked: whoever contributes m > {most} rows is protected at m / {most} times "
        f"epsilon{larger}"
    ]


def _guarantee_lines(g: Guarantee, schema: Schema) -> list[str]:
    if not g.proven:
        return [
            "- None. This mechanism is known not to keep the epsilon it was run with; it exists to "
            "reproduce published figures on data that are not sensitive."
        ]
    most = schema.rows_per_unit
    rows, verb = ("one row", "is") if most == 1 else (f"up to {most} rows of one unit", "are")
    by = "any other" if most == 1 else "as many others"
    relation = {
        "replace-one": f"{rows} {verb} replaced by {by} (the number of rows is public)",
        "add-remove": f"{rows} {verb} added or removed (the number of rows is private)",
    }[g.neighbours]
    cost, other = g.costs[g.neighbours], [shown_cost(c) + f" under {r}" for r, c in g.costs.items()]
    kind, rest = ("Approximate", "") if cost.delta else ("Pure", ", delta = 0")
    return [
        f"- {kind} differential privacy, {shown_cost(cost)}{rest}.",
        *([f"- It is the total of {markdown(shown_parts(g))}."] if g.parts else []),
        *_rho_lines(g),
        *_unit_lines(g, schema),
        f"- Neighbours: {g.neighbours}: two tables are neighbours if {relation}.",
        f"- The same release costs {' and '.join(other)}."
        if len(other) > 1
        else "- Under other neighbours nothing is promised: what was done depends on the number of "
        "rows.",
        f"- It holds only if {g.assumes}. Nobody has checked that, and it may be false; without it "
        "there is no guarantee."
        if g.assumes
        else "- It holds for any two neighbouring tables and whatever else is known to an "
        "attacker; it assumes nothing about the data.",
    ]


def _rho_lines(g: Guarantee) -> list[str]:
    rhos = [(cost.rho, relation) for relation, cost in g.costs.items() if cost.rho is not None]
    shown = " and ".join(f"rho = {shown_up(rho)} under {relation}" for rho, relation in rhos)
    return [f"- It is zero-concentrated differential privacy too, {shown}."] if shown else []


def _label_lines(schema: Schema, problem: Problem) -> list[str]:
    """For the statement: the same, and what becomes of cells with another label."""
    response = schema.response
    if response.labels is None:
        return []
    takes_labels = loss_of(problem).labels  # the sign of the response, 1 for 0
    rest = {
        "low": f"as {response.labels[0]}",
        "high": f"as {response.labels[1]}",
        "middle": f"as {response.labels[1]}" if takes_labels else "as 0",
    }[(response.missing and response.missing.rule) or schema.bad_cells]
    return [
        f"- The labels of {code(response.name)} were given by the caller: "
        f"{markdown(shown(response.labels))}; a cell with neither counts {markdown(rest)}."
    ]


def _bounds_row(column: Column, also: Mapping[str, str]) -> str:
    ends = column.span if column.labels is None else column.labels
    texts = _written(column, ends)
    if column.levels is not None:
        texts = ["", ""]
    if also:
        texts.append(also.get(column.name, ""))
    return f"| {' | '.join(map(markdown, (column.name, *texts)))} |"


def _also(column: Column) -> str:
    """What is declared of a column beside its bounds or labels."""
    parts = []
    if column.levels is not None:
        shown = ", ".join(map(str, column.levels[:_LEVELS]))
        parts.append(f"levels {shown}" + ", ..." * bool(column.levels[_LEVELS:]))
    if column.transform is not None:
        parts.append({"log": "by its logarithm", "sqrt": "by its square root"}[column.transform])
    if column.group is not None:
        parts.append(f"part of the group {column.group}")
    if column.missing is not None:
        codes, rule = column.missing.codes, column.missing.rule
        if codes:
            parts.append(f"missing if {', '.join(_written(column, codes))}")
        if rule == "indicator":
            parts.append("a column beside it says where it is missing")
        elif rule == "value":
            (value,) = _written(column, [column.missing.value])
            parts.append(f"missing counts as {value}")
        elif rule is not None and column.labels is None:
            parts.append(f"missing counts as the {rule}")
    if column.levels is not None and (column.missing is None or column.missing.rule is None):
        parts.append("none of them where it is missing")
    return "; ".join(parts)


def _written(column: Column, values: Iterable[Any]) -> list[str]:
    """Values of a column as somebody wrote them: dates as dates."""
    if column.kind == "date":
        values = [written(v) if isinstance(v, (int, float)) else v for v in values]
    return [f"{v:g}" if isinstance(v, float) else str(v) for v in values]


def _said(value: Any) -> str:
    """An option, as it is or as a file has it."""
    return " and ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def _shown(schema: Schema) -> tuple[Any, ...]:
    # A statement is read by people: long tables are found by the schema's fingerprint instead.
    return schema.features[:50]


def warnings(g: Guarantee) -> list[str]:
    """What must be said first."""
    found = [SEEDED_WARNING] if g.seeded else []
    if not g.proven:
        found.append(UNPROVEN_WARNING)
    if g.assumes:
        found.append(
            f"The guarantee holds only if {g.assumes}. Nobody has checked that, and it may be "
            "false."
        )
    return found


def versions() -> dict[str, str]:
    """Of what a release was made with."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed as a package"
    return found
