"""The files that a path, a pattern or a list of paths stands for. Reads no file.

Every file counts once and none is left out in silence: what is in a folder and cannot be part of
the table is an error, except hidden files and those that begin with an underscore, such as
_SUCCESS, which other programs write beside tables.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...base.errors import TableError
from .arrays import is_list
from .files import file_format, is_table_path
from .other_kinds import is_file, is_text, is_url, message_of_path


def is_list_of_paths(data: Any) -> bool:
    """Whether this is a list of paths, and not of records.

    Only types are looked at, and the extensions of texts: other texts are records of one cell.
    """
    kind = type(data)
    if not issubclass(kind, (list, tuple)):
        return False
    # As stored: a subclass may compute what it yields.
    items = [*(list if issubclass(kind, list) else tuple).__iter__(data)]
    return bool(items) and all(map(_is_path, items))


def _is_path(item: Any) -> bool:
    kind = type(item)
    return issubclass(kind, Path) or (issubclass(kind, str) and is_table_path(Path(item)))


def files_of(data: Any) -> list[Path]:
    """Return the files of a path, a folder, a pattern, or a list of these.

    Raises
    ------
    TableError
        If there is no such file, a file is listed twice, or a folder or pattern has files of
        several kinds.
    """
    given = data if is_list(data) else [data]
    found = [path for each in given for path in _files_of_path(Path(each))]
    check_once(found)
    return found


def check_once(paths: Iterable[Path]) -> None:
    """Refuse a file that is listed twice, also by another name: its rows would count twice."""
    seen: dict[object, Path] = {}
    for path in paths:
        stat = path.stat()
        # File systems without such numbers state 0.
        keys = [os.path.realpath(path), *([(stat.st_dev, stat.st_ino)] if stat.st_ino else [])]
        for key in keys:
            if key in seen:
                raise TableError(
                    f"{path} and {seen[key]} are the same file, and its rows would count twice: "
                    "name each file once"
                )
        seen.update(dict.fromkeys(keys, path))


def _files_of_path(path: Path) -> list[Path]:
    if is_file(path):
        return [path]
    if is_url(path) or is_text(path):
        raise TableError(message_of_path(path))
    if path.is_dir():
        path = path if path.name else path.resolve()  # "." has a name in errors, too
        return _of_one_kind(_files_of_folder(path), path.name)
    if glob.has_magic(str(path)):
        return _of_one_kind(_files_of_pattern(path), path.name)
    raise TableError(message_of_path(path))


def _files_of_folder(folder: Path) -> list[Path]:
    """The files directly in a folder, sorted by name."""
    try:
        found = sorted(path for path in folder.iterdir() if not _is_beside(path.name))
    except OSError:
        raise TableError(f"the folder {folder.name} cannot be read") from None
    if not found:
        raise TableError(f"the folder {folder.name} has no table")
    for path in found:
        if path.is_dir():
            raise TableError(_of_folders(folder, path))
        if not path.is_file() or not is_table_path(path):
            raise TableError(
                f"{folder.name} has {path.name}, which is no table by its extension: move it out "
                f"of the folder, or name the files by a pattern, such as '{folder.name}/*.parquet'"
            )
    return found


def _of_folders(folder: Path, inner: Path) -> str:
    if "=" in inner.name:
        return (
            f"{folder.name} is partitioned into folders such as {inner.name}, and columns are not "
            f"read from names of folders. Pass pyarrow.dataset.dataset({folder.name!r}, "
            f"partitioning='hive'), or the pattern '{folder.name}/**/*.parquet' if the schema "
            f"does not declare {inner.name.partition('=')[0]!r}"
        )
    return (
        f"{folder.name} has folders in it, such as {inner.name}, and only files directly in a "
        f"folder are read. Name all files by a pattern, such as '{folder.name}/**/*.parquet'"
    )


def _files_of_pattern(pattern: Path) -> list[Path]:
    """The files that match, sorted by name, with those of matching folders.

    ``**`` stands for any folders.
    """
    parts = pattern.parts
    fixed = next(place for place, part in enumerate(parts) if glob.has_magic(part))
    matching = [
        path
        for path in map(Path, sorted(glob.glob(str(pattern), recursive=True)))
        if not any(map(_is_beside, path.parts[fixed:]))
    ]
    found = [path for path in matching if path.is_file()]
    for path in found:
        if not is_table_path(path):
            raise TableError(
                f"{pattern.name} matches {path.name}, which is no table by its extension: end the "
                "pattern in one, such as '*.parquet'"
            )
    if "**" not in parts:
        folders = (path for path in matching if path.is_dir())
        found = sorted([*found, *(path for each in folders for path in _files_of_folder(each))])
    if not found:
        raise TableError(f"there is no file {pattern.name}, and no file matches it as a pattern")
    return found


def _is_beside(name: str) -> bool:
    """Whether a file of this name stands beside tables and is not a part of one."""
    return name.startswith((".", "_"))


def _of_one_kind(paths: list[Path], name: str) -> list[Path]:
    """Return these paths, or an error if their formats differ: a table may be there twice."""
    first = paths[0]
    for path in paths:
        if file_format(path) != file_format(first):
            raise TableError(
                f"{name} has files of several kinds, such as {first.name} and {path.name}, and one "
                "may be a copy of another. Name the files of one kind by a pattern, such as "
                f"'*{first.suffix}', or list all of them if each has rows of its own"
            )
    return paths
