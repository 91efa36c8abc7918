"""The tests of other projects with Django 6.1, in an environment that is made once, if there is a Python for it.

The environment has the packages of `requirements/test.lock` besides Django, and stays in the folder `.venv`.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.in_process.shop import ROOT

WANTED = "Django>=6.1,<6.2"
TESTS = ("tests/in_process/test_other_project.py", "tests/in_process/test_mounted_pages.py")
REQUIREMENT = re.compile(r"^(?!django==)[a-z0-9][^ ]*==[^\\\n]*", re.MULTILINE)


def newer_python() -> str | None:
    """Return the path of a Python that Django 6.1 supports."""
    names = ("python3.12", "python3.13", "python3.14")
    installed = sorted(Path.home().glob(".pyenv/versions/3.1[234].*/bin/python3"))
    own = [sys.executable] if sys.version_info >= (3, 12) else []
    # A name may be that of a version manager, which does not execute it.
    return next((each for each in (*own, *map(shutil.which, names), *map(str, installed)) if _is_new(each)), None)


def _is_new(python: str | None) -> bool:
    check = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 12))"]
    return bool(python) and subprocess.run(check, capture_output=True, timeout=60, check=False).returncode == 0


@pytest.fixture(scope="module")
def newest() -> Path:
    """Return the Python of an environment with Django 6.1."""
    if not (python := newer_python()):
        pytest.skip("there is no Python 3.12 or newer here, which Django 6.1 needs")
    lock = (ROOT / "requirements" / "test.lock").read_text()
    wanted = "\n".join([*(found.strip() for found in REQUIREMENT.findall(lock)), WANTED])
    folder = Path(sys.prefix) / "django-6.1"
    stated, found = folder / "wanted.txt", folder / "bin" / "python"
    if not stated.exists() or stated.read_text() != wanted:
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "--clear", "--quiet", "--python", python, folder], check=True, timeout=300)
        install = [*uv, "pip", "install", "--quiet", "--no-deps", "--python", found, "-r", "-"]
        subprocess.run(install, input=wanted, text=True, check=True, timeout=600)
        stated.write_text(wanted)
    return found


@pytest.mark.parametrize("file", TESTS)
def test_another_project_works_with_django_6_1(newest, file):
    bare = {name: os.environ[name] for name in ("PATH", "HOME", "CHROMIUM") if name in os.environ}
    command = [newest, "-m", "pytest", "-q", "-p", "no:cacheprovider", file]

    ended = subprocess.run(command, cwd=ROOT, env=bare, capture_output=True, text=True, timeout=1200, check=False)

    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
