"""Views of human tasks and of form templates, with the same rules as the pages."""

from typing import Any

from django.contrib.auth.models import Group
from django.http import HttpResponse

from ..access.authentication import Actor, Target
from ..access.permissions import DELETE, FORM_TEMPLATE, READ
from ..access.quotas import SEARCHES
from ..access.visibility import visible
from ..core.document.fields import read_mapping, texts
from ..core.errors import Conflict, Invalid, NotFound
from ..core.step_types.waiting import Human
from ..runs.documents.tasks import wire_task
from ..runs.models import Attempt
from ..utils import clock
from ..web.api import permissions as targets
from ..web.api import requests as request_body
from ..web.api.documents import TASK
from ..web.api.operations import CLAIM_QUERY, COMPLETE_QUERY, REASON_QUERY, ApiOperation, ArrayOf, EmptyOk, Json
from ..web.api.permissions import (
    ADMINISTRATORS_ONLY,
    ALLOW_ALL,
    RequiresAccess,
    RequiresDefinitionAccess,
    requires,
    tasks_by_reference,
)
from ..web.api.requests import errors_under, parse_integer
from ..web.api.view import ConductorRequest, ConductorView
from . import commands, serializers
from . import form_templates as human_tasks_form_templates
from .form_templates import find_template, template_of
from .models import FormTemplate, HumanTask
from .queries import (
    OPEN_STATES,
    HumanTaskEntry,
    HumanTaskFilter,
    InboxFilter,
    display_names,
    human_task_entry,
    search_human_tasks,
)
from .serializers import (
    ASSIGNMENT,
    INBOX,
    form_template_document,
    human_task_document,
    parse_assignments,
    parse_search,
    search_result_document,
)
from .serializers import SEARCH as HUMAN_SEARCH
from .waiting_queries import COMPLETION_RIGHTS, VIEW_RIGHTS, visible_human_tasks


def task_in_query(request: ConductorRequest, url_kwargs: dict[str, str]) -> list[Target]:
    """Return the tasks with the reference and the run that the query names."""
    names = {"run": request.query.text("workflowId"), "ref": request.query.text("taskRefName")}
    return list(tasks_by_reference("run")(request, names))


can_view_human_task, can_complete_human_task = (
    RequiresAccess((*VIEW_RIGHTS, *COMPLETION_RIGHTS), targets.attempt_in_address("task_id")),
    RequiresAccess(COMPLETION_RIGHTS, targets.attempt_in_address("task_id")),
)
can_save_template = RequiresDefinitionAccess(FORM_TEMPLATE, targets.definitions_in_body(FORM_TEMPLATE))
can_complete_human_task_in_query = RequiresAccess(COMPLETION_RIGHTS, task_in_query)
can_view_human_task_by_name = RequiresAccess((*VIEW_RIGHTS, *COMPLETION_RIGHTS), targets.attempt_in_address("name"))
can_delete_template = requires(DELETE, FORM_TEMPLATE, targets.named_in_address(FORM_TEMPLATE, "name"))
can_view_template = requires(READ, FORM_TEMPLATE, targets.named_in_address(FORM_TEMPLATE, "name"))


def inbox_of(actor: Actor) -> InboxFilter:
    """Return whose inbox it is: the caller's, with the groups that the caller is in."""
    groups = Group.objects.filter(user__pk=actor.user_id) if actor.user_id is not None else Group.objects.none()
    return InboxFilter(actor.name, frozenset(groups.values_list("name", flat=True)))


def find_human_task(task_id: str) -> Attempt:
    """Return the attempt at a HUMAN task, with its task and run."""
    rows = Attempt.objects.of_runs().filter(pk=task_id, task__type=Human.type).select_related("task", "run")
    attempt = rows.defer("task__step_state", "run__input", "run__output", "run__variables").first()
    if attempt is None:
        raise NotFound(f"Human task not found for taskId: {task_id}")
    return attempt


def load_entry(attempt: Attempt) -> tuple[HumanTaskEntry, Any]:
    """Return the entry of an attempt, and its input."""
    input = commands.load_input(attempt)
    return human_task_entry(attempt, input, HumanTask.objects.filter(pk=attempt.task_id).first(), clock.now()), input


def find_open_human_task(task_id: str) -> Attempt:
    """Return the attempt at a HUMAN task that waits for a user.

    Raises:
        NotFound: when there is none with this id
        Conflict: when it has ended.
    """
    attempt = find_human_task(task_id)
    found, _ = load_entry(attempt)
    if found.state not in OPEN_STATES:
        raise Conflict(f"The human task {task_id} is {found.state} and can no longer be answered.")
    return attempt


def entry_response(task_id: str, with_template: bool) -> HttpResponse:
    attempt = find_human_task(task_id)
    found, input = load_entry(attempt)
    template = template_of(input) if with_template else None
    return Json(human_task_document(found, input, commands.load_output(attempt), template))


class HumanTaskSearch(ConductorView):
    """POST /api/human/tasks/search: search the tasks that the caller may see, newest first."""

    @ApiOperation("Search human tasks", ALLOW_ALL, reply=serializers.HUMAN_TASK_PAGE, body=HUMAN_SEARCH, rate=SEARCHES)
    def post(self, request: ConductorRequest) -> HttpResponse:
        filters, start, size = parse_search(request_body.read_object(request), inbox_of(request.actor))
        found = search_human_tasks(visible_human_tasks(Attempt.objects.of_runs()), filters, start, size, clock.now())
        return Json(search_result_document(found, [_search_result(each) for each in found.entries], start))


def _search_result(found: HumanTaskEntry) -> dict[str, Any]:
    attempt = found.task_view.attempt
    return human_task_document(found, commands.load_input(attempt), commands.load_output(attempt))


class HumanTaskDisplayNames(ConductorView):
    """GET /api/human/tasks/getTaskDisplayNames: list the display names of open tasks, for a filter."""

    @ApiOperation("List the display names of open human tasks", ALLOW_ALL, reply=texts, query={"searchType": str})
    def get(self, request: ConductorRequest) -> HttpResponse:
        inbox = inbox_of(request.actor) if request.query.text("searchType") == INBOX else None
        rows = visible_human_tasks(Attempt.objects.of_runs())
        return Json(display_names(rows, HumanTaskFilter(inbox=inbox), clock.now()))


class HumanTaskOne(ConductorView):
    """GET /api/human/tasks/{taskId}: get a task, with its form template if `withTemplate` is true."""

    @ApiOperation("Get a human task", can_view_human_task, reply=serializers.HUMAN_TASK, query={"withTemplate": bool})
    def get(self, request: ConductorRequest, task_id: str) -> HttpResponse:
        return entry_response(task_id, request.query.flag("withTemplate", default=False))


class HumanTaskAsTask(ConductorView):
    """GET /api/human/tasks/{taskId}/conductorTask: get a human task as a task of its workflow."""

    @ApiOperation("Get a human task as a task of its workflow", can_view_human_task, reply=TASK)
    def get(self, request: ConductorRequest, task_id: str) -> HttpResponse:
        return Json(wire_task(find_human_task(task_id)))


class HumanTaskClaim(ConductorView):
    """POST /api/human/tasks/{taskId}/claim: claim a task for the caller."""

    @ApiOperation("Claim a human task", can_complete_human_task, reply=serializers.HUMAN_TASK, query=CLAIM_QUERY)
    def post(self, request: ConductorRequest, task_id: str) -> HttpResponse:
        overrides = request.query.flag("overrideAssignment", default=False)
        inbox = inbox_of(request.actor)
        commands.claim_task(
            find_open_human_task(task_id).task_id, request.actor.name, groups=inbox.groups, overrides=overrides
        )
        return entry_response(task_id, request.query.flag("withTemplate", default=False))


class HumanTaskExternalClaim(ConductorView):
    """POST /api/human/tasks/{taskId}/externalUser/{userId}: claim a task for a user of the caller's own system."""

    @ApiOperation(
        "Claim a human task for an external user",
        can_complete_human_task,
        reply=serializers.HUMAN_TASK,
        query=CLAIM_QUERY,
    )
    def post(self, request: ConductorRequest, task_id: str, user_id: str) -> HttpResponse:
        if not user_id.strip() or len(user_id) > 255:
            raise Invalid("The id of an external user must have 1 to 255 characters.")
        overrides = request.query.flag("overrideAssignment", default=False)
        task = find_open_human_task(task_id).task_id
        commands.claim_task(task, request.actor.name, external_user=user_id, overrides=overrides)
        return entry_response(task_id, request.query.flag("withTemplate", default=False))


class HumanTaskRelease(ConductorView):
    """POST /api/human/tasks/{taskId}/release: release a claimed task, so that its assignees can claim it."""

    @ApiOperation("Release a claimed human task", can_complete_human_task)
    def post(self, request: ConductorRequest, task_id: str) -> None:
        commands.release_task(find_open_human_task(task_id).task_id, request.actor.name)


class HumanTaskReassign(ConductorView):
    """POST /api/human/tasks/{taskId}/reassign: replace the assignments and release the task."""

    @ApiOperation("Reassign a human task", can_complete_human_task, body=ArrayOf(ASSIGNMENT))
    def post(self, request: ConductorRequest, task_id: str) -> None:
        assignees = parse_assignments(request_body.read_objects(request))
        commands.reassign_task(find_open_human_task(task_id).task_id, assignees, request.actor.name)


class HumanTaskSkip(ConductorView):
    """POST /api/human/tasks/{taskId}/skip: skip to the next assignment."""

    @ApiOperation("Skip an assignment of a human task", can_complete_human_task, query=REASON_QUERY)
    def post(self, request: ConductorRequest, task_id: str) -> None:
        commands.skip_assignment(
            find_open_human_task(task_id).task_id, request.actor.name, request.query.text("reason")[:500]
        )


class HumanTaskUpdate(ConductorView):
    """POST /api/human/tasks/{taskId}/update: save an output, and complete the task where `complete` is true."""

    @ApiOperation(
        "Save the output of a human task, or complete it",
        can_complete_human_task,
        body=read_mapping,
        query=COMPLETE_QUERY,
    )
    def post(self, request: ConductorRequest, task_id: str) -> HttpResponse:
        return update_output(request, find_open_human_task(task_id))


class HumanTaskUpdateByReference(ConductorView):
    """POST /api/human/tasks/update/taskRef: save the output of an open task, or complete it, by its reference."""

    @ApiOperation(
        "Save the output of a human task by its reference, or complete it",
        can_complete_human_task_in_query,
        body=read_mapping,
        query=COMPLETE_QUERY | {"workflowId!": str, "taskRefName!": str, "iteration": int},
    )
    def post(self, request: ConductorRequest) -> HttpResponse:
        run_id, ref = request.query.required("workflowId"), request.query.required("taskRefName")
        iteration = request.query.integer("iteration", 0)
        task = commands.find_open_task_by_ref(run_id, f"{ref}__{iteration}" if iteration else ref)
        return update_output(request, find_open_human_task(task.attempt_id))


def update_output(request: ConductorRequest, attempt: Attempt) -> HttpResponse:
    """Merge the body into the output of an attempt, and complete it if requested."""
    output = request_body.read_object(request) if request_body.read_bytes(request) else {}
    by = request.actor.name
    if request.query.flag("complete", default=False):
        commands.resolve_task(attempt.run_id or "", attempt.pk, "COMPLETED", by, output, merges=True, for_external=True)
    else:
        commands.save_output(attempt.run_id or "", attempt.pk, output, by, for_external=True)
    return EmptyOk()


class HumanTaskRecords(ConductorView):
    """DELETE /api/human/tasks/delete: delete the records of tasks whose workflow was deleted."""

    @ApiOperation("Delete records of human tasks whose workflow is gone", ADMINISTRATORS_ONLY, body=texts)
    def delete(self, request: ConductorRequest) -> HttpResponse:
        return nothing_to_delete(request_body.read_texts(request))


class HumanTaskRecord(ConductorView):
    """DELETE /api/human/tasks/delete/{taskId}: delete the record of one task whose workflow was deleted."""

    @ApiOperation("Delete the record of a human task whose workflow is gone", ADMINISTRATORS_ONLY)
    def delete(self, request: ConductorRequest, task_id: str) -> HttpResponse:
        return nothing_to_delete([task_id])


def nothing_to_delete(ids: list[str]) -> HttpResponse:
    """Return an empty response: a task is deleted with its workflow.

    Raises:
        Conflict: when a task exists
        Invalid: when there are too many ids.
    """
    if len(ids) > 1_000:
        raise Invalid("A request may name at most 1,000 tasks.")
    found = Attempt.objects.filter(pk__in=ids).values_list("pk", "run_id").first()
    if found is not None:
        raise Conflict(f"The task {found[0]} belongs to the workflow {found[1]} and is deleted together with it.")
    return EmptyOk()


MAX_TEMPLATES = 1_000


class FormTemplates(ConductorView):
    """GET, POST /api/human/template: list all templates, those with a name, or one version; save a template."""

    @ApiOperation(
        "List user form templates",
        ALLOW_ALL,
        reply=ArrayOf(serializers.FORM_TEMPLATE),
        query={"name": str, "version": int},
    )
    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = visible(FormTemplate.objects.order_by("name", "version"))
        if name := request.query.text("name"):
            rows = rows.filter(name=name)
        if version := request.query.integer("version", 0):
            rows = rows.filter(version=version)
        return Json([form_template_document(row) for row in rows[:MAX_TEMPLATES]])

    @ApiOperation(
        "Create or update a user form template",
        can_save_template,
        reply=serializers.FORM_TEMPLATE,
        body=serializers.FORM_TEMPLATE,
        query={"newVersion": bool},
    )
    def post(self, request: ConductorRequest) -> HttpResponse:
        document = request_body.read_object(request)
        with errors_under("saveTemplate.template"):
            saved = human_tasks_form_templates.save_templates(
                [document], request.actor.name, new_version=wants_new_version(request)
            )
        return Json(form_template_document(saved[0]))


class FormTemplatesBulk(ConductorView):
    """POST /api/human/template/bulk: save several templates, or none if one of them is invalid."""

    @ApiOperation(
        "Create or update several user form templates",
        can_save_template,
        reply=ArrayOf(serializers.FORM_TEMPLATE),
        body=ArrayOf(serializers.FORM_TEMPLATE),
        query={"newVersion": bool},
    )
    def post(self, request: ConductorRequest) -> HttpResponse:
        documents = request_body.read_objects(request)
        with errors_under("saveTemplates.templates"):
            saved = human_tasks_form_templates.save_templates(
                documents, request.actor.name, new_version=wants_new_version(request)
            )
        return Json([form_template_document(row) for row in saved])


class FormTemplateNamed(ConductorView):
    """GET /api/human/template/{humanTaskId}: get the template of a task. DELETE …/{name}: delete all its versions."""

    @ApiOperation(
        "Get the user form template of a human task", can_view_human_task_by_name, reply=serializers.FORM_TEMPLATE
    )
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        row = template_of(commands.load_input(find_human_task(name)))
        if row is None:
            raise NotFound(f"The human task {name} names no stored form template.")
        return Json(form_template_document(row))

    @ApiOperation("Delete all versions of a user form template", can_delete_template)
    def delete(self, request: ConductorRequest, name: str) -> None:
        human_tasks_form_templates.delete_template(name, None, request.actor.name)


class FormTemplateOne(ConductorView):
    """GET, DELETE /api/human/template/{name}/{version}: get or delete one version; 0 is the newest."""

    @ApiOperation("Get a version of a user form template", can_view_template, reply=serializers.FORM_TEMPLATE)
    def get(self, request: ConductorRequest, name: str, version: str) -> HttpResponse:
        return Json(form_template_document(find_template(name, parse_integer(version, "version"))))

    @ApiOperation("Delete a version of a user form template", can_delete_template)
    def delete(self, request: ConductorRequest, name: str, version: str) -> None:
        human_tasks_form_templates.delete_template(name, parse_integer(version, "version"), request.actor.name)


def wants_new_version(request: ConductorRequest) -> bool:
    """Return True if the request saves a new version instead of overwriting the newest."""
    return request.query.flag("newVersion", default=False)
