"""What the tests put on a Conductor server before they import from it, through its API."""

from typing import Any

import requests

Document = dict[str, Any]
OWNER = {"ownerEmail": "shop@example.org"}
SECRETS = {"CONDUCTOR_SECRET_payment_key": "sk_live_1", "CONDUCTOR_SECRET_unused": "x"}
VARIABLES = {"CONDUCTOR_ENV_region": "eu-central", "CONDUCTOR_ENV_stage": "production"}
JAVA_SCRIPT = "(function () { var names = new (Java.type('java.util.ArrayList'))(); return names.size(); })()"


def task(name: str, **fields: Any) -> Document:
    return {"name": name, "retryCount": 2, "timeoutSeconds": 60, "responseTimeoutSeconds": 30, **OWNER, **fields}


def workflow(name: str, version: int, *steps: Document, **fields: Any) -> Document:
    return {
        "name": name,
        "version": version,
        "schemaVersion": 2,
        "timeoutSeconds": 0,
        "tasks": steps,
        **OWNER,
        **fields,
    }


def step(reference: str, type: str = "SIMPLE", inputs: Document | None = None, **fields: Any) -> Document:
    return {"name": reference, "taskReferenceName": reference, "type": type, "inputParameters": inputs or {}, **fields}


TASKS = [
    task("charge", inputTemplate={"currency": "EUR"}),
    task("ship", runtimeMetadata=["carrier_key"], retryLogic="EXPONENTIAL_BACKOFF"),
]
WORKFLOWS = [
    workflow("order", 1, step("charge", inputs={"id": "${workflow.input.id}"})),
    workflow(
        "order",
        2,
        step("charge", inputs={"id": "${workflow.input.id}"}),
        step(
            "route",
            "SWITCH",
            {"to": "${workflow.input.country}"},
            evaluatorType="value-param",
            expression="to",
            decisionCases={"DE": [step("ship", inputs={"id": "${charge.output.id}"})]},
            defaultCase=[step("held", "WAIT", {"duration": "1 h"})],
        ),
    ),
    workflow(
        "notify",
        1,
        step("count", "INLINE", {"evaluatorType": "graaljs", "expression": JAVA_SCRIPT}),
        step(
            "call",
            "HTTP",
            {
                "http_request": {
                    "uri": "http://billing.internal/notify",
                    "method": "POST",
                    "headers": {"Authorization": "${workflow.secrets.payment_key}"},
                    "body": {"region": "${workflow.env.region}", "shop": "${workflow.env.shop}"},
                }
            },
        ),
        step("shape", "JSON_JQ_TRANSFORM", {"queryExpression": ".response | tojson"}),
        step("publish", "EVENT", sink="sqs:notified"),
    ),
    workflow("summarize", 1, step("ask", "LLM_TEXT_COMPLETE", {"llmProvider": "openai", "model": "gpt"})),
]
# A cycle: the workflow starts itself, and the limit is in its data.
WORKFLOWS.append(
    workflow("follow", 1, step("again", "SUB_WORKFLOW", subWorkflowParam={"name": "follow", "version": 1}))
)
HANDLERS = [
    {
        "name": "paid",
        "event": "conductor:order:charge",
        "active": True,
        "actions": [{"action": "start_workflow", "start_workflow": {"name": "notify", "version": 1, "input": {}}}],
    },
    {
        "name": "from_sqs",
        "event": "sqs:orders",
        "condition": "$.kind == 'order'",
        "active": False,
        "actions": [{"action": "start_workflow", "start_workflow": {"name": "order", "input": {"id": "${id}"}}}],
    },
]
SCHEDULES = [
    {
        "name": "nightly",
        "cronExpression": "0 0 3 * * ?",
        "zoneId": "Europe/Berlin",
        "startWorkflowRequest": {"name": "order", "version": 2, "input": {"id": "all"}},
    },
    # The server accepts it, and never fires it.
    {"name": "broken", "cronExpression": "99 99 * *", "startWorkflowRequest": {"name": "order"}},
]
RUNS = ["order", "order", "order", "summarize"]


def register(url: str) -> None:
    """Put all objects on a server, and start workflows that wait for workers.

    `url`: the address of the API.
    """
    calls: list[tuple[str, Any]] = [("/metadata/taskdefs", TASKS)]
    calls += [("/metadata/workflow", each) for each in WORKFLOWS]
    calls += [("/event", each) for each in HANDLERS]
    calls += [("/scheduler/schedules", each) for each in SCHEDULES]
    calls += [(f"/workflow/{name}", {"id": number}) for number, name in enumerate(RUNS)]
    for path, body in calls:
        response = requests.post(url + path, json=body, timeout=30)
        assert response.ok, (path, response.status_code, response.text)
