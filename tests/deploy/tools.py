"""Tools that check the files of deploy/, and `make deploy-tools`, which builds those that are programs in Go."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.deploy.settings_in_code import ROOT

PYTHON_TOOLS = ROOT / ".venv" / "deploy" / "bin"
GO_TOOLS = Path.home() / ".cache" / "conductor-app" / "bin"
PROGRAMS = {
    "helm": ("helm.sh/helm/v3", "v3.19.5", "helm.sh/helm/v3/cmd/helm"),
    "docker-compose": ("github.com/docker/compose/v2", "v2.40.3", "github.com/docker/compose/v2/cmd"),
}
"""The module, its version and the package of each program."""


def find_tool(name: str) -> str | None:
    """Return the path of a tool, or None if it is not installed."""
    folders = (str(PYTHON_TOOLS), str(GO_TOOLS))
    return shutil.which(name) or next(filter(None, (shutil.which(name, path=folder) for folder in folders)), None)


def needs(name: str) -> pytest.MarkDecorator:
    """Return the mark that skips a test without the tool."""
    reason = f"{name} is not installed. Run `make deploy-tools`, or install it."
    return pytest.mark.skipif(find_tool(name) is None, reason=reason)


def run_tool(name: str, *arguments: object, **options: object) -> subprocess.CompletedProcess:
    """Run a tool and return its output."""
    command = [find_tool(name) or name, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def build(name: str) -> None:
    """Build a program in a module that requires its module."""
    module, version, package = PROGRAMS[name]
    GO_TOOLS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for command in (
            ["go", "mod", "init", "tools"],
            ["go", "get", f"{module}@{version}", f"{package}@{version}"],
            ["go", "build", "-o", str(GO_TOOLS / name), package],
        ):
            subprocess.run(command, cwd=folder, check=True, capture_output=True)


def main() -> None:
    if shutil.which("go") is None:
        print("Go is not installed, so Helm and Docker Compose are not built.")
        return
    for name in PROGRAMS:
        if find_tool(name) is None:
            print(f"Building {name} ...", flush=True)
            build(name)


if __name__ == "__main__":
    main()
