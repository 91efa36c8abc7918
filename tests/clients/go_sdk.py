"""The Go SDK: programs of `go/` that use it, and its own integration tests from the cache of Go's modules.

None of the SDK's code is part of this project. Its tests are copied to a scratch folder, compiled and run from there.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).with_name("go")
MODULE = "github.com/conductor-sdk/conductor-go"
OLDEST = (1, 17)
MAX_SECONDS = 600
TEST_SECONDS = 60
FOREIGN_HOSTS = re.compile(r"https?://(orkes-api-tester\.orkesconductor\.com|httpbin:8081)")
"""Servers that the SDK's tests call by HTTP steps. A server on this machine takes their place."""
FIRST, LAST = ("TestUpsertUser",), ("TestDeleteUser",)
"""Tests whose results others require, and a test that removes them."""


def go() -> str:
    """Return Go; skip the test where it is missing or too old."""
    found = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if not found:
        pytest.skip("Go is not installed: the Go SDK cannot be tested.")
    version = re.search(r"go(\d+)\.(\d+)", subprocess.run([found, "version"], capture_output=True, text=True).stdout)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        pytest.skip(f"The Go SDK needs Go {OLDEST[0]}.{OLDEST[1]}; {found} is older.")
    return found


def run_go(folder: Path, *arguments: str) -> str:
    """Run a command of Go. A failed download is a failed test: a machine with Go is meant to run it."""
    done = subprocess.run([go(), *arguments], cwd=folder, capture_output=True, text=True, timeout=MAX_SECONDS)
    assert done.returncode == 0, f"go {' '.join(arguments)} failed:\n{done.stdout[-6000:]}{done.stderr[-6000:]}"
    return done.stdout


def run_program(name: str, binaries: Path, **environment: str) -> dict:
    """Compile and run a program of `go/`. Return its results."""
    run_go(FOLDER, "build", "-o", str(binaries / name), f"./{name}")
    done = subprocess.run(
        [binaries / name], env=environment, capture_output=True, text=True, timeout=TEST_SECONDS, check=False
    )
    found = re.search(r"^RESULTS (.*)$", done.stdout, re.MULTILINE)
    assert found, f"{done.stdout[-6000:]}{done.stderr[-6000:]}"
    return json.loads(found[1])


class IntegrationTests:
    """The SDK's own integration tests, compiled in a scratch folder, with a web server in place of foreign hosts.

    GO_SDK_SOURCES names a folder with other sources of the SDK, such as those of its main branch.
    """

    def __init__(self, scratch: Path, web_server: str) -> None:
        sources = os.environ.get("GO_SDK_SOURCES") or json.loads(run_go(FOLDER, "list", "-m", "-json", MODULE))["Dir"]
        copy = scratch / "sdk"
        shutil.copytree(sources, copy, copy_function=shutil.copyfile, ignore=shutil.ignore_patterns(".git"))
        for folder in (copy, *(each for each in copy.rglob("*") if each.is_dir())):
            folder.chmod(0o755)
        for path in (each for each in (copy / "test").rglob("*") if each.suffix in (".go", ".json")):
            text = path.read_text(encoding="utf-8")
            path.write_text(FOREIGN_HOSTS.sub(web_server, text), encoding="utf-8")
        self._folder = copy / "test" / "integration_tests"
        self._binary = scratch / "integration_tests"
        run_go(copy, "test", "-c", "-o", str(self._binary), "./test/integration_tests")

    def names(self) -> list[str]:
        """Return the names of the tests, in the order in which they run."""
        listed = self._execute("http://127.0.0.1:9/api", "-test.list", "^Test").stdout.split()
        return sorted(listed, key=lambda name: (name not in FIRST, name in LAST))

    def failure(self, name: str, server: str) -> str | None:
        """Run one test in a process of its own. Return what it printed if it failed."""
        arguments = ("-test.v", "-test.timeout", f"{TEST_SECONDS}s", "-test.run", f"^{name}$")
        done = self._execute(f"{server}/api", *arguments)
        return None if done.returncode == 0 else f"{done.stdout}{done.stderr}"

    def _execute(self, url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._binary, *arguments],
            cwd=self._folder,
            env={"CONDUCTOR_SERVER_URL": url},
            capture_output=True,
            text=True,
            timeout=TEST_SECONDS + 30,
            check=False,
        )
