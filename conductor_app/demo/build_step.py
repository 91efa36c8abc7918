"""The program that scriptworker runs for each task of the demo's build: what the task asks for, in a folder of its own.

It leaves what it has made in `artifacts/public`; its exit code says how the task ends.
"""

import gzip
import json
import os
import sys
from pathlib import Path
from urllib.request import urlopen

INTERMITTENT = 7
"""The exit code that makes scriptworker report an intermittent task."""
SOURCES = "".join(f"line {number} of the sources\n" for number in range(1, 101))


def main(folder: Path) -> int:
    """Do the step; the exit code."""
    task = json.loads((folder / "work" / "task.json").read_text())
    made = folder / "artifacts" / "public"
    made.mkdir(parents=True, exist_ok=True)
    if task["payload"]["is_flaky"] and os.environ["RUN_ID"] == "0":
        print("The network went away.")
        return INTERMITTENT
    name, content = perform_step(task["payload"]["step"], task["dependencies"])
    (made / name).write_text(content)
    return 0


def perform_step(name: str, after: list[str]) -> tuple[str, str]:
    """What a step makes of what the tasks before it have made: the name of a file, and its content."""
    if name == "sources":
        return "sources.txt", SOURCES
    lines = fetch_artifact(after[0], "sources.txt").count("\n")
    if name == "release":
        tests = [json.loads(fetch_artifact(id, "result.json")) for id in after[1:]]
        return "release.json", json.dumps({"lines": lines, "tests": tests})
    return "result.json", json.dumps({"test": name, "lines": lines})


def fetch_artifact(task_id: str, name: str) -> str:
    """What another task has left in its latest run."""
    root = os.environ["TASKCLUSTER_ROOT_URL"]
    with urlopen(f"{root}/api/queue/v1/task/{task_id}/artifacts/public/{name}", timeout=20) as reply:
        body = reply.read()
        # Text is sent in a small form, and handed out as it was sent.
        return (gzip.decompress(body) if reply.headers["Content-Encoding"] == "gzip" else body).decode()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
