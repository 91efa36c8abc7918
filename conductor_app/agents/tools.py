"""The tools that agents may call. Each tool is one request of the API, with the permissions of its caller.

Workflows are tools, too: those whose definitions have `metadata.mcp`. A call starts a run and follows it until it ends,
waits for a person or a message, or the time of the tool is over.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, NamedTuple, cast
from urllib.parse import quote, unquote_to_bytes, urlencode
from uuid import uuid4

from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse
from django.urls import resolve

from ..access.authentication import Actor
from ..access.permissions import EXECUTE, WORKFLOW_DEF
from ..core.primitives import FAILURE_VIEWS, RUN_OPERATIONS, RUN_STATUSES, JsonValue, quote_search_value
from ..core.states import TASK
from ..definitions.models import WorkflowDefinition
from ..definitions.queries import ToolOptions, newest_definitions, tool_options
from ..definitions.schemas import input_schema
from ..definitions.store import definitions_revision
from ..notifications import PendingWait, WaitSteps
from ..runs.models import Run, Task
from ..tasks.commands.pollers import release_connection
from ..tasks.commands.waits import WaitOutcome, begin_run_wait
from ..utils import process_state
from ..web.client_views import mark_slashes

Arguments = Mapping[str, Any]
Schema = dict[str, Any]
MAX_LISTED = 100
MAX_FOLLOW_SECONDS = 120
"""The maximum time that a call waits for a run."""
SESSION_ID = re.compile(r"[0-9a-f]{32}")
SHOWN_TASKS = 3
"""The number of open tasks that a progress message names."""
PREFIX = "/api"
COPIED = ("REMOTE_ADDR", "SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL", "wsgi.url_scheme")
HEADERS = (
    *("HTTP_X_AUTHORIZATION", "HTTP_HOST", "HTTP_ORIGIN", "HTTP_SEC_FETCH_SITE", "HTTP_X_FORWARDED_PROTO"),
    "HTTP_TRACEPARENT",
)


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A request of the API. `path` includes the query."""

    method: str
    path: str
    body: JsonValue = None


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool: its name, the description that a model reads, the JSON schema of its arguments, and its request.

    `acts`: the tool changes something, and requires the permission to act as an agent. `follows_run`: its call is not
    one request, because it waits for a run.
    """

    name: str
    title: str
    description: str
    properties: Mapping[str, Schema]
    required: tuple[str, ...]
    call: Callable[[Arguments], ApiCall]
    acts: bool = False
    follows_run: bool = False

    @property
    def schema(self) -> Schema:
        """Return the JSON schema of the arguments."""
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }


def _text(description: str, **rules: Any) -> Schema:
    return {"type": "string", "description": description, "maxLength": 1_000, **rules}


def _choice(description: str, *values: str) -> Schema:
    return {"type": "string", "description": description, "enum": list(values)}


def _read(template: str, *query_names: str, **fixed: Any) -> Callable[[Arguments], ApiCall]:
    """Return a function that builds a GET request: `template` is filled with arguments, `query_names` are appended."""

    def call(arguments: Arguments) -> ApiCall:
        path = template.format_map({name: quote(str(value), safe="") for name, value in arguments.items()})
        query = {name: arguments[name] for name in query_names if arguments.get(name) not in (None, "")} | fixed
        return ApiCall("GET", f"{path}?{urlencode(query)}" if query else path)

    return call


def _search(arguments: Arguments) -> ApiCall:
    conditions = [
        f"{field} = {quote_search_value(arguments[name])}"
        for name, field in (("status", "status"), ("workflow", "workflowType"), ("correlationId", "correlationId"))
        if arguments.get(name)
    ]
    if arguments.get("query"):
        conditions.append(str(arguments["query"]))
    query = {
        "query": " AND ".join(conditions),
        "freeText": arguments.get("text") or "*",
        "size": arguments.get("limit", 20),
        "sort": "startTime:DESC",
    }
    return ApiCall("GET", f"/workflow/search?{urlencode(query)}")


def _plan(arguments: Arguments) -> ApiCall:
    body = {name: value for name, value in arguments.items() if name != "workflowId"}
    return ApiCall("POST", f"/insight/runs/{quote(arguments['workflowId'], safe='')}/plan", body)


def _apply(arguments: Arguments) -> ApiCall:
    body = {name: arguments[name] for name in ("confirmationToken", "reason")}
    return ApiCall("POST", f"/insight/runs/{quote(arguments['workflowId'], safe='')}/apply", body)


def _draft(arguments: Arguments) -> ApiCall:
    name = str(arguments["definition"].get("name") or "")
    return ApiCall("PUT", f"/metadata/workflow/{quote(name or '-', safe='')}/draft", arguments["definition"])


def _validate(arguments: Arguments) -> ApiCall:
    return ApiCall("POST", "/metadata/workflow/validate", arguments["definition"])


def _test(arguments: Arguments) -> ApiCall:
    definition = arguments.get("definition") or {}
    body = {
        "name": arguments.get("name") or definition.get("name"),
        "version": arguments.get("version"),
        "workflowDef": definition or None,
        "input": arguments.get("input") or {},
        "taskRefToMockOutput": arguments.get("results") or {},
    }
    return ApiCall("POST", "/workflow/test", {name: value for name, value in body.items() if value is not None})


def _without_request(arguments: Arguments) -> ApiCall:
    """Return no request: the protocol follows the run."""
    raise NotImplementedError


def _seconds(description: str) -> Schema:
    return {"type": "integer", "minimum": 0, "maximum": MAX_FOLLOW_SECONDS, "description": description}


DEFINITION = {"type": "object", "description": "The workflow definition, in Conductor's format."}
INPUT = {"type": "object", "description": "Input of the workflow."}
RUN_ID = _text("Id of the run (workflow execution).", minLength=1)
TASK_ID = _text("Id of the task, such as `taskId` of a run's task.", minLength=1)
TOOLS: tuple[AgentTool, ...] = (
    AgentTool(
        "search_runs",
        "Search runs",
        "List runs, the newest first, with status, times and the reason of a failure.",
        {
            "status": _choice("Only runs in this status.", *RUN_STATUSES),
            "workflow": _text("Only runs of the workflow definition with this name."),
            "correlationId": _text("Only runs with this correlation id."),
            "query": _text("A condition of Conductor's search, such as `startTime > 1763942400000`."),
            "text": _text("Text to find in inputs, outputs and errors."),
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LISTED, "description": "Number of runs."},
        },
        (),
        _search,
    ),
    AgentTool(
        "get_run",
        "Get a run",
        "Return a run with its input, output, variables and tasks.",
        {"workflowId": RUN_ID},
        ("workflowId",),
        _read("/workflow/{workflowId}"),
    ),
    AgentTool(
        "explain_run",
        "Explain a run",
        "Explain in one sentence why a run waits or failed, with the operations that its status allows and, if the "
        "sentence names a task in a queue, its conditions and position there. Call this first.",
        {"workflowId": RUN_ID},
        ("workflowId",),
        _read("/insight/runs/{workflowId}/cause"),
    ),
    AgentTool(
        "compare_runs",
        "Compare runs",
        "Compare the tasks and payloads of two runs: of a failed run with the last successful one, for example.",
        {"workflowId": RUN_ID, "with": _text("Id or correlation id of the other run. Default: the last success.")},
        ("workflowId",),
        _read("/insight/runs/{workflowId}/compare", "with"),
    ),
    AgentTool(
        "explain_input",
        "Explain an input",
        "Show for each expression in a task's input where its value came from, with a hint if it has none.",
        {"taskId": TASK_ID},
        ("taskId",),
        _read("/insight/tasks/{taskId}/provenance"),
    ),
    AgentTool(
        "get_task_log",
        "Get a task's log",
        "Return the log lines that a worker has sent for a task.",
        {"taskId": TASK_ID},
        ("taskId",),
        _read("/tasks/{taskId}/log"),
    ),
    AgentTool(
        "list_queues",
        "List queues",
        "List the queues with their pending tasks, tasks in progress, polling workers and limits.",
        {},
        (),
        _read("/insight/queues"),
    ),
    AgentTool(
        "explain_queue",
        "Explain a queue",
        "Show the pending tasks of a queue in dispatch order with their estimated wait, its limits and its workers.",
        {"queue": _text("Name of the queue: the task type, or `domain:type`.", minLength=1)},
        ("queue",),
        _read("/insight/queues/{queue}"),
    ),
    AgentTool(
        "list_failures",
        "List failure groups",
        "List groups of failures with the same cause, with the runs that each has ended within the last day.",
        {
            "view": _choice("State of the groups. Default: open.", *FAILURE_VIEWS),
            "definition": _text("Only failures of the workflow with this name."),
            "text": _text("Text of the error, or reference of the task."),
        },
        (),
        _read("/insight/failures", "view", "definition", "text"),
    ),
    AgentTool(
        "explain_failure",
        "Explain a failure group",
        "Show what the failures of a group have in common (version, worker build, worker, queue), compared with all "
        "work of the same time, with the stack trace and sample runs.",
        {"id": {"type": "integer", "description": "Id of the failure group."}},
        ("id",),
        _read("/insight/failures/{id}"),
    ),
    AgentTool(
        "list_workflow_definitions",
        "List workflow definitions",
        "List the names and versions of workflow definitions.",
        {},
        (),
        _read("/metadata/workflow/names-and-versions"),
    ),
    AgentTool(
        "get_workflow_definition",
        "Get a workflow definition",
        "Return a workflow definition, in its newest version unless one is given.",
        {"name": _text("Name.", minLength=1), "version": {"type": "integer", "description": "Version."}},
        ("name",),
        _read("/metadata/workflow/{name}", "version"),
    ),
    AgentTool(
        "plan_operation",
        "Plan an operation",
        "Show what an operation would do to each task of a run, and which effects outside of the workflow it would "
        "repeat. Nothing is changed. Show the plan to the user; `confirmationToken` of the result applies it.",
        {
            "workflowId": RUN_ID,
            "operation": _choice("The operation.", *RUN_OPERATIONS),
            "taskId": _text("For rerun and rewind: id of the task to continue from."),
            "taskReferenceName": _text("For skip and jump: reference of the step."),
            "version": _text("For restart and upgrade: version of the definition, or `latest`."),
            "resumeSubworkflows": {"type": "boolean", "description": "For retry: resume failed sub-workflows."},
            "reason": _text("Reason for the audit log.", maxLength=500),
        },
        ("workflowId", "operation"),
        _plan,
    ),
    AgentTool(
        "apply_plan",
        "Apply a plan",
        "Apply a plan that the user has confirmed, by its token. Fails if the run has changed since.",
        {
            "workflowId": RUN_ID,
            "confirmationToken": {"type": "string", "description": "`confirmationToken` of the plan.", "minLength": 1},
            "reason": _text("Reason for the audit log: who confirmed it, and why.", minLength=1, maxLength=500),
        },
        ("workflowId", "confirmationToken", "reason"),
        _apply,
        acts=True,
    ),
    AgentTool(
        "validate_workflow_definition",
        "Validate a workflow definition",
        "Return the findings on a workflow definition. Nothing is saved. Call this before you save a draft.",
        {"definition": DEFINITION},
        ("definition",),
        _validate,
    ),
    AgentTool(
        "test_workflow_definition",
        "Test a workflow definition",
        "Simulate a workflow with given results of its tasks, and return the run with each task's input. No worker "
        "executes anything. Pass a definition, or the name of a saved one.",
        {
            "definition": DEFINITION,
            "name": _text("Name of a saved definition."),
            "version": {"type": "integer", "description": "Version of the saved definition. Default: the newest."},
            "input": INPUT,
            "results": {
                "type": "object",
                "description": "By task reference: a list with one object for each attempt, with `status` (COMPLETED, "
                "FAILED) and `output`.",
            },
        },
        (),
        _test,
    ),
    AgentTool(
        "save_workflow_draft",
        "Save a draft of a workflow definition",
        "Save a workflow definition as a draft. Nothing runs with it: a person opens it in the editor, by the address "
        "in the result, reviews it and saves it.",
        {"definition": DEFINITION},
        ("definition",),
        _draft,
        acts=True,
    ),
    AgentTool(
        "start_workflow",
        "Start a workflow",
        "Start a run of a workflow. Returns the run's id, or its output if it ends within `waitSeconds`.",
        {
            "name": _text("Name of the workflow definition.", minLength=1),
            "version": {"type": "integer", "description": "Version. Default: the newest."},
            "input": INPUT,
            "correlationId": _text("Correlation id of the run."),
            "waitSeconds": _seconds("Seconds to wait for the end of the run. Default: 0."),
        },
        ("name",),
        _without_request,
        acts=True,
        follows_run=True,
    ),
    AgentTool(
        "wait_for_run",
        "Wait for a run",
        "Wait until a run ends, or until it waits for a person or a message. Returns its status and output.",
        {"workflowId": RUN_ID, "waitSeconds": _seconds(f"Seconds to wait at most. Default: {MAX_FOLLOW_SECONDS}.")},
        ("workflowId",),
        _without_request,
        follows_run=True,
    ),
)
TOOL_BY_NAME = {tool.name: tool for tool in TOOLS}


def call_api(call: ApiCall, original: HttpRequest) -> HttpResponse:
    """Execute a request of the API as the caller of another request. The view authenticates and authorizes it."""
    path, _, query = call.path.partition("?")
    target = f"{PREFIX}{path}"
    body = b"" if call.body is None else json.dumps(call.body).encode()
    environ: dict[str, Any] = {name: original.META[name] for name in (*COPIED, *HEADERS) if name in original.META}
    environ |= {
        "REQUEST_METHOD": call.method,
        "SCRIPT_NAME": "",
        # WSGI passes paths unquoted, as Latin-1.
        "PATH_INFO": mark_slashes(target) or unquote_to_bytes(target).decode("latin-1"),
        "QUERY_STRING": query,
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": BytesIO(body),
    }
    request = WSGIRequest(environ)
    match = resolve(request.path_info)
    request.resolver_match = match
    return cast(HttpResponse, match.func(request, *match.args, **match.kwargs))


@dataclass(frozen=True, slots=True)
class WorkflowTool:
    """A workflow that agents call by the name of its tool."""

    name: str
    title: str
    description: str
    workflow: str
    schema: Schema
    wait_seconds: int

    def may_use(self, actor: Actor) -> bool:
        """Return True if the actor may start the workflow."""
        return actor.permissions.allows(EXECUTE, WORKFLOW_DEF, self.workflow)


class _Tools(NamedTuple):
    """The tools of all definitions by name, at a revision of the definitions."""

    revision: int
    by_name: Mapping[str, WorkflowTool]


_tools: process_state.Slot[_Tools] = process_state.slot(lambda: _Tools(-1, {}))


def workflow_tools() -> Mapping[str, WorkflowTool]:
    """Return the tools of the newest versions of all definitions that are not archived, by name.

    The names of other tools are taken; of two workflows with one name of a tool, the first by its own name has it.
    """
    if (revision := definitions_revision()) != _tools.value.revision:
        # The text search narrows the rows. Only the metadata decides.
        rows = newest_definitions().filter(archived_at__isnull=True, document__contains='"mcp"').order_by("name")
        found: dict[str, WorkflowTool] = {}
        for row in rows:
            if (options := tool_options(row.name, row.document)) and options.name not in TOOL_BY_NAME:
                found.setdefault(options.name, _tool_of(row, options))
        _tools.value = _Tools(revision, found)
    return _tools.value.by_name


def _tool_of(row: WorkflowDefinition, options: ToolOptions) -> WorkflowTool:
    # The values of the template are the author's: a caller may start the workflow without seeing its definition.
    schema = input_schema({**row.document, "inputTemplate": {}})
    given = schema if isinstance(schema, dict) else {}
    return WorkflowTool(
        options.name,
        options.title,
        options.description,
        row.name,
        {**given, "type": "object", "properties": given.get("properties") or {}},
        options.wait_seconds,
    )


def call_key(session_id: str, request_id: str | int) -> str:
    """Return the idempotency key of a call: one for each request of a session, or empty without a session."""
    return f"mcp-{session_id}-{json.dumps(request_id)}"[:255] if SESSION_ID.fullmatch(session_id) else ""


def new_session_id() -> str:
    """Return an id of a session, which only its client knows."""
    return uuid4().hex


def end_call(key: str, request: HttpRequest) -> None:
    """Terminate the run that the call with this key has started, if its caller may do that."""
    run_id = Run.objects.filter(idempotency_key=key).values_list("id", flat=True).first() if key else None
    if run_id is not None:
        terminate(run_id, request)


def terminate(run_id: str, request: HttpRequest) -> None:
    """Terminate a run as the caller of a request. One that has ended stays as it is."""
    query = urlencode({"reason": "The call of the tool was canceled."})
    call_api(ApiCall("DELETE", f"/workflow/{run_id}?{query}"), request)


def start_call(
    name: str, arguments: Arguments, key: str, version: int | None = None, correlation_id: str = ""
) -> ApiCall:
    """Return the request that starts a workflow. `key`: a repeated call with this key starts no other run."""
    body: dict[str, Any] = {"name": name, "input": dict(arguments), "correlationId": correlation_id}
    if version is not None:
        body["version"] = version
    if key:
        body |= {"idempotencyKey": key, "idempotencyStrategy": "RETURN_EXISTING"}
    return ApiCall("POST", "/workflow", body)


class Progress(NamedTuple):
    """What a run has done: the number of its ended tasks, and a sentence."""

    ended: int
    message: str


class FollowedRun:
    """A run that a call follows. Its methods are called in one thread, one after the other."""

    def __init__(self, run_id: str, seconds: float) -> None:
        self.run_id = run_id
        self._steps: WaitSteps[WaitOutcome] = begin_run_wait(run_id, seconds)
        self._wait: PendingWait | None = None

    def begin(self) -> bool:
        """Begin to wait. Returns True if the wait is over."""
        return self._advance(lambda: next(self._steps))

    def wait_for_change(self) -> bool:
        """Wait for the next change of the run. Returns True if the wait is over."""
        assert self._wait is not None
        is_notified = self._wait.waiter.wait(self._wait.seconds)
        return self._advance(lambda: self._steps.send(is_notified))

    def close(self) -> None:
        """End the wait."""
        self._steps.close()

    def _advance(self, step: Callable[[], PendingWait]) -> bool:
        try:
            self._wait = step()
        except StopIteration:
            return True
        return False

    def progress(self) -> Progress:
        """Return what the run has done."""
        rows = Task.objects.filter(run_id=self.run_id)
        is_open = rows.filter(status__in=TASK.open)
        open_refs = list(is_open.order_by("seq").values_list("ref", flat=True)[: SHOWN_TASKS + 1])
        ended = rows.exclude(status__in=TASK.open).count()
        release_connection()
        named = ", ".join(open_refs[:SHOWN_TASKS]) + (" …" if len(open_refs) > SHOWN_TASKS else "")
        return Progress(ended, f"{ended} tasks ended" + (f"; open: {named}" if named else ""))
