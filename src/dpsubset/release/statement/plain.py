"""The statement in plain words: what was released, what that means, what to expect of it.

Every function returns lines of Markdown, in which untrusted text is escaped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...privacy.guarantee import shown_cost, step_name
from .columns import declares_more
from .content import Content
from .escape import code_span, escape
from .posterior import Posterior

if TYPE_CHECKING:
    from ..release import Release


def released_lines(release: Release) -> list[str]:
    """State what was released, in which steps, and after which earlier release."""
    problem, response = release.problem, code_span(release.schema.response.name)
    names = ", ".join(map(code_span, release.features)) or "none of them"
    if release.support is None:
        answer = (
            f"Released: that this mechanism could not name {problem.k} of {problem.p} variables "
            f"that explain {response}, with this epsilon."
        )
    else:
        answer = (
            f"Released: the names of {len(release.features)} of {problem.p} variables, chosen to "
            f"explain {response}: {names}{_model_too(release)}."
        )
    if release.largest_size is not None:
        answer += (
            " How many are named was chosen privately too, with the same epsilon; the largest "
            f"possible number was {release.largest_size}."
        )
    return [answer, *_range_lines(release), *_earlier_lines(release)]


def _model_too(release: Release) -> str:
    if release.model is None:
        return ""
    heading = escape(release.model.heading)
    if not release.features:
        return f"; and the intercept of a {heading}, which has no variables"
    return f"; and the coefficients of a {heading}, with these variables"


def _range_lines(release: Release) -> list[str]:
    if release.scale is not None:
        first = f"The range of the response was released first, by its {release.scale.listed}"
    elif release.class_share is not None:
        listed = escape(release.class_share.listed)
        first = f"The share of each label was released first: {listed}"
    else:
        return []
    g = release.guarantee
    text = f"{first}, with noise. These numbers are public from now on."
    if not g.proven:
        return [text]
    costs = "; ".join(
        f"{step_name(step)} costs {shown_cost(part.costs[g.neighbours])}" for step, part in g.parts
    )
    costs += f"; in all {shown_cost(g.costs[g.neighbours])}."
    if g.seeded:
        return [f"{text} Without a seed, and only then: {costs}"]
    return [f"{text} {costs[0].upper()}{costs[1:]}"]


def _earlier_lines(release: Release) -> list[str]:
    if release.earlier is None:
        return []
    g = release.guarantee
    *_, (_, last) = g.parts
    seeded = " It does NOT hold, since there was a seed." if g.seeded else ""
    return [
        "The variables were named by an earlier release, whose content digest is "
        f"{code_span(release.earlier)}. The fit adds {shown_cost(last.costs[g.neighbours])} to the "
        f"cost of that release; the guarantee below is that of both together.{seeded}"
    ]


def plain_lines(release: Release, content: Content) -> list[str]:
    """Say what the guarantee means for a person, without a formula."""
    g, spent = content.guarantee, content.ledger
    if not content.promised:
        why = (
            "it was made with a fixed seed" if g.seeded else "its mechanism is not known to protect"
        )
        return [
            f"This release protects NOBODY: {why}. A reader who was 50 % sure of a fact about "
            f"{escape(release.schema.privacy_unit)} may become entirely sure of it.",
            "It is for tests, and for data that are not sensitive. Nobody should sign it as a "
            "private release.",
        ]
    condition = "Only if the assumption that is stated above holds: " if g.assumes else ""
    figures = "This figure is" if len(content.posteriors) == 1 else "These figures are"
    adds = "Every other release from the same data adds to this."
    if not content.debited:
        adds += " No ledger counted them here."
    elif spent is None or spent.posterior is None:
        adds += " A ledger counts them; see below."
    else:
        only = "" if spent.assumes is None else f", but only if {escape(spent.assumes)}"
        adds += f" {_posterior_of_ledger(spent.posterior)}{only}."
    return [
        *(condition + _posterior_line(each, release) for each in content.posteriors),
        f"{figures} about what a person's own data add to the release. What the table as a whole "
        "shows about people in general may be learnt from it, which is its purpose.",
        adds,
    ]


def _posterior_of_ledger(posterior: Posterior) -> str:
    """Word the figure by the ledger's sum, which may have a delta where the release has none."""
    counted = "For everything that the ledger counts, this release included,"
    if not posterior.delta:
        return f"{counted} the figure is {posterior.percent} % ({posterior.relation})"
    return (
        f"{counted} the sum has a delta, so that the figure is about guesses, on average: a guess "
        f"is right at most {posterior.percent} % of the time ({posterior.relation})"
    )


def _posterior_line(posterior: Posterior, release: Release) -> str:
    unit, most = escape(release.schema.privacy_unit), release.schema.rows_per_unit
    rows = f", with all of its up to {most} rows," * (most > 1)
    fact = {
        "replace-one": f"of a fact about {unit}{rows}",
        "add-remove": f"that {unit}{rows} is in the table at all",
    }[posterior.relation]
    under = f"({posterior.relation})"
    if not posterior.delta:
        return (
            f"A reader who was 50 % sure {fact} can become at most {posterior.percent} % sure of "
            f"it from this release {under}, even knowing every other row."
        )
    return (
        f"A reader who was 50 % sure {fact} and guesses after seeing this release is right at most "
        f"{posterior.percent} % of the time {under}, even knowing every other row. This is an "
        "average: because of delta a release may, rarely, reveal far more about a person."
    )


def record_lines(content: Content) -> list[tuple[str, str | None]]:
    """List title and value of the record's entries; None where a value is to be filled in."""
    found: list[tuple[str, str | None]] = []
    for entry in content.record:
        if entry.key == "approver" and not content.promised:
            continue  # such a release is not approved
        if entry.value is None:
            found.append((entry.title, None))
            continue
        write = code_span if entry.key == "release_id" else escape
        also = "" if entry.disputed is None else f"; the caller says {escape(entry.disputed)}"
        found.append((entry.title, f"{write(entry.value)} ({entry.source}{also})"))
    return [*found, ("Number of rows", _rows_as_text(content))]


def _rows_as_text(content: Content) -> str:
    g = content.guarantee
    if content.rows is not None:
        return f"{content.rows} (public)"
    if g.tells_rows:
        return "public, not stated here"
    if g.neighbours == "add-remove":
        return "private"
    return "not part of this release, so that its cost under add-remove holds"


def ledger_line(content: Content) -> str:
    """State what was spent before this release and with it, and the limit."""
    spent = content.ledger
    if spent is None:
        why = (
            "the receipt of the ledger cannot be read"
            if content.debited
            else "not known, because no ledger was used"
        )
        return f"Earlier spending and limit: {why}."
    proviso = f" {escape(spent.proviso)}" if spent.proviso else ""
    return (
        f"Ledger: before this release {spent.before} was spent, with it {spent.after}, of a limit "
        f"of {spent.limit}, counted under {spent.relation}. Left: {spent.left}. Ever counted in "
        "this ledger: "
        f"{spent.ever}.{proviso}"
    )


def utility_lines(release: Release) -> list[str]:
    """Say what noise, clipping and missing cells do to the answer."""
    lines = [
        "The answer was drawn at random; sets of variables that explain the response better are "
        "more likely. Another draw from the same table could name other variables. A variable that "
        "was not named is not thereby unimportant.",
        "The fewer the rows and the smaller epsilon, the closer the answer is to a set drawn by "
        "chance alone. The release does not say how often the best set is drawn from data like "
        f"these. That can be tried on simulated data ({code_span('dpsubset.simulate')}).",
        "Values beyond their bounds count as the bound, which makes large effects look smaller. If "
        "bounds are much wider than the data, a variable counts for less than it should.",
        "Cells of features that are missing or cannot be read are not left out: the value that "
        "stands for them weakens the effect of their column.",
    ]
    if release.schema.response.drops_rows:
        lines.append(
            "Rows without a readable response are left out. If whether a response is missing "
            "depends on its value, the answer is about the rows that have one."
        )
    if release.scale is not None:
        low, high = map(release.scale.shown, release.scale.clipped)
        lines.append(
            f"For the selection the response counted only between {low} and {high}, computed from "
            "released values that carry noise: differences beyond these limits are not seen."
        )
    if release.class_share is not None:
        least, most = release.class_share.predictions(release.problem.prediction_bound)
        lines.append(
            f"For the selection a model could predict shares between {100 * least:.3g} % and "
            f"{100 * most:.3g} % only, limits that follow from the released share: effects beyond "
            "these limits are not seen."
        )
    if release.model is not None:
        lines.append(
            "The coefficients carry noise in addition to sampling error. They belong to variables "
            "that were chosen from the same table, so they tend to look stronger than they are "
            "elsewhere."
        )
    if release.tuned is not None:
        lines.append(
            "The model is that of the best of several runs. Its intervals and its R2 are not "
            "corrected for that choice."
        )
    return lines


def unprotected_lines(release: Release) -> list[str]:
    """List what no epsilon covers."""
    schema, tuned = release.schema, release.tuned is not None
    public = [
        "column names and bounds",
        *(["everything else that is declared of the columns"] if declares_more(schema) else []),
        *(["the labels of the response"] if schema.response.labels is not None else []),
        "the grid of settings" if tuned else "the number k of variables to select",
        *(["the number of rows"] if release.stated.tells_rows else []),
    ]
    runs = (
        "The number of runs of the search is not released, but the running time says something "
        "about it, and about how long each run took."
    )
    return [
        f"Public facts: {', '.join(public)}.",
        "The running time, memory use and power draw of the computation depend on the data. An "
        "attacker who can observe them learns something that this guarantee does not cover.",
        *([runs] if tuned else []),
        "If a limit was set for the time or the number of steps of the search, the chance of "
        "exceeding it depends on the data too. A search that exceeds it ends without a release. "
        "Its epsilon counts as spent nevertheless, including that of a response range.",
        "Other releases from the same table are not covered by this epsilon. Their epsilons add "
        "up.",
    ]
