"""Where the processes of one machine count together: a folder of files, one for each process and kind of count."""

import os
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from django.core.exceptions import ImproperlyConfigured

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The name that the library reads, once, when it is imported."""

_temporary_folder: list[str] = []


def folder_path() -> Path | None:
    """Return the folder of shared metrics, or None if this process counts alone."""
    given = os.environ.get(VARIABLE, "").strip()
    return Path(given) if given else None


def create_folder() -> None:
    """Create the configured folder if it does not exist.

    Raises:
        ImproperlyConfigured: when it cannot be created.
    """
    if folder := folder_path():
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ImproperlyConfigured(f"{VARIABLE}={folder} is refused: {error.strerror}.") from error


def empty_folder() -> None:
    """Prepare the folder before any process counts: create it, and delete the files of ended processes.

    A temporary folder is passed to the children in the environment, and removed at the end.
    """
    if (folder := folder_path()) is None:
        os.environ[VARIABLE] = mkdtemp(prefix="conductor-metrics-")
        _temporary_folder.append(os.environ[VARIABLE])
        return
    create_folder()
    remove_stale_files(folder)


def remove_folder() -> None:
    """Remove a temporary folder after the last process has ended."""
    while _temporary_folder:
        rmtree(_temporary_folder.pop(), ignore_errors=True)


def remove_stale_files(folder: Path, pattern: str = "*.db") -> None:
    """Delete the counts of processes of this machine that no longer run."""
    for file in folder.glob(pattern):
        if not _is_process_alive(file.stem.rpartition("_")[2]):
            file.unlink(missing_ok=True)


def _is_process_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
