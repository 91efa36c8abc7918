"""The content of artifacts: sent and fetched at addresses that were handed out for this."""

from typing import Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils.decorators import classonlymethod
from django.views import View

from .... import conf
from ....access.links import FETCH, SEND, artifact_path, check
from ....core.errors import Busy, Invalid
from ....engine.artifacts import contents
from ..errors import answer
from ..patterns import check_params
from ..uploads import upload_of

SHUT_IN = "default-src 'none'; img-src 'self' data:; media-src 'self'; style-src 'unsafe-inline'; sandbox"
"""What a worker has brought may be a page: it must not act for whoever looks at it."""
LONGEST_ENCODING = 64


class Content(View):
    """/api/artifacts/v1/{taskId}/{runId}/{name}: the bytes of an artifact, with its type and its encoding."""

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
            return answer(error, request, method, params, None)

    def put(self, request: HttpRequest, *key: Any) -> HttpResponse:
        check(artifact_path(*key), SEND, request.GET.dict())
        encoding = request.headers.get("Content-Encoding", "")
        if len(encoding) > LONGEST_ENCODING or not encoding.isascii() or not encoding.isprintable():
            raise Invalid("The Content-Encoding of the upload is none.")
        upload = upload_of(request, conf.artifact_max_bytes)
        try:
            contents.fill(*key, upload, encoding)
        except Busy as away:
            # A storage says of a body that could not be read that itself is out of reach.
            raise upload.body.fault or away from None
        return HttpResponse(status=200)

    def get(self, request: HttpRequest, *key: Any) -> HttpResponse:
        check(artifact_path(*key), FETCH, request.GET.dict())
        row, chunks = contents.stream(*key)
        headers = {
            "Content-Length": str(row.size),
            "Cache-Control": "private, max-age=0",
            "Content-Security-Policy": SHUT_IN,
            "Access-Control-Allow-Origin": "*",
        }
        if row.content_encoding:
            headers["Content-Encoding"] = row.content_encoding
        return StreamingHttpResponse(chunks, content_type=row.content_type or "application/binary", headers=headers)
