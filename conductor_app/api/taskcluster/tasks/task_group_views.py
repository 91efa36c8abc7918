"""Views of task groups."""

from django.http import HttpResponse

from ....core.errors import Conflict
from ....engine.standalone import group_commands, task_actions
from ....engine.standalone.standalone_rows import find_group
from ....insight.standalone.standalone_queues import group_rows
from ....insight.standalone.task_status import PRIORITIES, group_document
from ....models import StandaloneTask
from ....models.snapshots import read_snapshot
from ..method_scopes import ApiMethod
from ..pagination import PAGE_QUERY_OPTIONS, parse_page
from ..replies import Json
from ..view import TaskclusterRequest, TaskclusterView
from .task_serializers import list_entry


class TaskGroupView(TaskclusterView):
    """/task-group/{taskGroupId}: get a group."""

    methods = {"GET": ApiMethod("getTaskGroup", scopes="queue:list-task-group:<taskGroupId>")}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json(group_document(find_group(request.params["taskGroupId"])))


class TaskGroupList(TaskclusterView):
    """/task-group/{taskGroupId}/list: get a group and a page of its tasks."""

    methods = {"GET": ApiMethod("listTaskGroup", scopes="queue:list-task-group:<taskGroupId>")}
    known_options = PAGE_QUERY_OPTIONS

    @read_snapshot()
    def get(self, request: TaskclusterRequest) -> HttpResponse:
        group, page = find_group(request.params["taskGroupId"]), parse_page(request.options, str)
        rows = list(group_rows(group.id).starting_after(page.after)[: page.size + 1])
        return Json({**group_document(group), **page.reply("tasks", rows, lambda row: [row.pk], list_entry)})


class SealTaskGroup(TaskclusterView):
    """/task-group/{taskGroupId}/seal: seal a group, which then accepts no more tasks."""

    methods = {"POST": ApiMethod("sealTaskGroup", scopes_of_facts="queue:seal-task-group:<schedulerId>/<taskGroupId>")}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        group = find_group(request.params["taskGroupId"])
        request.require(schedulerId=group.scheduler_id)
        return Json(group_document(task_actions.seal_group(group.id, request.caller.client_id)))


class CancelTaskGroup(TaskclusterView):
    """/task-group/{taskGroupId}/cancel: cancel the open tasks of a group."""

    methods = {
        "POST": ApiMethod("cancelTaskGroup", scopes_of_facts="queue:cancel-task-group:<schedulerId>/<taskGroupId>")
    }

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        group = find_group(request.params["taskGroupId"])
        if group.sealed_at is None:
            raise Conflict(f"Task group {group.id} is not sealed. Seal it before you cancel it.")
        request.require(schedulerId=group.scheduler_id)
        ids = group_commands.cancel_group(group.id, request.caller.client_id)
        size = StandaloneTask.objects.filter(group_id=group.id).count()
        return Json({"taskGroupId": group.id, "taskGroupSize": size, "cancelledCount": len(ids), "taskIds": ids})


class TaskGroupPriority(TaskclusterView):
    """/task-group/{taskGroupId}/priority: change the priority of the unresolved tasks of a group."""

    methods = {
        "POST": ApiMethod(
            "changeTaskGroupPriority", scopes_of_facts="queue:change-task-group-priority:<schedulerId>/<taskGroupId>"
        )
    }

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        found, new_priority = find_group(request.params["taskGroupId"]), request.document["newPriority"]
        request.require(schedulerId=found.scheduler_id)
        group, ids = group_commands.prioritize_group(found.id, PRIORITIES[new_priority], request.caller.client_id)
        facts = {"newPriority": new_priority, "tasksAffected": len(ids), "taskIds": ids}
        return Json({"taskGroupId": group.id, "schedulerId": group.scheduler_id, **facts})
