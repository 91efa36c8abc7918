"""Every address of the Conductor dialect: what workers call comes first, then the order of the reference."""

from django.urls import path, re_path

from ..health import health
from .openapi import pages
from .view import UnknownAddress
from .views import controls, polls, queues, server, task_definitions, task_logs, tasks, workflow_definitions, workflows

urlpatterns = [
    path("tasks/poll/batch/<str:task_type>", polls.BatchPoll.as_view()),
    path("tasks/update-v2", tasks.TaskUpdatesWithNext.as_view()),
    path("tasks", tasks.TaskUpdates.as_view()),
    path("tasks/poll/<str:task_type>", polls.Poll.as_view()),
    path("workflow", workflows.Workflows.as_view()),
    path("workflow/decide/<str:workflow>", controls.Decide.as_view()),
    path("workflow/running/<str:workflow>", workflows.Running.as_view()),
    path("workflow/<str:workflow>", workflows.WorkflowOne.as_view()),
    path("workflow/<str:workflow>/status", workflows.WorkflowStatus.as_view()),
    path("workflow/<str:workflow>/tasks", workflows.WorkflowTasks.as_view()),
    path("workflow/<str:workflow>/correlated", workflows.CorrelatedMany.as_view()),
    path("workflow/<str:workflow>/correlated/<str:correlation_id>", workflows.Correlated.as_view()),
    path("workflow/<str:workflow>/pause", controls.Pause.as_view()),
    path("workflow/<str:workflow>/resume", controls.Resume.as_view()),
    path("workflow/<str:workflow>/retry", controls.Retry.as_view()),
    path("workflow/<str:workflow>/remove", controls.Remove.as_view()),
    path("tasks/queue/sizes", queues.QueueSizes.as_view()),
    path("tasks/queue/size", queues.QueueSize.as_view()),
    path("tasks/queue/all", queues.AllQueues.as_view()),
    path("tasks/queue/all/verbose", queues.AllQueuesInDetail.as_view()),
    path("tasks/queue/polldata", queues.PollData.as_view()),
    path("tasks/queue/polldata/all", queues.AllPollData.as_view()),
    path("tasks/<str:task_id>", tasks.TaskOne.as_view()),
    path("tasks/<str:task_id>/log", task_logs.TaskLogs.as_view()),
    path("tasks/<str:workflow_id>/<str:ref>/<str:status>", tasks.TaskByReference.as_view()),
    path("tasks/<str:workflow_id>/<str:ref>/<str:status>/sync", tasks.TaskByReferenceAndWorkflow.as_view()),
    path("metadata/workflow", workflow_definitions.WorkflowDefinitions.as_view()),
    path("metadata/workflow/validate", workflow_definitions.WorkflowDefinitionCheck.as_view()),
    path("metadata/workflow/latest-versions", workflow_definitions.LatestVersions.as_view()),
    path("metadata/workflow/names", workflow_definitions.WorkflowNames.as_view()),
    path("metadata/workflow/names-and-versions", workflow_definitions.NamesAndVersions.as_view()),
    path("metadata/workflow/<str:name>", workflow_definitions.WorkflowDefinitionOne.as_view()),
    path("metadata/workflow/<str:name>/versions", workflow_definitions.Versions.as_view()),
    path("metadata/workflow/<str:name>/<str:version>", workflow_definitions.WorkflowDefinitionVersion.as_view()),
    path("metadata/taskdefs", task_definitions.TaskDefinitions.as_view()),
    path("metadata/taskdefs/<str:name>", task_definitions.TaskDefinitionOne.as_view()),
    path("token", server.Tokens.as_view()),
    path("health", health),
    path("version", server.Version.as_view()),
    path("admin/config", server.Configuration.as_view()),
    path("openapi.json", pages.OpenApiDocument.as_view(), name="openapi"),
    path("docs", pages.page, name="openapi-page"),
    path("docs.js", pages.script, name="openapi-script"),
    re_path(r"", UnknownAddress.as_view()),
]
