"""The statement, sentence by sentence: plain words first, exact terms after them.

A `Section` has blocks: a paragraph, a list, a table, lines to sign. What a form makes of them is
its own matter (`statement`, `page`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..privacy.guarantee import shown_cost
from .facts import Belief, Facts
from .marked import name, said
from .target import unit_of
from .terms import declared_also, declared_rows, guarantee_lines, mechanism_lines, preparation_lines

if TYPE_CHECKING:
    from .fitted import ReleasedFit
    from .model import Model
    from .release import Release


@dataclass(frozen=True)
class Items:
    """A list."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Cells are text from outside, with no marks."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Fields:
    """Titles, and what belongs there; None where it is to be filled in by hand."""

    lines: tuple[tuple[str, str | None], ...]


Block = str | Items | Table | Fields


@dataclass(frozen=True)
class Section:
    """A heading, if there is one, and what stands below it."""

    title: str
    blocks: tuple[Block, ...]


def sections_of(release: Release, facts: Facts) -> tuple[Section, ...]:
    """All of a statement, in the order in which it is read."""
    listed = declared_rows(release.schema)
    head = ("variable", "low", "high", *(["also declared"] if len(listed[0]) > 3 else []))
    first = [released_line(release), *_scale(release), *_earlier(release)]
    tuned = () if release.tuned is None else tuple(map(said, release.tuned.lines()))
    return (
        Section("", tuple(first)),
        Section("In plain words", (Items(tuple(plain_lines(release, facts))),)),
        Section("Record", (Fields(tuple(_record(facts))), *_spending(facts))),
        *_model(release),
        *([Section("Choice of the setting", (Items(tuned),))] if tuned else []),
        Section("Guarantee", (Items(tuple(guarantee_lines(facts.guarantee, release.schema))),)),
        Section("Mechanism", (Items(tuple(mechanism_lines(release))),)),
        Section(
            "Pre-processing",
            (
                Items(tuple(preparation_lines(release, facts.bounds_from))),
                Table(head, tuple(map(tuple, listed))),
            ),
        ),
        Section("What to expect of the answer", (Items(tuple(utility_lines(release))),)),
        Section("Not protected", (Items(tuple(unprotected_lines(release))),)),
        Section("Provenance", (Items(tuple(_provenance(release, facts))),)),
        Section("Signature", _signature(facts)),
    )


def released_line(release: Release) -> str:
    """What the answer is."""
    problem, response = release.problem, name(release.schema.response.name)
    if release.support is None:
        return (
            f"Released: that no {problem.k} of {problem.p} variables to explain {response} could "
            "be named with this mechanism at this price."
        )
    names = ", ".join(map(name, release.features)) or "none of them"
    return (
        f"Released: the names of {len(release.features)} of {problem.p} variables, chosen to "
        f"explain {response}: {names}."
    )


#: Steps of a release, where they are called otherwise here than in guarantees.
_STEPS = {"the scale of the response": "the scale"}


def _scale(release: Release) -> list[str]:
    """What was released first, and what either step costs."""
    if release.scale is None:
        return []
    g = release.guarantee
    text = (
        f"A scale of the response was released first: {release.scale.listed}, noise included. "
        "These numbers are public from now on."
    )
    if not g.proven:
        return [text]
    each = "; ".join(
        f"{_STEPS.get(step, step)} costs {shown_cost(part.costs[g.neighbours])}"
        for step, part in g.parts
    )
    costs = f"{each}; in all {shown_cost(g.costs[g.neighbours])}."
    if g.seeded:
        return [f"{text} Without a seed, and only then: {costs}"]
    return [f"{text} {costs[0].upper()}{costs[1:]}"]


def _earlier(release: Release) -> list[str]:
    """Which release the variables come from, where a model was fitted afterwards."""
    if release.earlier is None:
        return []
    g = release.guarantee
    *_, (_, last) = g.parts
    seeded = " It does NOT hold, since there was a seed." if g.seeded else ""
    return [
        "The variables were named by an earlier release, whose digest (SHA-256) is "
        f"{name(release.earlier)}. What the fit adds to its cost is "
        f"{shown_cost(last.costs[g.neighbours])}; the guarantee below is that of both together."
        f"{seeded}"
    ]


def plain_lines(release: Release, facts: Facts) -> list[str]:
    """What the guarantee means for a person, without a formula."""
    g = facts.guarantee
    if not facts.promised:
        why = (
            "it was made with a fixed seed" if g.seeded else "its mechanism is not known to protect"
        )
        return [
            f"This release protects NOBODY: {why}. Someone who was 50 % sure of a fact about "
            f"{said(release.schema.privacy_unit)} may become entirely sure of it.",
            "It is for tests, and for data that are not sensitive. Nobody should sign it as a "
            "private release.",
        ]
    if_so = f"If {g.assumes}: " * bool(g.assumes)
    lines = [if_so + _believed(each, release) for each in facts.beliefs]
    lines.append(
        "This is about what one's own data add. What the table as a whole says about people in "
        "general may be learnt from the release, and is what it is for."
    )
    adds = "Every other release from the same data adds to it."
    spent = facts.spending
    if not facts.debited:
        lines.append(f"{adds} No ledger counted them here.")
    elif spent is None or spent.belief is None:
        lines.append(f"{adds} A ledger counts them; see below.")
    else:
        only = "" if spent.assumes is None else f", but only if {spent.assumes}"
        lines.append(f"{adds} {_counted_belief(spent.belief)}{only}.")
    return lines


def _counted_belief(belief: Belief) -> str:
    """The same of a ledger's sum, which may have a delta where this release has none."""
    counted = "For all that the ledger counts, this release included,"
    if not belief.delta:
        return f"{counted} the figure is {belief.percent} % ({belief.relation})"
    return (
        f"{counted} the figure is of guesses, on average, since that sum has a delta: a guess is "
        f"right at most {belief.percent} % of the time ({belief.relation})"
    )


def _believed(belief: Belief, release: Release) -> str:
    unit, most = said(release.schema.privacy_unit), release.schema.rows_per_unit
    rows = f", with all of its up to {most} rows," * (most > 1)
    fact = {
        "replace-one": f"of a fact about {unit}{rows}",
        "add-remove": f"that {unit}{rows} is in the table at all",
    }[belief.relation]
    under = f"({belief.relation})"
    if not belief.delta:
        return (
            f"Someone who was 50 % sure {fact} can become at most {belief.percent} % sure of it "
            f"from this release {under}, even knowing every other row."
        )
    return (
        f"Someone who was 50 % sure {fact} and guesses after seeing this release is right at most "
        f"{belief.percent} % of the time {under}, even knowing every other row. That is on "
        "average: because of delta a release may, rarely, tell far more about someone."
    )


def _record(facts: Facts) -> list[tuple[str, str | None]]:
    found: list[tuple[str, str | None]] = []
    for line in facts.record:
        if line.key == "approver" and not facts.promised:
            continue  # nobody is asked to approve
        if line.value is None:
            found.append((line.title, None))
            continue
        code = line.key == "release_id"
        also = f"; the caller says {said(line.disputed)}" if line.disputed is not None else ""
        value = name(line.value) if code else said(line.value)
        found.append((line.title, f"{value} ({line.source}{also})"))
    found.append(("Number of rows", _rows(facts)))
    return found


def _rows(facts: Facts) -> str:
    g = facts.guarantee
    if facts.rows is not None:
        return f"{facts.rows} (public)"
    if g.tells_rows:
        return "public, not stated here"
    if g.neighbours == "add-remove":
        return "private"
    return "not part of this release, so that its cost under add-remove holds"


def _spending(facts: Facts) -> tuple[Block, ...]:
    spent = facts.spending
    if spent is None and facts.debited:
        return ("Earlier spending and limit: this receipt of a ledger cannot be read.",)
    if spent is None:
        return ("Earlier spending and limit: no ledger was used, so that nothing is known of it.",)
    return (
        f"Ledger: before this release {spent.before} was spent, with it {spent.after}, of a limit "
        f"of {spent.limit}, counted under {spent.relation}. Ever counted in this ledger: "
        f"{spent.ever}.{f' {spent.proviso}' if spent.proviso else ''}",
    )


def _model(release: Release) -> tuple[Section, ...]:
    """The coefficients, and what their intervals are of."""
    model = release.model
    if model is None or release.fit is None:
        return ()
    r2 = "" if model.r2 is None else f" Its R2 on this table is about {model.r2:.2f}, of the same."
    head = ("column", "coefficient", "95 % interval", "standardised")
    blocks: tuple[Block, ...] = (
        f"{fit_line(release.fit, model)}{r2}",
        Table(head, tuple(map(tuple, model.rows()))),
        *_counted(release.fit),
        _meaning(release.fit, model),
    )
    return (Section("Model", blocks),)


def fit_line(fit: ReleasedFit, model: Model) -> str:
    """What the fit released, and what it is a model of: the transform and the clip included."""
    made = f"From these {'sums' if fit.step is None else 'coefficients'} alone follows"
    return f"Released too: {fit.summary}. {made} a {said(model.heading)}."


def _counted(fit: ReleasedFit) -> tuple[Block, ...]:
    """How many rows the model is of, where that was released."""
    rows = fit.rows_in_words(name(fit.schema.response.name))
    return () if rows is None else (f"It is a model of {rows}: a released number.",)


def _meaning(fit: ReleasedFit, model: Model) -> str:
    """What coefficients and intervals are of."""
    response = model.schema.response
    units = said(unit_of(response, model.link, model.loss))
    plain = fit.step is not None and not fit.ridge
    shrunk = "" if plain else ", and shrunk towards 0 where noise is large"
    of_target = "" if response.labels is not None else (
        f" All numbers of this model are of {said(model.target)}, and not of values beyond."
    )  # fmt: skip
    intervals = _INTERVALS if fit.step is None else _UNKNOWN
    return (
        f"Coefficients are in {units} a unit of the column{shrunk}.{of_target} {intervals} {_LEVEL}"
    )


_INTERVALS = (
    "Intervals are for the population that the rows are a sample of: they include sampling, with "
    "errors of equal variance, and the noise for privacy. They are not corrected for the selection."
)
_UNKNOWN = "Nothing was released that intervals could be made of."
_LEVEL = (
    "The first level of a category is what its other levels are compared with; a missing one "
    "counts as it, unless it has an indicator."
)


def utility_lines(release: Release) -> list[str]:
    """What noise, clipping and missing cells do to the answer, in plain words."""
    lines = [
        "The answer was drawn by chance, so that sets which explain the response better are "
        "likelier. Another draw from the same table could name other variables. A variable that "
        "was not named is not thereby unimportant.",
        "The fewer the rows and the smaller epsilon, the closer it is to a set picked blindly. How "
        "often the best set would be drawn from data like these can be tried on made-up data "
        f"({name('dpsubset.simulate')}); from the release itself it cannot be told.",
        "Cells beyond their bounds count as the bound, which makes large effects look smaller. "
        "Bounds that are much wider than the data let a variable count for less than it should.",
        "Cells of features that are missing or cannot be read are not left out: the value that "
        "stands for them weakens what their column shows.",
    ]
    if release.schema.response.drops_rows:
        lines.append(
            "Rows without a readable response are left out. If whether a response is missing "
            "depends on what it would be, the answer is about the rows that have one."
        )
    if release.scale is not None:
        low, high = map(release.scale.shown, release.scale.clipped)
        lines.append(
            f"For the selection the response counted only between {low} and {high}, which are made "
            "of released values that carry noise: what is special about rows beyond is not seen."
        )
    if release.model is not None:
        lines.append(
            "The coefficients carry noise beside that of sampling, and belong to variables that "
            "the same table has chosen: they tend to look stronger than they are elsewhere."
        )
    if release.tuned is not None:
        lines.append(
            "The model is that of the best of several runs. Its intervals and its R2 are not "
            "corrected for that choice."
        )
    return lines


def unprotected_lines(release: Release) -> list[str]:
    """What no epsilon is about."""
    schema, g = release.schema, release.stated
    public = ["column names and bounds"]
    public += ["what else is declared of the columns"] if declared_also(schema) else []
    public += [] if schema.response.labels is None else ["the labels of the response"]
    public += [
        "k" if release.tuned is None else "the grid of settings",
        *(["the number of rows"] if g.tells_rows else []),
    ]
    return [
        f"{', '.join(public)}.",
        "The running time, memory use and power draw of the computation depend on the data. An "
        "attacker who can observe them learns something this guarantee does not cover.",
        *(
            []
            if release.tuned is None
            else [
                "The number of runs of the search is not released, but the running time tells "
                "something of it, and of how long each run took."
            ]
        ),
        "The chance of passing a node or time limit, where one was set, depends on the data too. A "
        "search that passes it ends without a release; its epsilon counts as spent all the same, "
        "that of a scale of the response included.",
        "Other releases from the same table: their epsilons add up.",
    ]


def _provenance(release: Release, facts: Facts) -> list[str]:
    proven = ", ".join(map(name, facts.proofs))
    made = ", ".join(f"{package} {number}" for package, number in release.versions.items())
    return [
        f"Schema SHA-256: {name(release.schema.fingerprint())}",
        f"Versions: {said(made)}",
        f"Proofs, files of the package: {proven}"
        if facts.guarantee.proven
        else f"What is known of the mechanism, files of the package: {proven}",
        "Audits, which try to contradict guarantees on made-up data: "
        f"{', '.join(map(name, facts.audits))}",
    ]


def _signature(facts: Facts) -> tuple[Block, ...]:
    if not facts.promised:
        return ("Not to be signed: this release is NOT PRIVATE.",)
    approver = facts.line("approver").value
    signed: tuple[str, str | None] = ("Signature", None)
    lines = (("Approved by", said(approver) if approver else None), signed, ("On", None))
    return (
        "To be checked by the person who signs, since no program can: where the bounds come from, "
        "that the unit is the right one and has no more rows than declared, and what else was "
        "released from these data.",
        Fields(lines),
    )
