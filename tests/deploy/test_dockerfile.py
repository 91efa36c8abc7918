"""hadolint finds no fault in the Dockerfile, its build context has no secrets, and its health check fits all roles."""

import importlib.util
from pathlib import Path

import pytest

from conductor_app.processes.command_line import FURTHER_COMMANDS, SUBCOMMANDS
from tests.deploy import dockerfile
from tests.deploy.settings_in_code import ROOT
from tests.deploy.tools import needs, run_tool

FILE = ROOT / "deploy" / "docker" / "Dockerfile"


@needs("hadolint")
def test_hadolint_finds_no_fault():
    done = run_tool("hadolint", "--failure-threshold", "style", FILE)

    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_the_build_context_has_what_the_dockerfile_copies_and_nothing_more():
    ignored = FILE.with_name("Dockerfile.dockerignore").read_text().splitlines()
    permitted = {line[1:] for line in ignored if line.startswith("!")}
    copied = set()
    for stage in dockerfile.parse(FILE.read_text()):
        for name, rest in stage.instructions:
            if name == "COPY" and "--from=" not in rest:
                copied.update([word for word in rest.split() if not word.startswith("--")][:-1])

    assert "*" in ignored
    assert permitted == copied
    assert all((ROOT / path).exists() for path in copied)


@pytest.mark.parametrize(
    ("processes", "subcommand"),
    [
        ({"1": ["python", "/opt/conductor-app/bin/conductor-app", "worker", "--loglevel=WARNING"]}, "worker"),
        ({"1": ["/sbin/docker-init", "--"], "7": ["python", "/opt/conductor-app/bin/conductor-app", "web"]}, "web"),
        ({"1": ["/sbin/docker-init", "--"], "7": ["sh"]}, ""),
    ],
)
def test_the_health_check_knows_the_process_of_its_container(processes, subcommand, tmp_path):
    for process, words in processes.items():
        (tmp_path / process / "task" / "1").mkdir(parents=True)
        (tmp_path / process / "cmdline").write_text("".join(f"{word}\0" for word in words))
    (tmp_path / "1" / "task" / "1" / "children").write_text(" ".join(set(processes) - {"1"}))
    spec = importlib.util.spec_from_file_location("healthcheck", FILE.with_name("healthcheck.py"))
    healthcheck = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(healthcheck)

    assert healthcheck.find_subcommand(Path(tmp_path)) == subcommand


def test_the_health_check_requests_no_address_of_processes_that_have_none():
    text = FILE.with_name("healthcheck.py").read_text()
    without_address = {name for name in (*SUBCOMMANDS, *FURTHER_COMMANDS) if f'"{name}"' in text}

    assert without_address == {"worker", "beat", "listen_events", "serve_groups", "migrate"}
