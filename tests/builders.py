"""Documents of tests: steps, workflow definitions and task definitions.

- `step("a")` is a worker step with one attempt, or as `policy(retries=2)` says; for `simple("a")`, the task definition
  that the test registers applies. Other types have the name of their type in lower case: `fork(…)`, `loop(…)`,
  `wait(…)`. `step_of("HTTP", "a")` is a step of any type.
- `definition(step("a"), name="order")` is a workflow, and `plan(step("a"))` a parsed one.

`tests/scenario.py` registers them, and starts runs. Users and their clients are in `tests/access/users.py`.
"""

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


def step_of(type: str, ref: str, name: str = "", inputs: Document | None = None, **fields: Any) -> Document:
    """Return a step of any type."""
    document = {"name": name or ref, "taskReferenceName": ref, "type": type, "inputParameters": inputs or {}}
    if given := fields.pop("policy", None):
        document["taskDefinition"] = {"name": document["name"], **given}
    return document | fields


def step(ref: str, name: str = "", **fields: Any) -> Document:
    """Return a worker step; one attempt unless a policy overrides it."""
    return step_of("SIMPLE", ref, name, **{"policy": policy(), **fields})


def simple(ref: str, name: str = "", **fields: Any) -> Document:
    """Return a worker step without a task definition of its own; the registered one applies."""
    return step_of("SIMPLE", ref, name, **fields)


def fork(*branches: list[Document], join: str = "join", on: list[str] | None = None, **fields: Any) -> list[Document]:
    """Return a fork and the join of its branches' last steps: two steps, to be spread into a list."""
    ref = fields.pop("ref", f"fork_{join}")
    lasts = [branch[-1]["taskReferenceName"] for branch in branches if branch] if on is None else on
    return [
        step_of("FORK_JOIN", ref, forkTasks=[list(branch) for branch in branches], **fields),
        step_of("JOIN", join, joinOn=lasts),
    ]


def dynamic_fork(ref: str = "fan", join: str = "join", inputs: Document | None = None, **fields: Any) -> list[Document]:
    """Return a dynamic fork and its join; by default over the run's inputs `tasks` and `inputs`."""
    fields = fields or {"dynamicForkTasksParam": "tasks", "dynamicForkTasksInputParamName": "inputs"}
    inputs = inputs or {"tasks": "${workflow.input.tasks}", "inputs": "${workflow.input.inputs}"}
    return [step_of("FORK_JOIN_DYNAMIC", ref, inputs=inputs, **fields), step_of("JOIN", join)]


def join(ref: str, on: list[str], **fields: Any) -> Document:
    """Return a join."""
    return step_of("JOIN", ref, joinOn=on, **fields)


def exclusive_join(ref: str, on: list[str], default: list[str] | None = None) -> Document:
    """Return a join that continues with the branch that was taken."""
    return step_of("EXCLUSIVE_JOIN", ref, joinOn=on, defaultExclusiveJoinTask=default or [])


def loop(ref: str, *body: Document, times: int | None = None, **fields: Any) -> Document:
    """Return a loop with this many iterations, or with its own `loopCondition` or `items`."""
    condition = {"loopCondition": f"$.{ref}.iteration < {times}" if times else ""}
    return step_of("DO_WHILE", ref, **{**condition, "loopOver": list(body), **fields})


def switch(ref: str, cases: dict[str, list[Document]], default: list[Document] = (), **fields: Any) -> Document:
    """Return a switch over the run's input of the same name, unless it has its own inputs."""
    inputs = fields.pop("inputs", {ref: f"${{workflow.input.{ref}}}"})
    choice = {"evaluatorType": "value-param", "expression": next(iter(inputs))}
    return step_of(
        "SWITCH", ref, inputs=inputs, **{**choice, "decisionCases": cases, "defaultCase": list(default), **fields}
    )


def decision(ref: str, cases: dict[str, list[Document]], default: list[Document] = (), **fields: Any) -> Document:
    """Return a DECISION step over the run's input of the same name."""
    inputs = {ref: f"${{workflow.input.{ref}}}"}
    choice = {} if "caseExpression" in fields else {"caseValueParam": ref}
    return step_of(
        "DECISION", ref, inputs=inputs, **{**choice, "decisionCases": cases, "defaultCase": list(default), **fields}
    )


def each(ref: str, *body: Document, items: Any = None, **inputs: Any) -> Document:
    """Return a step that executes its body for each item of a list or expression."""
    given = {"items": items} if isinstance(items, str) else {}
    own = {} if isinstance(items, str) or items is None else {"_items": items}
    return step_of("FOR_EACH", ref, loopOver=list(body), inputs={**own, **inputs}, **given)


def try_(ref: str, *body: Document, on: list[Document] = (), default: list[Document] = (), last: list[Document] = ()):
    """Return a body with handlers; `on` lists cases that catch() returns."""
    parts = {"catchCases": list(on), "catchDefault": list(default), "finallyTasks": list(last)}
    return step_of("TRY_CATCH", ref, tryTasks=list(body), **{name: value for name, value in parts.items() if value})


def catch(*tasks: Document, **match: Any) -> Document:
    """Return a handler of a try."""
    return {"match": match, "tasks": list(tasks)}


def wait(ref: str, **inputs: Any) -> Document:
    """Return a wait with `duration` or `until`."""
    return step_of("WAIT", ref, inputs=inputs)


def yield_(ref: str, **inputs: Any) -> Document:
    """Return a wait for a signal."""
    return step_of("YIELD", ref, inputs=inputs)


def wait_for_webhook(ref: str, matches: Any = None, **inputs: Any) -> Document:
    """Return a wait for a webhook's event; `matches` maps paths of its payload to values."""
    return step_of("WAIT_FOR_WEBHOOK", ref, inputs={**inputs, **({} if matches is None else {"matches": matches})})


def human(ref: str, **fields: Any) -> Document:
    """Return a wait for a person."""
    return step_of("HUMAN", ref, **fields)


def pull(ref: str, **inputs: Any) -> Document:
    """Return a step that pulls messages sent to the run."""
    return step_of("PULL_WORKFLOW_MESSAGES", ref, inputs=inputs)


def noop(ref: str, **fields: Any) -> Document:
    """Return a step without effect."""
    return step_of("NOOP", ref, **fields)


def inline(ref: str, expression: str, **fields: Any) -> Document:
    """Return a step whose result is the value of a script."""
    inputs = {"evaluatorType": "javascript", "expression": expression, **fields.pop("inputs", {})}
    return step_of("INLINE", ref, inputs=inputs, **fields)


def lambda_(ref: str, script: str, **fields: Any) -> Document:
    """Return a LAMBDA step."""
    return step_of("LAMBDA", ref, inputs={"scriptExpression": script, **fields.pop("inputs", {})}, **fields)


def jq(ref: str, program: str, **fields: Any) -> Document:
    """Return a step that applies a jq program to its inputs."""
    return step_of("JSON_JQ_TRANSFORM", ref, inputs={"queryExpression": program, **fields.pop("inputs", {})}, **fields)


def event(ref: str, sink: str, **fields: Any) -> Document:
    """Return a step that publishes to a sink."""
    return step_of("EVENT", ref, sink=sink, **fields)


def set_variable(ref: str, **variables: Any) -> Document:
    """Return a step that sets variables of the run."""
    return step_of("SET_VARIABLE", ref, inputs=variables)


def terminate(ref: str, status: str = "COMPLETED", reason: str | None = None, output: Any = None) -> Document:
    """Return a step that ends the run."""
    said = {"terminationStatus": status, "terminationReason": reason, "workflowOutput": output}
    return step_of("TERMINATE", ref, inputs={name: value for name, value in said.items() if value is not None})


def dynamic(ref: str, name: str, **fields: Any) -> Document:
    """Return a step whose task name is an expression."""
    inputs = {"chosen": name, **fields.pop("inputs", {})}
    return step_of("DYNAMIC", ref, inputs=inputs, dynamicTaskNameParam="chosen", **fields)


def sub_workflow(ref: str, child: str | Document = "child", version: int | None = None, **fields: Any) -> Document:
    """Return a step that starts a child run, by name or inline, and waits for it."""
    by_name = {"name": child, "version": version} if isinstance(child, str) else {"workflowDefinition": child}
    param = {name: value for name, value in by_name.items() if value is not None}
    return step_of("SUB_WORKFLOW", ref, **{"subWorkflowParam": {**param, **fields.pop("param", {})}, **fields})


def start_workflow(ref: str, **request: Any) -> Document:
    """Return a step that starts another run and does not wait for it."""
    return step_of("START_WORKFLOW", ref, inputs={"startWorkflow": request})


def definition(*steps: Document | list[Document], name: str = "order", **fields: Any) -> Document:
    """Return a workflow document. Lists among the steps (a fork with its join) are spread."""
    tasks = [inner for given in steps for inner in (given if isinstance(given, list) else [given])]
    return {"name": name, "version": 1, "schemaVersion": 2, "tasks": tasks, **fields}


def plan(*steps: Document | list[Document], **fields: Any) -> Definition:
    """Return a parsed workflow definition."""
    return read_definition(definition(*steps, **fields))
