"""Steps that decide or set values: SWITCH, DECISION, SET_VARIABLE, TERMINATE, NOOP."""

import json
from collections.abc import Iterator
from typing import Any, cast

from ..decision_context import DecisionContext
from ..definition import Body, Document, Flow, Key, Step, as_steps, body_at, structure_of
from ..effects import Effect, SetVariables
from ..errors import StepRefused
from ..expressions import field_text, java_text, quote_value
from ..primitives import JsonValue
from ..schemas import CHOICE, LONG, TEXT
from ..snapshot import Run, StepState, Task, TaskState
from ..states import FAILED
from .base import (
    LONG_TYPED,
    RUN_STATUSES,
    SCRIPT_HELP,
    SCRIPT_LANGUAGES,
    RunEnding,
    StepMember,
    StepType,
    choice_member,
    completed_task,
    gettext_noop,
    input_member,
    resolve_inputs,
    step_of,
    value_of,
)

DEFAULT_CASE = "defaultCase"


class ChoiceState(TaskState, total=False):
    """`head`: the first step of the chosen case, None if the case is empty."""

    head: str | None


class Switch(StepType):
    """Completes as soon as the case is known; leads to the head of that case (execution §8.3)."""

    type = "SWITCH"
    label = gettext_noop("Switch")
    flow = Flow.CHOICE
    required_fields = ("evaluatorType", "expression", "decisionCases")
    output_members = {"evaluationResult": None, "selectedCase": None}
    script_field = "expression"
    allows_python = True
    is_retried = False
    summary = gettext_noop("Continue with one of several cases")
    search_words = gettext_noop("decision if else choose choice condition case branch route")
    sample = (
        step_of(
            type,
            "switch",
            inputParameters={"value": "${workflow.input.value}"},
            evaluatorType="value-param",
            expression="value",
            decisionCases={"true": []},
            defaultCase=[],
        ),
    )
    members = (
        StepMember("evaluatorType", gettext_noop("Decides by"), CHOICE, choices=SCRIPT_LANGUAGES),
        StepMember("expression", gettext_noop("Expression"), TEXT, SCRIPT_HELP),
    )

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        language = step.document.get("evaluatorType") or "value-param"
        result = value_of(step.document.get("expression"), language, inputs, ctx)
        if result.error:
            yield completed_task(step, key, ctx.run, now, FAILED, input=inputs, output={}, reason=result.error)
            return
        # Python distinguishes 1 and 1.0, so the case name is the value as Conductor prints it.
        case = java_text(result.value) if language == "python" else _case_text(result.value)
        head = step.bodies.get(f"decisionCases[{case}]", step.bodies.get(DEFAULT_CASE))
        yield completed_task(
            step,
            key,
            ctx.run,
            now,
            input=inputs | _case_inputs(case, head),
            step_state=ChoiceState(head=head),
            output={"evaluationResult": [case], "selectedCase": case},
        )

    def bodies(self, step: Document) -> Iterator[Body]:
        return _case_bodies(step)

    def upgraded_state(self, task: Task, old: Task | None, run: Run) -> StepState:
        return _upgraded_head(task, old)

    def enter_case(self, task: Task, head: str) -> StepState:
        return {**task.step_state, "head": head}

    def successors(self, task: Task) -> Iterator[Key]:
        return _case_successor(task)


class DecisionStep(StepType):
    """Completes as soon as the case is known; an empty or missing case means the default (execution §8.4)."""

    type = "DECISION"
    label = gettext_noop("Decision")
    flow = Flow.CHOICE
    required_fields = ("decisionCases",)
    output_members = {"caseOutput": None}
    script_field = "caseExpression"
    is_retried = False
    members = (
        StepMember("caseValueParam", gettext_noop("Input that selects the case")),
        StepMember("caseExpression", gettext_noop("Script"), LONG),
    )

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        case = _case_of(step, resolve_inputs(step, ctx, key, ctx.run, now), ctx)
        head = step.bodies.get(f"decisionCases[{case}]") or step.bodies.get(DEFAULT_CASE)
        yield completed_task(
            step,
            key,
            ctx.run,
            now,
            input=_case_inputs(case, head),
            step_state=ChoiceState(head=head),
            output={"caseOutput": [case]},
        )

    def bodies(self, step: Document) -> Iterator[Body]:
        return _case_bodies(step)

    def check(self, step: Document, template: Document) -> Iterator[str]:
        if step.get("caseValueParam") is None and step.get("caseExpression") is None:
            yield "caseValueParam"
        yield from super().check(step, template)

    def upgraded_state(self, task: Task, old: Task | None, run: Run) -> StepState:
        return _upgraded_head(task, old)

    def enter_case(self, task: Task, head: str) -> StepState:
        return {**task.step_state, "head": head}

    def successors(self, task: Task) -> Iterator[Key]:
        return _case_successor(task)


def _case_of(step: Step, inputs: dict[str, Any], ctx: DecisionContext) -> str:
    """Return the case that the script names, or the input that `caseValueParam` names."""
    expression = step.document.get("caseExpression")
    if not expression:
        return _case_text(inputs.get(str(step.document.get("caseValueParam"))))
    result = value_of(expression, "javascript", inputs, ctx, "caseExpression")
    if result.error:
        raise StepRefused(f"The caseExpression of {step.ref} failed: {result.error}")
    return _case_text(result.value)


def _case_text(value: JsonValue) -> str:
    """Return the value as the text that selects a case: null, true, 1, 1.5."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else java_text(value)


def _case_bodies(step: Document) -> Iterator[Body]:
    """Yield the bodies of the cases, and last the one for every other value."""
    cases = step.get("decisionCases")
    for case, steps in cases.items() if isinstance(cases, dict) else ():
        place = f"decisionCases[{case}]"
        yield Body(place, ("decisionCases", case), place, as_steps(steps), str(case))
    yield body_at(step, DEFAULT_CASE, label="otherwise")


def is_choice(step: Step) -> bool:
    """Return True if the step leads to one of several cases."""
    return structure_of(step.type).flow is Flow.CHOICE


def case_of_head(step: Step, head: str) -> str:
    names = (name for name, first in step.bodies.items() if first == head and name != DEFAULT_CASE)
    return next((name[len("decisionCases[") : -1] for name in names), "default")


def _upgraded_head(task: Task, old: Task | None) -> StepState:
    """Return the state in which a step that has chosen leads to the current first step of its case."""
    head = task.step_state.get("head")
    if old is None or not head:
        return task.step_state
    bodies, default = task.step.bodies, task.step.bodies.get(DEFAULT_CASE)
    case = next((name for name, first in old.step.bodies.items() if first == head and name != DEFAULT_CASE), None)
    return {**task.step_state, "head": default if case is None else bodies.get(case, default)}


def _case_inputs(case: str, head: str | None) -> dict[str, str]:
    """Return the inputs that name the chosen case."""
    return {"case": case} | ({"hasChildren": "true"} if head else {})


def _case_successor(task: Task) -> Iterator[Key]:
    """Yield the head of the chosen case, or the next step if the case is empty."""
    target = cast(ChoiceState, task.step_state).get("head") or task.step.follower
    if target and task.lets_control_pass:
        yield Key(target, task.key.iteration_path)


MAX_BYTES = 256 * 1024
"""Maximum size of all variables of a run in bytes (execution §1.6)."""


class SetVariable(StepType):
    """Replaces variables by name at the top level (execution §8.20)."""

    type = "SET_VARIABLE"
    label = gettext_noop("Set variables")
    icon = "variable"
    is_forked_by_type = True
    summary = gettext_noop("Store values that later steps read")
    search_words = gettext_noop("assign variable save")
    sample = (step_of(type, "set_variable", inputParameters={"name": ""}),)

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        variables = {**ctx.variables(), **inputs}
        size = len(json.dumps(variables, default=str))
        if size > MAX_BYTES:
            raise StepRefused(f"The variables of the workflow have {size} bytes. The limit is {MAX_BYTES} bytes.")
        yield SetVariables(variables)
        yield completed_task(step, key, ctx.run, now, input=inputs, output={})


ENDS = {"COMPLETED": "complete", "FAILED": "fail", "TERMINATED": "terminate"}
"""Event of the run for each value of `terminationStatus`."""


class TerminateState(TaskState, total=False):
    """State of a TERMINATE. `ends`: the event that ends the run. `reason`: the reason in the input, or ""."""

    ends: str
    reason: str


class Terminate(StepType):
    """Ends the run and cancels what is still open (execution §8.12)."""

    type = "TERMINATE"
    label = gettext_noop("Terminate")
    flow = Flow.END
    is_retried = False
    summary = gettext_noop("End the run with a status")
    search_words = gettext_noop("end stop exit finish return")
    sample = (step_of(type, "terminate", inputParameters={"terminationStatus": "COMPLETED", "terminationReason": ""}),)
    members = (
        choice_member("terminationStatus", gettext_noop("Status of the run"), RUN_STATUSES),
        input_member("terminationReason", gettext_noop("Reason")),
        input_member("workflowOutput", gettext_noop("Output of the workflow"), LONG_TYPED),
    )

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        inputs = resolve_inputs(step, ctx, key, ctx.run, now)
        status = inputs.get("terminationStatus")
        event = ENDS.get(field_text(status))
        if event is None:
            reason = f"terminationStatus must be one of {', '.join(ENDS)}, not {quote_value(status)}."
            yield completed_task(step, key, ctx.run, now, FAILED, input=inputs, output={}, reason=reason)
            return
        workflow_output = inputs.get("workflowOutput")
        output = (
            workflow_output
            if isinstance(workflow_output, dict)
            else {}
            if workflow_output is None
            else {"output": workflow_output}
        )
        step_state: TerminateState = {"ends": event, "reason": field_text(inputs.get("terminationReason"))}
        yield completed_task(step, key, ctx.run, now, input=inputs, output=output, step_state=step_state)

    def run_ending(self, task: Task) -> RunEnding | None:
        state = cast(TerminateState, task.step_state)
        return RunEnding(state["ends"], state["reason"]) if task.succeeded and "ends" in state else None

    def successors(self, task: Task) -> Iterator[Key]:
        return iter(())

    def check(self, step: Document, template: Document) -> Iterator[str]:
        if step["optional"]:
            yield f"terminate task cannot be optional, taskName: {step.get('name', '')}"
        status = step["inputParameters"].get("terminationStatus")
        if not isinstance(status, str) or status not in ENDS:
            yield (
                "terminate task must have an terminationStatus parameter and must be set to COMPLETED, FAILED or "
                f"TERMINATED, taskName: {step.get('name', '')}"
                + (". Write terminationStatus into inputParameters" if "terminationStatus" in step else "")
            )


class Noop(StepType):
    """Completes at once, with neither input nor output (execution §8.21)."""

    type = "NOOP"
    label = gettext_noop("No operation")
    icon = "noop"
    is_forked_by_type = True
    summary = gettext_noop("Does nothing; marks a place")
    search_words = gettext_noop("empty nothing placeholder pass")
    sample = (step_of(type, "noop"),)

    def enter(self, step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
        yield completed_task(step, key, ctx.run, now, input={}, output={})
