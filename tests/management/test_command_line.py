"""The console script `conductor-app`: its subcommands, and errors that name the mistake."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conductor_app.processes.command_line import FURTHER_COMMANDS, SUBCOMMANDS
from tests.forked_interpreter import run_forked

SCRIPT = Path(sys.executable).parent / "conductor-app"


def execute(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Execute `conductor-app` with its data in the folder."""
    environment = {"PATH": os.environ["PATH"], "VAR_DIR": str(folder / "var"), **variables}
    return run_forked(str(SCRIPT), *arguments, cwd=folder, env=environment)


def test_it_prints_its_subcommands_without_arguments_and_creates_nothing(tmp_path):
    environment = {"PATH": os.environ["PATH"], "VAR_DIR": str(tmp_path / "var")}
    help = subprocess.run([SCRIPT], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert help.returncode == 0
    assert [name for name in (*SUBCOMMANDS, *FURTHER_COMMANDS) if f"\n  {name} " not in help.stdout] == []
    assert list(tmp_path.iterdir()) == []


WRONG = {
    "PORT": ({"PORT": "abc"}, "PORT='abc' is refused: it must be a whole number from 1 to 65535."),
    "HOST": (
        {"HOST": "0.0.0.0"},
        "ALLOWED_HOSTS is not set. Set it in the environment, for example ALLOWED_HOSTS=conductor.example.org,10.0.0.5",
    ),
    "VAR_DIR": (
        {"VAR_DIR": "/dev/null/data"},
        "VAR_DIR='/dev/null/data' is refused: the folder cannot be created: Not a directory. Choose another folder.",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_variable_is_an_error_in_one_line(case, tmp_path):
    variables, message = WRONG[case]

    refusal = execute(tmp_path, "serve", **variables)

    assert (refusal.returncode, refusal.stderr) == (1, f"conductor-app: {message}\n")


def test_an_unknown_subcommand_is_an_error_that_names_the_help(tmp_path):
    refusal = execute(tmp_path, "srve")

    assert refusal.returncode == 1
    assert refusal.stderr == "conductor-app: there is no subcommand 'srve'. `conductor-app help` lists them.\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [("worker", "--concurrency"), ("beat", "--schedule"), ("web", "--worker-class"), ("user", "--reset-password")],
)
def test_help_prints_the_options_of_the_program_behind_a_subcommand(tmp_path, name, words):
    help = execute(tmp_path, "help", name)

    assert (help.returncode, words in help.stdout) == (0, True), help.stderr


@pytest.mark.parametrize("name", ["DATABASE_URL", "DATABASE_URL_FILE"])
def test_the_profile_of_a_cluster_is_chosen_by_its_database(tmp_path, name):
    address = "postgresql://conductor@db.example.org/conductor"
    (tmp_path / "address").write_text(address)

    refusal = execute(tmp_path, "migrate", **{name: address if name == "DATABASE_URL" else str(tmp_path / "address")})

    assert refusal.returncode == 1
    assert "SECRET_KEY is not set" in refusal.stderr


def test_version_names_python_django_and_the_database(tmp_path):
    printed = execute(tmp_path, "version").stdout

    assert [line.split()[0] for line in printed.splitlines()] == ["conductor-app", "Python", "Django", "SQLite"]
    assert f"Python        {'.'.join(map(str, sys.version_info[:3]))}\n" in printed


def test_check_exits_with_1_if_a_setting_is_refused(tmp_path):
    settings = tmp_path / "own_settings.py"
    settings.write_text("from conductor_app.settings.embedded import *\nCONDUCTOR_LEAZE = 3\n")

    check = execute(tmp_path, "check", DJANGO_SETTINGS_MODULE="own_settings", PYTHONPATH=str(tmp_path))

    assert check.returncode == 1
    assert "PROBLEM  CONDUCTOR_LEAZE is not a setting of this server.\n" in check.stdout
