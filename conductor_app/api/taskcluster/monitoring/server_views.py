"""Views of the server's state."""

from importlib.metadata import version
from time import monotonic

from django.http import HttpResponse

from ..method_scopes import ApiMethod
from ..replies import Json
from ..view import TaskclusterRequest, TaskclusterView

STARTED_AT = monotonic()


class Ping(TaskclusterView):
    """/ping: return that the server responds."""

    methods = {"GET": ApiMethod("ping", is_public=True)}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json({"alive": True, "uptime": monotonic() - STARTED_AT})


class TaskclusterVersion(TaskclusterView):
    """/__version__: return the version of this server."""

    methods = {"GET": ApiMethod("version", is_public=True)}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        number = version("conductor-app")
        return Json({"version": number, "commit": number, "source": "conductor-app", "build": number})


class Heartbeat(TaskclusterView):
    """/__heartbeat__: return that the server works."""

    methods = {"GET": ApiMethod("heartbeat", is_public=True)}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json({})


class LoadBalancerHeartbeat(Heartbeat):
    """/__lbheartbeat__: return that this process responds."""

    methods = {"GET": ApiMethod("lbheartbeat", is_public=True)}
