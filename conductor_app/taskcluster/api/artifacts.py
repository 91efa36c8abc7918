"""The views of artifacts, and of the Object service as far as clients need it to upload and download them.

Signed addresses transfer their content.
"""

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any

from django.core.files.base import ContentFile
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import classonlymethod
from django.views import View

from ...access import tokens
from ...core.errors import Busy, Expired, Invalid, NotFound
from ...db.statements import read_snapshot
from ...runs.models import Attempt
from ...settings import conf
from ...utils import clock
from ..commands import artifacts, tasks
from ..core.decisions import ERROR, LINK, OBJECT, REFERENCE, S3, ArtifactValue
from ..models import Artifact
from ..queries import format_timestamp, worker_facts
from . import base
from .view import GET_ARTIFACT_SCOPES, ApiMethod, TaskclusterRequest, TaskclusterView, task_credentials

UNKNOWN_TYPE = "application/binary"
DETAIL_FIELDS = {REFERENCE: ("url",), LINK: ("artifact",), ERROR: ("reason", "message")}


def parse_artifact(document: dict[str, Any]) -> ArtifactValue:
    """Return the artifact that a document describes."""
    kind = document["storageType"]
    return ArtifactValue(
        kind,
        document.get("contentType", UNKNOWN_TYPE),
        base.parse_timestamp(document["expires"], "expires"),
        {name: document[name] for name in DETAIL_FIELDS.get(kind, ())},
        document.get("contentLength"),
    )


def upload_reply(request: HttpRequest, row: Artifact) -> dict[str, Any]:
    """Return the response to a worker that uploads the content next."""
    return {
        "storageType": row.kind,
        "putUrl": content_address(request, row, tokens.UPLOAD),
        "expires": format_timestamp(clock.now() + tokens.UPLOAD_VALID_MS),
        "contentType": row.content_type,
    }


def content_address(request: HttpRequest, row: Artifact, purpose: str) -> str:
    """Return an address of this server that allows one purpose for a limited time."""
    return request.build_absolute_uri(tokens.artifact_address(row.task_id, row.number, row.name, purpose))


def download_url(request: HttpRequest, row: Artifact) -> str:
    """Return the address of the content: on this server, or the target of a reference."""
    return row.details["url"] if row.kind == REFERENCE else content_address(request, row, tokens.DOWNLOAD)


HOUR_MS = 3_600_000
OBJECT_NAME_PATTERN = re.compile(r"t/([A-Za-z0-9_-]{22})/([0-9]{1,9})/(.{1,1024})")


def object_name(row: Artifact) -> str:
    """Return the name of an artifact in the Object service."""
    return f"t/{row.task_id}/{row.number}/{row.name}"


def parse_object_name(name: str) -> tuple[str, int, str]:
    """Return the artifact of a name in the Object service."""
    found = OBJECT_NAME_PATTERN.fullmatch(name)
    if found is None:
        raise NotFound("There is no such object. Objects are artifacts, named t/<taskId>/<runId>/<name>.")
    return found[1], int(found[2]), found[3]


def creation_reply(row: Artifact) -> dict[str, Any]:
    """Return the response to a worker that uploads the content through the Object service next."""
    worker = worker_facts(Attempt.objects.values_list("worker", flat=True).get(task_id=row.task_id, number=row.number))
    client_id = f"artifact-upload/{row.task_id}/{row.number}/on/{worker['workerGroup']}/{worker['workerId']}"
    project_id, name = row.details["projectId"], object_name(row)
    until = min(clock.now() + 24 * HOUR_MS, row.expires_at)
    return {
        "storageType": row.kind,
        "name": name,
        "projectId": project_id,
        "uploadId": row.details["uploadId"],
        "expires": format_timestamp(row.expires_at),
        "credentials": task_credentials(client_id, [f"object:upload:{project_id}:{name}"], until),
    }


def download_reply(row: Artifact) -> dict[str, Any]:
    """Return how the content can be downloaded through the Object service."""
    name = object_name(row)
    client_id = f"artifact-download/{row.task_id}/{row.number}"
    granted_scopes = [f"object:download:{name}"]
    return {
        "storageType": row.kind,
        "name": name,
        "credentials": task_credentials(client_id, granted_scopes, clock.now() + HOUR_MS),
    }


def upload_method(request: HttpRequest, row: Artifact, proposed: dict[str, Any]) -> dict[str, Any]:
    """Return the address for the upload, or an empty document if the client proposes no method."""
    if "putUrl" not in proposed:
        return {}
    headers = {"Content-Type": row.content_type, "Content-Length": str(proposed["putUrl"]["contentLength"])}
    url, expires = content_address(request, row, tokens.UPLOAD), format_timestamp(clock.now() + tokens.UPLOAD_VALID_MS)
    return {"putUrl": {"url": url, "expires": expires, "headers": headers}}


def download_method(request: HttpRequest, row: Artifact, accepted: dict[str, Any]) -> dict[str, Any] | None:
    """Return a download method that the client accepts, or None."""
    url = content_address(request, row, tokens.DOWNLOAD)
    if accepted.get("getUrl"):
        hashes = row.details.get("hashes", {})
        return {
            "method": "getUrl",
            "url": url,
            "expires": format_timestamp(clock.now() + tokens.DOWNLOAD_VALID_MS),
            "hashes": hashes,
        }
    return {"method": "simple", "url": url} if accepted.get("simple") else None


TYPE_HEADER = "x-taskcluster-artifact-storage-type"


class NamedArtifact(TaskclusterView):
    """One artifact of the run that the address names, or of the latest one."""

    def run_number(self, request: TaskclusterRequest) -> int:
        if "runId" in request.params:
            return int(request.params["runId"])
        attempts = Attempt.objects.filter(task_id=request.params["taskId"], run__isnull=True)
        latest = attempts.order_by("-number").values_list("number", flat=True).first()
        if latest is None:
            raise NotFound(f"Task {request.params['taskId']} does not exist, or has no runs.")
        return latest

    def resolve_links(self, request: TaskclusterRequest) -> Artifact:
        """Return the artifact that all links lead to. The caller needs the permission for each name on the way.

        Raises:
            Forbidden: when the caller lacks a permission
            NotFound: when the artifact is unfinished
            Expired: when it has expired
            Invalid: when the links form a circle.
        """
        run_number, names = self.run_number(request), [request.params["name"]]
        while True:
            request.require(ids=names)
            row = artifacts.find(request.params["taskId"], run_number, names[-1])
            if not row.is_present:
                raise NotFound(f"Artifact {row.name} is not finished.")
            if row.expires_at < clock.now():
                raise Expired(f"Artifact {row.name} has expired.")
            if row.kind != LINK:
                return row
            names.append(row.details["artifact"])
            if names[-1] in names[:-1]:
                raise Invalid(f"The links from {names[0]} form a circle.")

    def redirect_reply(self, request: TaskclusterRequest) -> HttpResponse:
        """Redirect to the content of the artifact."""
        row = self.resolve_links(request)
        if row.kind == ERROR:
            reply = base.Json(row.details, 424)
        else:
            url = download_url(request, row)
            reply = base.Json({"storageType": row.kind, "url": url}, 303)
            reply.headers["Location"] = url
        reply.headers[TYPE_HEADER] = row.kind
        return reply

    def content_reply(self, request: TaskclusterRequest) -> HttpResponse:
        """Return how the content can be downloaded."""
        row = self.resolve_links(request)
        if row.kind == OBJECT:
            return base.Json(download_reply(row))
        location = row.details if row.kind == ERROR else {"url": download_url(request, row)}
        return base.Json({"storageType": row.kind, **location})

    def info_reply(self, request: TaskclusterRequest) -> HttpResponse:
        """Return the metadata of the artifact. A link is not followed.

        Raises:
            NotFound: when the artifact is unfinished.
        """
        row = artifacts.find(request.params["taskId"], self.run_number(request), request.params["name"])
        if not row.is_present:
            raise NotFound(f"Artifact {row.name} is not finished.")
        return base.Json(artifacts.artifact_document(row))

    @read_snapshot()
    def list_reply(self, request: TaskclusterRequest) -> HttpResponse:
        """Return all artifacts of the run."""
        page, task_id = base.parse_page(request.options, str), request.params["taskId"]
        task, run_number = tasks.find_task(task_id), self.run_number(request)
        if run_number >= len(task.attempts):
            raise NotFound(f"Task {task_id} has no run {run_number}.")
        rows = Artifact.objects.of(task_id, run_number).starting_after(page.after)[: page.size + 1]
        return base.Json(page.reply("artifacts", list(rows), lambda row: [row.name], artifacts.artifact_document))


class ArtifactOne(NamedArtifact):
    """/task/{taskId}/runs/{runId}/artifacts/{name}: create, finish or download an artifact."""

    methods = {
        "POST": ApiMethod("createArtifact", scopes="queue:create-artifact:<taskId>/<runId>"),
        "PUT": ApiMethod("finishArtifact", scopes="queue:create-artifact:<taskId>/<runId>"),
        "GET": ApiMethod("getArtifact", scopes_of_facts=GET_ARTIFACT_SCOPES),
    }

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        new, name = parse_artifact(request.document), request.params["name"]
        if name in tokens.DOT_SEGMENTS:
            raise base.InvalidRequestArguments(
                f"The artifact name {name!r} is refused: no client can send it in an address."
            )
        row = artifacts.create(request.params["taskId"], self.run_number(request), name, new)
        if row.kind == OBJECT:
            return base.Json(creation_reply(row))
        return base.Json(upload_reply(request, row) if row.kind == S3 else {"storageType": row.kind})

    def put(self, request: TaskclusterRequest) -> HttpResponse:
        upload_id = request.document["uploadId"]
        artifacts.finish(request.params["taskId"], self.run_number(request), request.params["name"], upload_id)
        return base.NoContent()

    get = NamedArtifact.redirect_reply


class LatestArtifact(NamedArtifact):
    """/task/{taskId}/artifacts/{name}: download an artifact of the latest run."""

    methods = {"GET": ApiMethod("getLatestArtifact", scopes_of_facts=GET_ARTIFACT_SCOPES)}
    get = NamedArtifact.redirect_reply


class ArtifactContent(NamedArtifact):
    """/task/{taskId}/runs/{runId}/artifact-content/{name}: return how the content can be downloaded."""

    methods = {"GET": ApiMethod("artifact", scopes_of_facts=GET_ARTIFACT_SCOPES)}
    get = NamedArtifact.content_reply


class LatestArtifactContent(NamedArtifact):
    """/task/{taskId}/artifact-content/{name}: return how the content of the latest run can be downloaded."""

    methods = {"GET": ApiMethod("latestArtifact", scopes_of_facts=GET_ARTIFACT_SCOPES)}
    get = NamedArtifact.content_reply


class ArtifactInfo(NamedArtifact):
    """/task/{taskId}/runs/{runId}/artifact-info/{name}: return the metadata."""

    methods = {"GET": ApiMethod("artifactInfo", scopes="queue:list-artifacts:<taskId>:<runId>")}
    get = NamedArtifact.info_reply


class LatestArtifactInfo(NamedArtifact):
    """/task/{taskId}/artifact-info/{name}: return the metadata in the latest run."""

    methods = {"GET": ApiMethod("latestArtifactInfo", scopes="queue:list-artifacts:<taskId>")}
    get = NamedArtifact.info_reply


class Artifacts(NamedArtifact):
    """/task/{taskId}/runs/{runId}/artifacts: list the artifacts of a run."""

    methods = {"GET": ApiMethod("listArtifacts", scopes="queue:list-artifacts:<taskId>:<runId>")}
    known_options = base.PAGE_QUERY_OPTIONS
    get = NamedArtifact.list_reply


class LatestArtifacts(NamedArtifact):
    """/task/{taskId}/artifacts: list the artifacts of the latest run."""

    methods = {"GET": ApiMethod("listLatestArtifacts", scopes="queue:list-artifacts:<taskId>")}
    known_options = base.PAGE_QUERY_OPTIONS
    get = NamedArtifact.list_reply


SANDBOX_POLICY = "default-src 'none'; img-src 'self' data:; media-src 'self'; style-src 'unsafe-inline'; sandbox"
"""The policy of downloads: an artifact may be a web page and must not act on behalf of its viewer."""
MAX_ENCODING_LENGTH = 64


class ArtifactBytes(View):
    """/api/artifacts/v1/{taskId}/{runId}/{name}: upload or download the content of an artifact."""

    http_method_names = ("get", "head", "put")

    @classonlymethod
    def as_view(cls, **initkwargs: Any) -> Callable[..., HttpResponseBase]:
        view = super().as_view(**initkwargs)
        view.csrf_exempt = True  # type: ignore[attr-defined]
        return view

    def dispatch(self, request: HttpRequest, *args: object, **params: str) -> HttpResponseBase:
        method = {"PUT": "putArtifact"}.get(str(request.method), "fetchArtifact")
        try:
            base.check_params(params)
            return super().dispatch(request, params["taskId"], int(params["runId"]), params["name"])
        except Exception as error:
            return base.error_response(error, request, method, params, None)

    def put(self, request: HttpRequest, task_id: str, number: int, name: str) -> HttpResponse:
        tokens.verify_link(tokens.artifact_path(task_id, number, name), tokens.UPLOAD, request.GET.dict())
        encoding = request.headers.get("Content-Encoding", "")
        if len(encoding) > MAX_ENCODING_LENGTH or not encoding.isascii() or not encoding.isprintable():
            raise Invalid("Unsupported Content-Encoding.")
        upload = base.receive_upload(request, conf.artifact_max_bytes)
        try:
            artifacts.store_content(task_id, number, name, upload, encoding)
        except Busy as away:
            # A storage reports a request body that cannot be read as its own failure.
            raise upload.body.read_error or away from None
        return HttpResponse(status=200)

    def get(self, request: HttpRequest, task_id: str, number: int, name: str) -> HttpResponseBase:
        tokens.verify_link(tokens.artifact_path(task_id, number, name), tokens.DOWNLOAD, request.GET.dict())
        if conf.artifact_url and not tokens.is_artifact_host(request.get_host()):
            # The signature of a link does not include the host, so the link could be changed to that of the pages.
            return HttpResponseRedirect(conf.artifact_url + request.get_full_path())
        row = artifacts.find_present(task_id, number, name)
        part = requested_range(request, row)
        if part is not None and not part:
            return HttpResponse(status=416, headers={"Content-Range": f"bytes */{row.size}"})
        status, content_type = 200 if part is None else 206, row.content_type or "application/binary"
        reply = StreamingHttpResponse(artifacts.stream_content(row, part), status=status, content_type=content_type)
        for header, value in content_headers(row, part).items():
            reply.headers[header] = value
        return reply


def requested_range(request: HttpRequest, row: Artifact) -> range | None:
    """Return the requested bytes, or None for all.

    All bytes are sent without a range, and if the content has changed since the client began.
    """
    is_the_same = request.headers.get("If-Range", entity_tag(row)) == entity_tag(row)
    is_read = request.method == "GET" and is_the_same
    return base.parse_range(request.headers.get("Range", ""), row.size) if is_read else None


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


class ObjectUpload(TaskclusterView):
    """/upload/{name}: start an upload. The request can contain the content if it is small."""

    methods = {"PUT": ApiMethod("createUpload", scopes_of_facts="object:upload:<projectId>:<objectName>")}

    def put(self, request: TaskclusterRequest) -> HttpResponse:
        document, key = request.document, parse_object_name(request.params["objectName"])
        request.require(projectId=document["projectId"])
        row = artifacts.begin_upload(key, document["uploadId"], document["projectId"], document.get("hashes", {}))
        proposed = document["proposedUploadMethods"]
        if "dataInline" in proposed:
            artifacts.store_content(*key, ContentFile(decode_content(proposed["dataInline"]["objectData"])))
            method = {"dataInline": True}
        else:
            method = upload_method(request, row, proposed)
        facts = {
            "projectId": document["projectId"],
            "uploadId": document["uploadId"],
            "expires": format_timestamp(row.expires_at),
        }
        return base.Json({**facts, "uploadMethod": method})


def decode_content(text: str) -> bytes:
    """Return the content that a request contains."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Invalid("objectData must be base64.") from None


class FinishUpload(TaskclusterView):
    """/finish-upload/{name}: complete an upload."""

    methods = {"POST": ApiMethod("finishUpload", scopes_of_facts="object:upload:<projectId>:<objectName>")}

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        document, key = request.document, parse_object_name(request.params["objectName"])
        request.require(projectId=document["projectId"])
        artifacts.finish_upload(key, document["uploadId"], document["projectId"], document.get("hashes", {}))
        return base.Json({})


class FinishedObject(TaskclusterView):
    """Base class of the views of a completely uploaded object."""

    def find_finished(self, request: TaskclusterRequest) -> Artifact:
        row = artifacts.find_object(parse_object_name(request.params["objectName"]))
        if not row.details.get("isFinished"):
            raise NotFound("The upload of this object is not finished.")
        return row


class StartDownload(FinishedObject):
    """/start-download/{name}: get how the content can be downloaded."""

    methods = {"PUT": ApiMethod("startDownload", scopes="object:download:<objectName>")}

    def put(self, request: TaskclusterRequest) -> HttpResponse:
        method = download_method(request, self.find_finished(request), request.document["acceptDownloadMethods"])
        if method is None:
            raise base.NoMatchingMethod
        return base.Json(method)


class ObjectDownload(FinishedObject):
    """/download/{name}: redirect to the content."""

    methods = {"GET": ApiMethod("download", scopes="object:download:<objectName>")}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        url = (download_method(request, self.find_finished(request), {"simple": True}) or {})["url"]
        reply = base.Json({"url": url}, 303)
        reply.headers["Location"] = url
        return reply


class ObjectMetadata(FinishedObject):
    """/metadata/{name}: return the metadata of an object."""

    methods = {"GET": ApiMethod("object", scopes="object:download:<objectName>")}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        row = self.find_finished(request)
        facts = {"projectId": row.details["projectId"], "expires": format_timestamp(row.expires_at)}
        return base.Json({**facts, "hashes": row.details.get("hashes", {})})
