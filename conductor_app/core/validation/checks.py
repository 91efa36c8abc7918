"""Validation of the documents in a folder of definitions: workflows, tasks, event handlers, webhooks, alerts, roles."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ..ai import PERIODS, SCOPES
from ..alerts import ALERT_KINDS, BUDGET, DAY_MINUTES, SPENT_PERCENT, find_rule_problem
from ..definition import bodies_of, possible_keys, structure_of, structure_of_step, walk
from ..document.fields import (
    ChoiceOf,
    DocumentPosition,
    FieldSpec,
    FieldTable,
    IntegerOf,
    ListOf,
    MapOf,
    NamedTable,
    ObjectOf,
    fields_of_type,
    normalize_task,
    normalize_workflow,
    read_any,
    read_boolean,
    read_document,
    read_mapping,
    read_name,
    read_text,
    texts,
)
from ..document.reading import inputs_without_definitions, item_reference, layout_steps
from ..errors import ValidationError, ValidationFailed
from ..expressions import check_template, expression_roots
from ..expressions.json_text import expression_texts, expression_texts_by_path
from ..primitives import JsonValue

Document = dict[str, Any]
NO_REFERENCE = "WorkflowTask taskReferenceName name cannot be empty or null"
MAX_STEPS = 10_000
"""The maximum number of steps of a definition, nested steps and inline definitions included.

The checks of 100,000 steps take 5 s. Workflows of this size use loops, dynamic forks and sub-workflows.
"""
MAX_EXPRESSIONS = 50_000
"""The maximum number of expressions of a definition. Checks and findings of 50,000 expressions take 0.5 s."""


def workflow_errors(
    document: JsonValue,
    *,
    owner_email_mandatory: bool = False,
    input_templates: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[ValidationError]:
    """Return all validation errors of a workflow definition.

    `input_templates`: those of the registered task definitions, by name.
    """
    place = DocumentPosition()
    if has_too_many_steps(document):
        place.at("tasks").add_error(f"A workflow definition can have at most {MAX_STEPS} steps. Use sub-workflows.")
        return place.validation_errors
    if has_too_many_expressions(document):
        place.add_error(f"A workflow definition can have at most {MAX_EXPRESSIONS} expressions. Use sub-workflows.")
        return place.validation_errors
    read = normalize_workflow(document, place)
    if not isinstance(document, dict):
        return place.validation_errors
    _check_workflow_fields(read, document, place, owner_email_mandatory)
    _check_steps(read["tasks"], place.at("tasks"), input_templates or {})
    _check_references(read, place)
    _check_inline_definitions(read["tasks"], place)
    if not place.validation_errors:
        known = set(_document_references(read["tasks"]))
        _check_expressions(read, known, place)
        _check_fairness(read, known, place)
    return place.validation_errors


def inline_errors(document: Any, place: DocumentPosition | None = None) -> list[ValidationError]:
    """Return why the engine cannot execute a definition that is written inside another one, or that a run computed.

    Such a definition is not checked further: as in Conductor, an expression with an unknown reference gives null, and a
    step without a field that its type requires fails when control enters it.
    """
    place, own = place or DocumentPosition(), DocumentPosition()
    if has_too_many_steps(document):
        place.at("tasks").add_error(f"A workflow definition can have at most {MAX_STEPS} steps. Use sub-workflows.")
        return place.validation_errors
    read = normalize_workflow(document, own)
    if isinstance(document, dict):
        _check_workflow_fields(read, document, own, owner_email_mandatory=False)
        for spot in walk(read["tasks"]):
            if not spot.ref:
                own.at(f"{spot.path}.taskReferenceName").add_missing(NO_REFERENCE)
        _check_references(read, own)
        _check_inline_definitions(read["tasks"], own)
    if not own.validation_errors:
        try:
            layout_steps(read["tasks"])
        except ValidationFailed as refused:
            own.validation_errors.extend(refused.validation_errors)
    for error in own.validation_errors:
        place.at(error.path).add_error(error.message, error.value)
    return place.validation_errors


def _check_inline_definitions(steps: list[Document], place: DocumentPosition) -> None:
    for spot in walk(steps):
        for path, definition in structure_of_step(spot.step).inline_definitions(spot.step):
            inline_errors(definition, place.at(f"{spot.path}.{path}"))


def has_too_many_steps(document: JsonValue) -> bool:
    """Return True if a document, which may be invalid, has more than MAX_STEPS steps."""
    count, pending = 0, [document]
    while pending:
        item = pending.pop()
        steps = item.get("tasks") if isinstance(item, dict) else item
        count += len(steps) if isinstance(steps, list) else 0
        if count > MAX_STEPS:
            return True
        for step in steps if isinstance(steps, list) else ():
            if isinstance(step, dict):
                pending += [body.steps for body in bodies_of(step)]
                param = step.get("subWorkflowParam")
                pending += [param.get("workflowDefinition")] if isinstance(param, dict) else []
    return False


def has_too_many_expressions(document: JsonValue) -> bool:
    """Return True if a document, which may be invalid, contains `${` more than MAX_EXPRESSIONS times."""
    return sum(text.count("${") for text in expression_texts(document)) > MAX_EXPRESSIONS


def _check_workflow_fields(
    read: Document, document: Document, place: DocumentPosition, owner_email_mandatory: bool
) -> None:
    if not read.get("name"):
        place.at("name").add_missing("WorkflowDef name cannot be null or empty", document.get("name"))
    if not read["tasks"]:
        place.at("tasks").add_missing("WorkflowTask list cannot be empty")
    if read["schemaVersion"] != 2:
        place.at("schemaVersion").add_error("workflowDef schemaVersion: 2 is only supported", read["schemaVersion"])
    if owner_email_mandatory and not read.get("ownerEmail"):
        place.at("ownerEmail").add_error("ownerEmail cannot be empty")


def _check_steps(
    steps: list[Document], place: DocumentPosition, templates: Mapping[str, Any], in_loop: bool = False
) -> None:
    for index, step in enumerate(steps):
        if step is None:
            continue
        here = place.at(f"[{index}]")
        reference = step.get("taskReferenceName")
        if not step.get("name"):
            here.at("name").add_missing("WorkflowTask name cannot be empty or null")
        if not reference:
            here.at("taskReferenceName").add_missing(NO_REFERENCE)
        if step["startDelay"] < 0:
            here.at("startDelay").add_error("must be greater than or equal to 0", step["startDelay"])
        if not in_loop:
            # Steps in a loop are not checked by type; clients rely on that (api §3.4).
            _check_step_type(step, here, templates.get(step.get("name") or "") or {})
        structure = structure_of_step(step)
        for body in structure.bodies(step):
            _check_steps(body.steps, here.at(body.place), templates, in_loop or not structure.checks_bodies)


def _check_references(read: Document, place: DocumentPosition) -> None:
    found = list(_references_with_loops(read["tasks"]))
    for reference, count in Counter(reference for reference, _loops in found).items():
        if count > 1:
            place.add_error(
                f"taskReferenceName: {reference} should be unique across tasks for a given "
                f"workflowDefinition: {read.get('name', '')}"
            )
    loops = dict(found)
    for reference in loops:
        for key in possible_keys(reference):
            if key.iteration_path and loops.get(key.ref) == loops[reference] + len(key.iteration_path):
                place.add_error(
                    f"taskReferenceName: {reference} is also the name of the task of {key.ref} in iteration "
                    f"{'.'.join(map(str, key.iteration_path))}. Rename one of them."
                )


def _document_references(steps: list[Document]) -> Iterator[str]:
    """Yield the references of all steps, including nested ones."""
    return (reference for reference, _loops in _references_with_loops(steps))


def _references_with_loops(steps: list[Document], loops: int = 0) -> Iterator[tuple[str, int]]:
    """Yield the reference of each step, and how many iterations the names of its tasks end with."""
    for step in filter(None, steps):
        structure = structure_of_step(step)
        if step.get("taskReferenceName"):
            yield step["taskReferenceName"], loops
            if structure.item_type:
                yield item_reference(step["taskReferenceName"]), loops + 1
        inside = loops + structure.iterates + bool(structure.item_type)
        for body in structure.bodies(step):
            yield from _references_with_loops(body.steps, inside)


MAX_ERRORS = 1_000
"""The maximum number of errors of a definition. The expressions after the last one are not checked."""
MAX_TEXT_LENGTH = 1_000
UNPREFIXED_NAMES = frozenset(("CPEWF_TASK_ID", "NETFLIX_ENV", "NETFLIX_STACK"))


def _check_expressions(workflow: dict[str, Any], known: set[str], place: DocumentPosition) -> None:
    """Check that each expression is a path that begins with `workflow`, a reference or a known bare name."""
    for step in workflow["tasks"]:
        for name, value in inputs_without_definitions(step).items():
            for spot, text in expression_texts_by_path(value):
                key = spot.rpartition(".")[2] or name
                if len(place.validation_errors) >= MAX_ERRORS:
                    return
                for problem in _problems(text, known):
                    place.add_error(
                        f"taskReferenceName: {problem[0]} for given task: {step['name']} input value: {key} "
                        f"of input parameter: {problem[1]} {problem[2]}"
                    )


def _check_fairness(workflow: dict[str, Any], known: set[str], place: DocumentPosition) -> None:
    """Check the fairness keys and weights of a workflow, which is given when a run starts, and of its steps."""
    for document, here, names in (
        (workflow, place, set[str]()),
        *((spot.step, place.at(spot.path), known) for spot in walk(workflow["tasks"])),
    ):
        if "fairnessWeight" in document and not document.get("fairnessKey"):
            here.at("fairnessWeight").add_error("fairnessWeight needs a fairnessKey", document["fairnessWeight"])
        for field in ("fairnessKey", "fairnessWeight"):
            for root, expression, problem in _problems(str(document.get(field, "")), names):
                here.at(field).add_error(f"{field}: {root} {expression} {problem}".replace("  ", " "), document[field])


def _problems(text: str, known: set[str]) -> list[tuple[str, str, str]]:
    unreadable = [
        ("", shorten(found.expression), f"is not a valid JSON path: {found.problem}.")
        for found in check_template(text)[:MAX_ERRORS]
    ]
    unknown = sorted(expression_roots(text) - known - UNPREFIXED_NAMES - {"workflow", ""})[:MAX_ERRORS]
    return unreadable + [(root, shorten(text), "is not defined in workflow definition.") for root in unknown]


def shorten(text: str) -> str:
    """Return the beginning of a long text, for a message."""
    return text if len(text) <= MAX_TEXT_LENGTH else f"{text[:MAX_TEXT_LENGTH]}…"


def _check_step_type(step: Mapping[str, Any], place: DocumentPosition, template: Mapping[str, Any]) -> None:
    """Add an error for each field that the step's type requires and the step lacks.

    `template`: the input template of the task definition that is registered under the step's name.
    """
    own = (step.get("taskDefinition") or {}).get("inputTemplate") or {}
    for found in structure_of(step["type"]).check(step, {**template, **own}):
        is_message = " " in found
        required = f"{found} field is required for taskType: {step['type']} taskName: {step.get('name', '')}"
        place.add_error(found if is_message else required)


MINIMUMS = {
    "retryCount": (0, "TaskDef retryCount: 0 must be >= 0"),
    "responseTimeoutSeconds": (1, "TaskDef responseTimeoutSeconds: {value} should be minimum 1 second"),
    "pollTimeoutSeconds": (0, "must be greater than or equal to 0"),
    "backoffScaleFactor": (1, "must be greater than or equal to 1"),
    "maxRetryDelaySeconds": (0, "must be greater than or equal to 0"),
    "backoffJitterMs": (0, "must be greater than or equal to 0"),
    "totalTimeoutSeconds": (0, "must be greater than or equal to 0"),
}
"""The minimum of each number, and the error message below it."""


def task_errors(document: JsonValue, *, owner_email_mandatory: bool = False) -> list[ValidationError]:
    place = DocumentPosition()
    read = normalize_task(document, place)
    if not isinstance(document, dict):
        return place.validation_errors
    if not read.get("name"):
        place.at("name").add_missing("TaskDef name cannot be null or empty", document.get("name"))
    if owner_email_mandatory and not read.get("ownerEmail"):
        place.at("ownerEmail").add_error("ownerEmail cannot be empty")
    _check_policy(read, place)
    return place.validation_errors


def _check_policy(read: dict[str, Any], place: DocumentPosition) -> None:
    """Check the numbers of a policy, each alone and in pairs."""
    for name, (least, message) in MINIMUMS.items():
        value = read.get(name)
        if value is not None and value < least:
            place.at(name).add_error(message.format(value=value), value)
    name, timeout = read.get("name", ""), read["timeoutSeconds"]
    response, total = read["responseTimeoutSeconds"], read["totalTimeoutSeconds"]
    if timeout > 0 and response > timeout:
        place.add_error(
            f"TaskDef: {name} responseTimeoutSeconds: {response} must be less than timeoutSeconds: {timeout}"
        )
    if 0 < total < timeout:
        place.add_error(
            f"TaskDef: {name} timeoutSeconds: {timeout} must be less than or equal to totalTimeoutSeconds: {total}"
        )


START = NamedTable(
    "StartWorkflowAction",
    FieldSpec("name", read_text),
    # An expression may stand for it.
    FieldSpec("version", read_any),
    FieldSpec("correlationId", read_text),
    FieldSpec("input", read_mapping, dict),
    FieldSpec("taskToDomain", MapOf(read_text)),
)
REPORT = NamedTable(
    "TaskDetails",
    FieldSpec("workflowId", read_text),
    FieldSpec("taskRefName", read_text),
    FieldSpec("output", read_mapping, dict),
    FieldSpec("taskId", read_text),
    FieldSpec("reasonForIncompletion", read_text),
)
TERMINATE = NamedTable(
    "TerminateWorkflowAction", FieldSpec("workflowId", read_text), FieldSpec("terminationReason", read_text)
)
VARIABLES = NamedTable(
    "UpdateWorkflowVariablesAction",
    FieldSpec("workflowId", read_text),
    FieldSpec("variables", read_mapping, dict),
    FieldSpec("appendArray", read_boolean),
)
ACTIONS = ("start_workflow", "complete_task", "fail_task", "terminate_workflow", "update_workflow_variables")

ACTION = NamedTable(
    "Action",
    FieldSpec("action", ChoiceOf(*ACTIONS)),
    FieldSpec("start_workflow", ObjectOf(START)),
    FieldSpec("complete_task", ObjectOf(REPORT)),
    FieldSpec("fail_task", ObjectOf(REPORT)),
    FieldSpec("terminate_workflow", ObjectOf(TERMINATE)),
    FieldSpec("update_workflow_variables", ObjectOf(VARIABLES)),
    FieldSpec("expandInlineJSON", read_boolean, False),
)

EVENT_HANDLER: FieldTable = (
    FieldSpec("name", read_name),
    FieldSpec("event", read_name),
    FieldSpec("condition", read_text),
    FieldSpec("actions", ListOf(ObjectOf(ACTION))),
    FieldSpec("active", read_boolean, False),
    FieldSpec("evaluatorType", read_text),
)


def read_handler(document: dict[str, Any]) -> tuple[dict[str, Any], list[ValidationError]]:
    """Return the handler with converted fields, and all validation errors."""
    place = DocumentPosition()
    read = read_document(document, EVENT_HANDLER, place)
    if not read.get("name"):
        place.at("name").add_missing("Missing event handler name", document.get("name"))
    if not read.get("event"):
        place.at("event").add_missing("Missing event location", document.get("event"))
    # An empty list is one of Orkes: the handler only records what it receives.
    if read.get("actions") is None:
        place.at("actions").add_missing("No actions specified. Please specify at-least one action")
    for number, action in enumerate(read.get("actions") or ()):
        _check_action(action or {}, place.at(f"actions[{number}]"))
    return read, place.validation_errors


def _check_action(action: dict[str, Any], place: DocumentPosition) -> None:
    kind = action.get("action")
    if not kind:
        place.at("action").add_missing("Missing action: name the action to execute")
    elif not action.get(kind):
        place.at(kind).add_missing(f"Missing {kind}: it has the parameters of the action")


WEBHOOK: FieldTable = (
    FieldSpec("id", read_name),
    FieldSpec("name", read_name),
    FieldSpec("sourcePlatform", read_text),
    FieldSpec("verifier", ChoiceOf("HEADER_BASED", "BASIC", "HMAC_BASED", "SIGNATURE_BASED", "SLACK_BASED", "STRIPE")),
    FieldSpec("headers", MapOf(read_text), dict),
    *fields_of_type(read_text, "headerKey", "timestampHeaderKey", "secretKey", "secretValue"),
    FieldSpec("workflowsToStart", MapOf(read_any), dict),
    FieldSpec("receiverWorkflowNamesToVersions", MapOf(IntegerOf()), dict),
    FieldSpec("urlVerified", read_boolean, False),
    FieldSpec("createdBy", read_text),
)
MAX_NAME_LENGTH = 200
SECRET_VERIFIERS = ("BASIC", "HMAC_BASED", "SIGNATURE_BASED", "SLACK_BASED", "STRIPE")


def read_webhook(document: dict[str, Any], *, has_secret: bool = False) -> tuple[dict[str, Any], list[ValidationError]]:
    """Return the definition with converted fields, and all validation errors.

    `has_secret`: a stored secret exists and is kept if the definition has none.
    """
    place = DocumentPosition()
    read = read_document(document, WEBHOOK, place)
    if not (read.get("name") or "").strip():
        place.at("name").add_missing("Missing webhook name", document.get("name"))
    elif len(read["name"]) > MAX_NAME_LENGTH:
        place.at("name").add_error(f"name must have at most {MAX_NAME_LENGTH} characters", read["name"])
    verifier = read.get("verifier")
    if not verifier:
        place.at("verifier").add_missing("Missing verifier: it says how the sender proves who it is")
    elif verifier in SECRET_VERIFIERS and not (has_secret or read.get("secretValue")):
        place.at("secretValue").add_missing(f"Missing secretValue: {verifier} is verified by it")
    elif verifier == "HEADER_BASED" and not (has_secret or any(read["headers"].values())):
        place.at("headers").add_missing("Missing headers: at least one must have a value that only the sender knows")
    if verifier in ("HMAC_BASED", "SIGNATURE_BASED") and not read.get("headerKey"):
        place.at("headerKey").add_missing("Missing headerKey: the name of the header with the signature")
    return read, place.validation_errors


MAX_VIEW_NAME_LENGTH = 120
MAX_CONDITIONS = 10


QUEUE_LIMIT: FieldTable = (
    FieldSpec("name", read_name),
    FieldSpec("concurrentExecLimit", IntegerOf(), 0),
    FieldSpec("rateLimitPerFrequency", IntegerOf(), 0),
    FieldSpec("rateLimitFrequencyInSeconds", IntegerOf(), 1),
)
LIMIT_FIELDS = tuple(spec.name for spec in QUEUE_LIMIT if spec.name != "name")
"""The limits of a queue, which are fields of its task definition."""

BUDGET_REFERENCE: FieldTable = (
    FieldSpec("scope", ChoiceOf(*SCOPES)),
    FieldSpec("name", read_text, ""),
    FieldSpec("period", ChoiceOf(*PERIODS)),
)
CONDITION: FieldTable = (
    FieldSpec("type", ChoiceOf(*ALERT_KINDS)),
    FieldSpec("threshold", IntegerOf(), 1),
    FieldSpec("windowMinutes", IntegerOf(), 60),
    FieldSpec("repeatMinutes", IntegerOf(), 60),
    FieldSpec("targets", texts, list),
    FieldSpec("budget", ObjectOf(BUDGET_REFERENCE)),
)
ALERT: FieldTable = (
    FieldSpec("name", read_text),
    FieldSpec("selection", read_mapping, dict),
    FieldSpec("conditions", ListOf(ObjectOf(CONDITION)), list),
)
ROLE: FieldTable = (FieldSpec("name", read_text), FieldSpec("permissions", texts, list))


def read_queue_limit(document: Document) -> tuple[Document, list[ValidationError]]:
    """Return the limits of a queue with converted fields, and all validation errors."""
    place = DocumentPosition()
    read = _read(document, QUEUE_LIMIT, place)
    for name in LIMIT_FIELDS:
        least = 1 if name == "rateLimitFrequencyInSeconds" else 0
        if read[name] < least:
            place.at(name).add_error(f"must be greater than or equal to {least}", read[name])
    return read, place.validation_errors


def read_alert(document: Document) -> tuple[Document, list[ValidationError]]:
    """Return an alert with converted fields, and all validation errors except those of the selection."""
    place = DocumentPosition()
    read = _read(document, ALERT, place)
    if len(read.get("name") or "") > MAX_VIEW_NAME_LENGTH:
        place.at("name").add_error(f"must have at most {MAX_VIEW_NAME_LENGTH} characters", read["name"])
    if not 1 <= len(read["conditions"]) <= MAX_CONDITIONS:
        place.at("conditions").add_missing(f"An alert must have 1 to {MAX_CONDITIONS} conditions")
    for number, condition in enumerate(read["conditions"]):
        if condition is not None:
            _fill_budget_condition(condition, document["conditions"][number])
            _check_condition(condition, place.at(f"conditions[{number}]"))
    return read, place.validation_errors


def _fill_budget_condition(condition: Document, given: Document) -> None:
    """Set the defaults of a condition on budgets, whose numbers are not those of a condition on runs."""
    if condition.get("type") == BUDGET:
        defaults = {"threshold": SPENT_PERCENT, "repeatMinutes": DAY_MINUTES}
        condition |= {name: value for name, value in defaults.items() if given.get(name) is None}


def _check_condition(condition: Document, place: DocumentPosition) -> None:
    _check_fields(condition, CONDITION, place)
    if not condition.get("type"):
        place.at("type").add_missing(f"Missing type: one of {', '.join(ALERT_KINDS)}")
        return
    if not condition["targets"]:
        place.at("targets").add_missing("Missing targets: the names of alert targets")
    numbers = (condition[name] for name in ("threshold", "windowMinutes", "repeatMinutes"))
    if problem := find_rule_problem(condition["type"], *numbers):
        place.add_error(problem)
    if (budget := condition.get("budget")) is not None:
        _check_budget(condition["type"], budget, place.at("budget"))


def _check_budget(kind: str, budget: Document, place: DocumentPosition) -> None:
    _check_fields(budget, BUDGET_REFERENCE, place)
    if kind != BUDGET:
        place.add_error(f"belongs to a condition of the type {BUDGET}")
    for name in ("scope", "period"):
        if not budget.get(name):
            place.at(name).add_missing(f"Missing {name} of the budget")


def read_role(document: Document) -> tuple[Document, list[ValidationError]]:
    """Return a role with sorted permissions, and all validation errors except those of the names."""
    place = DocumentPosition()
    read = _read(document, ROLE, place)
    read["permissions"] = sorted({name for name in read["permissions"] if name is not None})
    return read, place.validation_errors


def _read(document: Document, table: FieldTable, place: DocumentPosition) -> Document:
    read = read_document(document, table, place)
    if not (read.get("name") or "").strip():
        place.at("name").add_missing("Missing name", document.get("name"))
    _check_fields(read, table, place)
    return read


def _check_fields(document: Document, table: FieldTable, place: DocumentPosition) -> None:
    """Report unknown fields. These documents have no other readers that may know them."""
    known = [spec.name for spec in table]
    for name in sorted(document.keys() - known):
        place.at(name).add_error(f"is unknown. Use: {', '.join(known)}", document[name])
