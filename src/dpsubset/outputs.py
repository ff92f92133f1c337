"""Output files that appear whole or not at all.

A release costs budget, so whatever can prevent its file from being written is found before the
table is read: an :class:`Output` takes its place in the folder at once and is filled later.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from .errors import ArgumentError


class Output:
    """A file to be written.

    Attributes
    ----------
    path : Path
        The file's name, which shows nothing new before :meth:`publish`.
    draft : Path
        An empty file beside it, with the same ending, to be filled.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._target = path.resolve()  # a link stays a link
        if not self._target.parent.is_dir():
            raise ArgumentError(f"cannot write {path}: its folder does not exist")
        if self._target.exists() and not self._target.is_file():
            raise ArgumentError(f"cannot write {path}: it is not an ordinary file")
        # In the same folder, so that publishing is a rename within one file system.
        name = f".{self._target.stem}.{secrets.token_hex(4)}{self._target.suffix}"
        self.draft = self._target.with_name(name)
        try:
            self.draft.touch(exist_ok=False)
        except OSError as error:
            raise ArgumentError(f"cannot write {path}: {error.strerror}") from None

    def publish(self) -> None:
        """Give the draft the file's name, in place of what had it before."""
        self.draft.replace(self._target)

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self.draft.unlink(missing_ok=True)
