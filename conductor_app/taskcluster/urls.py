"""URL patterns of the services. Each ends with a reply to unknown addresses.

`queue` has the order of the reference (taskcluster §1.5). `objects` is the Object service (taskcluster §4.2), and
`artifacts` has the signed addresses of the content of artifacts. `auth` is what clients of the Queue need of the Auth
service (taskcluster §6, §7.2).
"""

from django.urls import re_path

from .api import artifacts as artifact_api
from .api import auth as auth_api
from .api import queues, tasks
from .api.view import not_found

TASK = r"^task/(?P<taskId>[^/]+)"
GROUP = r"^task-group/(?P<taskGroupId>[^/]+)"
QUEUE = r"^task-queues/(?P<taskQueueId>.+)"
PROVISIONER = r"^provisioners/(?P<provisionerId>[^/]+)"
TYPE = PROVISIONER + r"/worker-types/(?P<workerType>[^/]+)"
WORKER = r"/(?P<workerGroup>[^/]+)/(?P<workerId>[^/]+)$"
RUN = TASK + r"/runs/(?P<runId>[^/]+)"
NAME = r"/(?P<name>.+)$"
OBJECT = r"/(?P<objectName>.+)$"
CLIENT = r"^clients/(?P<clientId>.+)"

STATUS = [
    re_path(r"^ping$", queues.Ping.as_view()),
    re_path(r"^__version__$", queues.TaskclusterVersion.as_view()),
    re_path(r"^__heartbeat__$", queues.Heartbeat.as_view()),
    re_path(r"^__lbheartbeat__$", queues.LoadBalancerHeartbeat.as_view()),
    re_path(r"", not_found),
]
"""The last patterns of each service."""

queue = [
    re_path(r"^tasks$", tasks.TaskBatch.as_view()),
    re_path(r"^tasks/status$", tasks.TaskStatusBatch.as_view()),
    re_path(TASK + r"$", tasks.TaskDocument.as_view()),
    re_path(TASK + r"/status$", tasks.TaskStatusOne.as_view()),
    re_path(TASK + r"/dependents$", tasks.DependentTasks.as_view()),
    re_path(TASK + r"/schedule$", tasks.ScheduleTask.as_view()),
    re_path(TASK + r"/rerun$", tasks.RerunTask.as_view()),
    re_path(TASK + r"/cancel$", tasks.CancelTask.as_view()),
    re_path(TASK + r"/priority$", tasks.ChangeTaskPriority.as_view()),
    re_path(GROUP + r"$", tasks.TaskGroupView.as_view()),
    re_path(GROUP + r"/list$", tasks.TaskGroupList.as_view()),
    re_path(GROUP + r"/seal$", tasks.SealTaskGroup.as_view()),
    re_path(GROUP + r"/cancel$", tasks.CancelTaskGroup.as_view()),
    re_path(GROUP + r"/priority$", tasks.TaskGroupPriority.as_view()),
    re_path(r"^claim-work/(?P<taskQueueId>.+)$", tasks.ClaimWork.as_view()),
    re_path(RUN + r"/claim$", tasks.ClaimTask.as_view()),
    re_path(RUN + r"/reclaim$", tasks.ReclaimTask.as_view()),
    re_path(RUN + r"/completed$", tasks.ReportCompleted.as_view()),
    re_path(RUN + r"/failed$", tasks.ReportFailed.as_view()),
    re_path(RUN + r"/exception$", tasks.ReportException.as_view()),
    re_path(RUN + r"/artifacts$", artifact_api.Artifacts.as_view()),
    re_path(RUN + r"/artifacts" + NAME, artifact_api.ArtifactOne.as_view()),
    re_path(RUN + r"/artifact-content" + NAME, artifact_api.ArtifactContent.as_view()),
    re_path(RUN + r"/artifact-info" + NAME, artifact_api.ArtifactInfo.as_view()),
    re_path(TASK + r"/artifacts$", artifact_api.LatestArtifacts.as_view()),
    re_path(TASK + r"/artifacts" + NAME, artifact_api.LatestArtifact.as_view()),
    re_path(TASK + r"/artifact-content" + NAME, artifact_api.LatestArtifactContent.as_view()),
    re_path(TASK + r"/artifact-info" + NAME, artifact_api.LatestArtifactInfo.as_view()),
    re_path(r"^pending/(?P<taskQueueId>.+)$", queues.PendingCount.as_view()),
    re_path(r"^task-queues/counts$", queues.QueueCountsBatch.as_view()),
    re_path(QUEUE + r"/counts$", queues.QueueCounts.as_view()),
    re_path(QUEUE + r"/pending$", queues.PendingTasks.as_view()),
    re_path(QUEUE + r"/claimed$", queues.ClaimedTasks.as_view()),
    re_path(r"^task-queues$", queues.TaskQueueList.as_view()),
    re_path(QUEUE + r"$", queues.TaskQueueOne.as_view()),
    re_path(r"^provisioners$", queues.ProvisionerList.as_view()),
    re_path(PROVISIONER + r"$", queues.ProvisionerOne.as_view()),
    re_path(PROVISIONER + r"/worker-types$", queues.WorkerTypeList.as_view()),
    re_path(TYPE + r"$", queues.WorkerTypeOne.as_view()),
    re_path(TYPE + r"/workers$", queues.WorkerList.as_view()),
    re_path(TYPE + r"/workers" + WORKER, queues.WorkerOne.as_view()),
    re_path(TYPE + WORKER, queues.DeclaredWorker.as_view()),
    *STATUS,
]

objects = [
    re_path(r"^upload" + OBJECT, artifact_api.ObjectUpload.as_view()),
    re_path(r"^finish-upload" + OBJECT, artifact_api.FinishUpload.as_view()),
    re_path(r"^start-download" + OBJECT, artifact_api.StartDownload.as_view()),
    re_path(r"^download" + OBJECT, artifact_api.ObjectDownload.as_view()),
    re_path(r"^metadata" + OBJECT, artifact_api.ObjectMetadata.as_view()),
    *STATUS,
]

artifacts = [
    re_path(r"^(?P<taskId>[^/]+)/(?P<runId>[0-9]{1,9})/(?P<name>.+)$", artifact_api.ArtifactBytes.as_view()),
    re_path(r"", not_found),
]

# Clients of some languages leave out the slash at an end, others do not.
auth = [
    re_path(r"^clients/?$", auth_api.ClientList.as_view()),
    re_path(CLIENT + r"/reset$", auth_api.ResetAccessToken.as_view()),
    re_path(CLIENT + r"/enable$", auth_api.EnableClient.as_view()),
    re_path(CLIENT + r"/disable$", auth_api.DisableClient.as_view()),
    re_path(CLIENT + r"$", auth_api.ClientOne.as_view()),
    re_path(r"^roles/?$", auth_api.ScopeRoleList.as_view()),
    re_path(r"^roles2/?$", auth_api.ScopeRolePages.as_view()),
    re_path(r"^roleids/?$", auth_api.ScopeRoleIds.as_view()),
    re_path(r"^roles/(?P<roleId>.+)$", auth_api.ScopeRoleOne.as_view()),
    re_path(r"^scopes/expand$", auth_api.ExpandScopes.as_view()),
    re_path(r"^scopes/current$", auth_api.CurrentScopes.as_view()),
    re_path(r"^authenticate-hawk$", auth_api.AuthenticateHawk.as_view()),
    *STATUS,
]
