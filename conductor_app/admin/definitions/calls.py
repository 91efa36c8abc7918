"""The call that a page makes, as a client would make it: for curl and for Python."""

import json
import shlex
from typing import Any

from ...engine.runs import StartRequest


def body_of(request: StartRequest) -> dict[str, Any]:
    """The request as the API reads it."""
    said: dict[str, Any] = {
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
        said["idempotencyStrategy"] = request.idempotency_strategy
    return {name: value for name, value in said.items() if value not in (None, "", {}, 0, [])}


def as_curl(request: StartRequest, server: str) -> str:
    """One command of a shell."""
    text = json.dumps(body_of(request), indent=2, ensure_ascii=False)
    return f"curl -X POST {server}/api/workflow -H 'Content-Type: application/json' \\\n  -d {shlex.quote(text)}"


def as_python(request: StartRequest, server: str) -> str:
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
    body = body_of(request)
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
    return "\n".join([*imports, "", client, f"run_id = client.start_workflow(StartWorkflowRequest(\n{given}))"])
