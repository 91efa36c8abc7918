"""The program that scriptworker runs for each task of the build, in a separate folder.

It writes its results to `artifacts/public`; its exit code determines the result of the task.
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
    """Execute the step. Returns the exit code."""
    task = json.loads((folder / "work" / "task.json").read_text())
    results = folder / "artifacts" / "public"
    results.mkdir(parents=True, exist_ok=True)
    if task["payload"]["is_flaky"] and os.environ["RUN_ID"] == "0":
        print("The network is unreachable.")
        return INTERMITTENT
    name, content = perform_step(task["payload"]["step"], task["dependencies"])
    (results / name).write_text(content)
    return 0


def perform_step(name: str, after: list[str]) -> tuple[str, str]:
    """Return the file name and the content that a step produces from the results of earlier tasks."""
    if name == "sources":
        return "sources.txt", SOURCES
    lines = fetch_artifact(after[0], "sources.txt").count("\n")
    if name == "release":
        tests = [json.loads(fetch_artifact(id, "result.json")) for id in after[1:]]
        return "release.json", json.dumps({"lines": lines, "tests": tests})
    return "result.json", json.dumps({"test": name, "lines": lines})


def fetch_artifact(task_id: str, name: str) -> str:
    """Return an artifact of another task's latest run."""
    root = os.environ["TASKCLUSTER_ROOT_URL"]
    with urlopen(f"{root}/api/queue/v1/task/{task_id}/artifacts/public/{name}", timeout=20) as reply:
        body = reply.read()
        # scriptworker compresses text, and the download is not decompressed.
        return (gzip.decompress(body) if reply.headers["Content-Encoding"] == "gzip" else body).decode()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
