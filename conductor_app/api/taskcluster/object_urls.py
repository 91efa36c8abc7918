"""Every address of the Object service (taskcluster §4.2)."""

from django.urls import re_path

from .view import not_found
from .views import objects, server

NAME_PATTERN = r"/(?P<objectName>.+)$"

urlpatterns = [
    re_path(r"^upload" + NAME_PATTERN, objects.ObjectUpload.as_view()),
    re_path(r"^finish-upload" + NAME_PATTERN, objects.FinishUpload.as_view()),
    re_path(r"^start-download" + NAME_PATTERN, objects.StartDownload.as_view()),
    re_path(r"^download" + NAME_PATTERN, objects.ObjectDownload.as_view()),
    re_path(r"^metadata" + NAME_PATTERN, objects.ObjectMetadata.as_view()),
    re_path(r"^ping$", server.Ping.as_view()),
    re_path(r"^__version__$", server.TaskclusterVersion.as_view()),
    re_path(r"^__heartbeat__$", server.Heartbeat.as_view()),
    re_path(r"^__lbheartbeat__$", server.LoadBalancerHeartbeat.as_view()),
    re_path(r"", not_found),
]
