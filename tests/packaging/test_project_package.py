"""The built package without its extra `server`, in Django projects of others, with each supported version of Django."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.docs.code_blocks import ROOT, read_code_blocks
from tests.docs.page_run import PageRun

from . import distributions

TUTORIAL = ROOT / "docs" / "tutorials" / "django-project.md"
PYTHONS = distributions.interpreters()
FIRST_PYTHON = {"5.2": "3.11", "6.1": "3.12"}
"""The versions of Django, each with the first version of Python that it supports."""


@pytest.fixture(params=list(FIRST_PYTHON), scope="module")
def python(request, wheel, tmp_path_factory) -> Path:
    """Return the interpreter of an environment, whose packages pip has chosen."""
    fits = [path for version, path in PYTHONS.items() if version >= FIRST_PYTHON[request.param]]
    if not fits:
        pytest.skip(f"Django {request.param} needs Python {FIRST_PYTHON[request.param]} or later.")
    folder = tmp_path_factory.mktemp("project") / "venv"
    try:
        return distributions.install(wheel, folder, fits[0], f"Django=={request.param}.*") / "python"
    except distributions.IndexUnreachable as error:
        pytest.skip(f"No package index can be reached: {error}")


def test_the_tutorial_works_with_each_version_of_django(python, tmp_path):
    run = PageRun(tmp_path, "", check_json=str, python=python)
    try:
        for block in read_code_blocks(TUTORIAL.read_text(encoding="utf-8")):
            run.execute(block)
    finally:
        run.stop()


@pytest.mark.parametrize("profile", ["one machine", "cluster"])
def test_the_command_of_the_server_names_the_extra_that_is_missing(python, tmp_path, profile):
    bare = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "SECRET_KEY": "x" * 60}
    bare |= {"DATABASE_URL": "postgresql://nowhere/x", "REDIS_URL": "redis://nowhere"} if profile == "cluster" else {}

    ended = subprocess.run(
        [python.with_name("conductor-app"), "serve"],
        cwd=tmp_path,
        env=bare,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stdout) == (1, "")
    assert "Install conductor-app with its extra `server`: conductor-app[server]" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_definitions_are_applied_to_a_server_without_the_packages_of_one(python, tmp_path):
    (tmp_path / "order.yaml").write_text("kind: workflow\nname: order\nversion: 1\ntasks: []\n")
    bare = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "CONDUCTOR_SERVER_URL": "http://127.0.0.1:9/api"}
    command = [python.with_name("conductor-app"), "plan", "--label", "shop", "-f", "order.yaml"]

    ended = subprocess.run(command, cwd=tmp_path, env=bare, capture_output=True, text=True, check=False)

    assert "cannot be reached" in ended.stderr and "Traceback" not in ended.stderr, ended.stderr
