"""Steps that start runs, or read and change other runs and their tasks by ids.

Conductor's open-source server has the types UPDATE_TASK, GET_WORKFLOW and TERMINATE_WORKFLOW in its user interface only
(`ui-next`, `UpdateTaskForm`, `GetWorkflowTaskForm`, `TerminateWorkflowForm`). The names of inputs and outputs are those
of these forms and of Orkes' documentation: https://orkes.io/content/reference-docs/system-tasks/update-task,
https://orkes.io/content/reference-docs/operators/get-workflow and
https://orkes.io/content/reference-docs/operators/terminate-workflow.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..child_runs import require_depth, require_depth_to_start
from ..data_requests import WORKFLOW_TARGET, InlineDefinition
from ..decision_context import DecisionContext
from ..definition import Definition, Document, Key, Step
from ..document.reading import DEFINITION
from ..effects import AttachChild, Effect, StartRun, UpdateTask
from ..errors import StepRefused
from ..expressions import field_text, quote_value
from ..expressions.json_text import expression_texts
from ..primitives import JsonValue, derived_id
from ..schemas import TEXT, WHOLE, YES_NO, schema_violation
from ..secret_places import has_written_secrets_only
from ..snapshot import Task
from .base import (
    ROWS,
    TASK_STATUSES,
    WORKFLOWS,
    BuiltIn,
    StepMember,
    StepType,
    choice_member,
    claim_key,
    completed_task,
    engine_held_task,
    gettext_noop,
    input_member,
    resolve_inputs,
    step_of,
    whole_number,
)

METADATA = "_systemMetadata"


class SubWorkflow(StepType):
    """Starts a child run and ends as that run ends (execution §8.10)."""

    type = "SUB_WORKFLOW"
    label = gettext_noop("Sub-workflow")
    receiving_inputs = ("subWorkflowName", "subWorkflowVersion", "subWorkflowDefinition")
    icon = "workflow"
    required_fields = ("subWorkflowParam",)
    is_forked_by_type = True
    result_comes_from_outside = True
    is_completed_externally = True
    summary = gettext_noop("Start another workflow and wait for its result")
    search_words = gettext_noop("child nested call")
    sample = (step_of(type, "sub_workflow", subWorkflowParam={"name": "my_workflow"}, inputParameters={}),)
    members = (
        StepMember("subWorkflowParam.name", gettext_noop("Workflow"), options=WORKFLOWS),
        StepMember("subWorkflowParam.version", gettext_noop("Version"), WHOLE, gettext_noop("Empty: the latest")),
    )

    def named_workflows(self, step: Mapping[str, Any]) -> Iterator[Any]:
        param = step.get("subWorkflowParam")
        if param is None:
            param = _param_in_inputs(step.get("inputParameters"))
        if isinstance(param, Mapping) and not is_inline(param):
            yield param.get("name")

    def _names(self, step: Mapping[str, Any]) -> Iterator[Any]:
        """Yield the name of the child as written: that of a saved definition, or of one in place."""
        yield from self.named_workflows(step)
        yield from (
            definition.get("name") for _, definition in self.inline_definitions(step) if isinstance(definition, Mapping)
        )

    def inline_definitions(self, step: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        param = step.get("subWorkflowParam")
        if isinstance(param, Mapping) and is_inline(param):
            yield f"subWorkflowParam.{DEFINITION}", param[DEFINITION]

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        given = resolve_inputs(step, ctx, key, ctx.run, now)
        require_depth(ctx.run)
        written_param = step.document.get("subWorkflowParam") or {}
        # A step that is a SUB_WORKFLOW by its name has the parameters of the child among its inputs.
        param = _resolve_param(written_param, ctx) if written_param else _param_in_inputs(given)
        inputs = child_input(given, is_given=ctx.input_override(key) is not None or not written_param)
        is_written = step.is_authored and not step.is_named_by_input
        written_name = next(self._names(step.document), None) if is_written else None
        allowed_secrets = _allowed_secrets(step, written_param, ctx)
        definition = definition_of(param, ctx, allowed_secrets, written_name=written_name)
        claim = claim_key(param, definition, ctx, key)
        if claim.holder and claim.holder.is_awaited:
            raise StepRefused(f"The idempotency key belongs to run {claim.holder.id}, for which another task waits.")
        new_id = derived_id(now, ctx.run.id, ctx.run.revision, ctx.run.next_seq, key, "child")
        child = claim.holder.id if claim.holder else new_id
        task_input = {**_displayed_param(param, definition), "workflowInput": inputs}
        task = engine_held_task(
            step, key, ctx.run, now, child_id=child, input=task_input, output={"subWorkflowId": child}
        )
        yield task
        if claim.holder:
            yield AttachChild(child, task.task.attempt.id)
            return
        yield StartRun(
            child,
            definition,
            _mark_inline(_validate_child_input(definition, inputs, ctx), is_inline=is_inline(param)),
            ctx.run.correlation_id,
            _priority_of(param.get("priority"), ctx.run.priority),
            _domains_of(param, ctx),
            parent_attempt_id=task.task.attempt.id,
            idempotency_key=claim.key,
            releases_key_of=claim.releases_key_of,
        )

    def reopen(self, task: Task, ctx: DecisionContext, now: int, iteration: int | None = None) -> Iterator[Effect]:
        yield from super().reopen(task, ctx, now)
        if not task.succeeded:
            yield UpdateTask(task.key, attempt_facts={"output": {"subWorkflowId": task.attempt.child_id}})


def _allowed_secrets(step: Step, written_param: Mapping[str, Any], ctx: DecisionContext) -> frozenset[str] | None:
    """Return the secrets that an inline definition may name: those of its parent, but none if it comes from data."""
    is_authored = step.is_authored and is_inline(written_param)
    return ctx.run.definition.allowed_secrets if is_authored else frozenset()


def _resolve_param(param: dict[str, Any], ctx: DecisionContext) -> dict[str, Any]:
    """Resolve `subWorkflowParam`, except an inline definition: the expressions in it are the child's.

    A definition that is one expression is resolved once. If the result is null, the workflow is found by its name.
    """
    if not is_inline(param):
        resolved: dict[str, Any] = ctx.resolve(param)
        written = resolved.get(DEFINITION)
        if not isinstance(written, dict | None):
            raise StepRefused(
                f"subWorkflowParam.{DEFINITION} must be a workflow definition (a JSON object), "
                f"but {param[DEFINITION]} is {json_type(written)}."
            )
        return resolved
    written = param[DEFINITION]
    # The task shows the name in an inline definition; if an expression results in the definition, the name beside it.
    name = {"name": written["name"]} if isinstance(written.get("name"), str) else {}
    return {**ctx.resolve({**param, DEFINITION: None}), **name, DEFINITION: written}


def _param_in_inputs(inputs: JsonValue) -> dict[str, Any]:
    """Return the `subWorkflowParam` of a step that is a SUB_WORKFLOW by its name, from its inputs."""
    given = inputs if isinstance(inputs, Mapping) else {}
    return {
        "name": given.get("subWorkflowName"),
        "version": given.get("subWorkflowVersion"),
        DEFINITION: given.get("subWorkflowDefinition"),
        "taskToDomain": given.get("subWorkflowTaskToDomain"),
        **{name: given.get(name) for name in ("priority", "idempotencyKey", "idempotencyStrategy")},
    }


def is_inline(param: Mapping[str, Any]) -> bool:
    """Return True if the child's definition is inline."""
    return isinstance(param.get(DEFINITION), dict)


def _displayed_param(param: Mapping[str, Any], definition: Definition) -> dict[str, Any]:
    """Return the task input that describes the child, always with these keys, as Conductor writes them."""
    name = param.get("name")
    return {
        "subWorkflowName": name if isinstance(name, str) and name else definition.name,
        "subWorkflowVersion": None if is_inline(param) else definition.version,
        "subWorkflowDefinition": param[DEFINITION] if is_inline(param) else None,
        "subWorkflowTaskToDomain": param.get("taskToDomain"),
        "priority": param.get("priority"),
        "idempotencyKey": param.get("idempotencyKey"),
        "idempotencyStrategy": param.get("idempotencyStrategy"),
    }


def json_type(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "a boolean"
    return "a string" if isinstance(value, str) else "an array" if isinstance(value, list) else "a number"


def child_input(inputs: dict[str, Any], *, is_given: bool) -> dict[str, Any]:
    """Return the child's input: the step's inputs, or `workflowInput` of an input that an operator set for a rerun."""
    override = inputs.get("workflowInput") if is_given else None
    return override if isinstance(override, dict) and override else inputs


def _mark_inline(input: dict[str, Any], *, is_inline: bool) -> dict[str, Any]:
    """Return the input with the mark that Conductor sets on children with an inline definition."""
    if not is_inline:
        return input
    metadata = input.get(METADATA)
    return {**input, METADATA: {**(metadata if isinstance(metadata, dict) else {}), "dynamic": True}}


class StartWorkflow(StepType):
    """Completes as soon as the other run is created (execution §8.11)."""

    type = "START_WORKFLOW"
    label = gettext_noop("Start workflow")
    receiving_inputs = ("name", "version", "workflowDef")
    icon = "start"
    output_members = {"workflowId": None}
    is_forked_by_type = True
    summary = gettext_noop("Start another workflow and continue immediately")
    search_words = gettext_noop("launch trigger child")
    sample = (step_of(type, "start", inputParameters={"startWorkflow": {"name": "my_workflow", "input": {}}}),)
    members = (
        input_member("startWorkflow.name", gettext_noop("Workflow"), TEXT, WORKFLOWS),
        input_member("startWorkflow.version", gettext_noop("Version"), WHOLE, options=""),
        input_member("startWorkflow.input", gettext_noop("Input"), ROWS),
    )

    def named_workflows(self, step: Mapping[str, Any]) -> Iterator[Any]:
        inputs = step.get("inputParameters")
        request = inputs.get("startWorkflow") if isinstance(inputs, Mapping) else None
        if isinstance(request, Mapping) and not isinstance(request.get("workflowDef"), Mapping):
            yield request.get("name")

    def inline_definitions(self, step: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        inputs = step.get("inputParameters")
        request = inputs.get("startWorkflow") if isinstance(inputs, Mapping) else None
        definition = request.get("workflowDef") if isinstance(request, Mapping) else None
        # Expressions in the request are those of the parent, and what they give is not known yet.
        if isinstance(definition, Mapping) and not any(expression_texts(definition)):
            yield "inputParameters.startWorkflow.workflowDef", definition

    def _written_name(self, request: JsonValue) -> Any:
        """Return the name in a request as written: that of a saved definition, or of one in place."""
        if not isinstance(request, Mapping):
            return None
        definition = request.get("workflowDef")
        return definition.get("name") if isinstance(definition, Mapping) else request.get("name")

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        require_depth_to_start(ctx.run, now)
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        request = inputs.get("startWorkflow")
        if not isinstance(request, dict):
            raise StepRefused(
                "START_WORKFLOW requires an input 'startWorkflow' with the name of the workflow to start."
            )
        # The request may contain data. The author of the step has named only the step's own secrets.
        is_authored = ctx.input_override(key) is None and has_written_secrets_only(step.inputs, inputs)
        written_name = self._written_name(step.inputs.get("startWorkflow"))
        definition = definition_of(
            {**request, "workflowDefinition": request.get("workflowDef")},
            ctx,
            step.secrets if is_authored else frozenset(),
            written_name=written_name if step.is_authored and not step.is_named_by_input else None,
            field="startWorkflow",
        )
        claim = claim_key(request, definition, ctx, key)
        new_id = derived_id(now, ctx.run.id, ctx.run.revision, ctx.run.next_seq, key, "started")
        run_id = claim.holder.id if claim.holder else new_id
        yield completed_task(step, key, ctx.run, now, input=inputs, output={"workflowId": run_id})
        if claim.holder:
            return
        yield StartRun(
            run_id,
            definition,
            _validate_child_input(definition, _input(request), ctx),
            field_text(request.get("correlationId")).replace("\0", "") or ctx.run.correlation_id,
            _priority(request.get("priority")),
            _domains_of(request, ctx),
            idempotency_key=claim.key,
            releases_key_of=claim.releases_key_of,
        )


def _priority(value: JsonValue) -> int:
    if value not in (None, "") and whole_number(value) is None:
        raise StepRefused(f"`startWorkflow.priority` must be a whole number, not {quote_value(value)}.")
    return _priority_of(value, 0)


def _input(request: dict[str, Any]) -> dict[str, Any]:
    child_input = request.get("input")
    return child_input if isinstance(child_input, dict) else {}


def definition_of(
    param: Mapping[str, Any],
    ctx: DecisionContext,
    allowed_secrets: frozenset[str] | None,
    *,
    written_name: JsonValue,
    field: str = "subWorkflowParam",
) -> Definition:
    """Return the definition of the child: inline, or found by name and version.

    `allowed_secrets`: the secrets that an inline definition may name; None for those of the author of the parent.
    `written_name`: the name as the author of the step has written it, None if the step came from data. `field`: the
    field of the step that contains `param`, for messages.

    Raises:
        StepRefused: when the inline definition is invalid, there is no such definition, or its name comes from data and
            the starter of the run may not start it.
    """
    written = param.get("workflowDefinition")
    if isinstance(written, dict):
        found = ctx.require(InlineDefinition(json.dumps(written, sort_keys=True), allowed_secrets))
        if isinstance(found, str):
            raise StepRefused(f"The inline workflow definition is invalid: {found}")
        ctx.require_use(WORKFLOW_TARGET, found.name, is_authored=written_name == found.name)
        return found
    name, version = param.get("name"), version_of(param.get("version"), f"{field}.version")
    if not isinstance(name, str) or not name:
        raise StepRefused(f"`{field}.name` must be the name of a workflow, not {quote_value(name)}.")
    ctx.require_use(WORKFLOW_TARGET, name, is_authored=written_name == name)
    found = ctx.definition(name, version)
    if found is None:
        raise StepRefused(f"No such workflow definition: {name}, version {version or 'latest'}.")
    return found


def _validate_child_input(definition: Definition, given: dict[str, Any], ctx: DecisionContext) -> dict[str, Any]:
    if reason := schema_violation(definition.input_schema, given, "input", ctx):
        raise StepRefused(f"{definition.name} cannot be started: {reason}")
    return given


def version_of(value: JsonValue, field: str) -> int | None:
    """Return a version as a number; None for the newest."""
    if value in (None, ""):
        return None
    if (number := whole_number(value)) is None:
        raise StepRefused(f"`{field}` must be a whole number, not {quote_value(value)}.")
    return number


def _priority_of(value: JsonValue, parents: int) -> int:
    """Return the priority of the child, from 0 to 99; that of the parent if the value is not a number."""
    number = whole_number(value)
    return parents if number is None else min(max(number, 0), 99)


def _domains_of(param: Mapping[str, Any], ctx: DecisionContext) -> dict[str, str]:
    """Return the child's map from task type to domain: its own, or the parent's."""
    own = param.get("taskToDomain")
    return (
        {name: field_text(each) for name, each in own.items()}
        if isinstance(own, dict) and own
        else dict(ctx.run.domains)
    )


class OtherRunStep(BuiltIn):
    """Executed by a built-in worker, with the permissions of the starter of the run."""

    is_isolated = False


class UpdateTaskStep(OtherRunStep):
    """Completes or fails a task: of the run, or of another one."""

    type = "UPDATE_TASK"
    label = gettext_noop("Update task")
    icon = "message"
    receiving_inputs = ("workflowId", "taskRefName", "taskId")
    required_inputs = ("taskStatus",)
    output_members = {"workflowId": None, "taskId": None, "taskOutput": None}
    output_sample = {"workflowId": "", "taskId": "", "taskOutput": {}}
    summary = gettext_noop("Complete or fail a task, such as a wait or a human task")
    search_words = gettext_noop("signal resolve")
    sample = (
        step_of(
            type,
            "update_task",
            inputParameters={
                "taskStatus": "COMPLETED",
                "mergeOutput": False,
                "workflowId": "${workflow.workflowId}",
                "taskRefName": "my_task",
            },
        ),
    )
    members = (
        input_member("workflowId", gettext_noop("Workflow id"), TEXT),
        input_member("taskRefName", gettext_noop("Reference of the task"), TEXT),
        input_member("taskId", gettext_noop("Task id"), TEXT, help=gettext_noop("In place of workflow and reference")),
        choice_member("taskStatus", gettext_noop("Status of the task"), TASK_STATUSES),
        input_member("taskOutput", gettext_noop("Output of the task"), ROWS),
        input_member(
            "mergeOutput",
            gettext_noop("Merge the output"),
            YES_NO,
            "",
            gettext_noop("Otherwise it replaces what the task has."),
        ),
    )

    def check(self, step: Document, template: Document) -> Iterator[str]:
        yield from super().check(step, template)
        if not any(
            inputs.get(name) for inputs in (step["inputParameters"], template) for name in ("taskId", "taskRefName")
        ):
            yield "inputParameters.taskId"


class GetWorkflowStep(OtherRunStep):
    """Completes with the document of a run."""

    type = "GET_WORKFLOW"
    label = gettext_noop("Get workflow")
    icon = "workflow"
    receiving_inputs = ("id",)
    required_inputs = ("id",)
    output_sample = {"workflowId": "", "status": "COMPLETED", "input": {}, "output": {}}
    summary = gettext_noop("Read the status, input and output of a run")
    search_words = gettext_noop("status lookup")
    sample = (
        step_of(type, "get_workflow", inputParameters={"id": "${workflow.input.workflowId}", "includeTasks": False}),
    )
    members = (
        input_member("id", gettext_noop("Workflow id"), TEXT),
        input_member("includeTasks", gettext_noop("With its tasks"), YES_NO, options=""),
    )


class TerminateWorkflowStep(OtherRunStep):
    """Terminates runs."""

    type = "TERMINATE_WORKFLOW"
    label = gettext_noop("Terminate workflows")
    icon = "end"
    receiving_inputs = ("workflowId",)
    required_inputs = ("workflowId",)
    output_members = {"terminatedWorkflows": None}
    output_sample = {"terminatedWorkflows": []}
    summary = gettext_noop("Terminate other runs")
    search_words = gettext_noop("cancel kill")
    sample = (
        step_of(
            type,
            "terminate_workflow",
            inputParameters={
                "workflowId": ["${workflow.input.workflowId}"],
                "terminationReason": "",
                "triggerFailureWorkflow": False,
            },
        ),
    )
    members = (
        input_member("workflowId", gettext_noop("Workflow ids"), help=gettext_noop("An id, or a JSON list of ids")),
        input_member("terminationReason", gettext_noop("Reason"), TEXT),
        input_member("triggerFailureWorkflow", gettext_noop("Start failure workflows"), YES_NO, options=""),
    )
