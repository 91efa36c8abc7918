"""Files of runs. Inputs and outputs refer to them by handles."""

from django.db import models
from django.db.models import Q

from .fields import DocumentField, IdField, MomentField
from .quotas import MAX_CALLER_LENGTH

UPLOADING, UPLOADED = "UPLOADING", "UPLOADED"


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
