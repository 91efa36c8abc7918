"""Write the replies of a real conductor-oss server, from which the fast tests import."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import requests

from .conductor_oss import SWITCH, require_conductor_oss, running_conductor_oss
from .source_objects import register

RECORDING = Path(__file__).parent / "recorded" / "conductor_oss.json"
PATHS = (
    "/version",
    "/schema",
    "/metadata/taskdefs",
    "/human/template",
    "/metadata/workflow",
    "/metadata/workflow/names-and-versions",
    "/environment",
    "/event",
    "/scheduler/schedules",
    "/metadata/tags",
    "/secrets",
    "/users",
    "/groups",
    "/applications",
    "/metadata/webhook",
    "/workflow/search",
)
SEARCH = {"start": 0, "size": 100, "sort": "startTime:ASC", "freeText": "*", "query": "status IN (RUNNING,PAUSED)"}


def record(url: str) -> dict[str, Any]:
    """Return the replies by path: status, content type and text."""
    replies = {}
    for path in PATHS:
        query = SEARCH if path == "/workflow/search" else {}
        reply = requests.get(url + path, params=query, timeout=30)
        replies[path] = [reply.status_code, reply.headers.get("Content-Type", ""), reply.text]
    return replies


def main() -> None:
    os.environ[SWITCH] = "1"
    program = require_conductor_oss()
    with tempfile.TemporaryDirectory() as folder, running_conductor_oss(*program, Path(folder)) as url:
        register(url)
        replies = record(url)
    RECORDING.write_text(json.dumps(replies, indent=1) + "\n")
    print(f"Recorded {len(replies)} replies in {RECORDING}.")


if __name__ == "__main__":
    main()
