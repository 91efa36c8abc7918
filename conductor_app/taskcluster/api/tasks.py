"""Views of tasks: create, read and control them."""

from collections.abc import Callable, Sequence

from django.http import HttpResponse

from .... import clock
from ....core.errors import NotFound
from ....core.standalone.snapshot import StandaloneTask as OneTask
from ....engine.standalone import task_commands
from ....engine.standalone.task_actions import PRIORITIZE, apply_action
from ....insight.standalone.task_status import NAMES_OF_PRIORITIES, PRIORITIES, queue_facts
from ....models import StandaloneTask
from ....models.snapshots import read_snapshot
from ..method_scopes import (
    CANCEL_TASK_SCOPES,
    CHANGE_TASK_PRIORITY_SCOPES,
    CREATE_TASK_SCOPES,
    RERUN_TASK_SCOPES,
    SCHEDULE_TASK_SCOPES,
    STATUSES_SCOPES,
    TASKS_SCOPES,
    ApiMethod,
)
from ..pagination import PAGE_QUERY_OPTIONS, parse_page
from ..replies import Json
from ..view import TaskclusterRequest, TaskclusterView
from .task_serializers import list_entry, parse_task, queue_name, status_reply, task_document


def _find_task(rows, task_id: str) -> StandaloneTask:
    found = rows.filter(pk=task_id).first()
    if found is None:
        raise NotFound(f"Task {task_id} does not exist.")
    return found


class TaskDocument(TaskclusterView):
    """/task/{taskId}: get the definition of a task."""

    methods = {
        "GET": ApiMethod("task", scopes="queue:get-task:<taskId>"),
        "PUT": ApiMethod("createTask", scopes_of_facts=CREATE_TASK_SCOPES),
    }

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(task_document(_find_task(StandaloneTask.objects, request.params["taskId"])))

    def put(self, request: TaskclusterRequest) -> HttpResponse:
        document = request.document
        priorities = priorities_at_least(PRIORITIES[document["priority"]])
        request.require(**{**document, **queue_facts(queue_name(document)), "priorities": priorities})
        return Json(
            status_reply(task_commands.create_task(parse_task(request.params["taskId"], document, clock.now())))
        )


def priorities_at_least(lowest: int) -> list[str]:
    """Return the names of this priority and all higher ones: the scope for one includes all lower priorities."""
    return [name for number, name in sorted(NAMES_OF_PRIORITIES.items()) if number >= lowest]


class TaskStatusOne(TaskclusterView):
    """/task/{taskId}/status: get the status of a task with its runs."""

    methods = {"GET": ApiMethod("status", scopes="queue:status:<taskId>")}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(status_reply(task_commands.find_task(request.params["taskId"])))


class TaskBatch(TaskclusterView):
    """/tasks: get the definitions of several tasks."""

    methods = {"POST": ApiMethod("tasks", scopes_of_facts=TASKS_SCOPES)}
    known_options = PAGE_QUERY_OPTIONS

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        return _task_list_reply(
            request, "tasks", StandaloneTask.objects.all(), lambda row: {"taskId": row.id, "task": task_document(row)}
        )


class TaskStatusBatch(TaskclusterView):
    """/tasks/status: get the statuses of several tasks."""

    methods = {"POST": ApiMethod("statuses", scopes_of_facts=STATUSES_SCOPES)}
    known_options = PAGE_QUERY_OPTIONS

    @read_snapshot()
    def post(self, request: TaskclusterRequest) -> HttpResponse:
        rows = StandaloneTask.objects.defer_payloads().with_attempts()
        return _task_list_reply(request, "statuses", rows, lambda row: {"taskId": row.id, **status_reply(row)})


def _task_list_reply(request: TaskclusterRequest, name: str, rows, show: Callable) -> HttpResponse:
    page, ids = parse_page(request.options, str), sorted(set(request.document["taskIds"]))
    request.require(ids=ids)
    remaining: Sequence[str] = [id for id in ids if not page.after or id > page.after[0]][: page.size + 1]
    found = {row.pk: row for row in rows.filter(pk__in=[id for id in remaining if "\0" not in id])}
    reply = page.reply(name, remaining, lambda id: [id], lambda id: show(found[id]) if id in found else None)
    return Json({**reply, name: [each for each in reply[name] if each is not None]})


class DependentTasks(TaskclusterView):
    """/task/{taskId}/dependents: list the tasks that depend on a task."""

    methods = {"GET": ApiMethod("listDependentTasks", scopes="queue:list-dependent-tasks:<taskId>")}
    known_options = PAGE_QUERY_OPTIONS

    @read_snapshot()
    def get(self, request: TaskclusterRequest) -> HttpResponse:
        task_id, page = request.params["taskId"], parse_page(request.options, str)
        _find_task(StandaloneTask.objects.only("pk"), task_id)
        rows = StandaloneTask.objects.with_attempts().starting_after(page.after).waiting_for(task_id)[: page.size + 1]
        reply = page.reply("tasks", list(rows), lambda row: [row.pk], list_entry)
        return Json({"taskId": task_id, **reply})


class TaskActionView(TaskclusterView):
    """Base class of methods that control one task: load it, authorize the caller, run the command."""

    action: str

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        require_task_action(request, task_commands.find_task(request.params["taskId"]))
        return Json(status_reply(apply_action(self.action, request.params["taskId"], request.caller.client_id)))


def require_task_action(request: TaskclusterRequest, standalone: OneTask) -> None:
    """Raise Forbidden unless the caller may steer this task."""
    request.require(
        schedulerId=standalone.scheduler_id,
        taskGroupId=standalone.group_id,
        projectId=standalone.project_id,
        taskQueueId=standalone.queue,
    )


class ScheduleTask(TaskActionView):
    """/task/{taskId}/schedule: make a task pending regardless of its dependencies."""

    methods = {"POST": ApiMethod("scheduleTask", scopes_of_facts=SCHEDULE_TASK_SCOPES)}
    action = "schedule"


class RerunTask(TaskActionView):
    """/task/{taskId}/rerun: add a run to a resolved task."""

    methods = {"POST": ApiMethod("rerunTask", scopes_of_facts=RERUN_TASK_SCOPES)}
    action = "rerun"


class CancelTask(TaskActionView):
    """/task/{taskId}/cancel: cancel a task."""

    methods = {"POST": ApiMethod("cancelTask", scopes_of_facts=CANCEL_TASK_SCOPES)}
    action = "cancel"


class ChangeTaskPriority(TaskclusterView):
    """/task/{taskId}/priority: change the priority of a task."""

    methods = {"POST": ApiMethod("changeTaskPriority", scopes_of_facts=CHANGE_TASK_PRIORITY_SCOPES)}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        require_task_action(request, task_commands.find_task(request.params["taskId"]))
        task_id, priority = request.params["taskId"], PRIORITIES[request.document["newPriority"]]
        return Json(status_reply(apply_action(PRIORITIZE, task_id, request.caller.client_id, priority=priority)))
