"""Builders of workflow documents: `step("a")`, `fork(…)`, `loop(…)`, `policy(retries=2)`; `plan` parses them."""

from typing import Any

from conductor_app.core.definition import Definition
from conductor_app.core.document.reading import read_definition

Document = dict[str, Any]

POLICY_FIELD_NAMES = {
    "retries": "retryCount",
    "logic": "retryLogic",
    "delay_seconds": "retryDelaySeconds",
    "scale": "backoffScaleFactor",
    "max_delay_seconds": "maxRetryDelaySeconds",
    "jitter_ms": "backoffJitterMs",
    "total_seconds": "totalTimeoutSeconds",
    "timeout_seconds": "timeoutSeconds",
    "lease_seconds": "responseTimeoutSeconds",
    "poll_seconds": "pollTimeoutSeconds",
    "timeout_policy": "timeoutPolicy",
    "concurrent_limit": "concurrentExecLimit",
    "rate_count": "rateLimitPerFrequency",
    "rate_seconds": "rateLimitFrequencyInSeconds",
    "input_template": "inputTemplate",
}
"""Our word for each field of a task definition that tests set."""


def policy(name: str = "", **fields: Any) -> Document:
    """Return a task definition; by default one attempt, no timeouts, and a lease of an hour."""
    said = {"retries": 0, "delay_seconds": 0, **fields}
    if said.get("timeout_seconds"):
        # A lease that is longer than the task may take is refused.
        said.setdefault("lease_seconds", said["timeout_seconds"])
    return ({"name": name} if name else {}) | {POLICY_FIELD_NAMES[word]: value for word, value in said.items()}


def _step(type: str, ref: str, name: str = "", inputs: Document | None = None, **fields: Any) -> Document:
    document = {"name": name or ref, "taskReferenceName": ref, "type": type, "inputParameters": inputs or {}}
    if given := fields.pop("policy", None):
        document["taskDefinition"] = {"name": document["name"], **given}
    return document | fields


def step(ref: str, name: str = "", **fields: Any) -> Document:
    """Return a worker step; one attempt unless a policy overrides it."""
    return _step("SIMPLE", ref, name, **{"policy": policy(), **fields})


def step_without_policy(ref: str, name: str = "", **fields: Any) -> Document:
    """Return a worker step without an embedded task definition; the registered one applies."""
    return _step("SIMPLE", ref, name, **fields)


def fork(*branches: list[Document], join: str = "join", on: list[str] | None = None, **fields: Any) -> list[Document]:
    """Return a fork and the join of its branches' last steps: two steps, to be spread into a list."""
    ref = fields.pop("ref", f"fork_{join}")
    lasts = [branch[-1]["taskReferenceName"] for branch in branches if branch] if on is None else on
    return [
        _step("FORK_JOIN", ref, forkTasks=[list(branch) for branch in branches], **fields),
        _step("JOIN", join, joinOn=lasts),
    ]


def dynamic_fork(ref: str = "fan", join: str = "join", inputs: Document | None = None, **fields: Any) -> list[Document]:
    """Return a dynamic fork and its join; by default over the run's inputs `tasks` and `inputs`."""
    fields = fields or {"dynamicForkTasksParam": "tasks", "dynamicForkTasksInputParamName": "inputs"}
    inputs = inputs or {"tasks": "${workflow.input.tasks}", "inputs": "${workflow.input.inputs}"}
    return [_step("FORK_JOIN_DYNAMIC", ref, inputs=inputs, **fields), _step("JOIN", join)]


def join(ref: str, on: list[str], **fields: Any) -> Document:
    """Return a join."""
    return _step("JOIN", ref, joinOn=on, **fields)


def exclusive_join(ref: str, on: list[str], default: list[str] | None = None) -> Document:
    """Return a join that continues with the branch that was taken."""
    return _step("EXCLUSIVE_JOIN", ref, joinOn=on, defaultExclusiveJoinTask=default or [])


def loop(ref: str, *body: Document, times: int | None = None, **fields: Any) -> Document:
    """Return a loop with this many iterations, or with its own `loopCondition` or `items`."""
    condition = {"loopCondition": f"$.{ref}.iteration < {times}" if times else ""}
    return _step("DO_WHILE", ref, **{**condition, "loopOver": list(body), **fields})


def switch(ref: str, cases: dict[str, list[Document]], default: list[Document] = (), **fields: Any) -> Document:
    """Return a switch over the run's input of the same name, unless it has its own inputs."""
    inputs = fields.pop("inputs", {ref: f"${{workflow.input.{ref}}}"})
    choice = {"evaluatorType": "value-param", "expression": next(iter(inputs))}
    return _step(
        "SWITCH", ref, inputs=inputs, **{**choice, "decisionCases": cases, "defaultCase": list(default), **fields}
    )


def decision(ref: str, cases: dict[str, list[Document]], default: list[Document] = (), **fields: Any) -> Document:
    """Return a DECISION step over the run's input of the same name."""
    inputs = {ref: f"${{workflow.input.{ref}}}"}
    choice = {} if "caseExpression" in fields else {"caseValueParam": ref}
    return _step(
        "DECISION", ref, inputs=inputs, **{**choice, "decisionCases": cases, "defaultCase": list(default), **fields}
    )


def each(ref: str, *body: Document, items: Any = None, **inputs: Any) -> Document:
    """Return a step that executes its body for each item of a list or expression."""
    given = {"items": items} if isinstance(items, str) else {}
    own = {} if isinstance(items, str) or items is None else {"_items": items}
    return _step("FOR_EACH", ref, loopOver=list(body), inputs={**own, **inputs}, **given)


def try_(ref: str, *body: Document, on: list[Document] = (), default: list[Document] = (), last: list[Document] = ()):
    """Return a body with handlers; `on` lists cases that catch() returns."""
    parts = {"catchCases": list(on), "catchDefault": list(default), "finallyTasks": list(last)}
    return _step("TRY_CATCH", ref, tryTasks=list(body), **{name: value for name, value in parts.items() if value})


def catch(*tasks: Document, **match: Any) -> Document:
    """Return a handler of a try."""
    return {"match": match, "tasks": list(tasks)}


def wait(ref: str, **inputs: Any) -> Document:
    """Return a wait with `duration` or `until`."""
    return _step("WAIT", ref, inputs=inputs)


def yield_(ref: str, **inputs: Any) -> Document:
    """Return a wait for a signal."""
    return _step("YIELD", ref, inputs=inputs)


def wait_for_webhook(ref: str, matches: Any = None, **inputs: Any) -> Document:
    """Return a wait for a webhook's event; `matches` maps paths of its payload to values."""
    return _step("WAIT_FOR_WEBHOOK", ref, inputs={**inputs, **({} if matches is None else {"matches": matches})})


def human(ref: str, **fields: Any) -> Document:
    """Return a wait for a person."""
    return _step("HUMAN", ref, **fields)


def pull(ref: str, **inputs: Any) -> Document:
    """Return a step that pulls messages sent to the run."""
    return _step("PULL_WORKFLOW_MESSAGES", ref, inputs=inputs)


def noop(ref: str, **fields: Any) -> Document:
    """Return a step without effect."""
    return _step("NOOP", ref, **fields)


def inline(ref: str, expression: str, **fields: Any) -> Document:
    """Return a step whose result is the value of a script."""
    inputs = {"evaluatorType": "javascript", "expression": expression, **fields.pop("inputs", {})}
    return _step("INLINE", ref, inputs=inputs, **fields)


def lambda_(ref: str, script: str, **fields: Any) -> Document:
    """Return a LAMBDA step."""
    return _step("LAMBDA", ref, inputs={"scriptExpression": script, **fields.pop("inputs", {})}, **fields)


def jq(ref: str, program: str, **fields: Any) -> Document:
    """Return a step that applies a jq program to its inputs."""
    return _step("JSON_JQ_TRANSFORM", ref, inputs={"queryExpression": program, **fields.pop("inputs", {})}, **fields)


def event(ref: str, sink: str, **fields: Any) -> Document:
    """Return a step that publishes to a sink."""
    return _step("EVENT", ref, sink=sink, **fields)


def set_variable(ref: str, **variables: Any) -> Document:
    """Return a step that sets variables of the run."""
    return _step("SET_VARIABLE", ref, inputs=variables)


def terminate(ref: str, status: str = "COMPLETED", reason: str | None = None, output: Any = None) -> Document:
    """Return a step that ends the run."""
    said = {"terminationStatus": status, "terminationReason": reason, "workflowOutput": output}
    return _step("TERMINATE", ref, inputs={name: value for name, value in said.items() if value is not None})


def dynamic(ref: str, name: str, **fields: Any) -> Document:
    """Return a step whose task name is an expression."""
    inputs = {"chosen": name, **fields.pop("inputs", {})}
    return _step("DYNAMIC", ref, inputs=inputs, dynamicTaskNameParam="chosen", **fields)


def sub_workflow(ref: str, child: str | Document = "child", version: int | None = None, **fields: Any) -> Document:
    """Return a step that starts a child run, by name or inline, and waits for it."""
    by_name = {"name": child, "version": version} if isinstance(child, str) else {"workflowDefinition": child}
    param = {name: value for name, value in by_name.items() if value is not None}
    return _step("SUB_WORKFLOW", ref, **{"subWorkflowParam": {**param, **fields.pop("param", {})}, **fields})


def start_workflow(ref: str, **request: Any) -> Document:
    """Return a step that starts another run and does not wait for it."""
    return _step("START_WORKFLOW", ref, inputs={"startWorkflow": request})


def definition(*steps: Document | list[Document], name: str = "order", **fields: Any) -> Document:
    """Return a workflow document. Lists among the steps (a fork with its join) are spread."""
    tasks = [inner for given in steps for inner in (given if isinstance(given, list) else [given])]
    return {"name": name, "version": 1, "schemaVersion": 2, "tasks": tasks, **fields}


def plan(*steps: Document | list[Document], **fields: Any) -> Definition:
    """Return a parsed workflow definition."""
    return read_definition(definition(*steps, **fields))
