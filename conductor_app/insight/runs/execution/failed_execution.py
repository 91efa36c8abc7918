"""The failed execution in the input of a failure workflow, within the maximum size of an input."""

from typing import Any

from django.db.models import Count, Q, Sum

from .... import conf
from ....models import Attempt, Run
from .workflow_documents import run_document, run_document_without_payloads

PAYLOADS_OMITTED = "conductor.payloadsOmitted"
TASK_DOCUMENT_BYTES = 2_000
"""The approximate size of the document of a task without its payloads."""


def failed_execution_document(run_id: str) -> dict[str, Any] | None:
    """Return a run with its tasks, or None if it was deleted.

    Payloads are omitted if the document would exceed the maximum size of an input, and so are the tasks if there are
    too many. The document then says where to read them.
    """
    payload_bytes, task_count = _measure(run_id)
    if payload_bytes is None:
        return None
    limit = conf.workflow_payload_max_bytes
    if payload_bytes + task_count * TASK_DOCUMENT_BYTES <= limit:
        failed = Run.objects.filter(pk=run_id).first()
        return run_document(failed, with_tasks=True) if failed else None
    document = run_document_without_payloads(run_id, with_tasks=task_count * TASK_DOCUMENT_BYTES <= limit)
    omitted = "The payloads" if document["tasks"] else "The payloads and tasks"
    note = f"{omitted} exceed {limit} bytes. Read them with GET /api/workflow/{run_id}."
    return document | {PAYLOADS_OMITTED: note}


def _measure(run_id: str) -> tuple[int | None, int]:
    """Return the total size of the payloads in the rows of a run in bytes, and the number of its attempts.

    The input of the run counts twice, because the input of the failure workflow contains it as well.
    """
    columns = ("input_size", "input_path", "output_size", "output_path", "variables_size")
    own = Run.objects.filter(pk=run_id).values_list(*columns).first()
    if own is None:
        return None, 0
    input_size, input_path, output_size, output_path, variables_size = own
    size = 2 * input_size * (not input_path) + output_size * (not output_path) + variables_size
    found = Attempt.objects.filter(run_id=run_id).aggregate(
        inputs=Sum("input_size", filter=Q(input_path="")),
        outputs=Sum("output_size", filter=Q(output_path="")),
        count=Count("pk"),
    )
    return size + (found["inputs"] or 0) + (found["outputs"] or 0), found["count"]
