"""The API call that equals a form, as curl command and as Python code."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from ...engine.runs.run_commands import StartRequest

EXTRA_FIELDS = {
    "labels": ("labels", "list[str]"),
    "startAt": ("start_at", "int"),
    "breakpoints": ("breakpoints", "list[object]"),
}
"""API fields that the Python package's request class lacks, with the attribute and the type that the code adds."""


def request_body(request: StartRequest) -> dict[str, Any]:
    """Return the request body of the API call, without empty fields."""
    body: dict[str, Any] = {
        "name": request.name,
        "version": request.version,
        "input": request.input,
        "correlationId": request.correlation_id,
        "priority": request.priority,
        "taskToDomain": request.domains,
        "idempotencyKey": request.idempotency_key,
        "labels": list(request.labels),
        "startAt": request.starts_at,
        "breakpoints": [{"taskReferenceName": each.ref, "place": each.place} for each in request.breakpoints],
    }
    if request.idempotency_key:
        body["idempotencyStrategy"] = request.idempotency_strategy
    return {name: value for name, value in body.items() if value not in (None, "", {}, 0, [])}


def curl_command(request: StartRequest, server: str) -> str:
    """Return the call as a shell command."""
    text = json.dumps(request_body(request), indent=2, ensure_ascii=False)
    return f"curl -X POST {server}/api/workflow -H 'Content-Type: application/json' \\\n  -d {shlex.quote(text)}"


def python_snippet(request: StartRequest, server: str) -> str:
    """Return the call as Python code that uses the official package."""
    names = {
        "name": "name",
        "version": "version",
        "input": "input",
        "correlationId": "correlation_id",
        "priority": "priority",
        "taskToDomain": "task_to_domain",
        "idempotencyKey": "idempotency_key",
    }
    body = request_body(request)
    arguments = "".join(f"    {names[name]}={body[name]!r},\n" for name in names if name in body)
    imports = [
        "from conductor.client.configuration.configuration import Configuration",
        "from conductor.client.http.models.start_workflow_request import StartWorkflowRequest",
        "from conductor.client.orkes_clients import OrkesClients",
    ]
    if request.idempotency_key:
        imports.insert(2, "from conductor.client.http.models.idempotency_strategy import IdempotencyStrategy")
        arguments += f"    idempotency_strategy=IdempotencyStrategy.{request.idempotency_strategy},\n"
    client = f'client = OrkesClients(Configuration(server_api_url="{server}/api")).get_workflow_client()'
    request_lines = [f"request = StartWorkflowRequest(\n{arguments})", *_extra_fields(body)]
    return "\n".join([*imports, "", client, *request_lines, "run_id = client.start_workflow(request)"])


def _extra_fields(body: Mapping[str, Any]) -> list[str]:
    """Return the lines that add missing fields to the package's request, through its two tables of attributes."""
    extra = {wire: names for wire, names in EXTRA_FIELDS.items() if wire in body}
    if not extra:
        return []
    types = dict(extra.values())
    wires = {name: wire for wire, (name, _type) in extra.items()}
    return [
        f"request.swagger_types = request.swagger_types | {types!r}",
        f"request.attribute_map = request.attribute_map | {wires!r}",
        *(f"request.{name} = {body[wire]!r}" for name, wire in wires.items()),
    ]
