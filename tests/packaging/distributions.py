"""The wheel and the sdist of this checkout, and empty environments into which the wheel is installed."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
UNREACHABLE = ("error sending request", "dns error", "Could not connect", "Failed to fetch", "timed out")


class IndexUnreachable(Exception):
    """The packages of the environment cannot be downloaded."""


def run_uv(*arguments: object) -> None:
    """Run uv, with the caches of this machine.

    Raises:
        IndexUnreachable: when it can reach no package index.
    """
    command = [sys.executable, "-m", "uv", *map(str, arguments), "--quiet"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if any(words in done.stderr for words in UNREACHABLE):
        raise IndexUnreachable(done.stderr)
    assert done.returncode == 0, done.stderr


def build(source: Path, folder: Path, kind: str) -> Path:
    """Build a `wheel` or an `sdist` with the build backend of this environment."""
    run_uv("build", f"--{kind}", "--no-build-isolation", "--python", sys.executable, "--out-dir", folder, source)
    return next(folder.glob("*.whl" if kind == "wheel" else "*.tar.gz"))


def unpack(sdist: Path, folder: Path) -> Path:
    """Unpack an sdist and return its folder."""
    shutil.unpack_archive(sdist, folder)
    return next(folder.iterdir())


def files(wheel: Path) -> set[str]:
    """Return the names of the files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def interpreters() -> dict[str, Path]:
    """Return an interpreter for each supported version of Python on this machine."""
    found = {}
    for version in VERSIONS:
        for candidate in candidates(version):
            probe = [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
            done = subprocess.run(probe, capture_output=True, text=True, check=False)
            if done.stdout.strip() == version:
                found.setdefault(version, candidate)
    return found


def candidates(version: str) -> Iterator[Path]:
    if on_path := shutil.which(f"python{version}"):
        yield Path(on_path)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    yield from (folder / "bin" / "python" for folder in sorted(pyenv.glob(f"{version}.*"), reverse=True))


def install(wheel: Path, folder: Path, python: Path, *packages: str, extra: str = "", lock: str = "") -> Path:
    """Install a wheel and packages into an empty environment, in the versions of a lock file if one is named.

    Returns the folder of its scripts.

    Raises:
        IndexUnreachable: when it can reach no package index.
    """
    run_uv("venv", "--python", python, folder)
    into = ("--python", folder / "bin" / "python")
    wanted = f"conductor-app[{extra}] @ {wheel.as_uri()}" if extra else wheel
    pins = ("--constraint", ROOT / "requirements" / f"{lock}.lock") if lock else ()
    run_uv("pip", "install", *into, *pins, wanted, *packages)
    return folder / "bin"
