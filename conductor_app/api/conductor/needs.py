"""What each operation of the API needs: a table, asked once for a request, before its handler runs.

What is not in the table is for administrators alone.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ...access.actors import Actor
from ...access.permissions import Thing, may, missing, require
from ...access.rights import (
    APPLICATION,
    CREATE,
    DELETE,
    DOMAIN,
    EXECUTE,
    READ,
    SCHEDULE,
    SCHEMA,
    SECRET,
    TASK_DEF,
    UPDATE,
    USER,
    VARIABLE,
    WORKFLOW,
    WORKFLOW_DEF,
    Right,
)
from ...core.errors import Forbidden
from . import body, things

Finder = Callable[[Any, dict[str, str]], Iterable[Thing]]


@dataclass(frozen=True, slots=True)
class Needs:
    """One of these rights, on each thing that the request is about.

    `of`: finds the things; it is not called for an actor that has the right over all of them.
    """

    ways: tuple[Right, ...]
    of: Finder

    def ask(self, request: Any, named: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not."""
        # Not everything is in a domain: a right over all domains is none over all things.
        if not request.actor.powers.over_all(*(way for way in self.ways if way[1] != DOMAIN)):
            require(request.actor, self.ways, self.of(request, named))


@dataclass(frozen=True, slots=True)
class Defines:
    """CREATE for what is new, UPDATE for what is there; what is new becomes its maker's."""

    target: str
    of: Finder

    def ask(self, request: Any, named: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not; note what will be new."""
        powers = request.actor.powers
        if powers.is_admin and request.actor.user_id is None:
            return
        new, old = things.new_and_old(self.target, list(self.of(request, named)))
        if not powers.over_all((CREATE, self.target)):
            require(request.actor, [(CREATE, self.target)], new)
        if not powers.over_all((UPDATE, self.target)):
            require(request.actor, [(UPDATE, self.target)], old)
        request.makes = [(self.target, thing[self.target]) for thing in new]


class Polls:
    """EXECUTE on the task type; in a domain, on the domain as well does."""

    def ask(self, request: Any, named: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not."""
        powers = request.actor.powers
        if not powers.over_all((EXECUTE, TASK_DEF)):
            found = things.queue(request, named)
            require(request.actor, WORKS if DOMAIN in found else WORKS[:1], [found])


class UsesFiles:
    """What steers or sees the run; or EXECUTE on the type of one of its open tasks, whose worker brings or fetches."""

    def __init__(self, ways: tuple[Right, ...]) -> None:
        self.ways = ways

    def ask(self, request: Any, named: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not; a run that does not exist is left to the handler."""
        actor = request.actor
        if actor.powers.over_all(*self.ways, WORKS[0]):
            return
        id = named.get("workflow") or str(body.document(request).get("workflowId") or "")
        for thing in things.run("workflow")(request, {"workflow": id}):
            if not may(actor, self.ways, thing) and not any(may(actor, WORKS, task) for task in things.open_tasks(id)):
                raise missing(actor, self.ways, thing)


class Starts:
    """EXECUTE on the definition; who brings a definition of its own must be allowed to write it, too."""

    def ask(self, request: Any, named: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not."""
        if request.actor.powers.is_admin:
            return
        _require_start(request.actor, *things.started(request, named))


def _require_start(actor: Actor, started: Iterable[Thing], written: Iterable[Thing]) -> None:
    require(actor, [(EXECUTE, WORKFLOW_DEF)], started)
    require(actor, [(CREATE, WORKFLOW_DEF), (UPDATE, WORKFLOW_DEF)], written)


class KeepsSchedule:
    """To write the schedule, and to start what it starts: it does so for whoever wrote it."""

    def ask(self, request: Any, named: dict[str, str]) -> None:
        """Raise Forbidden where the actor may not."""
        writes_schedule.ask(request, named)
        document = body.document(request).get("startWorkflowRequest")
        if not request.actor.powers.is_admin:
            _require_start(request.actor, *things.started_by(document if isinstance(document, dict) else {}))


class Anybody:
    """Whoever is let in: nothing that belongs to somebody is shown, or the handler shows what may be read."""

    def ask(self, request: Any, named: dict[str, str]) -> None:
        """Nothing to ask."""


class Nobody:
    """Administrators alone."""

    def ask(self, request: Any, named: dict[str, str]) -> None:
        if not request.actor.powers.is_admin:
            raise Forbidden(f"{request.actor.name} lacks the role ADMIN.", code="FORBIDDEN")


ANYBODY, ADMINISTRATORS = Anybody(), Nobody()
Need = Needs | Defines | Polls | Starts | UsesFiles | KeepsSchedule | Anybody | Nobody


def on(access: str, target: str, of: Finder) -> Needs:
    """One access to things of one type."""
    return Needs(((access, target),), of)


writes_schedule = Defines(SCHEDULE, things.written(SCHEDULE))
sees_schedule, holds_schedule, runs_schedule, holds_schedules = (
    on(READ, SCHEDULE, things.named(SCHEDULE, "name")),
    on(UPDATE, SCHEDULE, things.named(SCHEDULE, "name")),
    on(EXECUTE, SCHEDULE, things.named(SCHEDULE, "name")),
    on(UPDATE, SCHEDULE, things.listed(SCHEDULE)),
)

SEES_RUN = ((READ, WORKFLOW_DEF), (READ, WORKFLOW))
STEERS_RUN = ((EXECUTE, WORKFLOW_DEF), (UPDATE, WORKFLOW), (EXECUTE, WORKFLOW))
WORKS = ((EXECUTE, TASK_DEF), (EXECUTE, DOMAIN))
SEES_TASK = (*SEES_RUN, *WORKS)
ANSWERS_TASK = (*WORKS, *STEERS_RUN)

sees_run, steers_run = Needs(SEES_RUN, things.run("workflow")), Needs(STEERS_RUN, things.run("workflow"))
steers_runs, removes_runs = Needs(STEERS_RUN, things.listed_runs), on(DELETE, WORKFLOW, things.listed_runs)
sees_runs_of = on(READ, WORKFLOW_DEF, things.named(WORKFLOW_DEF, "workflow"))
sees_workflow = on(READ, WORKFLOW_DEF, things.named(WORKFLOW_DEF, "name"))
changes_workflow = on(UPDATE, WORKFLOW_DEF, things.named(WORKFLOW_DEF, "name"))
changes_task = on(UPDATE, TASK_DEF, things.named(TASK_DEF, "name"))
sees_application = on(READ, APPLICATION, things.named(APPLICATION, "id"))
changes_application = on(UPDATE, APPLICATION, things.named(APPLICATION, "id"))
sees_people = on(READ, USER, things.nothing)
starts_named = on(EXECUTE, WORKFLOW_DEF, things.named(WORKFLOW_DEF, "name"))
signals = Needs(STEERS_RUN, things.run("workflow_id"))
sees_queue = on(READ, TASK_DEF, things.asked(TASK_DEF, "taskType"))
polls, starts = Polls(), Starts()
brings_files, sees_files = UsesFiles(STEERS_RUN), UsesFiles(SEES_RUN)

NEEDS: dict[str, Need] = {
    "BatchPoll.get": polls,
    "Poll.get": polls,
    # The engine asks whether the task of the report may be reported on: it has the task at hand.
    "TaskUpdates.post": ANYBODY,
    "TaskUpdatesWithNext.post": ANYBODY,
    "TaskOne.get": Needs(SEES_TASK, things.attempt("task_id")),
    "TaskByReference.post": Needs(ANSWERS_TASK, things.task_of_run("workflow_id")),
    "TaskByReferenceAndWorkflow.post": Needs(ANSWERS_TASK, things.task_of_run("workflow_id")),
    "TaskLogs.get": Needs(SEES_TASK, things.attempt("task_id")),
    "TaskLogs.post": Needs(ANSWERS_TASK, things.attempt("task_id", must_exist=True)),
    "QueueSizes.get": sees_queue,
    "QueueSize.get": sees_queue,
    "AllQueues.get": ANYBODY,
    "AllQueuesInDetail.get": ANYBODY,
    "PollData.get": sees_queue,
    "AllPollData.get": ANYBODY,
    "Workflows.post": starts,
    "WorkflowOne.post": on(EXECUTE, WORKFLOW_DEF, things.named(WORKFLOW_DEF, "workflow")),
    "StartVersion.post": starts,
    "WorkflowTest.post": starts,
    "Execution.post": starts,
    "ExecutionByName.post": starts_named,
    "ExecutionByName.get": starts_named,
    "Signal.post": signals,
    "SignalAndWait.post": signals,
    "WorkflowOne.get": sees_run,
    "WorkflowOne.delete": steers_run,
    "WorkflowStatus.get": sees_run,
    "WorkflowTasks.get": sees_run,
    "WorkflowLabels.get": sees_run,
    "Correlated.get": sees_runs_of,
    "CorrelatedMany.post": sees_runs_of,
    "CorrelatedMany.get": sees_runs_of,
    "CorrelatedBatch.post": on(READ, WORKFLOW_DEF, things.correlated),
    "Running.get": sees_runs_of,
    # Searches find what may be read.
    "WorkflowSearch.get": ANYBODY,
    "WorkflowSearchV2.get": ANYBODY,
    "WorkflowSearchByTasks.get": ANYBODY,
    "WorkflowSearchByTasksV2.get": ANYBODY,
    "TaskSearch.get": ANYBODY,
    "TaskSearchV2.get": ANYBODY,
    "Decide.put": steers_run,
    "Pause.put": steers_run,
    "Resume.put": steers_run,
    "Rerun.post": steers_run,
    "Restart.post": steers_run,
    "Retry.post": steers_run,
    "Skip.put": steers_run,
    "Jump.post": steers_run,
    "Upgrade.post": steers_run,
    "Variables.post": steers_run,
    "WorkflowLabels.put": steers_run,
    "WorkflowLabels.delete": steers_run,
    "WorkflowMessages.post": steers_run,
    "State.post": steers_run,
    "ResetCallbacks.post": steers_run,
    "Remove.delete": on(DELETE, WORKFLOW, things.run("workflow")),
    "TerminateRemove.delete": on(DELETE, WORKFLOW, things.run("workflow")),
    "BulkPause.put": steers_runs,
    "BulkResume.put": steers_runs,
    "BulkRetry.post": steers_runs,
    "BulkRestart.post": steers_runs,
    "BulkTerminate.post": steers_runs,
    "BulkRemove.delete": removes_runs,
    "BulkDelete.post": removes_runs,
    "BulkTerminateRemove.delete": removes_runs,
    "BulkSearch.post": Needs(SEES_RUN, things.listed_runs),
    "Requeue.post": on(EXECUTE, TASK_DEF, things.named(TASK_DEF, "task_type")),
    "RequeueWorkflow.post": steers_run,
    "VerifyAndRepair.post": steers_run,
    "OpenTasks.get": ADMINISTRATORS,
    "AdminQueues.get": ADMINISTRATORS,
    "EventQueueSizes.get": ANYBODY,
    "EventQueues.get": ANYBODY,
    "EventForTask.post": Needs(ANSWERS_TASK, things.attempt("task_id")),
    "EventForReference.post": Needs(ANSWERS_TASK, things.task_of_run("workflow")),
    "WorkflowDefinitions.get": ANYBODY,
    "WorkflowDefinitions.post": Defines(WORKFLOW_DEF, things.written(WORKFLOW_DEF)),
    "WorkflowDefinitions.put": Defines(WORKFLOW_DEF, things.written(WORKFLOW_DEF)),
    "WorkflowDefinitionCheck.post": ANYBODY,
    "WorkflowDefinitionOne.get": sees_workflow,
    "WorkflowDefinitionVersion.delete": on(DELETE, WORKFLOW_DEF, things.named(WORKFLOW_DEF, "name")),
    "LatestVersions.get": ANYBODY,
    "WorkflowNames.get": ANYBODY,
    "NamesAndVersions.get": ANYBODY,
    "Versions.get": sees_workflow,
    "TaskDefinitions.get": ANYBODY,
    "TaskDefinitions.post": Defines(TASK_DEF, things.written(TASK_DEF)),
    "TaskDefinitions.put": Defines(TASK_DEF, things.written(TASK_DEF)),
    "TaskDefinitionOne.get": on(READ, TASK_DEF, things.named(TASK_DEF, "name")),
    "TaskDefinitionOne.delete": on(DELETE, TASK_DEF, things.named(TASK_DEF, "name")),
    "WorkflowTags.get": sees_workflow,
    "WorkflowTags.post": changes_workflow,
    "WorkflowTags.put": changes_workflow,
    "WorkflowTags.delete": changes_workflow,
    "WorkflowRateLimit.get": sees_workflow,
    "WorkflowRateLimit.put": changes_workflow,
    "WorkflowRateLimit.delete": changes_workflow,
    "TaskTags.get": on(READ, TASK_DEF, things.named(TASK_DEF, "name")),
    "TaskTags.post": changes_task,
    "TaskTags.put": changes_task,
    "TaskTags.delete": changes_task,
    "AllTags.get": ANYBODY,
    "TokenUser.get": ANYBODY,
    "Applications.get": ANYBODY,
    "Applications.post": on(CREATE, APPLICATION, things.nothing),
    "ApplicationOne.get": sees_application,
    "ApplicationOne.put": changes_application,
    "ApplicationOne.delete": on(DELETE, APPLICATION, things.named(APPLICATION, "id")),
    "ApplicationOfKey.get": on(READ, APPLICATION, things.of_key),
    "AccessKeys.get": sees_application,
    "AccessKeys.post": changes_application,
    "AccessKeyOne.delete": changes_application,
    "AccessKeyStatus.post": changes_application,
    "ApplicationRole.post": ADMINISTRATORS,
    "ApplicationRole.delete": ADMINISTRATORS,
    "ApplicationTags.get": sees_application,
    "ApplicationTags.put": changes_application,
    "ApplicationTags.delete": changes_application,
    "Users.get": sees_people,
    "UserOne.get": sees_people,
    "UserOne.put": ADMINISTRATORS,
    "UserOne.delete": ADMINISTRATORS,
    "UserPermissions.get": sees_people,
    "PermissionCheck.get": sees_people,
    "Groups.get": sees_people,
    "GroupOne.get": sees_people,
    "GroupOne.put": ADMINISTRATORS,
    "GroupOne.delete": ADMINISTRATORS,
    "GroupPermissions.get": sees_people,
    "GroupUsers.get": sees_people,
    "GroupUsers.post": ADMINISTRATORS,
    "GroupUsers.delete": ADMINISTRATORS,
    "GroupUser.post": ADMINISTRATORS,
    "GroupUser.delete": ADMINISTRATORS,
    "Authorizations.post": ADMINISTRATORS,
    "Authorizations.delete": ADMINISTRATORS,
    "TargetPermissions.get": sees_people,
    "Roles.get": ANYBODY,
    "Roles.post": ADMINISTRATORS,
    "SystemRoles.get": ANYBODY,
    "CustomRoles.get": ANYBODY,
    "AvailablePermissions.get": ANYBODY,
    "RoleOne.get": ANYBODY,
    "RoleOne.put": ADMINISTRATORS,
    "RoleOne.delete": ADMINISTRATORS,
    "Schedules.get": ANYBODY,
    "Schedules.post": KeepsSchedule(),
    "ScheduleSearch.get": ANYBODY,
    "SchedulesByTag.get": ANYBODY,
    "ScheduleOne.get": sees_schedule,
    "ScheduleOne.delete": on(DELETE, SCHEDULE, things.named(SCHEDULE, "name")),
    "SchedulePause.get": holds_schedule,
    "SchedulePause.put": holds_schedule,
    "ScheduleResume.get": holds_schedule,
    "ScheduleResume.put": holds_schedule,
    "ScheduleRun.post": runs_schedule,
    "ScheduleBackfill.post": runs_schedule,
    "ScheduleTags.get": sees_schedule,
    "ScheduleTags.put": holds_schedule,
    "ScheduleTags.delete": holds_schedule,
    "SchedulesPause.put": holds_schedules,
    "SchedulesResume.put": holds_schedules,
    "NextFewSchedules.get": ANYBODY,
    "SchedulerPause.get": ADMINISTRATORS,
    "SchedulerPause.post": ADMINISTRATORS,
    "SchedulerResume.get": ADMINISTRATORS,
    "SchedulerResume.post": ADMINISTRATORS,
    "SchedulerRequeue.get": ADMINISTRATORS,
    "ExecutionSearch.get": ANYBODY,
    "Secrets.get": ANYBODY,
    "Secrets.post": ANYBODY,
    "SecretsInDetail.get": ANYBODY,
    "SecretsWithTags.get": ANYBODY,
    "SecretCaches.get": ANYBODY,
    "SecretOne.get": on(READ, SECRET, things.named(SECRET, "key")),
    "SecretOne.put": Defines(SECRET, things.named(SECRET, "key")),
    "SecretOne.delete": on(DELETE, SECRET, things.named(SECRET, "key")),
    "SecretExists.get": on(READ, SECRET, things.named(SECRET, "key")),
    "SecretTags.get": on(READ, SECRET, things.named(SECRET, "key")),
    "SecretTags.put": on(UPDATE, SECRET, things.named(SECRET, "key")),
    "SecretTags.delete": on(UPDATE, SECRET, things.named(SECRET, "key")),
    "Files.post": brings_files,
    "FileOne.get": sees_files,
    "FileUploadAddress.get": brings_files,
    "FileDownloadAddress.get": sees_files,
    "FileContent.put": brings_files,
    "FileContent.get": sees_files,
    "FileUploadComplete.post": brings_files,
    "FileParts.post": brings_files,
    "FilePart.get": brings_files,
    "FilePartsComplete.post": brings_files,
    "FilePartsOne.delete": brings_files,
    "EnvironmentVariables.get": ANYBODY,
    "EnvironmentVariable.get": on(READ, VARIABLE, things.named(VARIABLE, "key")),
    "EnvironmentVariable.put": Defines(VARIABLE, things.named(VARIABLE, "key")),
    "EnvironmentVariable.delete": on(DELETE, VARIABLE, things.named(VARIABLE, "key")),
    "EnvironmentTags.get": on(READ, VARIABLE, things.named(VARIABLE, "key")),
    "EnvironmentTags.put": on(UPDATE, VARIABLE, things.named(VARIABLE, "key")),
    "EnvironmentTags.delete": on(UPDATE, VARIABLE, things.named(VARIABLE, "key")),
    # What handlers and webhooks do, they do in the engine's name.
    "EventHandlers.get": ADMINISTRATORS,
    "EventHandlers.post": ADMINISTRATORS,
    "EventHandlers.put": ADMINISTRATORS,
    "EventHandlerOne.get": ADMINISTRATORS,
    "EventHandlerOne.delete": ADMINISTRATORS,
    "EventHandlerNamed.get": ADMINISTRATORS,
    "IncomingEvent.post": ADMINISTRATORS,
    "ActiveEventHandlers.get": ADMINISTRATORS,
    "EventHandlerNumbers.get": ADMINISTRATORS,
    "EventExecutions.get": ADMINISTRATORS,
    "EventMessages.get": ADMINISTRATORS,
    "EventTags.get": ADMINISTRATORS,
    "EventTags.put": ADMINISTRATORS,
    "EventTags.delete": ADMINISTRATORS,
    "Schemas.get": ANYBODY,
    "Schemas.post": Defines(SCHEMA, things.written(SCHEMA)),
    "SchemaNewest.get": on(READ, SCHEMA, things.named(SCHEMA, "name")),
    "SchemaNewest.delete": on(DELETE, SCHEMA, things.named(SCHEMA, "name")),
    "SchemaOne.get": on(READ, SCHEMA, things.named(SCHEMA, "name")),
    "SchemaOne.delete": on(DELETE, SCHEMA, things.named(SCHEMA, "name")),
    "Webhooks.get": ADMINISTRATORS,
    "Webhooks.post": ADMINISTRATORS,
    "WebhookOne.get": ADMINISTRATORS,
    "WebhookOne.put": ADMINISTRATORS,
    "WebhookOne.delete": ADMINISTRATORS,
    # A path that nobody else is told is the key to what is kept there.
    "PayloadLocation.get": ANYBODY,
    "Configuration.get": ANYBODY,
    "OpenApiDocument.get": ANYBODY,
}
