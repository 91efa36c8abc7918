"""Tables of payloads outside the database with the runs that use them, and of files of runs."""

from django.db import models
from django.db.models import Q

from ..access.models import MAX_CALLER_LENGTH
from ..db.fields import DocumentField, IdField, MomentField

UPLOADING, UPLOADED = "UPLOADING", "UPLOADED"


class StoredPayload(models.Model):
    """A payload in blob storage. `size` is null during the upload; an unused payload is deleted at `expires_at`.

    `uploader`: the caller who requested the address of the upload, null for payloads that the server has stored itself.
    """

    path = models.CharField(max_length=255, primary_key=True)
    size = models.BigIntegerField(null=True)
    created_at = MomentField()
    expires_at = MomentField(null=True)
    uploader = models.CharField(max_length=MAX_CALLER_LENGTH, null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(name="payload_to_forget", fields=["expires_at"], condition=Q(expires_at__isnull=False)),
            models.Index(
                name="payload_by_uploader",
                fields=["uploader", "expires_at", "size"],
                condition=Q(uploader__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.path


class PayloadReference(models.Model):
    """The use of a payload by a run."""

    payload = models.ForeignKey(StoredPayload, on_delete=models.CASCADE, related_name="uses", db_index=False)
    run_id = IdField()

    class Meta:
        constraints = [models.UniqueConstraint(name="one_use_per_payload_and_run", fields=["payload", "run_id"])]
        indexes = [models.Index(name="payload_of_run", fields=["run_id"])]

    def __str__(self) -> str:
        return f"{self.payload_id} of {self.run_id}"


class FileHandle(models.Model):
    """A file of a run. `path`: the path of its content after the upload; `parts`: the uploaded parts.

    `uploader`: the caller who created the handle.
    """

    id = IdField(primary_key=True)
    run_id = IdField(db_index=True)
    attempt_id = IdField(default="", blank=True)
    name = models.CharField(max_length=255, default="", blank=True)
    content_type = models.CharField(max_length=255)
    status = models.CharField(max_length=16, default=UPLOADING)
    path = models.CharField(max_length=255, default="", blank=True)
    size = models.BigIntegerField(null=True)
    digest = models.CharField(max_length=64, default="", blank=True)
    upload_id = IdField(default="", blank=True)
    parts = DocumentField(default=dict)
    created_at = MomentField()
    updated_at = MomentField()
    uploader = models.CharField(max_length=MAX_CALLER_LENGTH, default="", db_default="", blank=True)

    class Meta:
        indexes = [models.Index(name="file_unfinished", fields=["created_at"], condition=Q(status=UPLOADING))]

    def __str__(self) -> str:
        return self.name or self.id
