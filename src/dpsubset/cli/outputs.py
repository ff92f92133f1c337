"""Output files that are written completely or not at all.

A release costs budget, so whatever can prevent its file from being written is found before the
table is read: an `Output` tests its folder at once and is filled later. An earlier file of the same
name may be a release that was paid for, so it is not replaced without --force.

Between the two nothing is on disk, so nothing is left behind however the process ends. A process
killed (SIGKILL) while it writes may leave a draft: a hidden file ``.name.xxxxxxxx.json`` with a
part of what was to be published. Nothing reads it, and it may be deleted. Under its own name a file
is always complete.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType

from ..base.errors import ArgumentError


class Output:
    """A file to be written.

    Attributes
    ----------
    path : Path
        The name of the file, which is not changed before :meth:`publish`.
    draft : Path
        A name in the same folder, with the same extension, to write to before publishing.

    Parameters
    ----------
    replace : bool
        Whether an existing file may be replaced.
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
        """Rename the draft to the file's name.

        Raises
        ------
        FileExistsError
            If a file of that name has appeared in the meantime and must not be replaced.
        """
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


def reserve_output(path: Path | None, force: bool, stack: ExitStack) -> Output | None:
    """Check at once that a file can be written, if there is one."""
    return None if path is None else stack.enter_context(Output(path, replace=force))


def write_output(output: Output | None, text: str) -> list[str]:
    """Write and publish a file, if there is one. Return what went wrong."""
    if output is None:
        return []
    try:
        output.draft.write_bytes(text.encode())  # its SHA-256 is stated: no line ends are changed
        output.publish()
    except OSError as error:
        return [f"{output.path}: {error.strerror}"]
    return []
