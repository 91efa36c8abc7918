"""The units of systemd are valid and hardened, and the web processes accept the socket that systemd opens."""

import configparser
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from conductor_app.processes.command_line import FURTHER_COMMANDS, SUBCOMMANDS
from tests.deploy.settings_in_code import ROOT, read_settings
from tests.free_port import free_port
from tests.management.server import wait_until

FOLDER = ROOT / "deploy" / "systemd"
SERVICES = sorted(path.name for path in FOLDER.glob("*.service"))
PROGRAM = "/opt/conductor-app/bin/conductor-app"
PROGRAM_OF_TEAM = "/opt/conductor-app-%i/bin/conductor-app"
MAX_EXPOSURE = 1.5
TRUE = shutil.which("true") or "/bin/true"
needs_analyze = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed.")


@pytest.fixture
def units(tmp_path, monkeypatch) -> Path:
    """Return a folder with the units, in which the program exists."""
    folder = tmp_path / "units"
    shutil.copytree(FOLDER, folder)
    for path in folder.glob("*.service"):
        path.write_text(path.read_text().replace(PROGRAM, TRUE).replace(PROGRAM_OF_TEAM, TRUE))
    monkeypatch.setenv("SYSTEMD_UNIT_PATH", f"{folder}:")
    return folder


@needs_analyze
def test_systemd_accepts_the_units(units):
    names = sorted(path for path in units.iterdir() if path.suffix in (".service", ".socket", ".target"))

    done = subprocess.run(["systemd-analyze", "verify", *names], capture_output=True, text=True, check=False)

    ours = [line for line in (done.stdout + done.stderr).splitlines() if "conductor-app" in line]
    assert ours == []


@needs_analyze
@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_hardened(units, name):
    command = ["systemd-analyze", "security", "--offline=yes", "--no-pager", units / name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert exposure and float(exposure[1]) <= MAX_EXPOSURE, done.stdout + done.stderr


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_runs_a_subcommand_of_the_program(name):
    [command] = re.findall(r"^ExecStart=(.+)$", (FOLDER / name).read_text(), re.MULTILINE)
    program, subcommand, *_ = command.split()

    assert program == (PROGRAM_OF_TEAM if "@" in name else PROGRAM)
    assert subcommand in SUBCOMMANDS or subcommand in FURTHER_COMMANDS


def test_the_target_starts_what_a_cluster_needs():
    text = (FOLDER / "conductor-app.target").read_text()
    [wanted] = re.findall(r"^Wants=(.+)$", text, re.MULTILINE)

    assert {name.split("-")[2].partition(".")[0] for name in wanted.split()} == {"web", "worker", "beat"}
    assert all((FOLDER / name).exists() for name in wanted.split())
    for name in wanted.split():
        assert "PartOf=conductor-app.target" in (FOLDER / name).read_text()


@pytest.mark.parametrize("example", ["conductor-app.env.example", "team.env.example"])
def test_the_example_of_the_environment_has_settings_that_exist(example):
    names = re.findall(r"^#?([A-Z_]+)=", (FOLDER / example).read_text(), re.MULTILINE)

    assert len(names) > 5 and set(names) <= read_settings()


def test_each_team_has_a_user_a_folder_a_file_of_settings_and_a_version_of_its_own():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(FOLDER / "conductor-app@.service")
    service = unit["Service"]

    for name in ("User", "EnvironmentFile", "StateDirectory", "WorkingDirectory", "ExecStart"):
        assert "%i" in service[name], name
    assert service["DynamicUser"] == "yes"


def test_the_user_of_the_services_is_created():
    drop_in = configparser.ConfigParser(strict=False, interpolation=None)
    drop_in.optionxform = str
    drop_in.read(FOLDER / "conductor-app-.service.d" / "10-conductor-app.conf")

    user = drop_in["Service"]["User"]

    assert (FOLDER / "conductor-app.sysusers.conf").read_text().splitlines()[-1].split()[:2] == ["u", user]


@pytest.mark.skipif(not shutil.which("systemd-socket-activate"), reason="systemd is not installed.")
def test_the_web_processes_accept_the_socket_of_systemd(new_data_folder, tmp_path):
    data = new_data_folder("systemd") / "var"
    port, variables = free_port(), {"VAR_DIR": str(data), "PORT": str(free_port()), "WEB_WORKERS": "2"}
    bare = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    script = str(Path(sys.executable).with_name("conductor-app"))
    environment = bare | variables | {"DJANGO_SETTINGS_MODULE": "conductor_app.settings.embedded"}
    passed = [f"--setenv={name}" for name in ("VAR_DIR", "PORT", "WEB_WORKERS", "DJANGO_SETTINGS_MODULE", "HOME")]
    command = ["systemd-socket-activate", "--listen", f"127.0.0.1:{port}", *passed, script, "web"]
    with (tmp_path / "output").open("w") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        wait_until(lambda: "Listening on" in (tmp_path / "output").read_text())

        reply = requests.get(f"http://127.0.0.1:{port}/health/live", timeout=60)

        assert reply.json() == {"status": "live"}
        with pytest.raises(requests.ConnectionError):
            requests.get(f"http://127.0.0.1:{variables['PORT']}/health/live", timeout=5)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
