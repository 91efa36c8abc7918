"""Views of the APIs use the framework's policies; those of workers take a shorter way to the same replies."""

import gc
import weakref

import pytest
from django.test import RequestFactory
from django.urls import path
from rest_framework.authentication import BaseAuthentication
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from conductor_app.notifications import PendingWait
from conductor_app.site import api_urls
from conductor_app.taskcluster.api.view import TaskclusterView
from conductor_app.tasks.api.tasks import BatchPoll, Poll, TaskUpdates, TaskUpdatesWithNext
from conductor_app.web.api.operations import ApiOperation, Json
from conductor_app.web.api.permissions import ALLOW_ALL
from conductor_app.web.api.view import ConductorView, WorkerView
from conductor_app.web.client_views import WaitingReply, reply_after
from conductor_app.web.waiting_requests import ACCEPTS_WAITING_KEY

DOCUMENT = {"a": [1, "é", None], "big": 2**80}


class Rendered(ConductorView):
    @ApiOperation("", ALLOW_ALL, reply=None)
    def get(self, request):
        return Json(DOCUMENT)


class Unrendered(Rendered):
    def get(self, request):
        return Response(DOCUMENT)


class PostOnly(ConductorView):
    def post(self, request):
        return Json(request.data)


class Waiting(Rendered):
    def get(self, request):
        return reply_after(request, wait_once(), lambda _: Json(self.operations))


class FullPoll(Poll):
    dispatch = ConductorView.dispatch


class FullUpdates(TaskUpdates):
    dispatch = ConductorView.dispatch


urlpatterns = [
    path("api/rendered", Rendered.as_view()),
    path("api/unrendered", Unrendered.as_view()),
    path("api/post-only", PostOnly.as_view()),
    path("api/short/poll/<str:task_type>", Poll.as_view()),
    path("api/full/poll/<str:task_type>", FullPoll.as_view()),
    path("api/short/tasks", TaskUpdates.as_view()),
    path("api/full/tasks", FullUpdates.as_view()),
]


def wait_once():
    yield PendingWait(waiter=None, seconds=1)


@pytest.fixture
def own_addresses(db, settings):
    settings.ROOT_URLCONF = __name__


def facts(reply):
    """Return what two replies have in common if they say the same."""
    headers = {name: value for name, value in reply.headers.items() if name not in ("X-Request-Id", "Content-Length")}
    return reply.status_code, reply.content.replace(b"/full/", b"/short/"), headers


def test_a_response_of_the_framework_is_rendered_as_others(own_addresses, client):
    rendered, unrendered = client.get("/api/rendered"), client.get("/api/unrendered")

    assert facts(unrendered) == facts(rendered)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PATCH", "TRACE", "PUT"])
def test_a_method_that_a_view_does_not_have_is_refused_after_the_caller_is_known(
    own_addresses, client, settings, method
):
    refused = client.generic(method, "/api/post-only")
    settings.CONDUCTOR_API_ACCESS = "token"

    assert (refused.status_code, refused["Allow"]) == (405, "POST")
    assert client.generic(method, "/api/post-only").status_code == 401


def test_a_body_is_json_whatever_its_type(own_addresses, client):
    for content_type in ("application/json", "text/plain", "application/x-www-form-urlencoded", "image/png", ""):
        reply = client.generic("POST", "/api/post-only", b'\xef\xbb\xbf{"a": 1}', content_type)

        assert (reply.status_code, reply.content) == (200, b'{"a":1}'), content_type


@pytest.mark.parametrize("access", ["open", "token"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "OPTIONS", "PATCH"])
@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"workflowInstanceId": "a", "taskId": "b"}', b'{"a": NaN}'])
def test_the_short_way_of_workers_gives_the_same_replies(own_addresses, client, settings, access, method, body):
    settings.CONDUCTOR_API_ACCESS = access
    for address in ("poll/pay?workerid=w", "poll/a%00b", "tasks"):
        short, full = (
            client.generic(method, f"/api/{way}/{address}", body, "application/json") for way in ("short", "full")
        )

        assert facts(full) == facts(short)


def test_only_polls_and_reports_take_the_short_way():
    views = {getattr(pattern.callback, "cls", object) for pattern in api_urls.urlpatterns}

    assert {view for view in views if issubclass(view, WorkerView)} == {
        BatchPoll,
        Poll,
        TaskUpdates,
        TaskUpdatesWithNext,
    }
    assert [view.__name__ for view in views if "dispatch" in vars(view)] == ["UnknownAddress"]


@pytest.mark.parametrize("base", [ConductorView, TaskclusterView])
def test_each_policy_is_a_class_of_the_framework(base):
    assert issubclass(base.authentication_classes[0], BaseAuthentication)
    assert issubclass(base.permission_classes[0], BasePermission)
    assert issubclass(base.throttle_classes[0], BaseThrottle)
    assert issubclass(base.parser_classes[0], BaseParser)
    assert issubclass(base.renderer_classes[0], BaseRenderer)


def test_an_abandoned_request_that_waits_is_freed_without_garbage_collection(db):
    gc.collect()
    gc.disable()
    try:
        request = RequestFactory().get("/api/waiting", **{ACCEPTS_WAITING_KEY: True})
        reply = Waiting.as_view()(request)
        assert isinstance(reply, WaitingReply)
        freed = weakref.ref(request)
        del reply, request

        assert freed() is None
    finally:
        gc.enable()
