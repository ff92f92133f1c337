"""Plans: what to expect of a release, from made-up tables. No data are read, nothing is spent."""

from .expectation import Expectation
from .planner import plan
from .population import Population

__all__ = ["Expectation", "Population", "plan"]
