"""Where compiled code is kept when neither the package nor the user has a folder for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpsubset
from dpsubset.base.kernels.cache_folder import is_safe_parent, private_folder

#: A user without an account, as containers have them.
_USER = 54321

as_root = pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs another user")

_SELECT = """
import os, numpy as np
import dpsubset as dps
from numba.core import event

compiled = event.RecordingListener()
x = np.random.default_rng(0).uniform(-1, 1, (60, 8))
with event.install_listener("numba:compile", compiled):
    found = dps.select(x, y=x[:, 2], bounds=dps.Bounds(x=1, y=1), k=1, epsilon=50)
print(found.features[0], len(compiled.buffer))
"""


def test_a_folder_is_used_only_if_it_is_the_users_alone(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    assert private_folder(folder) == folder
    assert folder.stat().st_mode & 0o777 == 0o700
    assert private_folder(folder) == folder  # again, by a later process
    for mode in (0o770, 0o702, 0o755):
        folder.chmod(mode)
        assert private_folder(folder) is None
    folder.chmod(0o700)
    (tmp_path / "link").symlink_to(folder)
    assert private_folder(tmp_path / "link") is None
    (tmp_path / "file").touch(mode=0o600)
    assert private_folder(tmp_path / "file") is None


@as_root
def test_a_folder_of_another_user_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "foreign"
    folder.mkdir(mode=0o700)
    os.chown(folder, _USER, _USER)
    assert private_folder(folder) is None
    assert not is_safe_parent(folder)


def test_a_parent_is_safe_if_others_cannot_rename_what_is_in_it(tmp_path: Path) -> None:
    for mode, safe in (
        (0o700, True),
        (0o755, True),
        (0o1777, True),
        (0o777, False),
        (0o775, False),
    ):
        tmp_path.chmod(mode)
        assert is_safe_parent(tmp_path) is safe
    tmp_path.chmod(0o700)


def close(root: Path) -> None:
    """Take the right to write from everyone."""
    for folder, _, files in os.walk(root):
        os.chmod(folder, 0o555)
        for name in files:
            os.chmod(Path(folder) / name, 0o444)


@pytest.fixture
def container() -> Iterator[Path]:
    """Copy the package into a tree that nobody can write to, beside a folder for temporary
    files.
    """
    root = Path(tempfile.mkdtemp())
    try:
        root.chmod(0o755)
        own = Path(dpsubset.__file__).parent
        shutil.copytree(
            own, root / "site" / "dpsubset", ignore=shutil.ignore_patterns("__pycache__")
        )
        close(root / "site")
        for name in ("tmp", "work"):
            (root / name).mkdir()
            (root / name).chmod(0o1777)
        yield root
    finally:
        for folder, _, _ in os.walk(root):
            os.chmod(folder, 0o755)
        shutil.rmtree(root)


def as_other_user(
    root: Path, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run Python with the copied package, without a home, as a user who owns no file."""
    command, options = [sys.executable, *arguments], {}
    if os.geteuid() == 0:
        # setpriv starts an interpreter in a folder that the other user cannot open.
        if found := shutil.which("setpriv"):
            ids = (f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups")
            command = [found, *ids, *command]
        else:
            options = {"user": _USER, "group": _USER, "extra_groups": []}
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(root / "site"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(root / "tmp"),
        **variables,
    }
    if os.geteuid() != 0:  # this user has a home, and permission bits hold for it
        environment["XDG_CACHE_HOME"] = os.devnull
    return subprocess.run(
        command, cwd=root / "work", env=environment, capture_output=True, text=True, **options
    )  # type: ignore[call-overload, no-any-return]


@pytest.mark.statistical  # it compiles for seconds
@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_read_only_package_without_a_home_selects_and_compiles_once(container: Path) -> None:
    if as_other_user(container, "-c", "import numba, numpy").returncode:
        pytest.skip("another user cannot start this Python")
    first, second = (as_other_user(container, "-c", _SELECT) for _ in range(2))
    for run in (first, second):
        assert run.returncode == 0, run.stderr
        assert run.stderr.count("RuntimeWarning: compiled code can be kept neither") == 1
        assert str(container / "tmp" / "dpsubset-") in run.stderr
    assert first.stdout.split()[0] == second.stdout.split()[0] == "x2"
    assert int(first.stdout.split()[1]) > 10
    assert second.stdout.split()[1] == "0"
    (kept,) = (container / "tmp").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o700
    assert not list((container / "work").iterdir())  # no folder named "~"


@pytest.mark.statistical
@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_compiled_code_of_a_folder_that_others_can_write_to_is_not_loaded(container: Path) -> None:
    if as_other_user(container, "-c", "import numba, numpy").returncode:
        pytest.skip("another user cannot start this Python")
    (container / "tmp").chmod(0o777)  # whoever shares it can rename the folder of the code
    run = as_other_user(container, "-c", _SELECT)
    assert run.returncode == 0, run.stderr
    assert "Each process compiles it again" in run.stderr
    assert run.stdout.split()[0] == "x2"
    assert not list((container / "tmp").iterdir())


@pytest.mark.statistical
@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
@pytest.mark.parametrize("kept", ["beside the package", "in NUMBA_CACHE_DIR"])
def test_code_that_was_compiled_when_an_image_was_built_is_loaded(
    kept: str, container: Path
) -> None:
    if as_other_user(container, "-c", "import numba, numpy").returncode:
        pytest.skip("another user cannot start this Python")
    shared = container / "shared"
    variables = {"NUMBA_CACHE_DIR": str(shared)} if kept == "in NUMBA_CACHE_DIR" else {}
    for folder, _, _ in os.walk(container / "site"):
        os.chmod(folder, 0o755)
    given = {**os.environ, "PYTHONPATH": str(container / "site"), **variables}
    subprocess.run([sys.executable, "-c", _SELECT], check=True, env=given, capture_output=True)
    for folder in (container / "site", shared):
        close(folder)
    run = as_other_user(container, "-c", _SELECT, **variables)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["x2", "0"]
