"""URL patterns of the Object service (taskcluster §4.2)."""

from django.urls import re_path

from ..api import artifacts as object_views
from ..api import queues as server_views
from ..api.view import not_found

NAME_PATTERN = r"/(?P<objectName>.+)$"

urlpatterns = [
    re_path(r"^upload" + NAME_PATTERN, object_views.ObjectUpload.as_view()),
    re_path(r"^finish-upload" + NAME_PATTERN, object_views.FinishUpload.as_view()),
    re_path(r"^start-download" + NAME_PATTERN, object_views.StartDownload.as_view()),
    re_path(r"^download" + NAME_PATTERN, object_views.ObjectDownload.as_view()),
    re_path(r"^metadata" + NAME_PATTERN, object_views.ObjectMetadata.as_view()),
    re_path(r"^ping$", server_views.Ping.as_view()),
    re_path(r"^__version__$", server_views.TaskclusterVersion.as_view()),
    re_path(r"^__heartbeat__$", server_views.Heartbeat.as_view()),
    re_path(r"^__lbheartbeat__$", server_views.LoadBalancerHeartbeat.as_view()),
    re_path(r"", not_found),
]
