"""The processes of `serve` share what they load, and do not load what a server on SQLite does not use."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIST_MODULES = """
import json, sys
import django
django.setup()
from conductor_app.server.management.commands import serve
serve.serving.load_modules()
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """Return the modules that are loaded before the first fork."""
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "conductor_app.settings.embedded",
        "VAR_DIR": str(tmp_path_factory.mktemp("var")),
    }
    listed = subprocess.run(
        [sys.executable, "-c", LIST_MODULES], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    return set(json.loads(listed.stdout))


@pytest.mark.parametrize(
    "name",
    [
        "conductor_app.site.admin",
        "conductor_app.site.api_urls",
        "conductor_app.processes.sweeps",
        "conductor_app.processes.beat",
        "celery.worker.consumer",
        "gunicorn.arbiter",
    ],
)
def test_modules_of_all_processes_are_loaded_before_the_fork(modules, name):
    assert name in modules


@pytest.mark.parametrize(
    "name",
    [
        "redis",
        "authlib",
        "joserfc",
        "opentelemetry",
        "boto3",
        "prompt_toolkit",
        "drf_spectacular.generators",
    ],
)
def test_modules_that_a_server_on_sqlite_rarely_uses_are_not_loaded(modules, name):
    assert name not in modules
