"""How the server is."""

from importlib.metadata import version
from time import monotonic

from django.http import HttpResponse

from ..replies import Json
from ..view import TaskclusterRequest, TaskclusterView

STARTED_AT = monotonic()


class Ping(TaskclusterView):
    """/ping: it answers."""

    methods = {"GET": "ping"}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json({"alive": True, "uptime": monotonic() - STARTED_AT})


class TaskclusterVersion(TaskclusterView):
    """/__version__: what runs here."""

    methods = {"GET": "version"}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        number = version("conductor-app")
        return Json({"version": number, "commit": number, "source": "conductor-app", "build": number})


class Heartbeat(TaskclusterView):
    """/__heartbeat__: it is well."""

    methods = {"GET": "heartbeat"}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        return Json({})


class LoadBalancerHeartbeat(Heartbeat):
    """/__lbheartbeat__: it is there."""

    methods = {"GET": "lbheartbeat"}
