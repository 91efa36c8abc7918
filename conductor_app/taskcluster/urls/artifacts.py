"""Signed addresses that upload and download the content of artifacts."""

from django.urls import re_path

from ..api.artifacts import ArtifactBytes
from ..api.view import not_found

urlpatterns = [
    re_path(r"^(?P<taskId>[^/]+)/(?P<runId>[0-9]{1,9})/(?P<name>.+)$", ArtifactBytes.as_view()),
    re_path(r"", not_found),
]
