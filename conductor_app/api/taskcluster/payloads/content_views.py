"""Views that upload and download the content of artifacts at signed addresses."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.utils.decorators import classonlymethod
from django.views import View

from .... import conf
from ....access.signed_links import DOWNLOAD, UPLOAD, artifact_path, is_artifact_host, verify_link
from ....core.errors import Busy, Invalid
from ....engine.standalone import artifact_contents
from ....models import Artifact
from ..byte_ranges import parse_range
from ..errors import error_response
from ..identifier_patterns import check_params
from ..uploads import receive_upload

SANDBOX_POLICY = "default-src 'none'; img-src 'self' data:; media-src 'self'; style-src 'unsafe-inline'; sandbox"
"""The policy of downloads: an artifact may be a web page and must not act on behalf of its viewer."""
MAX_ENCODING_LENGTH = 64


class ArtifactBytes(View):
    """/api/artifacts/v1/{taskId}/{runId}/{name}: upload or download the content of an artifact."""

    http_method_names = ("get", "head", "put")

    @classonlymethod
    def as_view(cls, **initkwargs: Any):
        view = super().as_view(**initkwargs)
        view.csrf_exempt = True
        return view

    def dispatch(self, request: HttpRequest, **params: str) -> HttpResponse:
        method = {"PUT": "putArtifact"}.get(str(request.method), "fetchArtifact")
        try:
            check_params(params)
            return super().dispatch(request, params["taskId"], int(params["runId"]), params["name"])
        except Exception as error:
            return error_response(error, request, method, params, None)

    def put(self, request: HttpRequest, *key: Any) -> HttpResponse:
        verify_link(artifact_path(*key), UPLOAD, request.GET.dict())
        encoding = request.headers.get("Content-Encoding", "")
        if len(encoding) > MAX_ENCODING_LENGTH or not encoding.isascii() or not encoding.isprintable():
            raise Invalid("Unsupported Content-Encoding.")
        upload = receive_upload(request, conf.artifact_max_bytes)
        try:
            artifact_contents.store_content(*key, upload, encoding)
        except Busy as away:
            # A storage reports a request body that cannot be read as its own failure.
            raise upload.body.read_error or away from None
        return HttpResponse(status=200)

    def get(self, request: HttpRequest, *key: Any) -> HttpResponse:
        verify_link(artifact_path(*key), DOWNLOAD, request.GET.dict())
        if conf.artifact_url and not is_artifact_host(request.get_host()):
            # The signature of a link does not include the host, so the link could be changed to that of the pages.
            return HttpResponseRedirect(conf.artifact_url + request.get_full_path())
        row = artifact_contents.find_present(*key)
        part = requested_range(request, row)
        if part is not None and not part:
            return HttpResponse(status=416, headers={"Content-Range": f"bytes */{row.size}"})
        status, content_type = 200 if part is None else 206, row.content_type or "application/binary"
        reply = StreamingHttpResponse(
            artifact_contents.stream_content(row, part), status=status, content_type=content_type
        )
        for name, value in content_headers(row, part).items():
            reply.headers[name] = value
        return reply


def requested_range(request: HttpRequest, row: Artifact) -> range | None:
    """Return the requested bytes, or None for all.

    All bytes are sent without a range, and if the content has changed since the client began.
    """
    is_the_same = request.headers.get("If-Range", entity_tag(row)) == entity_tag(row)
    is_read = request.method == "GET" and is_the_same
    return parse_range(request.headers.get("Range", ""), row.size) if is_read else None


def entity_tag(row: Artifact) -> str:
    """Return the entity tag of the content, which changes when the content is replaced."""
    return f'"{row.path.rpartition("/")[2]}"'


def content_headers(row: Artifact, part: range | None) -> dict[str, str]:
    """Return the headers of the content, without its type."""
    headers = {
        "Content-Length": str(row.size if part is None else len(part)),
        "Accept-Ranges": "bytes",
        "ETag": entity_tag(row),
        "Cache-Control": "private, max-age=0",
        "Content-Security-Policy": SANDBOX_POLICY,
        "Access-Control-Allow-Origin": "*",
    }
    if row.content_encoding:
        headers["Content-Encoding"] = row.content_encoding
    if part is not None:
        headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{row.size}"
    return headers
