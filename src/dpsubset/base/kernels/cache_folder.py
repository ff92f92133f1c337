"""Where compiled code is kept if numba finds no folder for it.

numba keeps compiled code beside the package or, if that is read-only, in the user's cache folder.
In a container there may be neither. The code is then kept in a folder for temporary files.

Compiled code is loaded without a check: a person who can write to its folder can execute code as
the user. The folder is therefore used only if no other user can write to it or replace it.

numba does not load code from a folder that it cannot write to. Code that was compiled there, when
an image was built, is copied.
"""

from __future__ import annotations

import functools
import os
import shutil
import stat
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

_WHY = (
    "compiled code can be kept neither beside the package nor in a cache folder of the user, since "
    "both are missing or read-only"
)
_ADVICE = "Set NUMBA_CACHE_DIR to a folder that only trusted users can write to"


@functools.cache
def fallback_folder() -> Path | None:
    """Return a folder for compiled code, and warn; None if there is none that is safe."""
    found = None
    with suppress(OSError):
        parent = Path(tempfile.gettempdir())
        if hasattr(os, "geteuid") and is_safe_parent(parent):
            found = private_folder(parent / f"dpsubset-{os.geteuid()}")
    kept = "Each process compiles it again" if found is None else f"It is kept in {found}"
    warnings.warn(f"{_WHY}. {kept}. {_ADVICE}", RuntimeWarning, stacklevel=2)
    return found


def private_folder(path: Path) -> Path | None:
    """Create a folder that only this user can open, or return None if the name is taken."""
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()  # a link of another user could lead anywhere
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return path if is_own and not found.st_mode & 0o077 else None


def is_safe_parent(path: Path) -> bool:
    """Whether no other user but the administrator can rename what is in a folder."""
    found = path.stat()
    is_shared = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
    return found.st_uid in (0, os.geteuid()) and not is_shared


def copy_compiled(source: Path, target: Path) -> None:
    """Copy the compiled code of the functions that have none in ``target``."""
    with suppress(OSError):
        for index in source.glob("*.nbi"):
            if not (target / index.name).exists():
                # The index comes last: other processes find complete files.
                for file in (*source.glob(f"{index.stem}.*.nbc"), index):
                    part = target / f"{file.name}.{os.getpid()}"
                    shutil.copyfile(file, part)
                    part.replace(target / file.name)


def home_is_known() -> bool:
    """Whether the user's cache folder has a path."""
    return bool(os.environ.get("XDG_CACHE_HOME")) or os.path.isabs(os.path.expanduser("~"))
