"""The history of a conversation: earlier answers of a chat step, the results of its tools, and its participants.

Conductor's rules apply, with two improvements: the messages are in the order in which their tasks were created, and the
result of a tool that a model called has the id of that call.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

from ..data_requests import StepOutcomes, TaskOutcome
from ..decision_context import DecisionContext, gather_values
from ..definition import Key, Step
from ..step_structure import Flow, structure_of
from .task_outcomes import outcome_of

Message = dict[str, Any]
TOOL_TYPES = frozenset({"HTTP", "SIMPLE", "MCP", "CALL_MCP_TOOL"})
ENDED = frozenset({"COMPLETED", "COMPLETED_WITH_ERRORS"})


def history_of(step: Step, key: Key, inputs: Mapping[str, Any], ctx: DecisionContext) -> list[Message]:
    """Return the messages of earlier tasks, oldest first.

    Raises:
        DataRequired: when an outcome or a payload is not loaded.
    """
    roles = participants_of(inputs)
    if not inputs.get("previousResponseId"):
        roles = {step.ref: "assistant", **roles}
    loop = loop_around(step, key, ctx)
    if loop is None:
        roles.pop(step.ref, None)
    if not roles:
        return []
    by_step = gather_values(partial(outcomes_of_step, ref, loop, ctx) for ref in roles)
    outcomes = sorted(
        (each for each in chain.from_iterable(by_step) if each.status in ENDED and each.key != key),
        key=lambda outcome: outcome.seq,
    )
    return list(
        chain.from_iterable(gather_values(partial(messages_of, each, roles[each.key.ref], ctx) for each in outcomes))
    )


def participants_of(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the role of each participating step. A list of references means the role `user` for each."""
    given = inputs.get("participants")
    if isinstance(given, list):
        return {ref: "user" for ref in given if isinstance(ref, str)}
    if not isinstance(given, Mapping):
        return {}
    return {ref: str(role) for ref, role in given.items() if role}


def loop_around(step: Step, key: Key, ctx: DecisionContext) -> Key | None:
    """Return the loop whose iterations continue the conversation; None if there is none.

    The items of a FOR_EACH are different conversations, and so are the phases of a TRY_CATCH.
    """
    if not step.loops:
        return None
    around = ctx.run.step(step.loops[-1])
    if around is None:
        return None
    structure = structure_of(around.type)
    is_sequence = structure.flow is Flow.LOOP and not structure.item_type
    return Key(around.ref, key.iteration_path[:-1]) if is_sequence else None


def outcomes_of_step(ref: str, loop: Key | None, ctx: DecisionContext) -> list[TaskOutcome]:
    """Return the outcomes of a step's tasks, in all iterations of the loop if the step is inside of it."""
    scope = loop or Key("")
    depth = len(scope.iteration_path)
    known = {
        task.key: task
        for task in ctx.run.tasks.values()
        if task.key.ref == ref and task.key.iteration_path[:depth] == scope.iteration_path
    }
    here = gather_values(partial(outcome_of, task, ctx) for task in known.values() if not task.is_open)
    others = [] if ctx.run.is_whole else ctx.require(StepOutcomes(scope, ref, frozenset(known)))
    return [*here, *others]


def messages_of(outcome: TaskOutcome, role: str, ctx: DecisionContext) -> list[Message]:
    """Return the messages that stand for an ended task."""
    output = outcome.output if isinstance(outcome.output, dict) else {}
    step = ctx.run.step(outcome.key.ref)
    kind = step.type if step else ""
    if kind in TOOL_TYPES or role == "tool":
        return [tool_message(task_call(outcome, kind, ctx), output)]
    if kind == "SUB_WORKFLOW":
        call = task_call(outcome, kind, ctx)
        return [call_message(call), tool_message(call, output)]
    if calls := [call for call in output.get("toolCalls") or () if isinstance(call, dict)]:
        return list(answered_calls(calls, outcome, ctx))
    return result_message(output, role)


def answered_calls(calls: Iterable[dict[str, Any]], outcome: TaskOutcome, ctx: DecisionContext) -> Iterator[Message]:
    """Yield the call and the result of each tool whose task has succeeded. The task has the call's id as reference."""
    path = outcome.key.iteration_path
    named = [call for call in calls if isinstance(call.get("taskReferenceName"), str)]
    parts = gather_values(
        partial(ctx.task_part, call["taskReferenceName"], part, path) for call in named for part in ("facts", "output")
    )
    for call, facts, output in zip(named, parts[::2], parts[1::2], strict=True):
        if facts and facts.get("status") in ENDED:
            yield call_message(call)
            yield tool_message(call, output)


def task_call(outcome: TaskOutcome, kind: str, ctx: DecisionContext) -> dict[str, Any]:
    """Return the call of a tool that a task stands for."""
    inputs = ctx.input_of_attempt(outcome.key, outcome.attempt_id)
    name = outcome.name
    if kind == "CALL_MCP_TOOL" and isinstance(inputs, dict):
        # Neither the address of the server nor its headers concern the model.
        name, inputs = str(inputs.get("method") or name), inputs.get("arguments") or {}
    return {"taskReferenceName": str(outcome.key), "name": name, "type": kind, "inputParameters": inputs}


def call_message(call: Mapping[str, Any]) -> Message:
    """Return the message by which the model calls a tool."""
    return {"role": "tool_call", "message": "", "toolCalls": [dict(call)]}


def tool_message(call: Mapping[str, Any], output: Any) -> Message:
    """Return the message with the result of a tool."""
    return {"role": "tool", "message": "", "toolCalls": [{**call, "output": output}]}


def result_message(output: Mapping[str, Any], role: str) -> list[Message]:
    """Return the message with the result of a task as text, without one if the result is empty."""
    result = output.get("result")
    if isinstance(result, dict) and "response" in result:
        result = result["response"]
    if result in (None, "", []):
        return []
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    media = [each["location"] for each in output.get("media") or () if isinstance(each, dict) and each.get("location")]
    return [{"role": role, "message": text, **({"media": media} if media else {})}]
