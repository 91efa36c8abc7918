"""Every address of the dialect, in the order of the reference (taskcluster §1.5)."""

from django.urls import re_path

from .view import not_found
from .views import artifacts, runs, server, task_groups, task_queues, tasks, workers

TASK = r"^task/(?P<taskId>[^/]+)"
GROUP = r"^task-group/(?P<taskGroupId>[^/]+)"
QUEUE = r"^task-queues/(?P<taskQueueId>.+)"
PROVISIONER = r"^provisioners/(?P<provisionerId>[^/]+)"
TYPE = PROVISIONER + r"/worker-types/(?P<workerType>[^/]+)"
WORKER = r"/(?P<workerGroup>[^/]+)/(?P<workerId>[^/]+)$"
RUN = TASK + r"/runs/(?P<runId>[^/]+)"
NAME = r"/(?P<name>.+)$"

urlpatterns = [
    re_path(r"^tasks$", tasks.TaskBatch.as_view()),
    re_path(r"^tasks/status$", tasks.TaskStatusBatch.as_view()),
    re_path(TASK + r"$", tasks.TaskDocument.as_view()),
    re_path(TASK + r"/status$", tasks.TaskStatusOne.as_view()),
    re_path(TASK + r"/dependents$", tasks.DependentTasks.as_view()),
    re_path(TASK + r"/schedule$", tasks.ScheduleTask.as_view()),
    re_path(TASK + r"/rerun$", tasks.RerunTask.as_view()),
    re_path(TASK + r"/cancel$", tasks.CancelTask.as_view()),
    re_path(TASK + r"/priority$", tasks.ChangeTaskPriority.as_view()),
    re_path(GROUP + r"$", task_groups.TaskGroupView.as_view()),
    re_path(GROUP + r"/list$", task_groups.TaskGroupList.as_view()),
    re_path(GROUP + r"/seal$", task_groups.SealTaskGroup.as_view()),
    re_path(GROUP + r"/cancel$", task_groups.CancelTaskGroup.as_view()),
    re_path(GROUP + r"/priority$", task_groups.TaskGroupPriority.as_view()),
    re_path(r"^claim-work/(?P<taskQueueId>.+)$", runs.ClaimWork.as_view()),
    re_path(RUN + r"/claim$", runs.ClaimTask.as_view()),
    re_path(RUN + r"/reclaim$", runs.ReclaimTask.as_view()),
    re_path(RUN + r"/completed$", runs.ReportCompleted.as_view()),
    re_path(RUN + r"/failed$", runs.ReportFailed.as_view()),
    re_path(RUN + r"/exception$", runs.ReportException.as_view()),
    re_path(RUN + r"/artifacts$", artifacts.Artifacts.as_view()),
    re_path(RUN + r"/artifacts" + NAME, artifacts.ArtifactOne.as_view()),
    re_path(RUN + r"/artifact-content" + NAME, artifacts.ArtifactContent.as_view()),
    re_path(RUN + r"/artifact-info" + NAME, artifacts.ArtifactInfo.as_view()),
    re_path(TASK + r"/artifacts$", artifacts.LatestArtifacts.as_view()),
    re_path(TASK + r"/artifacts" + NAME, artifacts.LatestArtifact.as_view()),
    re_path(TASK + r"/artifact-content" + NAME, artifacts.LatestArtifactContent.as_view()),
    re_path(TASK + r"/artifact-info" + NAME, artifacts.LatestArtifactInfo.as_view()),
    re_path(r"^pending/(?P<taskQueueId>.+)$", task_queues.PendingCount.as_view()),
    re_path(r"^task-queues/counts$", task_queues.QueueCountsBatch.as_view()),
    re_path(QUEUE + r"/counts$", task_queues.QueueCounts.as_view()),
    re_path(QUEUE + r"/pending$", task_queues.PendingTasks.as_view()),
    re_path(QUEUE + r"/claimed$", task_queues.ClaimedTasks.as_view()),
    re_path(r"^task-queues$", task_queues.TaskQueueList.as_view()),
    re_path(QUEUE + r"$", task_queues.TaskQueueOne.as_view()),
    re_path(r"^provisioners$", task_queues.ProvisionerList.as_view()),
    re_path(PROVISIONER + r"$", task_queues.ProvisionerOne.as_view()),
    re_path(PROVISIONER + r"/worker-types$", task_queues.WorkerTypeList.as_view()),
    re_path(TYPE + r"$", task_queues.WorkerTypeOne.as_view()),
    re_path(TYPE + r"/workers$", workers.WorkerList.as_view()),
    re_path(TYPE + r"/workers" + WORKER, workers.WorkerOne.as_view()),
    re_path(TYPE + WORKER, workers.DeclaredWorker.as_view()),
    re_path(r"^ping$", server.Ping.as_view()),
    re_path(r"^__version__$", server.TaskclusterVersion.as_view()),
    re_path(r"^__heartbeat__$", server.Heartbeat.as_view()),
    re_path(r"^__lbheartbeat__$", server.LoadBalancerHeartbeat.as_view()),
    re_path(r"", not_found),
]
