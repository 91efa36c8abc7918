"""The built package works in an empty environment outside the checkout."""

import json
import os
import re
import subprocess
import sys
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import psutil
import pytest
import requests

from tests.free_port import free_port
from tests.management.server import wait_until

from . import distributions

ROOT = distributions.ROOT
WORKER = """
import sys
from conductor.client.automator.task_handler import TaskHandler
from conductor.client.configuration.configuration import Configuration
from conductor.client.worker.worker_task import worker_task

@worker_task(task_definition_name="charge")
def charge(order: str) -> dict:
    return {"receipt": order}

if __name__ == "__main__":
    server = Configuration(server_api_url=sys.argv[1])
    with TaskHandler(configuration=server, scan_for_annotated_workers=True) as handler:
        handler.start_processes()
        handler.join_processes()
"""
PYTHONS = distributions.interpreters()


@pytest.fixture(scope="session")
def sdist(tmp_path_factory) -> Path:
    return distributions.build(ROOT, tmp_path_factory.mktemp("sdist"), "sdist")


def source_files(*folders: str) -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in listed if (ROOT / name).exists()]


def test_the_wheel_has_all_templates_documents_and_static_files_in_the_package(wheel):
    expected = {
        re.sub("^(templates|docs)/", r"conductor_app/resources/\1/", re.sub("^static/", "conductor_app/static/", name))
        for name in (*source_files("conductor_app", "templates", "static"), *source_files("docs/*.md"))
        if name != "conductor_app/static" and not name.startswith("static/ops/src/")
    }

    packed = {name for name in distributions.files(wheel) if ".dist-info/" not in name}

    assert packed == expected


def test_the_sdist_builds_the_same_wheel(wheel, sdist, tmp_path):
    source = distributions.unpack(sdist, tmp_path / "source")

    rebuilt = distributions.build(source, tmp_path / "wheel", "wheel")

    assert rebuilt.name == wheel.name
    assert distributions.files(rebuilt) == distributions.files(wheel)


def test_the_package_permits_the_tested_versions_of_python(wheel):
    with ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(name))

    assert metadata["Requires-Python"] == "<3.15,>=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"


@pytest.fixture(params=list(PYTHONS), scope="module")
def scripts(request, wheel, tmp_path_factory) -> Path:
    """Return the folder of scripts of an environment, one for each version of Python."""
    try:
        folder = tmp_path_factory.mktemp("environment") / "venv"
        return distributions.install(wheel, folder, PYTHONS[request.param], extra="server", lock="run")
    except distributions.IndexUnreachable as error:
        pytest.skip(f"No package index can be reached: {error}")


def test_an_installed_server_serves_pages_with_styles_and_completes_a_run(scripts, tmp_path):
    home = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PORT": str(free_port())}
    base_url = f"http://127.0.0.1:{home['PORT']}"
    output = tmp_path / "output"
    with output.open("w") as file:
        server = subprocess.Popen(
            [scripts / "conductor-app", "serve"], cwd=tmp_path, env=home, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        wait_until(lambda: server.poll() is not None or "Stop with Ctrl-C" in output.read_text(), seconds=60)
        data = re.search(r"^Data +(.+)$", output.read_text(), re.MULTILINE)
        assert data, output.read_text()
        assert Path(data[1]).is_relative_to(tmp_path) and (Path(data[1]) / "conductor.sqlite3").exists()

        page = requests.get(f"{base_url}/admin/login/", timeout=30)
        assert page.status_code == 200 and "Sign in" in page.text
        for path in re.findall(r'<link rel="stylesheet" href="(/static/[^"]+)"', page.text):
            assert requests.get(base_url + path, timeout=30).headers["Content-Type"].startswith("text/css")
        assert "/static/ops/" in page.text

        assert complete_run(f"{base_url}/api", tmp_path) == {"receipt": "4711"}
        check = subprocess.run([scripts / "conductor-app", "check"], cwd=tmp_path, env=home, capture_output=True)
        assert (check.returncode, check.stdout) == (0, b"No problem was found.\n"), check.stderr
    finally:
        server.terminate()
        server.wait(60)


def complete_run(api: str, folder: Path) -> dict:
    """Start a run and a worker of the official Python SDK, and return the output of the task."""
    step = {"name": "charge", "taskReferenceName": "charge", "inputParameters": {"order": "${workflow.input.order}"}}
    requests.put(f"{api}/metadata/workflow", json=[{"name": "shop", "version": 1, "tasks": [step]}], timeout=30)
    run_id = requests.post(f"{api}/workflow/shop", json={"order": "4711"}, timeout=30).text
    (folder / "worker.py").write_text(WORKER)
    with (folder / "worker.log").open("w") as log:
        worker = subprocess.Popen([sys.executable, folder / "worker.py", api], cwd=folder, stdout=log, stderr=log)
    try:
        wait_until(lambda: read_run(api, run_id)["status"] == "COMPLETED", seconds=60)
        return read_run(api, run_id)["tasks"][0]["outputData"]
    finally:
        family = [*psutil.Process(worker.pid).children(recursive=True), psutil.Process(worker.pid)]
        for process in family:
            process.kill()
        worker.wait(60)


def read_run(api: str, run_id: str) -> dict:
    return json.loads(requests.get(f"{api}/workflow/{run_id}", timeout=30).text)
