"""Output files that appear whole or not at all.

A release costs budget, so whatever can prevent its file from being written is found before the
table is read: an :class:`Output` tries its folder at once and is filled later. An earlier file of
the same name may be a release that was paid for, so it is not replaced unless that was asked for.

Between the two nothing of it is on disk, so that nothing is left behind however the process ends.
A process killed (SIGKILL) in the moment of writing may leave a draft: a file with a hidden name
of its own, ``.name.xxxxxxxx.json``. All it can hold is a part of what was to be published; nothing
reads it, and it may be deleted. Under the file's own name there is only ever a whole file.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from ..base.errors import ArgumentError


class Output:
    """A file to be written.

    Attributes
    ----------
    path : Path
        The file's name, which shows nothing new before :meth:`publish`.
    draft : Path
        A name beside it, with the same ending, for a file to be written and published.

    Parameters
    ----------
    replace : bool
        Whether a file that is there already may be replaced.
    """

    def __init__(self, path: Path, *, replace: bool = False) -> None:
        self.path = path
        self._replace = replace
        self._target = path.resolve()  # a link stays a link
        if not self._target.parent.is_dir():
            raise ArgumentError(f"cannot write {path}: its folder does not exist")
        if self._target.exists() and not self._target.is_file():
            raise ArgumentError(f"cannot write {path}: it is not an ordinary file")
        if self._target.exists() and not replace:
            raise ArgumentError(f"{path} exists already: choose another name or pass --force")
        # In the same folder, so that publishing is a rename within one file system.
        name = f".{self._target.stem}.{secrets.token_hex(4)}{self._target.suffix}"
        self.draft = self._target.with_name(name)
        try:
            self.draft.touch(exist_ok=False)
            self.draft.unlink()
        except OSError as error:
            raise ArgumentError(f"cannot write {path}: {error.strerror}") from None
        finally:
            self._discard()

    def publish(self) -> None:
        """Give the draft the file's name; FileExistsError if that was taken in the meantime."""
        with open(self.draft, "rb") as file:
            os.fsync(file.fileno())  # or a power cut could leave the name without the contents
        if not self._replace:
            try:
                os.link(self.draft, self._target)  # unlike a rename, it replaces nothing
            except FileExistsError:
                raise
            except OSError as error:  # a file system without links
                if self._target.exists():
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
            else:
                self.draft.unlink()
                return
        self.draft.replace(self._target)

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._discard()

    def _discard(self) -> None:
        with suppress(OSError):
            self.draft.unlink(missing_ok=True)
