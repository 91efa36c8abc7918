"""A task report passes through the modules that docs/explanation/architecture.md lists, in that order."""

import json
import re
import sys
from pathlib import Path

import pytest

from conductor_app.core.effects import Effect
from tests.architecture.modules import APP

DOCUMENT = APP.parent / "docs" / "explanation" / "architecture.md"
MAX_MODULES = 12
MAX_PARAMETERS = 5
DEFINITION = {
    "name": "order",
    "version": 1,
    "ownerEmail": "owner@example.com",
    "timeoutSeconds": 0,
    "tasks": [
        {"name": "pick", "taskReferenceName": "pick", "type": "SIMPLE"},
        {
            "name": "ship",
            "taskReferenceName": "ship",
            "type": "SIMPLE",
            "inputParameters": {"item": "${pick.output.item}"},
        },
    ],
}


def documented_modules() -> list[str]:
    """Read the numbered list of the section about the path of a task report."""
    section = DOCUMENT.read_text().split("## The path of a task report", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\d+\. `([\w/]+\.py)`", section, re.MULTILINE)


class PathRecorder:
    """Record our modules on the call stack whenever a statement is sent, an effect is created, or a queue announced."""

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.long_signatures: set[str] = set()

    def __call__(self, frame, event, argument) -> None:
        if event != "call" or not self.is_recorded(frame):
            return
        stack = []
        while frame is not None:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(APP) and not path.is_relative_to(APP / "db" / "sqlite"):
                stack.append(str(path.relative_to(APP)))
                self.check_signature(frame.f_code)
            frame = frame.f_back
        self.modules += [module for module in dict.fromkeys(reversed(stack)) if module not in self.modules]

    def check_signature(self, code) -> None:
        count = code.co_argcount + code.co_kwonlyargcount - (code.co_varnames[:1] == ("self",))
        if count > MAX_PARAMETERS:
            self.long_signatures.add(code.co_qualname)

    @staticmethod
    def is_recorded(frame) -> bool:
        name, path = frame.f_code.co_name, frame.f_code.co_filename
        if name == "execute":
            return path.endswith("django/db/backends/utils.py")
        if name == "__init__":
            return isinstance(frame.f_locals.get("self"), Effect)
        return name in ("announce", "write_rows") and path.startswith(str(APP))


@pytest.mark.django_db(transaction=True)
def test_a_task_report_passes_through_the_documented_modules(client):
    def send(path, document):
        response = client.post(f"/api/{path}", json.dumps(document), content_type="application/json")
        assert response.status_code == 200, response.content
        return response

    def start_and_poll():
        run_id = send("workflow/order", {}).content.decode()
        return run_id, client.get("/api/tasks/poll/pick?workerid=w").json()["taskId"]

    def report(run_id, task_id):
        document = {"workflowInstanceId": run_id, "taskId": task_id, "status": "COMPLETED", "outputData": {"item": 1}}
        send("tasks", document)

    send("metadata/taskdefs", [{"name": name, "ownerEmail": "owner@example.com"} for name in ("pick", "ship")])
    send("metadata/workflow", DEFINITION)
    report(*start_and_poll())
    run_id, task_id = start_and_poll()
    recorder = PathRecorder()

    sys.setprofile(recorder)
    try:
        report(run_id, task_id)
    finally:
        sys.setprofile(None)

    assert recorder.modules == documented_modules()
    assert len(recorder.modules) <= MAX_MODULES
    assert recorder.long_signatures == set()
