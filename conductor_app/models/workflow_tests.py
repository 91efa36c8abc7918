"""Workflow tests: executions computed by `POST /workflow/test`, shown by their ids like runs for a day."""

from django.db import models

from .fields import DocumentField, IdField, MomentField


class WorkflowTest(models.Model):
    """One computed execution, of the tested workflow or of a sub-workflow in it; no worker or sweep reads it."""

    id = IdField(primary_key=True)
    name = models.CharField(max_length=255)
    document = DocumentField()
    created_at = MomentField(db_index=True)
    created_by = models.CharField(max_length=255, default="", blank=True)

    def __str__(self) -> str:
        return f"test {self.id} of {self.name}"
