"""Workflow tests: simulated executions of `POST /workflow/test`, which can be read by id like runs for a day."""

from django.db import models

from .fields import DocumentField, IdField, MomentField


class WorkflowTest(models.Model):
    """One simulated execution, of the tested workflow or a sub-workflow in it. Workers and sweeps ignore it."""

    id = IdField(primary_key=True)
    name = models.CharField(max_length=255)
    document = DocumentField()
    created_at = MomentField(db_index=True)
    created_by = models.CharField(max_length=255, default="", blank=True)

    def __str__(self) -> str:
        return f"test {self.id} of {self.name}"
