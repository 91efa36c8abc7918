"""Where the processes of one machine count together: a folder of files, one for each process and kind of count."""

import os
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from django.core.exceptions import ImproperlyConfigured

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The name that the library reads, once, when it is imported."""

_made_up: list[str] = []


def path() -> Path | None:
    """The folder, or None where this process counts for itself."""
    given = os.environ.get(VARIABLE, "").strip()
    return Path(given) if given else None


def make() -> None:
    """See to it that a folder that is asked for exists."""
    if folder := path():
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ImproperlyConfigured(f"{VARIABLE}={folder} is refused: {error.strerror}.") from error


def prepare() -> None:
    """Before any process counts: the folder exists, and holds nothing of processes that are gone.

    One that is made up here is told to the children by the environment, and removed in the end.
    """
    if (folder := path()) is None:
        os.environ[VARIABLE] = mkdtemp(prefix="conductor-metrics-")
        _made_up.append(os.environ[VARIABLE])
        return
    make()
    remove_files_of_the_dead(folder)


def clear_up() -> None:
    """After the last process has ended: what was made up here goes."""
    while _made_up:
        rmtree(_made_up.pop(), ignore_errors=True)


def remove_files_of_the_dead(folder: Path, pattern: str = "*.db") -> None:
    """Forget what processes of this machine have counted that no longer run."""
    for file in folder.glob(pattern):
        if not _lives(file.stem.rpartition("_")[2]):
            file.unlink(missing_ok=True)


def _lives(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
