"""Where the content of artifacts comes and goes: addresses that carry their own permission."""

from django.urls import re_path

from .view import not_found
from .views.contents import ArtifactBytes

urlpatterns = [
    re_path(r"^(?P<taskId>[^/]+)/(?P<runId>[0-9]{1,9})/(?P<name>.+)$", ArtifactBytes.as_view()),
    re_path(r"", not_found),
]
