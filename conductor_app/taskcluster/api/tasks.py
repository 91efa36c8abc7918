"""The views of tasks, of their attempts, which Taskcluster calls runs, and of task groups."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.http import HttpResponse

from ...core.errors import Conflict, Invalid, NotFound
from ...core.snapshot import Attempt
from ...db.statements import read_snapshot
from ...utils import clock
from ...web.client_views import reply_after, waiting_client
from ..commands import groups
from ..commands import tasks as commands
from ..commands.rows import find_group
from ..commands.tasks import PRIORITIZE, ClaimedTask, NewTask, apply_action
from ..core.snapshot import COMPLETED, FAILED, StandaloneTask
from ..models import StandaloneTask as StandaloneTaskRow
from ..queries import (
    NAMES_OF_PRIORITIES,
    PRIORITIES,
    format_timestamp,
    group_document,
    group_rows,
    queue_facts,
    status_document,
    worker_facts,
)
from . import view
from .base import PAGE_QUERY_OPTIONS, Json, add_one_year, parse_page, parse_success, parse_timestamp

MINUTE_MS, DAY_MS = 60_000, 86_400_000
MAX_SKEW_MS = 15 * MINUTE_MS
MAX_LIFETIME_MS = 5 * DAY_MS


def parse_task(task_id: str, document: dict[str, Any], now: int) -> NewTask:
    """Return the new task that a definition describes.

    Raises:
        Invalid: when the definition is inconsistent (taskcluster §1.6).
    """
    queue = queue_name(document)
    created, deadline = (parse_timestamp(document[name], name) for name in ("created", "deadline"))
    expires = parse_timestamp(document["expires"], "expires") if "expires" in document else add_one_year(deadline)
    _check_times(created, deadline, expires, now)
    if any(scope.endswith("**") for scope in document["scopes"]):
        raise Invalid("Scopes may not end in '**'.")
    group_id = document.get("taskGroupId", task_id)
    times = {
        "created": format_timestamp(created),
        "deadline": format_timestamp(deadline),
        "expires": format_timestamp(expires),
    }
    full_document = {**document, **queue_facts(queue), "taskGroupId": group_id, **times}
    return NewTask(
        id=task_id,
        group_id=group_id,
        scheduler_id=document["schedulerId"],
        project_id=document["projectId"],
        queue=queue,
        priority=PRIORITIES[document["priority"]],
        retries=int(document["retries"]),
        deadline_at=deadline,
        expires_at=expires,
        requires=document["dependencies"],
        accepts_failure=document["requires"] == "all-resolved",
        tags=document["tags"],
        routes=document["routes"],
        name=document["metadata"]["name"],
        definition={name: value for name, value in full_document.items() if name != "priority"},
    )


def queue_name(document: dict[str, Any]) -> str:
    """Return the queue, which `taskQueueId` or `provisionerId` and `workerType` name.

    Raises:
        Invalid: when the queue is missing or the two differ.
    """
    parts = [document[name] for name in ("provisionerId", "workerType") if name in document]
    queue = document.get("taskQueueId", "/".join(parts))
    facts = queue_facts(queue)
    if "/" not in queue or any(document.get(name, value) != value for name, value in facts.items()):
        raise Invalid("A task must name one queue: by taskQueueId, by provisionerId and workerType, or by both.")
    return queue


def _check_times(created: int, deadline: int, expires: int, now: int) -> None:
    rules = {
        "Created timestamp must be within 15 minutes of now.": abs(created - now) <= MAX_SKEW_MS,
        "Deadline must not be before created.": created <= deadline,
        "Deadline must not be in the past.": deadline >= now,
        "Deadline must be within 5 days of now.": deadline <= now + MAX_LIFETIME_MS + MAX_SKEW_MS,
        "Expires must not be before deadline.": expires >= deadline,
    }
    if broken := [sentence for sentence, holds in rules.items() if not holds]:
        raise Invalid(" ".join(broken))


def definition_document(definition: dict[str, Any], priority: int) -> dict[str, Any]:
    """Return the definition of a task as its author wrote it, with the current priority."""
    return {**definition, "priority": NAMES_OF_PRIORITIES[priority]}


def task_document(row: StandaloneTaskRow) -> dict[str, Any]:
    """Return the definition of a loaded task."""
    return definition_document(row.definition, row.priority)


def status_reply(standalone: Any) -> dict[str, Any]:
    """Return the status of a task, which is the response of most methods."""
    return {"status": status_document(standalone)}


def list_entry(row: StandaloneTaskRow) -> dict[str, Any]:
    """Return a task as an entry of a list."""
    return {"status": status_document(row), "task": task_document(row)}


def claim_reply(claimed: ClaimedTask) -> dict[str, Any]:
    """Return the response to a claim."""
    return {**reclaim_reply(claimed), "task": definition_document(claimed.definition, claimed.standalone.priority)}


def reclaim_reply(claimed: ClaimedTask) -> dict[str, Any]:
    """Return the response to a reclaim, without the definition, which the worker has already."""
    standalone, attempt, definition = claimed
    ends_at = attempt.lease_ends_at or 0
    return {
        "status": status_document(standalone),
        "runId": attempt.number,
        **worker_facts(attempt.worker),
        "takenUntil": format_timestamp(ends_at),
        "credentials": _credentials(standalone, attempt, definition["scopes"], ends_at),
    }


def _credentials(standalone: StandaloneTask, attempt: Attempt, scopes: list[str], ends_at: int) -> Mapping[str, str]:
    run = f"{standalone.id}/{attempt.number}"
    attempt_scopes = [f"queue:{right}:{run}" for right in ("reclaim-task", "resolve-task", "create-artifact")]
    client_id = f"task-client/{run}/on/{attempt.worker}/until/{ends_at // 1000}"
    return view.task_credentials(client_id, [*attempt_scopes, *scopes], ends_at)


class TaskDocument(view.TaskclusterView):
    """/task/{taskId}: get the definition of a task."""

    methods = {
        "GET": view.ApiMethod("task", scopes="queue:get-task:<taskId>"),
        "PUT": view.ApiMethod("createTask", scopes_of_facts=view.CREATE_TASK_SCOPES),
    }

    def get(self, request: view.TaskclusterRequest) -> HttpResponse:
        return Json(task_document(_find_task(StandaloneTaskRow.objects, request.params["taskId"])))

    def put(self, request: view.TaskclusterRequest) -> HttpResponse:
        document = request.document
        priorities = priorities_at_least(PRIORITIES[document["priority"]])
        request.require(**{**document, **queue_facts(queue_name(document)), "priorities": priorities})
        return Json(status_reply(commands.create_task(parse_task(request.params["taskId"], document, clock.now()))))


def _find_task(rows, task_id: str) -> StandaloneTaskRow:
    found = rows.filter(pk=task_id).first()
    if found is None:
        raise NotFound(f"Task {task_id} does not exist.")
    return found


def priorities_at_least(lowest: int) -> list[str]:
    """Return the names of this priority and all higher ones: the scope for one includes all lower priorities."""
    return [name for number, name in sorted(NAMES_OF_PRIORITIES.items()) if number >= lowest]


class TaskStatusOne(view.TaskclusterView):
    """/task/{taskId}/status: get the status of a task with its runs."""

    methods = {"GET": view.ApiMethod("status", scopes="queue:status:<taskId>")}

    def get(self, request: view.TaskclusterRequest) -> HttpResponse:
        return Json(status_reply(commands.find_task(request.params["taskId"])))


class TaskBatch(view.TaskclusterView):
    """/tasks: get the definitions of several tasks."""

    methods = {"POST": view.ApiMethod("tasks", scopes_of_facts=view.TASKS_SCOPES)}
    known_options = PAGE_QUERY_OPTIONS

    def post(self, request: view.TaskclusterRequest) -> HttpResponse:
        return _task_list_reply(
            request,
            "tasks",
            StandaloneTaskRow.objects.all(),
            lambda row: {"taskId": row.id, "task": task_document(row)},
        )


class TaskStatusBatch(view.TaskclusterView):
    """/tasks/status: get the statuses of several tasks."""

    methods = {"POST": view.ApiMethod("statuses", scopes_of_facts=view.STATUSES_SCOPES)}
    known_options = PAGE_QUERY_OPTIONS

    @read_snapshot()
    def post(self, request: view.TaskclusterRequest) -> HttpResponse:
        rows = StandaloneTaskRow.objects.defer_payloads().with_attempts()
        return _task_list_reply(request, "statuses", rows, lambda row: {"taskId": row.id, **status_reply(row)})


def _task_list_reply(request: view.TaskclusterRequest, name: str, rows, show: Callable) -> HttpResponse:
    page, ids = parse_page(request.options, str), sorted(set(request.document["taskIds"]))
    request.require(ids=ids)
    remaining: Sequence[str] = [id for id in ids if not page.after or id > page.after[0]][: page.size + 1]
    found = {row.pk: row for row in rows.filter(pk__in=[id for id in remaining if "\0" not in id])}
    reply = page.reply(name, remaining, lambda id: [id], lambda id: show(found[id]) if id in found else None)
    return Json({**reply, name: [each for each in reply[name] if each is not None]})


class DependentTasks(view.TaskclusterView):
    """/task/{taskId}/dependents: list the tasks that depend on a task."""

    methods = {"GET": view.ApiMethod("listDependentTasks", scopes="queue:list-dependent-tasks:<taskId>")}
    known_options = PAGE_QUERY_OPTIONS

    @read_snapshot()
    def get(self, request: view.TaskclusterRequest) -> HttpResponse:
        task_id, page = request.params["taskId"], parse_page(request.options, str)
        _find_task(StandaloneTaskRow.objects.only("pk"), task_id)
        rows = (
            StandaloneTaskRow.objects.with_attempts().starting_after(page.after).waiting_for(task_id)[: page.size + 1]
        )
        reply = page.reply("tasks", list(rows), lambda row: [row.pk], list_entry)
        return Json({"taskId": task_id, **reply})


class TaskActionView(view.TaskclusterView):
    """Base class of methods that control one task: load it, authorize the caller, run the command."""

    action: str

    def post(self, request: view.TaskclusterRequest) -> HttpResponse:
        require_task_action(request, commands.find_task(request.params["taskId"]))
        return Json(status_reply(apply_action(self.action, request.params["taskId"], request.caller.client_id)))


def require_task_action(request: view.TaskclusterRequest, standalone: StandaloneTask) -> None:
    """Raise Forbidden unless the caller may steer this task."""
    request.require(
        schedulerId=standalone.scheduler_id,
        taskGroupId=standalone.group_id,
        projectId=standalone.project_id,
        taskQueueId=standalone.queue,
    )


class ScheduleTask(TaskActionView):
    """/task/{taskId}/schedule: make a task pending regardless of its dependencies."""

    methods = {"POST": view.ApiMethod("scheduleTask", scopes_of_facts=view.SCHEDULE_TASK_SCOPES)}
    action = "schedule"


class RerunTask(TaskActionView):
    """/task/{taskId}/rerun: add a run to a resolved task."""

    methods = {"POST": view.ApiMethod("rerunTask", scopes_of_facts=view.RERUN_TASK_SCOPES)}
    action = "rerun"


class CancelTask(TaskActionView):
    """/task/{taskId}/cancel: cancel a task."""

    methods = {"POST": view.ApiMethod("cancelTask", scopes_of_facts=view.CANCEL_TASK_SCOPES)}
    action = "cancel"


class ChangeTaskPriority(view.TaskclusterView):
    """/task/{taskId}/priority: change the priority of a task."""

    methods = {"POST": view.ApiMethod("changeTaskPriority", scopes_of_facts=view.CHANGE_TASK_PRIORITY_SCOPES)}

    def post(self, request: view.TaskclusterRequest) -> HttpResponse:
        require_task_action(request, commands.find_task(request.params["taskId"]))
        task_id, priority = request.params["taskId"], PRIORITIES[request.document["newPriority"]]
        return Json(status_reply(apply_action(PRIORITIZE, task_id, request.caller.client_id, priority=priority)))


class ClaimWork(view.TaskclusterWorkerView):
    """/claim-work/{taskQueueId}: claim tasks, and wait up to 20 s if there are none."""

    methods = {"POST": view.ApiMethod("claimWork", scopes_of_facts=view.CLAIM_WORK_SCOPES)}

    def post(self, request: view.TaskclusterWorkerRequest) -> HttpResponse:
        document, queue = request.document, request.params["taskQueueId"]
        group, name = document["workerGroup"], document["workerId"]
        view.require_facts(request, workerGroup=group, workerId=name)
        claim = commands.begin_claim(queue, group, name, int(document["tasks"]), waiting_client(request))
        render = commands.render_delivered(lambda claimed: Json({"tasks": [claim_reply(each) for each in claimed]}))
        return reply_after(request, claim, render)


class ClaimTask(view.TaskclusterWorkerView):
    """/task/{taskId}/runs/{runId}/claim: claim one run."""

    methods = {"POST": view.ApiMethod("claimTask", scopes_of_facts=view.CLAIM_TASK_SCOPES)}

    def post(self, request: view.TaskclusterWorkerRequest) -> HttpResponse:
        document, task_id = request.document, request.params["taskId"]
        view.require_facts(request, **document, **queue_facts(commands.find_task(task_id).queue))
        return Json(
            claim_reply(commands.claim_one(task_id, run_number(request), document["workerGroup"], document["workerId"]))
        )


class ReclaimTask(view.TaskclusterWorkerView):
    """/task/{taskId}/runs/{runId}/reclaim: extend the lease."""

    methods = {"POST": view.ApiMethod("reclaimTask", scopes="queue:reclaim-task:<taskId>/<runId>")}

    def post(self, request: view.TaskclusterWorkerRequest) -> HttpResponse:
        return Json(reclaim_reply(commands.renew_lease(request.params["taskId"], run_number(request))))


class ReportCompleted(view.TaskclusterWorkerView):
    """/task/{taskId}/runs/{runId}/completed: report success. A body of older workers can report a failure."""

    methods = {"POST": view.ApiMethod("reportCompleted", scopes="queue:resolve-task:<taskId>/<runId>")}

    def post(self, request: view.TaskclusterWorkerRequest) -> HttpResponse:
        return resolve_run(request, COMPLETED if parse_success(request) else FAILED)


class ReportFailed(view.TaskclusterWorkerView):
    """/task/{taskId}/runs/{runId}/failed: report a failure that a new attempt would repeat."""

    methods = {"POST": view.ApiMethod("reportFailed", scopes="queue:resolve-task:<taskId>/<runId>")}

    def post(self, request: view.TaskclusterWorkerRequest) -> HttpResponse:
        return resolve_run(request, FAILED)


class ReportException(view.TaskclusterWorkerView):
    """/task/{taskId}/runs/{runId}/exception: report that the task could not be executed, with a reason."""

    methods = {"POST": view.ApiMethod("reportException", scopes="queue:resolve-task:<taskId>/<runId>")}

    def post(self, request: view.TaskclusterWorkerRequest) -> HttpResponse:
        return resolve_run(request, request.document["reason"])


def resolve_run(request: view.TaskclusterWorkerRequest, reason: str) -> HttpResponse:
    """Resolve a run, and return the status of the task."""
    return Json(status_reply(commands.report_task(request.params["taskId"], run_number(request), reason)))


def run_number(request: view.TaskclusterWorkerRequest) -> int:
    """Return the number of the run in the path."""
    return int(request.params["runId"])


class TaskGroupView(view.TaskclusterView):
    """/task-group/{taskGroupId}: get a group."""

    methods = {"GET": view.ApiMethod("getTaskGroup", scopes="queue:list-task-group:<taskGroupId>")}

    def get(self, request: view.TaskclusterRequest) -> HttpResponse:
        return Json(group_document(find_group(request.params["taskGroupId"])))


class TaskGroupList(view.TaskclusterView):
    """/task-group/{taskGroupId}/list: get a group and a page of its tasks."""

    methods = {"GET": view.ApiMethod("listTaskGroup", scopes="queue:list-task-group:<taskGroupId>")}
    known_options = PAGE_QUERY_OPTIONS

    @read_snapshot()
    def get(self, request: view.TaskclusterRequest) -> HttpResponse:
        group, page = find_group(request.params["taskGroupId"]), parse_page(request.options, str)
        rows = list(group_rows(group.id).starting_after(page.after)[: page.size + 1])
        return Json({**group_document(group), **page.reply("tasks", rows, lambda row: [row.pk], list_entry)})


class SealTaskGroup(view.TaskclusterView):
    """/task-group/{taskGroupId}/seal: seal a group, which then accepts no more tasks."""

    methods = {
        "POST": view.ApiMethod("sealTaskGroup", scopes_of_facts="queue:seal-task-group:<schedulerId>/<taskGroupId>")
    }

    def post(self, request: view.TaskclusterRequest) -> HttpResponse:
        group = find_group(request.params["taskGroupId"])
        request.require(schedulerId=group.scheduler_id)
        return Json(group_document(groups.seal_group(group.id, request.caller.client_id)))


class CancelTaskGroup(view.TaskclusterView):
    """/task-group/{taskGroupId}/cancel: cancel the open tasks of a group."""

    methods = {
        "POST": view.ApiMethod("cancelTaskGroup", scopes_of_facts="queue:cancel-task-group:<schedulerId>/<taskGroupId>")
    }

    def post(self, request: view.TaskclusterRequest) -> HttpResponse:
        group = find_group(request.params["taskGroupId"])
        if group.sealed_at is None:
            raise Conflict(f"Task group {group.id} is not sealed. Seal it before you cancel it.")
        request.require(schedulerId=group.scheduler_id)
        ids = groups.cancel_group(group.id, request.caller.client_id)
        size = StandaloneTaskRow.objects.filter(group_id=group.id).count()
        return Json({"taskGroupId": group.id, "taskGroupSize": size, "cancelledCount": len(ids), "taskIds": ids})


class TaskGroupPriority(view.TaskclusterView):
    """/task-group/{taskGroupId}/priority: change the priority of the unresolved tasks of a group."""

    methods = {
        "POST": view.ApiMethod(
            "changeTaskGroupPriority", scopes_of_facts="queue:change-task-group-priority:<schedulerId>/<taskGroupId>"
        )
    }

    def post(self, request: view.TaskclusterRequest) -> HttpResponse:
        found, new_priority = find_group(request.params["taskGroupId"]), request.document["newPriority"]
        request.require(schedulerId=found.scheduler_id)
        group, ids = groups.prioritize_group(found.id, PRIORITIES[new_priority], request.caller.client_id)
        facts = {"newPriority": new_priority, "tasksAffected": len(ids), "taskIds": ids}
        return Json({"taskGroupId": group.id, "schedulerId": group.scheduler_id, **facts})
