"""Workflows as tools: definitions with `metadata.mcp`, and what a call of one does.

A call starts a run and follows it until it ends, waits for a person or a message, or the time of the tool is over.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import uuid4

from django.http import HttpRequest
from django.utils.http import urlencode

from ..access.authentication import Actor
from ..access.permissions import EXECUTE, WORKFLOW_DEF
from ..core.states import TASK
from ..definitions.models import WorkflowDefinition
from ..definitions.queries import newest_definitions
from ..definitions.schemas import input_schema
from ..definitions.store import definitions_revision
from ..definitions.tool_options import ToolOptions, tool_options
from ..notifications import PendingWait, WaitSteps
from ..runs.models import Run, Task
from ..tasks.commands.pollers import release_connection
from ..tasks.commands.waits import WaitOutcome, begin_run_wait
from ..utils import process_state
from .tools import TOOL_BY_NAME, ApiCall, Arguments, Schema, call_api

SESSION_ID = re.compile(r"[0-9a-f]{32}")
SHOWN_TASKS = 3
"""The number of open tasks that a progress message names."""


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
