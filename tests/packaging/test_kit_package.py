"""The extra `test-kit` of the built package gives projects of others a server for their tests."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from . import distributions

WORKFLOW = """
    kind: workflow
    name: order
    version: 1
    tasks:
      - {name: charge, taskReferenceName: charge, inputParameters: {order: "${workflow.input.order}"}}
      - {name: a_day, taskReferenceName: a_day, type: WAIT, inputParameters: {duration: 1 day}}
    outputParameters: {receipt: "${charge.output.receipt}"}
"""
TEST = """
    from conductor.client.worker.worker_task import worker_task

    @worker_task(task_definition_name="charge")
    def charge(order: str) -> dict:
        return {"receipt": f"R-{order}"}

    def test_an_order(conductor_server):
        conductor_server.work(charge)
        run = conductor_server.run("order", {"order": "A-1"}).assert_completed()
        assert run.output == {"receipt": "R-A-1"}
"""
DJANGO_TEST = """
    from django.contrib.auth.models import User

    def test_an_order_of_a_user_of_the_shop(conductor_server, settings, transactional_db):
        def charge(order: str) -> dict:
            return {"receipt": f"{settings.SHOP}-{order}-{User.objects.get().username}"}

        User.objects.create(username="ada")
        conductor_server.work(charge=charge)
        run = conductor_server.run("order", {"order": "A-1"}).assert_completed()
        assert run.output == {"receipt": "toys-A-1-ada"}
        assert not any("conductor" in app for app in settings.INSTALLED_APPS)
"""
SETTINGS = """
    SECRET_KEY, SHOP, USE_TZ = "of the shop", "toys", True
    INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes"]
    FILE = {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite3", "TEST": {"NAME": "test.sqlite3"}}
    DATABASES = {"default": FILE}
"""


@pytest.fixture(scope="module")
def scripts(wheel, tmp_path_factory) -> Path:
    """Return the scripts of an environment that has the extra `test-kit`, and pytest-django."""
    folder = tmp_path_factory.mktemp("kit") / "venv"
    try:
        return distributions.install(
            wheel, folder, Path(sys.executable), "pytest-django", extra="test-kit", lock="test"
        )
    except distributions.IndexUnreachable as error:
        pytest.skip(f"No package index can be reached: {error}")


def run_tests(scripts: Path, project: Path, options: str, **files: str) -> str:
    """Run the tests of a project in its own environment, and return the output of pytest."""
    (project / "workflows").mkdir()
    (project / "workflows" / "order.yaml").write_text(dedent(WORKFLOW))
    (project / "pytest.ini").write_text(f"[pytest]\nconductor_definitions = workflows\n{options}\n")
    for name, text in files.items():
        (project / f"{name}.py").write_text(dedent(text))
    home = {"HOME": str(project), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [scripts / "python", "-m", "pytest", "-q"], cwd=project, env=home, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_project_of_others_tests_a_workflow_with_its_worker(scripts, tmp_path):
    assert "1 passed" in run_tests(scripts, tmp_path, "addopts = -p no:django", test_order=TEST)


def test_the_kit_works_in_a_django_project_with_settings_of_its_own(scripts, tmp_path):
    options = "DJANGO_SETTINGS_MODULE = shop_settings\npythonpath = ."

    assert "1 passed" in run_tests(scripts, tmp_path, options, shop_settings=SETTINGS, test_shop=DJANGO_TEST)
