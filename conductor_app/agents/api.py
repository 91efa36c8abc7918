"""The address of the Model Context Protocol: POST /mcp."""

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any, TypeVar

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_exempt

from ..access import tokens
from ..access.authentication import Actor, authenticate, reject_cross_site_requests
from ..access.tokens import verify_key
from ..core.errors import Forbidden, RequestRefused, Unauthenticated
from ..db.transient_errors import describe_transient, discard_broken_connection, is_transient
from ..settings import conf
from ..web.client_views import ClientView, log_transient_error
from ..web.waiting_requests import disconnect_check
from .tools import TOOL_BY_NAME, call_key, end_call, new_session_id

if TYPE_CHECKING:
    from .protocol import ProtocolReply

ResponseT = TypeVar("ResponseT", bound=HttpResponseBase)
MAX_BYTES = 1_000_000
MISSING_PACKAGE = "This server has no agent tools. Install conductor-app with its extra `mcp` to offer them."
SENT_HEADERS = ("content-type", "mcp-session-id", "mcp-protocol-version", "x-accel-buffering")


@method_decorator(csrf_exempt, name="dispatch")
class AgentTools(ClientView):
    """POST /mcp: a message of the Model Context Protocol, over streamable HTTP.

    The caller sends a token (`Authorization: Bearer`) or a key and its secret (`Authorization: Basic`).
    """

    http_method_names = ["post"]

    def post(self, request: HttpRequest) -> HttpResponseBase:
        try:
            actor = _authenticate(request)
        except Exception as error:
            if not (isinstance(error, RequestRefused) or is_transient(error)):
                raise
            return _refusal(request, error)
        if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_BYTES:
            return HttpResponse("The message is too large.", status=413, content_type="text/plain")
        try:
            from .protocol import AgentSession, ReplyStream
        except ImportError:
            return HttpResponse(MISSING_PACKAGE, status=501, content_type="text/plain")
        message, session = _parse(request.body), AgentSession(request, actor)
        if message.get("method") == "notifications/cancelled":
            _cancel(request, message)
        if _is_streamed(request, message):
            stream = ReplyStream(session, request.body, disconnect_check(request))
            return _with_headers(StreamingHttpResponse(stream, status=stream.reply.status), stream.reply)
        reply = session.handle(request.body)
        response = _with_headers(HttpResponse(reply.body, status=reply.status, content_type="text/plain"), reply)
        if message.get("method") == "initialize" and reply.status == 200:
            response.headers["Mcp-Session-Id"] = new_session_id()
        return response


def _parse(body: bytes) -> dict[str, Any]:
    """Return the message, or an empty object if it is none: the protocol refuses it."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _params(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _is_streamed(request: HttpRequest, message: dict[str, Any]) -> bool:
    """Return True for a call that follows a run, if its client reads streams."""
    if message.get("method") != "tools/call" or "text/event-stream" not in request.headers.get("Accept", ""):
        return False
    tool = TOOL_BY_NAME.get(str(_params(message).get("name")))
    return tool is None or tool.follows_run


def _cancel(request: HttpRequest, message: dict[str, Any]) -> None:
    """End the run that a request of the same session has started."""
    request_id = _params(message).get("requestId")
    if isinstance(request_id, str | int):
        end_call(call_key(request.headers.get("Mcp-Session-Id", ""), request_id), request)


def _with_headers(response: ResponseT, reply: "ProtocolReply") -> ResponseT:
    """Return the response with the headers of the protocol's reply."""
    for name in SENT_HEADERS:
        if name in reply.headers:
            response.headers[name] = reply.headers[name]
    response.headers["Cache-Control"] = "no-store"
    return response


def _authenticate(request: HttpRequest) -> Actor:
    """Return the caller, and pass its token on to the requests that tools make."""
    reject_cross_site_requests(request)
    scheme, _, credentials = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    if conf.api_access != "open":
        if scheme.lower() == "bearer":
            request.META["HTTP_X_AUTHORIZATION"] = credentials.strip()
        elif scheme.lower() == "basic":
            request.META["HTTP_X_AUTHORIZATION"] = _token_of_key(credentials.strip())
        if not request.META.get("HTTP_X_AUTHORIZATION"):
            raise Unauthenticated("The header Authorization with a token, or with a key and its secret, is required.")
    return authenticate(request)


def _token_of_key(credentials: str) -> str:
    """Return a token for a key and its secret."""
    try:
        key_id, _, secret = base64.b64decode(credentials, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise Unauthenticated("The credentials of the header Authorization are not valid base64.") from None
    key = verify_key(key_id.replace("\0", ""), secret)
    return tokens.issue_token(key.id, key.application.name)


def _refusal(request: HttpRequest, error: Exception) -> HttpResponse:
    if is_transient(error):
        log_transient_error(request, error)
        discard_broken_connection()
        text, status = f"{describe_transient(error)} Send the request again.", 503
    else:
        text, status = str(error), 403 if isinstance(error, Forbidden) else 401
    response = HttpResponse(text, status=status, content_type="text/plain; charset=utf-8")
    if status == 503:
        response.headers["Retry-After"] = "1"
    if status == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="conductor-app"'
    return response
