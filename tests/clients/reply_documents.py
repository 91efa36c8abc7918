"""Replies of the API as files: runs and tasks of every step type and in every state, for the models of other SDKs.

`manifest.json` lists the files by the Conductor model that describes them: {"Workflow": ["WAIT-TIMED_OUT.json", …], …}.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpResponse

from conductor_app.core.step_types import STEP_TYPES
from conductor_app.processes import sweeps
from conductor_app.utils import process_state
from tests.api_fixtures import Api
from tests.builders import Document, human, simple, step_of, sub_workflow
from tests.conftest import Clock, freeze_time, seed_randomness
from tests.database_baseline import restore_baseline

EXAMPLES = Path(__file__).parents[2] / "docs" / "reference" / "step-types.md"
INPUT = {
    "order": "o-1", "orders": [1, 2], "pictures": [{"size": 1}, {"size": 2}], "carrier": "post", "country": "DE",
    "people": [{"name": "Ann"}], "price": 2, "count": 3, "amount": 5, "item": "i-1", "build": 7, "text": "Hello",
    "email": "ann@example.org",
}  # fmt: skip
REPORTS = ("IN_PROGRESS", "COMPLETED", "FAILED", "FAILED_WITH_TERMINAL_ERROR")
TASK_STATUSES = {
    *REPORTS, "SCHEDULED", "COMPLETED_WITH_ERRORS", "CANCELED", "SKIPPED", "TIMED_OUT",
}  # fmt: skip
RUN_STATUSES = {"RUNNING", "PAUSED", "COMPLETED", "FAILED", "TIMED_OUT", "TERMINATED"}
POLICY = {"retryCount": 0, "timeoutSeconds": 60, "responseTimeoutSeconds": 30, "timeoutPolicy": "TIME_OUT_WF"}


class ReplyFolder:
    """A folder that receives replies, each as a file with the bytes that a client receives."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._manifest: dict[str, list[str]] = defaultdict(list)

    def record(self, model: str, name: str, reply: HttpResponse) -> Any:
        """Store a reply that Conductor's clients read as `model`. Return its document."""
        assert reply.status_code == 200, (name, reply.content)
        folder = re.sub(r"\W+", "-", model).strip("-")
        file = f"{folder}/{len(self._manifest[model]):03}-{re.sub(r'[^A-Za-z0-9_-]+', '-', name)}.json"
        (self.path / folder).mkdir(exist_ok=True)
        (self.path / file).write_bytes(reply.content)
        self._manifest[model].append(file)
        return reply.json()

    def write_manifest(self) -> None:
        (self.path / "manifest.json").write_text(json.dumps(self._manifest, indent=1), encoding="utf-8")

    def documents(self, model: str) -> list[Any]:
        """Return the recorded documents of a model."""
        return [json.loads((self.path / file).read_bytes()) for file in self._manifest[model]]


@pytest.fixture(scope="session")
def reply_folder(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any, tmp_path_factory: Any
) -> ReplyFolder:
    """Return a folder with replies about runs and tasks of every step type and in every state. It is written once.

    Tests that read it have the mark `django_db`, which creates the database.
    """
    folder = ReplyFolder(tmp_path_factory.mktemp("replies"))
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock():
        seed_randomness(patch, request.node.nodeid)
        process_state.reset()
        Recorder(Api(), freeze_time(patch), folder).record_everything()
        restore_baseline()
    folder.write_manifest()
    return folder


def example_steps() -> Iterator[tuple[str, list[Document]]]:
    """Yield each step type with the steps of its example in the documentation."""
    for text in re.findall(r"^```json\n(.*?)^```", EXAMPLES.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        found = json.loads(text)
        steps = found if isinstance(found, list) else [found]
        kind = steps[0].get("type") if isinstance(steps[0], dict) else None
        if kind in STEP_TYPES:
            yield kind, steps


class Recorder:
    """Brings runs into every state through the API and records them."""

    def __init__(self, api: Api, clock: Clock, folder: ReplyFolder) -> None:
        self.api, self.clock, self.folder = api, clock, folder

    def record_everything(self) -> None:
        """Record all stories, then the lists and searches in which their runs appear."""
        self.api.define(simple("send"), name="ship_order", version=2)
        self.api.define(simple("send"), name="subscribe")
        for number, (kind, steps) in enumerate(example_steps()):
            self.record_states(f"{kind}-{number}", steps)
        self.record_stories()
        self.record_lists()
        self.record_definitions()

    def record_states(self, name: str, steps: list[Document]) -> None:
        """Record the runs of an example in which its open task is in each state."""
        run_id = self.start(name, steps)
        self.record_run(f"{name}-started", run_id)
        is_open = bool(self.open_tasks(run_id))
        self.api.put(f"/workflow/{run_id}/pause")
        self.record_run(f"{name}-paused", run_id)
        self.api.delete(f"/workflow/{run_id}", reason="enough")
        self.record_run(f"{name}-terminated", run_id)
        if is_open:
            for status in REPORTS:
                self.report_and_record(f"{name}-{status}", steps, status)
            optional = [each | {"optional": True} for each in steps]
            self.report_and_record(f"{name}-optional", optional, "FAILED")
            self.record_timeout(f"{name}-timed-out", steps)
        self.record_skipped(f"{name}-skipped", steps)

    def report_and_record(self, name: str, steps: list[Document], status: str) -> None:
        """Record a run whose first open task reports a status."""
        run_id = self.start(name, steps)
        task = self.open_tasks(run_id)[0]
        reply = self.api.report(
            task, status, reasonForIncompletion="no luck", outputData={"a": 1}, callbackAfterSeconds=5
        )
        assert reply.status_code == 200, reply.content
        self.record_run(name, run_id)

    def record_timeout(self, name: str, steps: list[Document]) -> None:
        run_id = self.start(name, [each | {"taskDefinition": POLICY | {"name": each["name"]}} for each in steps])
        self.later(seconds=90)
        self.record_run(name, run_id)

    def record_skipped(self, name: str, steps: list[Document]) -> None:
        run_id = self.start(name, [simple("first"), *steps])
        for each in steps:
            self.api.put(f"/workflow/{run_id}/skiptask/{each['taskReferenceName']}")
        self.api.report(self.open_tasks(run_id)[0])
        self.record_run(name, run_id)

    def record_stories(self) -> None:
        """Record runs with retries, reruns, children, loops, branches, timers, events and people."""
        for story in (
            self.retries, self.children, self.loops, self.branches, self.timers, self.failure_workflow, self.reruns,
        ):  # fmt: skip
            story()

    def retries(self) -> None:
        policy = POLICY | {"name": "pay", "retryCount": 2, "retryDelaySeconds": 1, "timeoutPolicy": "RETRY"}
        run_id = self.start("retries", [simple("pay", taskDefinition=policy)], correlationId="c-1", priority=7)
        [task] = self.api.poll("pay", domain="")
        self.folder.record("Task", "polled", self.api.get(f"/tasks/{task['taskId']}"))
        self.api.post(f"/tasks/{task['taskId']}/log", b"seen")
        self.folder.record("List<TaskExecLog>", "logs", self.api.get(f"/tasks/{task['taskId']}/log"))
        self.api.report(task, "FAILED", reasonForIncompletion="no luck")
        self.record_run("waits for its retry", run_id)
        self.later(seconds=2)
        self.api.poll("pay")
        self.later(seconds=40)
        self.record_run("lease expired", run_id)
        self.later(seconds=2)
        self.api.report(self.api.poll("pay")[0], "FAILED_WITH_TERMINAL_ERROR")
        self.record_run("failed after retries", run_id)
        self.api.post(f"/workflow/{run_id}/retry")
        self.record_run("retried", run_id)

    def children(self) -> None:
        params = {"subWorkflowParam": {"name": "ship_order", "version": 2, "priority": 3, "taskToDomain": {"*": "eu"}}}
        run_id = self.start(
            "parent", [step_of("SUB_WORKFLOW", "child", **params), step_of("SUB_WORKFLOW", "second", **params)]
        )
        child_id = self.open_tasks(run_id)[0]["subWorkflowId"]
        self.record_run("child of a parent", child_id)
        self.api.report(self.open_tasks(child_id)[0])
        self.record_run("first child completed", run_id)
        second_id = self.open_tasks(run_id)[0]["subWorkflowId"]
        self.api.report(self.open_tasks(second_id)[0], "FAILED_WITH_TERMINAL_ERROR")
        self.record_run("second child failed", run_id)
        self.api.post(f"/workflow/{run_id}/retry?resumeSubworkflowTasks=true")
        self.record_run("child retried", run_id)
        self.record_run("retried child", second_id)

    def loops(self) -> None:
        condition = "if ($.loop['iteration'] < 3) { true; } else { false; }"
        body = [simple("inside"), step_of("WAIT", "pause", inputParameters={"duration": "1 seconds"})]
        run_id = self.start("loop", [step_of("DO_WHILE", "loop", loopCondition=condition, loopOver=body)])
        while tasks := self.api.poll("inside"):
            self.api.report(tasks[0])
            self.record_run("iteration", run_id)
            self.later(seconds=2)
        assert self.record_run("loop completed", run_id)["status"] == "COMPLETED"

    def branches(self) -> None:
        fork = step_of(
            "FORK_JOIN_DYNAMIC", "fork", dynamicForkTasksParam="tasks", dynamicForkTasksInputParamName="inputs"
        )
        fork["inputParameters"] = {
            "tasks": [simple("left"), sub_workflow("right", "subscribe")],
            "inputs": {"left": {"a": 1}, "right": {"b": None}},
        }
        run_id = self.start("branches", [fork, step_of("JOIN", "join")])
        self.record_run("branches run", run_id)
        self.api.report(self.api.poll("left")[0], "FAILED_WITH_TERMINAL_ERROR")
        self.record_run("a branch failed", run_id)

    def timers(self) -> None:
        wait = step_of("WAIT", "pause", inputParameters={"duration": "5 seconds"})
        run_id = self.start("timer", [wait, simple("after")], timeoutPolicy="TIME_OUT_WF", timeoutSeconds=600)
        self.later(seconds=6)
        self.record_run("timer ended", run_id)
        self.later(seconds=700)
        assert self.record_run("run timed out", run_id)["status"] == "TIMED_OUT"

    def failure_workflow(self) -> None:
        self.api.define(simple("repair"), name="repair_order")
        run_id = self.start("breaks", [simple("pay")], failureWorkflow="repair_order", outputParameters={"a": None})
        self.api.report(self.open_tasks(run_id)[0], "FAILED_WITH_TERMINAL_ERROR", outputData={"why": None})
        self.later(seconds=1)
        self.record_run("has a failure workflow", run_id)
        for each in self.api.get("/workflow/search", query="workflowType = repair_order").json()["results"]:
            self.record_run("failure workflow", each["workflowId"])

    def reruns(self) -> None:
        run_id = self.start("rerun", [simple("pay"), human("approve"), simple("ship")])
        for _ in range(3):
            self.api.report(self.open_tasks(run_id)[0])
        first = self.record_run("completed", run_id)["tasks"][0]
        self.api.post(f"/workflow/{run_id}/rerun", {"reRunFromTaskId": first["taskId"], "taskInput": {"b": 2}})
        self.record_run("rerun", run_id)
        self.api.post(f"/workflow/{run_id}/restart")
        self.api.delete(f"/workflow/{run_id}")
        self.api.post(f"/workflow/{run_id}/restart")
        self.record_run("restarted", run_id)

    def record_lists(self) -> None:
        record, get = self.folder.record, self.api.get
        record("SearchResult<WorkflowSummary>", "search", get("/workflow/search", size=1000))
        record("SearchResult<Workflow>", "search-v2", get("/workflow/search-v2", size=1000))
        record("SearchResult<TaskSummary>", "search", get("/tasks/search", size=1000))
        record("SearchResult<Task>", "search-v2", get("/tasks/search-v2", size=1000))
        record("List<PollData>", "poll data", get("/tasks/queue/polldata/all"))
        record("List<Task>", "polled", get("/tasks/poll/batch/pay", count=3, timeout=0, workerid="w"))
        record("List<Workflow>", "correlated", get("/workflow/retries/correlated/c-1", includeClosed="true"))
        started = self.api.put("/workflow/bulk/pause", [self.start("bulk", [simple("pay")]), "unknown"])
        record("BulkResponse", "bulk", started)

    def record_definitions(self) -> None:
        record, get = self.folder.record, self.api.get
        self.api.post("/metadata/taskdefs", [POLICY | {"name": "pay", "retryCount": 1}, {"name": "plain"}])
        record("List<WorkflowDef>", "definitions", get("/metadata/workflow"))
        record("WorkflowDef", "definition", get("/metadata/workflow/loop"))
        record("List<TaskDef>", "task definitions", get("/metadata/taskdefs"))
        record("TaskDef", "task definition", get("/metadata/taskdefs/pay"))

    def record_run(self, name: str, run_id: str) -> dict[str, Any]:
        """Record a run, its status, and its last task. Return the run."""
        run = self.folder.record("Workflow", name, self.api.get(f"/workflow/{run_id}"))
        status = self.api.get(f"/workflow/{run_id}/status", includeOutput="true", includeVariables="true")
        self.folder.record("WorkflowStatus", name, status)
        if run["tasks"]:
            self.folder.record("Task", name, self.api.get(f"/tasks/{run['tasks'][-1]['taskId']}"))
        return run

    def start(self, name: str, steps: list[Document], correlationId: str = "", priority: int = 0, **fields: Any) -> str:
        """Define a workflow and start it. Return the id of the run."""
        self.api.define(*steps, name=name, **fields)
        return self.api.start(name, input=INPUT, correlationId=correlationId or None, priority=priority)

    def open_tasks(self, run_id: str) -> list[dict[str, Any]]:
        """Return the tasks that a report can end, first those that have none inside them."""
        tasks = self.api.workflow(run_id)["tasks"]
        return [task for task in reversed(tasks) if task["status"] in ("SCHEDULED", "IN_PROGRESS")]

    def later(self, seconds: float) -> None:
        """Advance the time and handle due timers."""
        self.clock.advance(seconds=seconds)
        while sweeps.sweep_once():
            pass
