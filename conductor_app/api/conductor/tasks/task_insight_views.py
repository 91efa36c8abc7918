"""View that explains where the input of a task came from."""

from typing import Any

from django.http import HttpResponse

from ....insight.definitions.parsed_definitions import parsed_definition
from ....insight.runs.execution import find_attempt
from ....insight.tasks.input_provenance import InputOrigin, input_origins
from ..api_operation import ApiOperation
from ..openapi import insight_tables
from ..permissions import can_view_task
from ..replies import Json
from ..view import ConductorRequest, ConductorView


class InputProvenance(ConductorView):
    """GET /api/insight/tasks/{taskId}/provenance: list where each expression of a task's input got its value."""

    operations = {
        "get": ApiOperation("Explain the input of a task", permission=can_view_task, reply=insight_tables.PROVENANCE),
    }

    def get(self, request: ConductorRequest, task_id: str) -> HttpResponse:
        attempt = find_attempt(task_id)
        definition = parsed_definition(attempt.run.resolved_definition_id) if attempt.run else None
        origins = input_origins(attempt, definition.step(attempt.task.ref) if definition else None)
        return Json({"taskId": attempt.pk, "inputs": [_origin_document(origin) for origin in origins]})


def _origin_document(origin: InputOrigin) -> dict[str, Any]:
    facts = {
        "parameter": origin.parameter,
        "expression": origin.expression,
        "source": origin.source,
        "taskReferenceName": origin.task,
        "hint": origin.hint,
    }
    known = {name: value for name, value in facts.items() if value}
    return {**known, "isFound": origin.is_found, "value": origin.value if origin.is_found else None}
