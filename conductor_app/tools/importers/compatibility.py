"""What this server does differently with a workflow definition of a Conductor server, or cannot execute.

The documentation of each difference is docs/how-to/migrate-from-conductor.md. Scripts are parsed by the engines that
would evaluate them here, and not executed.
"""

import json
import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

from ...core.definition import STEP_STRUCTURES, bodies_of, structure_of_step, type_of, walk
from ...core.document.reading import SECRET_NAME, VARIABLE_NAME
from ...core.events import INTERNAL
from ...core.step_types.worker_tasks import (
    EventStep,
    HttpPollStep,
    HttpStep,
    Inline,
    JdbcStep,
    JsonJqTransform,
    KafkaPublishStep,
)
from ...events.queries import SETTINGS, missing_setting, provider_of
from ...events.sinks.base import SinkFailed
from ...events.sinks.kafka import find_kafka_servers
from ...scripts.pool import ScriptText, syntax_faults
from ...settings import conf
from .plan import CompatibilityFinding


def script_error(language: str, source: str) -> str:
    """Return why the engine of a language refuses a script, or an empty text.

    A refusal that only an execution shows is not found.
    """
    if not source.strip() or "${" in source:
        return ""
    script = ScriptText(language, source)
    fault = syntax_faults([script]).get(script)
    return str(fault) if fault else ""


FOREIGN_TYPES = frozenset(
    (
        "LLM_INDEX_DOCUMENT",
        "GENERATE_IMAGE", "GENERATE_AUDIO", "GENERATE_VIDEO", "GENERATE_PDF",
        "AGENT", "CANCEL_AGENT", "GET_AGENT_CARD", "PLAN_AND_COMPILE", "LIST_API_TOOLS", "GET_DOCUMENT",
        "UPDATE_SECRET", "GET_SIGNED_JWT", "QUERY_PROCESSOR", "OPS_GENIE",
        "SENDGRID", "BUSINESS_RULE", "GRPC", "INTEGRATION", "MCP_REMOTE", "LIST_FILES", "PARSE_DOCUMENT", "CHUNK_TEXT",
    )
)  # fmt: skip
"""Types that a worker inside a Conductor server executes, and that are queues for workers here."""
HOST_CLASSES = re.compile(r"\b(?:Java\.(?:type|to|from|extend)|JavaImporter|Packages\.|java\.(?:lang|util|time|io)\.)")
ENGINE_FUNCTIONS = re.compile(r"(?<![\w.$])(?:load|loadWithNewGlobal|print|quit|readFully)\s*\(|\bGraal\.|\bPolyglot\.")
ENGINE_NAMES = {"javascript": "JavaScript", "python": "Python", "jq": "jq"}
LOCAL_NAMES = re.compile(r"\bIntl\.|\.toLocale(?:Date|Time)?String\s*\(")


def workflow_findings(document: Mapping[str, Any]) -> list[CompatibilityFinding]:
    """Return the findings of a workflow definition, in the order of its steps."""
    found = list(_definition_findings(document))
    for spot in walk(document.get("tasks")):
        path = spot.ref or spot.path
        found += (CompatibilityFinding(path, text, blocks) for text, blocks in _step_findings(spot.step))
    return found


def handler_findings(document: Mapping[str, Any]) -> list[CompatibilityFinding]:
    """Return the findings of an event handler."""
    event = str(document.get("event") or "")
    found = []
    if text := _provider_finding(event, "receives no events of"):
        found.append(CompatibilityFinding("event", text, True))
    condition: dict[str, Any] = {"type": Inline.type, "inputParameters": {"expression": document.get("condition")}}
    condition["evaluatorType"] = document.get("evaluatorType")
    found += (CompatibilityFinding("condition", *each) for each in _step_findings(condition))
    return found


def schedule_findings(document: Mapping[str, Any]) -> list[CompatibilityFinding]:
    if '"***"' in json.dumps(document.get("startWorkflowRequest"), default=str):
        text = "its input has masked values (***), which cannot be read. Set them here before you resume it."
        return [CompatibilityFinding("startWorkflowRequest.input", text, True)]
    return []


def secret_uses(document: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the steps that need each secret, by its name. A task definition needs those that its worker receives."""
    return _uses(document, SECRET_NAME, document.get("runtimeMetadata") or [])


def variable_uses(document: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the steps that need each environment variable, by its name."""
    return _uses(document, VARIABLE_NAME, [])


def workflow_uses(document: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the steps, actions or requests that start each workflow, by its name. Computed names are left out."""
    found: dict[str, list[str]] = {}
    starts = [("", document.get("failureWorkflow"))]
    starts += [
        (spot.ref or spot.path, name)
        for spot in walk(document.get("tasks"))
        for name in structure_of_step(spot.step).named_workflows(spot.step)
    ]
    requests = [each.get("start_workflow") for each in document.get("actions") or () if isinstance(each, Mapping)]
    requests.append(document.get("startWorkflowRequest"))
    starts += [("", each.get("name")) for each in requests if isinstance(each, Mapping) and not each.get("workflowDef")]
    for place, name in starts:
        if isinstance(name, str) and name and "${" not in name and place not in found.setdefault(name, []):
            found[name].append(place)
    return found


def _uses(document: Mapping[str, Any], pattern: re.Pattern[str], named: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {name: [""] for name in named if isinstance(name, str)}
    parts = [("", {name: value for name, value in document.items() if name != "tasks"})]
    parts += [(spot.ref or spot.path, _own_fields(spot.step)) for spot in walk(document.get("tasks"))]
    for place, part in parts:
        for name in dict.fromkeys(pattern.findall(json.dumps(part, default=str))):
            if name and place not in found.setdefault(name, []):
                found[name].append(place)
    return found


def _own_fields(step: Mapping[str, Any]) -> dict[str, Any]:
    """Return a step without the steps inside it."""
    bodies = {body.path[0] for body in bodies_of(step)}
    return {name: value for name, value in step.items() if name not in bodies}


def _definition_findings(document: Mapping[str, Any]) -> Iterator[CompatibilityFinding]:
    if document.get("enforceSchema", True) and (document.get("inputSchema") or document.get("outputSchema")):
        yield CompatibilityFinding("", "its schemas are enforced here: a payload that does not match is refused")
    if document.get("maskedFields"):
        yield CompatibilityFinding("", "its masked fields are encrypted here, and shown as ***")
    listens = document.get("workflowStatusListenerEnabled") and not document.get("workflowStatusListenerSink")
    if listens and not conf.workflow_status_listener_url:
        yield CompatibilityFinding("", "its status listener has no effect before WORKFLOW_STATUS_LISTENER_URL is set")


def _step_findings(step: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield text and `is_blocking` of each finding on a step."""
    type = type_of(step)
    if type in FOREIGN_TYPES and type not in STEP_STRUCTURES:
        yield f"{type} has no built-in worker here. A worker of yours must poll {type}, or the run waits.", True
    inputs = step.get("inputParameters")
    inputs = inputs if isinstance(inputs, Mapping) else {}
    yield from _script_findings(step, inputs)
    if type in (HttpStep.type, HttpPollStep.type):
        yield from _http_findings(inputs)
    if type == EventStep.type and (text := _provider_finding(str(step.get("sink") or ""), "cannot publish to")):
        yield text, True
    if type == JdbcStep.type:
        name = inputs.get("connectionId") or inputs.get("integrationName")
        if isinstance(name, str) and "${" not in name and name not in conf.sql_task_connections:
            yield f"the database {name!r} is not configured. Add it to SQL_TASK_CONNECTIONS.", True
    if type == KafkaPublishStep.type and (refusal := _cluster_refusal(inputs)):
        yield refusal, True
    if step.get("cacheConfig"):
        yield "its cacheConfig takes effect here: results are reused", False
    if step.get("onStateChange"):
        yield "its onStateChange takes effect here: events are published", False


def _cluster_refusal(inputs: Mapping[str, Any]) -> str:
    """Return why a KAFKA_PUBLISH step would fail here: its cluster is not configured. "" if it would not."""
    request = inputs.get("kafka_request")
    servers = request.get("bootStrapServers") if isinstance(request, Mapping) else None
    if not isinstance(servers, str) or "${" in servers:
        return ""
    try:
        find_kafka_servers(servers)
    except SinkFailed as refused:
        return str(refused)
    return ""


def _script_findings(step: Mapping[str, Any], inputs: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield what the engine of this server refuses in the script of a step, or evaluates differently."""
    language, script = _script_of(step, inputs)
    if not script:
        return
    if language == "javascript" and (text := javascript_finding(script)):
        yield text, True
    elif error := script_error(language, script):
        yield f"the engine for {ENGINE_NAMES[language]} refuses its script: {error}", True
    elif language == "javascript" and (found := LOCAL_NAMES.search(script)):
        yield f"its script depends on the language of the server ({found[0].strip('.( ')}): check the result", False


def _script_of(step: Mapping[str, Any], inputs: Mapping[str, Any]) -> tuple[str, str]:
    """Return the language and the text of the script of a step; an empty text if it has none."""
    type = type_of(step)
    language = str(step.get("evaluatorType") or inputs.get("evaluatorType") or "javascript")
    field = structure_of_step(step).script_field
    if type == JsonJqTransform.type:
        language, script = "jq", inputs.get("queryExpression")
    elif not field or language == "value-param":
        return language, ""
    else:
        is_input = field.startswith("inputParameters.")
        script = inputs.get(field.partition(".")[2]) if is_input else step.get(field)
    return language if language in ENGINE_NAMES else "javascript", script if isinstance(script, str) else ""


def javascript_finding(script: str) -> str:
    """Return which part of a script in JavaScript only the engine of Conductor has, or an empty text."""
    if found := HOST_CLASSES.search(script):
        return f"its script uses Java ({found[0]}…), which does not exist here. Rewrite it in JavaScript."
    if found := ENGINE_FUNCTIONS.search(script):
        return f"its script calls {found[0].rstrip(' (')}, which does not exist here. Rewrite it in JavaScript."
    return ""


def _http_findings(inputs: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    request = inputs.get("http_request")
    request = request if isinstance(request, Mapping) else inputs
    uri = request.get("uri")
    host = _host_of(uri) if isinstance(uri, str) else ""
    if host and _is_private(host) and not _is_permitted(host):
        yield f"{host} is a private address. Permit its network with HTTP_TASK_ALLOWED_NETWORKS.", True


def _host_of(uri: str) -> str:
    try:
        host = urlsplit(uri).hostname or ""
    except ValueError:
        return ""
    return "" if "${" in uri.partition("//")[2].partition("/")[0] else host


def _is_private(host: str) -> bool:
    try:
        return not ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".localdomain", ".svc", ".lan"))


def _is_permitted(host: str) -> bool:
    """Return True if HTTP steps may reach a private host; by its name, if any network beyond this host is permitted."""
    networks = [ip_network(each, strict=False) for each in conf.http_task_allowed_networks]
    try:
        address = ip_address(host)
    except ValueError:
        return (host == "localhost" and bool(networks)) or any(not each.is_loopback for each in networks)
    return any(address in each for each in networks)


def _provider_finding(address: str, verb: str) -> str:
    provider = provider_of(address)
    if not provider or "${" in provider or provider == INTERNAL:
        return ""
    if provider not in SETTINGS:
        return (
            f"this server {verb} {provider!r}. It knows {INTERNAL}, {', '.join(SETTINGS)}; webhooks also send events."
        )
    if setting := missing_setting(address):
        return f"{provider} is not configured. Set {setting}."
    return ""
