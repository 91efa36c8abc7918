"""URL patterns of the Conductor API: the requests of workers first, then in the order of the specification."""

from django.urls import URLPattern, URLResolver, include, path, re_path

from ..access.api import applications as application_views
from ..access.api import applications as permission_views
from ..access.api import applications as token_views
from ..access.api import secrets as environment_views
from ..access.api import secrets as secret_views
from ..access.api import users as group_views
from ..access.api import users as user_views
from ..ai.api import integrations as integration_views
from ..ai.api import prompts as prompt_views
from ..ai.api import usage as usage_views
from ..bulk import api as bulk_views
from ..definitions.api import definitions as schema_views
from ..definitions.api import definitions as simulation_views
from ..definitions.api import definitions as task_definition_views
from ..definitions.api import definitions as workflow_definition_views
from ..definitions.api import tags as tag_views
from ..definitions.sources import api as source_views
from ..events.api import handlers as event_handler_views
from ..events.api import handlers as event_log_views
from ..events.api import webhooks as event_queue_views
from ..events.api import webhooks as webhook_views
from ..explanations import api as run_insight_views
from ..failures import api as failure_insight_views
from ..human_tasks import api as form_template_views
from ..human_tasks import api as human_task_views
from ..monitoring import api as admin_tool_views
from ..monitoring import api as server_views
from ..monitoring.api import health
from ..payloads import api as file_views
from ..payloads import api as payload_views
from ..runs.api import control as lifecycle_views
from ..runs.api import control as retry_rerun_views
from ..runs.api import control as skip_jump_views
from ..runs.api import debugger as debug_views
from ..runs.api import executions as execution_views
from ..runs.api import executions as signal_views
from ..runs.api import search as search_views
from ..runs.api import workflows as correlation_views
from ..runs.api import workflows as label_views
from ..runs.api import workflows as message_views
from ..runs.api import workflows as workflow_views
from ..schedules import api as forecast_views
from ..schedules import api as schedule_views
from ..schedules import api as scheduler_views
from ..taskcluster import urls as taskcluster
from ..tasks.api import queues as queue_insight_views
from ..tasks.api import queues as queue_views
from ..tasks.api import tasks as poll_views
from ..tasks.api import tasks as task_insight_views
from ..tasks.api import tasks as task_log_views
from ..tasks.api import tasks as task_views
from ..web.api.view import UnknownAddress
from .openapi import pages

SERVICES: list[URLPattern | URLResolver] = [
    path("queue/v1/", include(taskcluster.queue)),
    path("object/v1/", include(taskcluster.objects)),
    path("artifacts/v1/", include(taskcluster.artifacts)),
    path("auth/v1/", include(taskcluster.auth)),
]
"""Other services than that of Conductor. They come before its patterns, the last of which matches every address."""

urlpatterns = [
    path("tasks/poll/batch/<str:task_type>", poll_views.BatchPoll.as_view()),
    path("tasks/update-v2", task_views.TaskUpdatesWithNext.as_view()),
    path("tasks", task_views.TaskUpdates.as_view()),
    path("tasks/poll/<str:task_type>", poll_views.Poll.as_view()),
    path("workflow", workflow_views.Workflows.as_view()),
    *(
        path(f"{room}/{name}", payload_views.PayloadLocation.as_view())
        for room in ("workflow", "tasks")
        for name in ("externalstoragelocation", "external-storage-location")
    ),
    path("payloads/<path:path>", payload_views.PayloadContent.as_view()),
    path("workflow/test", simulation_views.TestWorkflow.as_view()),
    path("workflow/execute/<str:name>", execution_views.ExecutionByName.as_view()),
    path("workflow/execute/<str:name>/<str:version>", execution_views.Execution.as_view()),
    path("workflow/bulk/pause", bulk_views.BulkPause.as_view()),
    path("workflow/bulk/resume", bulk_views.BulkResume.as_view()),
    path("workflow/bulk/retry", bulk_views.BulkRetry.as_view()),
    path("workflow/bulk/restart", bulk_views.BulkRestart.as_view()),
    path("workflow/bulk/terminate", bulk_views.BulkTerminate.as_view()),
    path("workflow/bulk/remove", bulk_views.BulkRemove.as_view()),
    path("workflow/bulk/delete", bulk_views.BulkDelete.as_view()),
    path("workflow/bulk/terminate-remove", bulk_views.BulkTerminateRemove.as_view()),
    path("workflow/bulk/search", bulk_views.BulkSearch.as_view()),
    path("workflow/start/<str:name>/<str:version>", workflow_views.StartVersion.as_view()),
    path("workflow/correlated/batch", correlation_views.CorrelatedBatch.as_view()),
    path("workflow/decide/<str:workflow>", lifecycle_views.Decide.as_view()),
    path("workflow/running/<str:workflow>", workflow_views.Running.as_view()),
    path("workflow/search", search_views.WorkflowSearch.as_view()),
    path("workflow/search-v2", search_views.WorkflowSearchV2.as_view()),
    path("workflow/search-by-tasks", search_views.WorkflowSearchByTasks.as_view()),
    path("workflow/search-by-tasks-v2", search_views.WorkflowSearchByTasksV2.as_view()),
    path("workflow/<str:workflow>", workflow_views.WorkflowOne.as_view()),
    path("workflow/<str:workflow>/status", workflow_views.WorkflowStatus.as_view()),
    path("workflow/<str:workflow>/tasks", workflow_views.WorkflowTasks.as_view()),
    path("workflow/<str:workflow>/correlated", correlation_views.CorrelatedMany.as_view()),
    path("workflow/<str:workflow>/correlated/<str:correlation_id>", correlation_views.Correlated.as_view()),
    path("workflow/<str:workflow>/labels", label_views.WorkflowLabels.as_view()),
    path("workflow/<str:workflow>/pause", lifecycle_views.Pause.as_view()),
    path("workflow/<str:workflow>/resume", lifecycle_views.Resume.as_view()),
    path("workflow/<str:workflow>/rerun", retry_rerun_views.RerunWorkflow.as_view()),
    path("workflow/<str:workflow>/restart", retry_rerun_views.Restart.as_view()),
    path("workflow/<str:workflow>/retry", retry_rerun_views.RetryWorkflow.as_view()),
    path("workflow/<str:workflow>/messages", message_views.WorkflowMessages.as_view()),
    path("workflow/<str:workflow>/remove", lifecycle_views.Remove.as_view()),
    path("workflow/<str:workflow>/terminate-remove", skip_jump_views.TerminateRemove.as_view()),
    path("workflow/<str:workflow>/resetcallbacks", skip_jump_views.ResetCallbacks.as_view()),
    path("workflow/<str:workflow>/skiptask/<str:ref>", skip_jump_views.Skip.as_view()),
    path("workflow/<str:workflow>/jump/<str:ref>", skip_jump_views.Jump.as_view()),
    path("workflow/<str:workflow>/variables", skip_jump_views.Variables.as_view()),
    path("workflow/<str:workflow>/state", skip_jump_views.State.as_view()),
    path("workflow/<str:workflow>/upgrade", skip_jump_views.Upgrade.as_view()),
    path("tasks/queue/sizes", queue_views.QueueSizes.as_view()),
    path("tasks/queue/size", queue_views.QueueSize.as_view()),
    path("tasks/queue/all", queue_views.AllQueues.as_view()),
    path("tasks/queue/all/verbose", queue_views.AllQueuesInDetail.as_view()),
    path("tasks/queue/polldata", queue_views.PollData.as_view()),
    path("tasks/queue/polldata/all", queue_views.AllPollData.as_view()),
    path("tasks/queue/requeue/<str:task_type>", admin_tool_views.Requeue.as_view()),
    path("tasks/search", search_views.TaskSearch.as_view()),
    path("tasks/search-v2", search_views.TaskSearchV2.as_view()),
    path("tasks/<str:task_id>", task_views.TaskOne.as_view()),
    path("tasks/<str:task_id>/log", task_log_views.TaskLogs.as_view()),
    path("tasks/<str:workflow_id>/<str:status>/signal", signal_views.Signal.as_view()),
    path("tasks/<str:workflow_id>/<str:status>/signal/sync", signal_views.SignalAndWait.as_view()),
    path("tasks/<str:workflow_id>/<str:ref>/<str:status>", task_views.TaskByReference.as_view()),
    path("tasks/<str:workflow_id>/<str:ref>/<str:status>/sync", task_views.TaskByReferenceAndWorkflow.as_view()),
    path("definitions/plan", source_views.SourcePlanView.as_view()),
    path("definitions/apply", source_views.SourceApplication.as_view()),
    path("definitions/drift", source_views.SourceDrift.as_view()),
    path("metadata/workflow", workflow_definition_views.WorkflowDefinitions.as_view()),
    path("metadata/workflow/validate", workflow_definition_views.WorkflowDefinitionCheck.as_view()),
    path("metadata/workflow/latest-versions", workflow_definition_views.LatestVersions.as_view()),
    path("metadata/workflow/names", workflow_definition_views.WorkflowNames.as_view()),
    path("metadata/workflow/names-and-versions", workflow_definition_views.NamesAndVersions.as_view()),
    path("metadata/workflow/<str:name>", workflow_definition_views.WorkflowDefinitionOne.as_view()),
    path("metadata/workflow/<str:name>/versions", workflow_definition_views.Versions.as_view()),
    path("metadata/workflow/<str:name>/tags", tag_views.WorkflowTags.as_view()),
    path("metadata/workflow/<str:name>/rate-limit", tag_views.WorkflowRateLimit.as_view()),
    path("metadata/workflow/<str:name>/<str:version>", workflow_definition_views.WorkflowDefinitionVersion.as_view()),
    path("metadata/taskdefs", task_definition_views.TaskDefinitions.as_view()),
    path("metadata/taskdefs/<str:name>", task_definition_views.TaskDefinitionOne.as_view()),
    path("scheduler/schedules", schedule_views.Schedules.as_view()),
    path("scheduler/schedules/search", schedule_views.ScheduleSearch.as_view()),
    path("scheduler/schedules/tags", schedule_views.SchedulesByTag.as_view()),
    path("scheduler/schedules/<str:name>", schedule_views.ScheduleOne.as_view()),
    path("scheduler/schedules/<str:name>/pause", schedule_views.SchedulePause.as_view()),
    path("scheduler/schedules/<str:name>/resume", schedule_views.ScheduleResume.as_view()),
    path("scheduler/schedules/<str:name>/run", scheduler_views.ScheduleRun.as_view()),
    path("scheduler/schedules/<str:name>/backfill", scheduler_views.ScheduleBackfill.as_view()),
    path("scheduler/schedules/<str:name>/tags", schedule_views.ScheduleTags.as_view()),
    path("scheduler/bulk/pause", schedule_views.SchedulesPause.as_view()),
    path("scheduler/bulk/resume", schedule_views.SchedulesResume.as_view()),
    path("scheduler/nextFewSchedules", scheduler_views.NextFewSchedules.as_view()),
    path("scheduler/admin/pause", scheduler_views.SchedulerPause.as_view()),
    path("scheduler/admin/resume", scheduler_views.SchedulerResume.as_view()),
    path("scheduler/admin/requeue", scheduler_views.SchedulerRequeue.as_view()),
    path("scheduler/search/executions", scheduler_views.ExecutionSearch.as_view()),
    path("files", file_views.Files.as_view()),
    path("files/content/<str:workflow>/<str:file>", file_views.FileContent.as_view()),
    path("files/<str:workflow>/<str:file>", file_views.FileOne.as_view()),
    path("files/<str:workflow>/<str:file>/upload-url", file_views.FileUploadAddress.as_view()),
    path("files/<str:workflow>/<str:file>/download-url", file_views.FileDownloadAddress.as_view()),
    path("files/<str:workflow>/<str:file>/upload-complete", file_views.FileUploadComplete.as_view()),
    path("files/<str:workflow>/<str:file>/multipart", file_views.FileParts.as_view()),
    path("files/<str:workflow>/<str:file>/multipart/<str:upload>", file_views.FilePartsOne.as_view()),
    path("files/<str:workflow>/<str:file>/multipart/<str:upload>/complete", file_views.FilePartsComplete.as_view()),
    path("files/<str:workflow>/<str:file>/multipart/<str:upload>/part/<str:number>", file_views.FilePart.as_view()),
    path("environment", environment_views.EnvironmentVariables.as_view()),
    path("environment/<str:key>", environment_views.EnvironmentVariable.as_view()),
    path("environment/<str:key>/tags", environment_views.EnvironmentTags.as_view()),
    path("secrets", secret_views.Secrets.as_view()),
    path("secrets-v2", secret_views.SecretsWithTags.as_view()),
    path("secrets/v2", secret_views.SecretsInDetail.as_view()),
    path("secrets/clearLocalCache", secret_views.SecretCaches.as_view()),
    path("secrets/clearRedisCache", secret_views.SecretCaches.as_view()),
    path("secrets/<str:key>", secret_views.SecretOne.as_view()),
    path("secrets/<str:key>/exists", secret_views.SecretExists.as_view()),
    path("secrets/<str:key>/tags", secret_views.SecretTags.as_view()),
    path("event", event_handler_views.EventHandlers.as_view()),
    path("event/handleIncomingEvent", event_handler_views.IncomingEvent.as_view()),
    # Orkes' settings of event queues, which this server takes from its environment; they are no events.
    re_path(r"^event/queue/(config|connectivity)", UnknownAddress.as_view()),
    path("event/handler/<str:name>", event_handler_views.EventHandlerNamed.as_view()),
    path("event/execution", event_log_views.ActiveEventHandlers.as_view()),
    path("event/execution/<str:name>", event_log_views.EventExecutions.as_view()),
    path("event/message", event_log_views.EventHandlerNumbers.as_view()),
    path("event/message/<path:event>", event_log_views.EventMessages.as_view()),
    path("event/<str:name>/tags", event_log_views.EventTags.as_view()),
    path("event/<path:event>", event_handler_views.EventHandlerOne.as_view()),
    path("schema", schema_views.Schemas.as_view()),
    path("schema/<str:name>", schema_views.SchemaNewest.as_view()),
    path("schema/<str:name>/<str:version>", schema_views.SchemaOne.as_view()),
    path("human/tasks/search", human_task_views.HumanTaskSearch.as_view()),
    path("human/tasks/getTaskDisplayNames", human_task_views.HumanTaskDisplayNames.as_view()),
    path("human/tasks/update/taskRef", human_task_views.HumanTaskUpdateByReference.as_view()),
    path("human/tasks/delete", human_task_views.HumanTaskRecords.as_view()),
    path("human/tasks/delete/<str:task_id>", human_task_views.HumanTaskRecord.as_view()),
    path("human/tasks/<str:task_id>", human_task_views.HumanTaskOne.as_view()),
    path("human/tasks/<str:task_id>/conductorTask", human_task_views.HumanTaskAsTask.as_view()),
    path("human/tasks/<str:task_id>/claim", human_task_views.HumanTaskClaim.as_view()),
    path("human/tasks/<str:task_id>/externalUser/<str:user_id>", human_task_views.HumanTaskExternalClaim.as_view()),
    path("human/tasks/<str:task_id>/release", human_task_views.HumanTaskRelease.as_view()),
    path("human/tasks/<str:task_id>/reassign", human_task_views.HumanTaskReassign.as_view()),
    path("human/tasks/<str:task_id>/skip", human_task_views.HumanTaskSkip.as_view()),
    path("human/tasks/<str:task_id>/update", human_task_views.HumanTaskUpdate.as_view()),
    path("human/template", form_template_views.FormTemplates.as_view()),
    path("human/template/bulk", form_template_views.FormTemplatesBulk.as_view()),
    path("human/template/<str:name>", form_template_views.FormTemplateNamed.as_view()),
    path("human/template/<str:name>/<str:version>", form_template_views.FormTemplateOne.as_view()),
    path("metadata/webhook", webhook_views.Webhooks.as_view()),
    path("metadata/webhook/<str:id>", webhook_views.WebhookOne.as_view()),
    path("metadata/webhook/<str:name>/tags", webhook_views.WebhookTags.as_view()),
    path("webhook/<str:id>", webhook_views.IncomingWebhook.as_view()),
    path("metadata/task/<str:name>/tags", tag_views.TaskTags.as_view()),
    path("metadata/tags", tag_views.AllTags.as_view()),
    path("metadata/tags/workflow/<str:name>", tag_views.WorkflowTags.as_view()),
    path("token", token_views.Tokens.as_view()),
    path("token/userInfo", token_views.TokenUser.as_view()),
    path("applications", application_views.Applications.as_view()),
    path("applications/key/<str:key_id>", application_views.ApplicationOfKey.as_view()),
    path("applications/<str:id>", application_views.ApplicationOne.as_view()),
    path("applications/<str:id>/accessKeys", application_views.AccessKeys.as_view()),
    path("applications/<str:id>/accessKeys/<str:key_id>", application_views.AccessKeyOne.as_view()),
    path("applications/<str:id>/accessKeys/<str:key_id>/status", application_views.AccessKeyStatus.as_view()),
    path("applications/<str:id>/roles/<str:role>", application_views.ApplicationRole.as_view()),
    path("applications/<str:id>/tags", tag_views.ApplicationTags.as_view()),
    path("users", user_views.Users.as_view()),
    path("users/<str:id>", user_views.UserOne.as_view()),
    path("users/<str:id>/permissions", user_views.UserPermissions.as_view()),
    path("users/<str:id>/checkPermissions", user_views.PermissionCheck.as_view()),
    path("groups", group_views.Groups.as_view()),
    path("groups/<str:id>", group_views.GroupOne.as_view()),
    path("groups/<str:id>/permissions", group_views.GroupPermissions.as_view()),
    path("groups/<str:id>/users", group_views.GroupUsers.as_view()),
    path("groups/<str:id>/users/<str:user_id>", group_views.GroupUser.as_view()),
    path("auth/authorization", permission_views.Authorizations.as_view()),
    path("auth/authorization/<str:kind>/<str:id>", permission_views.TargetPermissions.as_view()),
    path("roles", permission_views.RoleList.as_view()),
    path("roles/system", permission_views.SystemRoles.as_view()),
    path("roles/custom", permission_views.CustomRoles.as_view()),
    path("roles/permissions", permission_views.AvailablePermissions.as_view()),
    path("roles/<str:name>", permission_views.RoleOne.as_view()),
    path("prompts", prompt_views.Prompts.as_view()),
    path("prompts/", prompt_views.Prompts.as_view(schema=None)),
    path("prompts/test", prompt_views.PromptTest.as_view()),
    path("prompts/<str:name>", prompt_views.PromptOne.as_view()),
    path("prompts/<str:name>/tags", prompt_views.PromptTags.as_view()),
    path("prompts/<str:name>/versions", prompt_views.PromptVersions.as_view()),
    path("prompts/<str:name>/versions/<str:version>", prompt_views.PromptVersion.as_view()),
    path("integrations", integration_views.Integrations.as_view()),
    path("integrations/", integration_views.Integrations.as_view(schema=None)),
    path("integrations/all", integration_views.AllModels.as_view()),
    path("integrations/def", integration_views.IntegrationKinds.as_view()),
    path("integrations/def/<str:name>", integration_views.IntegrationKindOne.as_view()),
    path("integrations/provider", integration_views.Providers.as_view()),
    path("integrations/provider/<str:name>", integration_views.IntegrationOne.as_view()),
    path("integrations/provider/<str:name>/metrics", integration_views.IntegrationTokens.as_view()),
    path("integrations/provider/<str:name>/tags", integration_views.IntegrationTags.as_view()),
    path("integrations/provider/<str:name>/integration", integration_views.IntegrationModels.as_view()),
    path("integrations/provider/<str:name>/integration/all", integration_views.IntegrationModelNames.as_view()),
    *(
        path(f"integrations/provider/<str:name>/integration/<str:model>{rest}", view.as_view())
        for rest, view in (
            ("", integration_views.IntegrationModelOne),
            ("/metrics", integration_views.IntegrationModelTokens),
            ("/tags", integration_views.IntegrationModelTags),
            ("/prompt", integration_views.IntegrationModelPrompts),
            ("/prompt/<str:prompt>", integration_views.IntegrationModelPrompt),
        )
    ),
    path("health", health),
    path("version", server_views.ServerVersion.as_view()),
    path("admin/config", server_views.Configuration.as_view()),
    path("admin/queues", admin_tool_views.AdminQueues.as_view()),
    path("admin/task/<str:name>", admin_tool_views.OpenTasks.as_view()),
    path("admin/sweep/requeue/<str:workflow>", admin_tool_views.RequeueWorkflow.as_view()),
    path("admin/consistency/verifyAndRepair/<str:workflow>", admin_tool_views.VerifyAndRepair.as_view()),
    path("queue/size", event_queue_views.EventQueueSizes.as_view()),
    path("queue/", event_queue_views.EventQueues.as_view()),
    path("queue/update/<str:workflow>/task/<str:task_id>/<str:status>", event_queue_views.EventForTask.as_view()),
    path("queue/update/<str:workflow>/<str:ref>/<str:status>", event_queue_views.EventForReference.as_view()),
    path("insight/runs/<str:workflow>/cause", run_insight_views.RunCause.as_view()),
    path("insight/runs/<str:workflow>/plan", run_insight_views.RunPlan.as_view()),
    path("insight/runs/<str:workflow>/apply", run_insight_views.RunPlanConfirmation.as_view()),
    path("insight/runs/<str:workflow>/compare", run_insight_views.RunComparisonView.as_view()),
    path("insight/tasks/<str:task_id>/provenance", task_insight_views.InputProvenance.as_view()),
    path("insight/queues", queue_insight_views.QueueStates.as_view()),
    path("insight/queues/<str:queue>", queue_insight_views.QueueInsight.as_view()),
    path("insight/failures", failure_insight_views.FailureGroups.as_view()),
    path("insight/failures/<int:group_id>", failure_insight_views.FailureGroupInsight.as_view()),
    path("insight/model-usage", usage_views.ModelUsageInsight.as_view()),
    path("model-budgets", usage_views.ModelBudgets.as_view()),
    path("model-budgets/<int:budget_id>", usage_views.ModelBudgetOne.as_view()),
    path("insight/schedules/<str:name>/forecast", forecast_views.ScheduleForecast.as_view()),
    path("debug/runs/<str:workflow>", debug_views.DebuggedRun.as_view()),
    path("debug/runs/<str:workflow>/breakpoints", debug_views.RunBreakpoints.as_view()),
    path("debug/runs/<str:workflow>/breakpoints/<str:id>", debug_views.RunBreakpoint.as_view()),
    path("debug/runs/<str:workflow>/continue", debug_views.ContinueRun.as_view()),
    path("debug/runs/<str:workflow>/evaluate", debug_views.EvaluateExpression.as_view()),
    path("debug/workflows/<str:name>/versions/<int:version>/breakpoints", debug_views.DefinitionBreakpoints.as_view()),
    path(
        "debug/workflows/<str:name>/versions/<int:version>/breakpoints/<str:id>",
        debug_views.DefinitionBreakpoint.as_view(),
    ),
    path("openapi.json", pages.OpenApiDocument.as_view(), name="openapi"),
    path("docs", pages.docs_page, name="openapi-page"),
    path("docs.js", pages.docs_script, name="openapi-script"),
    re_path(r"", UnknownAddress.as_view()),
]
