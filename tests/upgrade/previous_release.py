"""The code of the previous version: a revision of this repository, which a release replaces."""

import subprocess
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
REVISION = Path(__file__).with_name("previous_version").read_text().strip()


def export_previous_version(folder: Path) -> Path:
    """Write the code of the previous version to the folder. Skip the test where the history is not available."""
    if not is_available():
        pytest.skip(f"The revision {REVISION[:8]} of the previous version is not in this checkout: fetch the history.")
    archive = subprocess.run(["git", "archive", "--format=zip", REVISION], cwd=ROOT, capture_output=True, check=True)
    ZipFile(BytesIO(archive.stdout)).extractall(folder)
    return folder


def is_available() -> bool:
    try:
        found = subprocess.run(["git", "cat-file", "-e", f"{REVISION}^{{commit}}"], cwd=ROOT, capture_output=True)
    except FileNotFoundError:
        return False
    return found.returncode == 0
