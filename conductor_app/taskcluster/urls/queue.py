"""URL patterns of the Queue service, in the order of the reference (taskcluster §1.5)."""

from django.urls import re_path

from ..api import artifacts as artifact_views
from ..api import queues as server_views
from ..api import queues as task_queue_views
from ..api import queues as worker_views
from ..api import tasks as task_group_views
from ..api import tasks as task_run_views
from ..api import tasks as task_views
from ..api.view import not_found

TASK = r"^task/(?P<taskId>[^/]+)"
GROUP = r"^task-group/(?P<taskGroupId>[^/]+)"
QUEUE = r"^task-queues/(?P<taskQueueId>.+)"
PROVISIONER = r"^provisioners/(?P<provisionerId>[^/]+)"
TYPE = PROVISIONER + r"/worker-types/(?P<workerType>[^/]+)"
WORKER = r"/(?P<workerGroup>[^/]+)/(?P<workerId>[^/]+)$"
RUN = TASK + r"/runs/(?P<runId>[^/]+)"
NAME = r"/(?P<name>.+)$"

urlpatterns = [
    re_path(r"^tasks$", task_views.TaskBatch.as_view()),
    re_path(r"^tasks/status$", task_views.TaskStatusBatch.as_view()),
    re_path(TASK + r"$", task_views.TaskDocument.as_view()),
    re_path(TASK + r"/status$", task_views.TaskStatusOne.as_view()),
    re_path(TASK + r"/dependents$", task_views.DependentTasks.as_view()),
    re_path(TASK + r"/schedule$", task_views.ScheduleTask.as_view()),
    re_path(TASK + r"/rerun$", task_views.RerunTask.as_view()),
    re_path(TASK + r"/cancel$", task_views.CancelTask.as_view()),
    re_path(TASK + r"/priority$", task_views.ChangeTaskPriority.as_view()),
    re_path(GROUP + r"$", task_group_views.TaskGroupView.as_view()),
    re_path(GROUP + r"/list$", task_group_views.TaskGroupList.as_view()),
    re_path(GROUP + r"/seal$", task_group_views.SealTaskGroup.as_view()),
    re_path(GROUP + r"/cancel$", task_group_views.CancelTaskGroup.as_view()),
    re_path(GROUP + r"/priority$", task_group_views.TaskGroupPriority.as_view()),
    re_path(r"^claim-work/(?P<taskQueueId>.+)$", task_run_views.ClaimWork.as_view()),
    re_path(RUN + r"/claim$", task_run_views.ClaimTask.as_view()),
    re_path(RUN + r"/reclaim$", task_run_views.ReclaimTask.as_view()),
    re_path(RUN + r"/completed$", task_run_views.ReportCompleted.as_view()),
    re_path(RUN + r"/failed$", task_run_views.ReportFailed.as_view()),
    re_path(RUN + r"/exception$", task_run_views.ReportException.as_view()),
    re_path(RUN + r"/artifacts$", artifact_views.Artifacts.as_view()),
    re_path(RUN + r"/artifacts" + NAME, artifact_views.ArtifactOne.as_view()),
    re_path(RUN + r"/artifact-content" + NAME, artifact_views.ArtifactContent.as_view()),
    re_path(RUN + r"/artifact-info" + NAME, artifact_views.ArtifactInfo.as_view()),
    re_path(TASK + r"/artifacts$", artifact_views.LatestArtifacts.as_view()),
    re_path(TASK + r"/artifacts" + NAME, artifact_views.LatestArtifact.as_view()),
    re_path(TASK + r"/artifact-content" + NAME, artifact_views.LatestArtifactContent.as_view()),
    re_path(TASK + r"/artifact-info" + NAME, artifact_views.LatestArtifactInfo.as_view()),
    re_path(r"^pending/(?P<taskQueueId>.+)$", task_queue_views.PendingCount.as_view()),
    re_path(r"^task-queues/counts$", task_queue_views.QueueCountsBatch.as_view()),
    re_path(QUEUE + r"/counts$", task_queue_views.QueueCounts.as_view()),
    re_path(QUEUE + r"/pending$", task_queue_views.PendingTasks.as_view()),
    re_path(QUEUE + r"/claimed$", task_queue_views.ClaimedTasks.as_view()),
    re_path(r"^task-queues$", task_queue_views.TaskQueueList.as_view()),
    re_path(QUEUE + r"$", task_queue_views.TaskQueueOne.as_view()),
    re_path(r"^provisioners$", task_queue_views.ProvisionerList.as_view()),
    re_path(PROVISIONER + r"$", task_queue_views.ProvisionerOne.as_view()),
    re_path(PROVISIONER + r"/worker-types$", task_queue_views.WorkerTypeList.as_view()),
    re_path(TYPE + r"$", task_queue_views.WorkerTypeOne.as_view()),
    re_path(TYPE + r"/workers$", worker_views.WorkerList.as_view()),
    re_path(TYPE + r"/workers" + WORKER, worker_views.WorkerOne.as_view()),
    re_path(TYPE + WORKER, worker_views.DeclaredWorker.as_view()),
    re_path(r"^ping$", server_views.Ping.as_view()),
    re_path(r"^__version__$", server_views.TaskclusterVersion.as_view()),
    re_path(r"^__heartbeat__$", server_views.Heartbeat.as_view()),
    re_path(r"^__lbheartbeat__$", server_views.LoadBalancerHeartbeat.as_view()),
    re_path(r"", not_found),
]
