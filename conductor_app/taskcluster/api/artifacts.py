"""Views of artifacts: create, find by name, list. Signed addresses transfer their content (content_views.py)."""

from django.http import HttpResponse

from .... import clock
from ....access.signed_links import DOT_SEGMENTS
from ....core.errors import Expired, Invalid, NotFound
from ....core.standalone.artifacts import ERROR, LINK, OBJECT, S3
from ....engine.standalone import artifacts, task_commands
from ....models import Artifact as Row
from ....models import Attempt
from ....models.snapshots import read_snapshot
from ..errors import InvalidRequestArguments
from ..method_scopes import GET_ARTIFACT_SCOPES, ApiMethod
from ..pagination import PAGE_QUERY_OPTIONS, parse_page
from ..replies import Json, NoContent
from ..view import TaskclusterRequest, TaskclusterView
from .artifact_serializers import download_url, parse_artifact, upload_reply
from .object_serializers import creation_reply, download_reply

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

    def resolve_links(self, request: TaskclusterRequest) -> Row:
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
            reply = Json(row.details, 424)
        else:
            url = download_url(request, row)
            reply = Json({"storageType": row.kind, "url": url}, 303)
            reply.headers["Location"] = url
        reply.headers[TYPE_HEADER] = row.kind
        return reply

    def content_reply(self, request: TaskclusterRequest) -> HttpResponse:
        """Return how the content can be downloaded."""
        row = self.resolve_links(request)
        if row.kind == OBJECT:
            return Json(download_reply(row))
        location = row.details if row.kind == ERROR else {"url": download_url(request, row)}
        return Json({"storageType": row.kind, **location})

    def info_reply(self, request: TaskclusterRequest) -> HttpResponse:
        """Return the metadata of the artifact. A link is not followed.

        Raises:
            NotFound: when the artifact is unfinished.
        """
        row = artifacts.find(request.params["taskId"], self.run_number(request), request.params["name"])
        if not row.is_present:
            raise NotFound(f"Artifact {row.name} is not finished.")
        return Json(artifacts.artifact_document(row))

    @read_snapshot()
    def list_reply(self, request: TaskclusterRequest) -> HttpResponse:
        """Return all artifacts of the run.

        Raises:
            NotFound: when there is no such run.
        """
        page, task_id = parse_page(request.options, str), request.params["taskId"]
        task, run_number = task_commands.find_task(task_id), self.run_number(request)
        if run_number >= len(task.attempts):
            raise NotFound(f"Task {task_id} has no run {run_number}.")
        rows = Row.objects.of(task_id, run_number).starting_after(page.after)[: page.size + 1]
        return Json(page.reply("artifacts", list(rows), lambda row: [row.name], artifacts.artifact_document))


class ArtifactOne(NamedArtifact):
    """/task/{taskId}/runs/{runId}/artifacts/{name}: create, finish or download an artifact."""

    methods = {
        "POST": ApiMethod("createArtifact", scopes="queue:create-artifact:<taskId>/<runId>"),
        "PUT": ApiMethod("finishArtifact", scopes="queue:create-artifact:<taskId>/<runId>"),
        "GET": ApiMethod("getArtifact", scopes_of_facts=GET_ARTIFACT_SCOPES),
    }

    def post(self, request: TaskclusterRequest) -> HttpResponse:
        new, name = parse_artifact(request.document), request.params["name"]
        if name in DOT_SEGMENTS:
            raise InvalidRequestArguments(
                f"The artifact name {name!r} is refused: no client can send it in an address."
            )
        row = artifacts.create(request.params["taskId"], self.run_number(request), name, new)
        if row.kind == OBJECT:
            return Json(creation_reply(row))
        return Json(upload_reply(request, row) if row.kind == S3 else {"storageType": row.kind})

    def put(self, request: TaskclusterRequest) -> HttpResponse:
        upload_id = request.document["uploadId"]
        artifacts.finish(request.params["taskId"], self.run_number(request), request.params["name"], upload_id)
        return NoContent()

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
    known_options = PAGE_QUERY_OPTIONS
    get = NamedArtifact.list_reply


class LatestArtifacts(NamedArtifact):
    """/task/{taskId}/artifacts: list the artifacts of the latest run."""

    methods = {"GET": ApiMethod("listLatestArtifacts", scopes="queue:list-artifacts:<taskId>")}
    known_options = PAGE_QUERY_OPTIONS
    get = NamedArtifact.list_reply
