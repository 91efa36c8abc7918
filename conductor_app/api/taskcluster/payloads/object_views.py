"""Views of the Object service, as far as clients need them to upload and download artifacts."""

import base64
import binascii

from django.core.files.base import ContentFile
from django.http import HttpResponse

from ....core.errors import Invalid, NotFound
from ....engine.standalone import artifact_contents, artifact_objects
from ....insight.standalone.task_status import format_timestamp
from ....models import Artifact
from ..errors import NoMatchingMethod
from ..method_scopes import ApiMethod
from ..replies import Json
from ..view import TaskclusterRequest, TaskclusterView
from .object_serializers import download_method, parse_object_name, upload_method


class ObjectUpload(TaskclusterView):
    """/upload/{name}: start an upload. The request can contain the content if it is small."""

    methods = {"PUT": ApiMethod("createUpload", scopes_of_facts="object:upload:<projectId>:<objectName>")}

    def put(self, request: TaskclusterRequest) -> HttpResponse:
        document, key = request.document, parse_object_name(request.params["objectName"])
        request.require(projectId=document["projectId"])
        row = artifact_objects.begin_upload(
            key, document["uploadId"], document["projectId"], document.get("hashes", {})
        )
        proposed = document["proposedUploadMethods"]
        if "dataInline" in proposed:
            artifact_contents.store_content(*key, ContentFile(decode_content(proposed["dataInline"]["objectData"])))
            method = {"dataInline": True}
        else:
            method = upload_method(request, row, proposed)
        facts = {
            "projectId": document["projectId"],
            "uploadId": document["uploadId"],
            "expires": format_timestamp(row.expires_at),
        }
        return Json({**facts, "uploadMethod": method})


def decode_content(text: str) -> bytes:
    """Return the content that a request contains.

    Raises:
        Invalid: when it is not base64.
    """
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
        artifact_objects.finish_upload(key, document["uploadId"], document["projectId"], document.get("hashes", {}))
        return Json({})


class FinishedObject(TaskclusterView):
    """Base class of the views of a completely uploaded object."""

    def find_finished(self, request: TaskclusterRequest) -> Artifact:
        row = artifact_objects.find_object(parse_object_name(request.params["objectName"]))
        if not row.details.get("isFinished"):
            raise NotFound("The upload of this object is not finished.")
        return row


class StartDownload(FinishedObject):
    """/start-download/{name}: get how the content can be downloaded."""

    methods = {"PUT": ApiMethod("startDownload", scopes="object:download:<objectName>")}

    def put(self, request: TaskclusterRequest) -> HttpResponse:
        method = download_method(request, self.find_finished(request), request.document["acceptDownloadMethods"])
        if method is None:
            raise NoMatchingMethod
        return Json(method)


class ObjectDownload(FinishedObject):
    """/download/{name}: redirect to the content."""

    methods = {"GET": ApiMethod("download", scopes="object:download:<objectName>")}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        url = (download_method(request, self.find_finished(request), {"simple": True}) or {})["url"]
        reply = Json({"url": url}, 303)
        reply.headers["Location"] = url
        return reply


class ObjectMetadata(FinishedObject):
    """/metadata/{name}: return the metadata of an object."""

    methods = {"GET": ApiMethod("object", scopes="object:download:<objectName>")}

    def get(self, request: TaskclusterRequest) -> HttpResponse:
        row = self.find_finished(request)
        facts = {"projectId": row.details["projectId"], "expires": format_timestamp(row.expires_at)}
        return Json({**facts, "hashes": row.details.get("hashes", {})})
