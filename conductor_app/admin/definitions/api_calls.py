"""The call that a page makes, as a client would make it: for curl and for Python."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from ...engine.runs import StartRequest

EXTRA_FIELDS = {"labels": ("labels", "list[str]"), "startAt": ("start_at", "int")}
"""What the API reads and the package's request has no name for, with the name and the type that it gets there."""


def request_body(request: StartRequest) -> dict[str, Any]:
    """The request as the API reads it."""
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
    }
    if request.idempotency_key:
        body["idempotencyStrategy"] = request.idempotency_strategy
    return {name: value for name, value in body.items() if value not in (None, "", {}, 0, [])}


def curl_command(request: StartRequest, server: str) -> str:
    """One command of a shell."""
    text = json.dumps(request_body(request), indent=2, ensure_ascii=False)
    return f"curl -X POST {server}/api/workflow -H 'Content-Type: application/json' \\\n  -d {shlex.quote(text)}"


def python_snippet(request: StartRequest, server: str) -> str:
    """A few lines with the official package."""
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
    given = "".join(f"    {names[name]}={body[name]!r},\n" for name in names if name in body)
    imports = [
        "from conductor.client.configuration.configuration import Configuration",
        "from conductor.client.http.models.start_workflow_request import StartWorkflowRequest",
        "from conductor.client.orkes_clients import OrkesClients",
    ]
    if request.idempotency_key:
        imports.insert(2, "from conductor.client.http.models.idempotency_strategy import IdempotencyStrategy")
        given += f"    idempotency_strategy=IdempotencyStrategy.{request.idempotency_strategy},\n"
    client = f'client = OrkesClients(Configuration(server_api_url="{server}/api")).get_workflow_client()'
    request_lines = [f"request = StartWorkflowRequest(\n{given})", *_extra_fields(body)]
    return "\n".join([*imports, "", client, *request_lines, "run_id = client.start_workflow(request)"])


def _extra_fields(body: Mapping[str, Any]) -> list[str]:
    """Lines that give the package's request what it has no name for: it sends whatever stands in its two tables."""
    given = {wire: names for wire, names in EXTRA_FIELDS.items() if wire in body}
    if not given:
        return []
    types = dict(given.values())
    wires = {name: wire for wire, (name, _type) in given.items()}
    return [
        f"request.swagger_types = request.swagger_types | {types!r}",
        f"request.attribute_map = request.attribute_map | {wires!r}",
        *(f"request.{name} = {body[wire]!r}" for name, wire in wires.items()),
    ]
