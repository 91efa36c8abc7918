"""The second part of the demo: a build as tasks of Taskcluster, with sources, twenty parallel tests, and a release.

The official scriptworker executes the tasks. It claims a task, runs a program (`build_step.py`) that reads the task,
uploads the artifacts of the program, and reports.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import taskcluster

PROGRAM = Path(__file__).with_name("build_step.py")
PROVISIONER, TYPE = "demo", "linux"
TESTS, WORKERS = 20, 4
FLAKY = 7
"""The number of the test whose first run fails intermittently."""
LIMIT_SECONDS = 120
LOOK_EVERY_SECONDS = 0.3
STOP_SECONDS = 10
OPEN = ("unscheduled", "pending", "running")


@dataclass
class Build:
    """One build: its group, and its tasks by name."""

    group: str = field(default_factory=taskcluster.slugId)
    tasks: dict[str, str] = field(default_factory=dict)


def run_build(url: str, say: Callable[[str], object], tests: int = TESTS, workers: int = WORKERS) -> list[str]:
    """Build a release on the server at this address. Returns the unexpected results."""
    queue = taskcluster.Queue(client_options(url))
    build = create_build(queue, tests)
    say(f"\n{workers} scriptworkers build a release: the sources, {tests} parallel tests, and the release.\n")
    with run_scriptworkers(url, workers):
        statuses = watch_build(queue, build, say)
    return find_problems(statuses)


def client_options(url: str) -> dict[str, Any]:
    """Return the options of a client: the address of the server, and the credentials in the environment, if any."""
    return {"rootUrl": url, "credentials": taskcluster_credentials()} if taskcluster_credentials() else {"rootUrl": url}


def taskcluster_credentials() -> dict[str, str]:
    """Return TASKCLUSTER_CLIENT_ID and TASKCLUSTER_ACCESS_TOKEN, as Taskcluster's tools expect them."""
    names = {"clientId": "TASKCLUSTER_CLIENT_ID", "accessToken": "TASKCLUSTER_ACCESS_TOKEN"}
    credentials = {key: os.environ.get(name, "") for key, name in names.items()}
    return credentials if all(credentials.values()) else {}


def create_build(queue: taskcluster.Queue, tests: int) -> Build:
    """Create the tasks with their dependencies."""
    build = Build()
    create_task(queue, build, "sources", [])
    numbered = [f"test {number}" for number in range(1, tests + 1)]
    for name in numbered:
        create_task(queue, build, name, ["sources"], is_flaky=name == f"test {FLAKY}")
    create_task(queue, build, "release", ["sources", *numbered], priority="high")
    return build


def create_task(
    queue: taskcluster.Queue, build: Build, name: str, after: Sequence[str], is_flaky: bool = False, **fields: Any
) -> None:
    """Create one task with its dependencies."""
    now, id = datetime.now(UTC), taskcluster.slugId()
    metadata = {
        "description": "A step of the demo's build.",
        "owner": "demo@example.org",
        "source": "https://example.org",
    }
    definition = {
        "taskQueueId": f"{PROVISIONER}/{TYPE}",
        "taskGroupId": build.group,
        "dependencies": [build.tasks[required] for required in after],
        "created": now.isoformat(),
        "deadline": (now + timedelta(hours=1)).isoformat(),
        "expires": (now + timedelta(days=7)).isoformat(),
        "payload": {"step": name, "is_flaky": is_flaky},
        "metadata": {"name": name, **metadata},
        **fields,
    }
    queue.createTask(id, definition)
    build.tasks[name] = id


@contextmanager
def run_scriptworkers(url: str, count: int) -> Iterator[None]:
    """Run a number of scriptworkers during the block."""
    with TemporaryDirectory(prefix="demo-build-") as folder:
        running = [start_worker(url, Path(folder) / f"worker-{number}") for number in range(1, count + 1)]
        try:
            yield
        finally:
            for process in running:
                process.terminate()
            for process in running:
                stop_worker(process)


def start_worker(url: str, folder: Path) -> subprocess.Popen:
    """Start a scriptworker with its own folders."""
    folder.mkdir()
    config = folder / "config.json"
    config.write_text(json.dumps(write_configuration(url, folder)))
    command = [str(Path(sys.executable).with_name("scriptworker")), str(config)]
    with open(folder / "output", "w") as output:
        return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)


def stop_worker(process: subprocess.Popen) -> None:
    """Wait until the worker has finished its current task, and kill it after STOP_SECONDS."""
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def write_configuration(url: str, folder: Path) -> dict[str, Any]:
    """Write the configuration of a scriptworker."""
    artifacts = folder / "artifacts"
    credentials = {"clientId": "demo", "accessToken": "not required on loopback", "certificate": ""}
    return {
        "taskcluster_root_url": url,
        "provisioner_id": PROVISIONER,
        "worker_type": TYPE,
        "worker_group": "demo",
        "worker_id": folder.name,
        "credentials": {**credentials, **taskcluster_credentials()},
        "poll_interval": 1,
        "task_max_timeout": 60,
        "task_script": [sys.executable, str(PROGRAM), str(folder)],
        "sign_chain_of_trust": False,
        "verify_chain_of_trust": False,
        "ed25519_private_key_path": "",
        "work_dir": str(folder / "work"),
        "log_dir": str(folder / "log"),
        "artifact_dir": str(artifacts),
        "task_log_dir": str(artifacts / "public" / "logs"),
        "verbose": False,
    }


def watch_build(queue: taskcluster.Queue, build: Build, say: Callable[[str], object]) -> dict[str, dict]:
    """Wait until all tasks are resolved, or the time is over, and return their statuses by name.

    Prints a line for each ended run.
    """
    began, reported = time.monotonic(), set[tuple[str, int]]()
    names = {id: name for name, id in build.tasks.items()}
    while True:
        rows = [each["status"] for each in queue.listTaskGroup(build.group)["tasks"]]
        for status in rows:
            for run in status["runs"]:
                place = (status["taskId"], run["runId"])
                if "resolved" in run and place not in reported:
                    reported.add(place)
                    say(f"{time.monotonic() - began:5.1f} s  {describe_end(names[status['taskId']], run)}")
        if all(status["state"] not in OPEN for status in rows) or time.monotonic() - began > LIMIT_SECONDS:
            return {names[status["taskId"]]: status for status in rows}
        time.sleep(LOOK_EVERY_SECONDS)


def describe_end(name: str, run: dict[str, Any]) -> str:
    """Return a line about an ended run."""
    attempt = f" on run {run['runId']}" if run["runId"] else ""
    reason = f" ({run['reasonResolved']})" if run["state"] == "exception" else ""
    return f"{name} {run['state']}{reason}{attempt} by {run.get('workerId', 'credentials')}"


def find_problems(statuses: dict[str, dict]) -> list[str]:
    """Return the unexpected results."""
    problems = [f"{name} is {status['state']}." for name, status in statuses.items() if status["state"] != "completed"]
    flaky = statuses.get(f"test {FLAKY}")
    if flaky is not None and len(flaky["runs"]) != 2:
        problems.append(f"test {FLAKY} had {len(flaky['runs'])} runs instead of two.")
    return problems
