"""The folder in which the processes of one machine share their metrics, with one file per process and metric type."""

import os
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from django.core.exceptions import ImproperlyConfigured

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The variable with the folder. The library prometheus_client reads it once, at its import."""

_temporary_folder: list[tuple[int, str]] = []
"""The folder that this process has created, with its id. A forked process must not delete it."""


def folder_path() -> Path | None:
    """Return the folder of shared metrics, or None if this process counts alone."""
    configured_path = os.environ.get(VARIABLE, "").strip()
    return Path(configured_path) if configured_path else None


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
    """Prepare the folder before processes are started: create it, and delete the files of ended processes.

    Without a configured folder, a temporary one is created and passed to child processes in the environment.
    """
    if (folder := folder_path()) is None:
        os.environ[VARIABLE] = mkdtemp(prefix="conductor-metrics-")
        _temporary_folder.append((os.getpid(), os.environ[VARIABLE]))
        return
    create_folder()
    remove_stale_files(folder)


def remove_folder() -> None:
    """Delete the temporary folder, if any, after all child processes have ended."""
    while _temporary_folder:
        process, path = _temporary_folder.pop()
        if process == os.getpid():
            rmtree(path, ignore_errors=True)


def remove_stale_files(folder: Path, pattern: str = "*.db") -> None:
    """Delete the files of processes that no longer run."""
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
