"""Identity: the account that wrote a line, as the operating system and the database state it.

Environment variables such as USER and LOGNAME are not used: any process can set them. A name that
the caller declares is kept beside the identity and is not checked.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..base.errors import LedgerError

_ACCOUNT, _SESSION = "operating_system_account", "database_session_user"


@dataclass(frozen=True)
class Identity:
    """Who wrote a line. Public.

    Attributes
    ----------
    account : str, optional
        The account of the process, by its user id. None in lines of earlier versions.
    session : str, optional
        The user who logged in to the database server. None for a file.
    """

    account: str | None = None
    session: str | None = None

    def source(self, actor: str) -> str:
        """Say how the name of an actor was established; empty if that was not recorded."""
        if self.account is None:
            return ""
        known = "operating system account"
        found = [known if actor == self.account else f"as declared; {known} {self.account}"]
        found += [] if self.session is None else [f"database session user {self.session}"]
        return "; ".join(found)

    def shown(self, actor: str) -> str:
        """Write the name of an actor, and how it was established."""
        source = self.source(actor)
        return f"{actor} ({source})" if source else actor

    def to_dict(self) -> dict[str, str]:
        """As facts, without what is not known."""
        named = {_ACCOUNT: self.account, _SESSION: self.session}
        return {name: value for name, value in named.items() if value is not None}

    @classmethod
    def from_dict(cls, facts: Any) -> Identity:
        """Read what :meth:`to_dict` wrote."""
        known = isinstance(facts, Mapping) and set(facts) <= {_ACCOUNT, _SESSION}
        if not known or not all(isinstance(value, str) for value in facts.values()):
            raise LedgerError("the ledger contains an identity of an unknown format")
        return cls(facts.get(_ACCOUNT), facts.get(_SESSION))


def account() -> str:
    """Return the name of the account of this process; its number if it has no name."""
    if sys.platform == "win32":
        return os.getlogin()  # the name of the process's account, and no environment variable
    import pwd

    number = os.getuid()
    try:
        name = pwd.getpwuid(number).pw_name
    except KeyError:  # as in many containers
        name = ""
    return name if name.strip() and name.isprintable() else f"user id {number}"
