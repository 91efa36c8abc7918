"""The JavaScript SDK, installed once from its lock file."""

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).with_name("javascript")
OUGHT_TO_DO_SECONDS = 240


def node() -> str:
    """Return the path of Node.js; skip the test if it is not installed."""
    found = shutil.which("node")
    if not found or not shutil.which("npm"):
        pytest.skip("Node.js and npm are not installed: the JavaScript SDK cannot be tried.")
    return found


def install(folder: Path = FOLDER) -> None:
    """Install the packages of a folder into its node_modules if necessary; parallel processes wait for the first."""
    wanted = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    modules = folder / "node_modules"
    modules.mkdir(exist_ok=True)
    mark = folder / "node_modules.lock"
    with mark.open("a+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.seek(0)
        if held.read() == wanted and any(modules.iterdir()):
            return
        done = subprocess.run(["npm", "ci"], cwd=folder, capture_output=True, text=True, timeout=OUGHT_TO_DO_SECONDS)
        assert done.returncode == 0, f"npm ci failed:\n{done.stdout}{done.stderr}"
        held.truncate(0)
        held.write(wanted)


def run_script(script: Path, server: str) -> subprocess.CompletedProcess[str]:
    """Run a script of tests against a server."""
    return subprocess.run(
        [node(), "--test-reporter=spec", script.name],
        cwd=FOLDER,
        env={"PATH": "", "CONDUCTOR_SERVER_URL": f"{server}/api", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=OUGHT_TO_DO_SECONDS,
    )
