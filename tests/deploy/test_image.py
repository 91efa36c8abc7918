"""The steps of the Dockerfile, executed in scratch folders, result in a server that runs without privileges."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import requests

from tests.deploy import dockerfile
from tests.deploy.settings_in_code import ROOT
from tests.free_port import free_port
from tests.management.server import wait_until
from tests.packaging.test_package import complete_run

FILE = ROOT / "deploy" / "docker" / "Dockerfile"
needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0
    or any(shutil.which(tool) is None for tool in ("unshare", "setpriv", "chroot"))
    or subprocess.run(["/usr/bin/python3", "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode
    or subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode,
    reason="It needs root, mount namespaces, util-linux, and /usr/bin/python3 with venv.",
)
needs_time = pytest.mark.skipif(
    "TEST_IMAGE" not in os.environ, reason="It installs all packages of a server: `make test-image` runs it."
)


@pytest.fixture(scope="module")
def image(tmp_path_factory) -> dockerfile.Image:
    folder = tmp_path_factory.mktemp("image")
    # Other users enter the folder: the server runs as one.
    for parent in (folder, folder.parent, folder.parent.parent):
        parent.chmod(0o755)
    return dockerfile.build(dockerfile.parse(FILE.read_text()), ROOT, folder)


@needs_namespaces
@needs_time
def test_the_steps_of_the_dockerfile_result_in_a_server_without_privileges(image, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    user = int(image.user.split(":")[0])
    os.chown(data, user, user)
    variables = {"HOST": "127.0.0.1", "PORT": str(free_port()), "LOG_FORMAT": "console"}
    url = f"http://127.0.0.1:{variables['PORT']}"
    output = tmp_path / "output"
    assert user >= 1000 and image.command == ["serve"]

    with output.open("w") as file:
        server = dockerfile.start(image, [], variables, data, stdout=file, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: server.poll() is not None or "Stop with Ctrl-C" in output.read_text(), seconds=90)
        assert server.poll() is None, output.read_text()
        assert {path.stat().st_uid for path in data.iterdir()} == {user}
        status = Path(f"/proc/{server.pid}/status").read_text()
        assert f"Uid:\t{user}\t{user}\t{user}\t{user}" in status
        assert "CapBnd:\t0000000000000000" in status and "NoNewPrivs:\t1" in status

        assert complete_run(f"{url}/api", tmp_path) == {"receipt": "4711"}
        assert "/static/ops/" in requests.get(f"{url}/admin/login/", timeout=30).text
        healthy = dockerfile.run_health_check(image, variables, data)
        assert (healthy.returncode, healthy.stdout, healthy.stderr) == (0, "", "")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)

    ill = dockerfile.run_health_check(image, variables, data)
    assert ill.returncode == 1
    assert ill.stdout == f"The server does not respond on port {variables['PORT']}: Connection refused.\n"


@needs_namespaces
@needs_time
def test_the_image_has_the_extras_and_no_package_manager(image):
    folders = image.root.glob("opt/conductor-app/lib/*/site-packages/*.dist-info")
    packages = {path.name.partition("-")[0].lower() for path in folders}

    assert {"conductor_app", "django_storages", "nats_py", "opentelemetry_sdk"} <= packages
    assert "pip" not in packages
