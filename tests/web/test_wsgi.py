"""WSGI application."""

from collections.abc import Callable
from io import BytesIO
from urllib.parse import unquote, unquote_to_bytes

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.test import RequestFactory

from conductor_app.settings import conf
from conductor_app.web.client_views import SLASH_MARK, unmark_slashes
from conductor_app.wsgi import with_chunked_bodies, with_prefix, with_refusals, with_slashes_in_names


def body_seen(**environ: object) -> bytes:
    """Return the body that an application reads if it trusts CONTENT_LENGTH, as Django does."""

    def application(environ: dict, start_response: object) -> list[bytes]:
        return [environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))]

    [body] = with_chunked_bodies(application)(environ, None)
    return body


def path_seen(target: str) -> str:
    """Return the path that an application receives."""

    def application(environ: dict, start_response: object) -> list[str]:
        return [environ["PATH_INFO"].encode("latin-1").decode()]

    decoded = unquote_to_bytes(target.partition("?")[0]).decode("latin-1")
    [path] = with_slashes_in_names(application)({"RAW_URI": target, "PATH_INFO": decoded}, None)
    return path


def test_a_slash_in_a_name_is_told_from_those_around_it():
    assert path_seen("/api/secrets/team%2fdb%20ü?x=%2F".replace("ü", "%C3%BC")) == f"/api/secrets/team{SLASH_MARK}db ü"
    assert unmark_slashes({"key": f"team{SLASH_MARK}db", "version": 2}) == {"key": "team/db", "version": 2}


@pytest.mark.parametrize("target", ["/api/secrets/a%252Fb", "/api/queue/v1/task-queues/a%2Fb", "/admin/a%2Fb"])
def test_other_addresses_are_left_as_they_are(target):
    assert path_seen(target) == unquote(target)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/api//tasks/poll/cut", "/api/tasks/poll/cut"),
        ("//api/tasks/poll/cut?a=//", "/api/tasks/poll/cut"),
        ("///api///queue/v1/ping", "/api/queue/v1/ping"),
        ("/api//secrets/team%2Fdb", f"/api/secrets/team{SLASH_MARK}db"),
        ("//health", "/health"),
        ("//", "/"),
        ("/api/workflow//remove", "/api/workflow//remove"),
        ("/api/queue/v1/task/a/artifacts/public//log", "/api/queue/v1/task/a/artifacts/public//log"),
        ("//apiary", "/apiary"),
    ],
)
def test_empty_segments_of_the_address_of_the_server_are_removed(target, path):
    assert path_seen(target) == path


def test_a_body_of_unknown_length_is_read():
    assert body_seen(HTTP_TRANSFER_ENCODING="chunked", **{"wsgi.input": BytesIO(b'{"a": 1}')}) == b'{"a": 1}'


def test_a_body_of_known_length_is_left_alone():
    assert body_seen(CONTENT_LENGTH="2", **{"wsgi.input": BytesIO(b"{}more")}) == b"{}"


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_body_without_length_or_chunks_is_no_body(encoding):
    assert body_seen(HTTP_TRANSFER_ENCODING=encoding, **{"wsgi.input": BytesIO(b"{}")}) == b""


def test_no_more_than_one_byte_over_the_limit_is_read():
    class Endless:
        def read(self, size: int) -> bytes:
            return b" " * size

    body = body_seen(HTTP_TRANSFER_ENCODING="chunked", **{"wsgi.input": Endless()})

    assert len(body) == conf.max_request_bytes + 1


def test_the_content_of_an_artifact_is_not_read_before_it_is_asked_for():
    content = BytesIO(b"large")

    assert (
        body_seen(HTTP_TRANSFER_ENCODING="chunked", PATH_INFO="/api/artifacts/v1/x", **{"wsgi.input": content}) == b""
    )
    assert content.read() == b"large"


def test_a_request_that_django_cannot_create_is_refused():
    """Django raises while it creates the request if a query has too many fields and the content type a charset."""

    def create_request(environ: dict, start_response: Callable) -> list[bytes]:
        WSGIRequest(environ)
        return [b"created"]

    environ = RequestFactory().get("/", {f"a{number}": "" for number in range(1_500)}).environ
    environ["CONTENT_TYPE"] = "text/plain; charset=utf-8"
    replies: list[str] = []

    body = with_refusals(create_request)(environ, lambda status, headers: replies.append(status))

    assert (replies, body) == (["400 Bad Request"], [b"The request is invalid. Check its query and headers.\n"])


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/conductor", ("/conductor", "/")),
        ("/conductor/api/tasks", ("/conductor", "/api/tasks")),
        ("/health/ready", ("", "/health/ready")),
        ("/conductor/health", ("/conductor", "/health")),
    ],
)
def test_the_application_is_served_below_a_prefix(path, seen):
    def application(environ: dict, start_response: object) -> list[tuple]:
        return [(environ.get("SCRIPT_NAME", ""), environ["PATH_INFO"])]

    assert with_prefix(application, "/conductor")({"PATH_INFO": path}, None) == [seen]


@pytest.mark.parametrize("path", ["/", "/api/tasks", "/conductors/api", "/admin/"])
def test_a_path_beside_the_prefix_is_not_found(path):
    replies: list[str] = []

    body = with_prefix(lambda *_: [], "/conductor")({"PATH_INFO": path}, lambda status, headers: replies.append(status))

    assert replies == ["404 Not Found"]
    assert b"begin with /conductor/" in body[0]


def test_an_encoded_slash_below_a_prefix_is_marked():
    def application(environ: dict, start_response: object) -> list[str]:
        return [environ["PATH_INFO"].encode("latin-1").decode()]

    environ = {"RAW_URI": "/conductor/api/secrets/a%2Fb", "PATH_INFO": "/conductor/api/secrets/a/b"}
    [path] = with_prefix(with_slashes_in_names(application), "/conductor")(environ, None)

    assert path == f"/api/secrets/a{SLASH_MARK}b"
