"""Steps that call a model, a vector database or an MCP server."""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, ClassVar

from ..data_requests import StepOutcomes, TaskOutcome
from ..decision_context import DecisionContext
from ..definition import INTEGRATION_INPUTS, MODEL_INPUTS, Document, Flow, Key, NamedUse, Step, named_uses, structure_of
from ..primitives import JsonValue
from ..schemas import LONG
from .base import (
    LONG_TYPED,
    ROWS,
    BuiltIn,
    gather_values,
    gettext_noop,
    input_member,
    is_expression,
    outcome_of,
    step_of,
    unknown_word_message,
)


class AiTask(BuiltIn):
    """Executed by a built-in worker of the extra `ai`, in threads of its own."""

    icon = "ai"
    is_isolated = False
    naming_inputs = (*INTEGRATION_INPUTS, *MODEL_INPUTS.values())
    receiving_inputs = (*naming_inputs, "mcpServer", "method", "index", "namespace")
    needed_inputs: ClassVar[tuple[str, ...]] = ()
    policy_defaults = {"retryCount": 3, "retryDelaySeconds": 2, "retryLogic": "LINEAR_BACKOFF"}

    def named_objects(self, inputs: JsonValue) -> Iterator[NamedUse]:
        return named_uses(self.type, inputs)

    def check(self, step: Document, template: Document) -> Iterator[str]:
        yield from super().check(step, template)
        for name in self.needed_inputs:
            if not has_input(step, template, name):
                yield f"inputParameters.{name}"


class ModelCallStep(AiTask):
    """Executed by a built-in worker, which calls a model. The reply is stored before the task is completed."""

    calls_models = True
    needed_inputs = ("llmProvider", "model")


MODEL_OUTPUT: Mapping[str, Any] = dict.fromkeys(
    (
        *("result", "finishReason", "promptTokens", "completionTokens", "tokenUsed", "toolCalls", "media"),
        *("responseId", "reasoning", "reasoningTokens"),
    )
)
"""The members of the output of text and chat tasks."""
MODEL_ANSWER = {"result": "An answer.", "finishReason": "STOP", "tokenUsed": 20}


def has_input(step: Document, template: Document, name: str) -> bool:
    """Return True if the step or the input template of its task definition has a value for this input."""
    return any(inputs.get(name) not in (None, "") for inputs in (step["inputParameters"], template))


ROLES = ("user", "assistant", "system", "tool_call", "tool")


MODEL_MEMBERS = (
    input_member("llmProvider", gettext_noop("Integration")),
    input_member("model", gettext_noop("Model")),
)


class LlmChatComplete(ModelCallStep):
    """Calls a model with messages, among them the answers of earlier iterations and of the step's participants.

    Executed by a built-in worker.
    """

    type = "LLM_CHAT_COMPLETE"
    label = gettext_noop("Chat with a model")
    output_members = MODEL_OUTPUT
    output_sample = MODEL_ANSWER
    extended_input = "messages"
    summary = gettext_noop("Send messages to a model, which may call tools")
    search_words = gettext_noop("llm ai gpt")
    sample = (
        step_of(
            type,
            "chat",
            inputParameters={
                "llmProvider": "openai",
                "model": "gpt-4o-mini",
                "instructions": "",
                "messages": [{"role": "user", "message": "${workflow.input.question}"}],
            },
        ),
    )
    members = (
        *MODEL_MEMBERS,
        input_member("instructions", gettext_noop("Instructions"), LONG),
        input_member("messages", gettext_noop("Messages"), LONG_TYPED, help=gettext_noop("As a JSON list")),
        input_member("tools", gettext_noop("Tools"), LONG_TYPED, help=gettext_noop("As a JSON list")),
        input_member("jsonOutput", gettext_noop("Answer in JSON"), options=""),
    )

    def check(self, step: Document, template: Document) -> Iterator[str]:
        yield from super().check(step, template)
        messages = step["inputParameters"].get("messages")
        for number, message in enumerate(messages if isinstance(messages, list) else ()):
            role = message.get("role") if isinstance(message, dict) else None
            if isinstance(role, str) and role not in ROLES and not is_expression(role):
                yield f"The role of messages[{number}] is wrong: {unknown_word_message(role, ROLES)}"

    def extend_inputs(self, step: Step, key: Key, inputs: dict[str, Any], ctx: DecisionContext) -> dict[str, Any]:
        """Return the inputs with the history of the conversation at the end of `messages`."""
        history = _history_of(step, key, inputs, ctx)
        given = inputs.get("messages")
        if not history or not isinstance(given, list | None):
            return inputs
        question = inputs.get("userInput")
        first = given or ([{"role": "user", "message": question}] if question else [])
        return {**inputs, "messages": [*first, *history]}


class LlmTextComplete(ModelCallStep):
    """Calls a model with a prompt. Executed by a built-in worker."""

    type = "LLM_TEXT_COMPLETE"
    label = gettext_noop("Ask a model")
    output_members = MODEL_OUTPUT
    output_sample = MODEL_ANSWER
    summary = gettext_noop("Send a prompt to a model and use its answer")
    search_words = gettext_noop("llm ai gpt")
    sample = (
        step_of(
            type,
            "answer",
            inputParameters={"llmProvider": "openai", "model": "gpt-4o-mini", "prompt": "${workflow.input.question}"},
        ),
    )
    members = (
        *MODEL_MEMBERS,
        input_member("promptName", gettext_noop("Prompt name")),
        input_member("prompt", gettext_noop("Prompt"), LONG),
        input_member("promptVariables", gettext_noop("Prompt variables"), ROWS),
    )


class LlmGenerateEmbeddings(ModelCallStep):
    """Calls an embedding model. Executed by a built-in worker."""

    type = "LLM_GENERATE_EMBEDDINGS"
    label = gettext_noop("Generate embeddings")
    output_members = {"result": None}
    output_sample = {"result": [0.1, 0.2]}


class VectorStep(AiTask):
    """Executed by a built-in worker on an index of vectors."""

    icon = "database"
    output_members = {"result": None}


class LlmGetEmbeddings(VectorStep):
    """Compares vectors. Executed by a built-in worker."""

    type = "LLM_GET_EMBEDDINGS"
    label = gettext_noop("Get embeddings")
    needed_inputs = ("vectorDB", "index", "embeddings")


class LlmIndexText(VectorStep):
    """Calls an embedding model for the chunks of a text. Executed by a built-in worker."""

    type = "LLM_INDEX_TEXT"
    label = gettext_noop("Index a text")
    needed_inputs = ("vectorDB", "index", "docId", "embeddingModelProvider", "embeddingModel")


class LlmSearchEmbeddings(VectorStep):
    """Compares vectors. Executed by a built-in worker."""

    type = "LLM_SEARCH_EMBEDDINGS"
    label = gettext_noop("Search embeddings")
    needed_inputs = ("vectorDB", "index", "embeddings")


class LlmSearchIndex(VectorStep):
    """Calls an embedding model for the query. Executed by a built-in worker."""

    type = "LLM_SEARCH_INDEX"
    label = gettext_noop("Search an index")
    needed_inputs = ("vectorDB", "index", "query", "embeddingModelProvider", "embeddingModel")


class LlmStoreEmbeddings(VectorStep):
    """Stores a vector under an id. Executed by a built-in worker."""

    type = "LLM_STORE_EMBEDDINGS"
    label = gettext_noop("Store embeddings")
    needed_inputs = ("vectorDB", "index", "embeddings")


class CallMcpToolStep(AiTask):
    """Executed by a built-in worker."""

    type = "CALL_MCP_TOOL"
    label = gettext_noop("Call an MCP tool")
    icon = "http"
    needed_inputs = ("mcpServer", "method")
    output_members = {"content": None, "isError": None, "structuredContent": None}
    output_sample = {"content": [{"type": "text", "text": ""}], "isError": False, "structuredContent": {}}
    summary = gettext_noop("Call a tool of an MCP server and use its result")
    search_words = gettext_noop("llm ai agent")
    sample = (
        step_of(
            type, "tool", inputParameters={"mcpServer": "https://example.com/mcp", "method": "my_tool", "arguments": {}}
        ),
    )
    members = (
        input_member("mcpServer", gettext_noop("MCP server")),
        input_member("method", gettext_noop("Tool")),
        input_member("arguments", gettext_noop("Arguments"), ROWS),
    )


class ListMcpToolsStep(AiTask):
    """Executed by a built-in worker."""

    type = "LIST_MCP_TOOLS"
    label = gettext_noop("List MCP tools")
    icon = "http"
    required_inputs = ("mcpServer",)
    output_members = {"tools": None}
    output_sample = {"tools": [{"name": "", "description": "", "inputSchema": {}}]}


Message = dict[str, Any]
TOOL_TYPES = frozenset({"HTTP", "SIMPLE", "MCP", "CALL_MCP_TOOL"})
ENDED = frozenset({"COMPLETED", "COMPLETED_WITH_ERRORS"})


def _history_of(step: Step, key: Key, inputs: Mapping[str, Any], ctx: DecisionContext) -> list[Message]:
    """Return the messages of earlier tasks, oldest first."""
    roles = _participants_of(inputs)
    if not inputs.get("previousResponseId"):
        roles = {step.ref: "assistant", **roles}
    loop = _loop_around(step, key, ctx)
    if loop is None:
        roles.pop(step.ref, None)
    if not roles:
        return []
    by_step = gather_values(partial(_outcomes_of_step, ref, loop, ctx) for ref in roles)
    outcomes = sorted(
        (each for each in chain.from_iterable(by_step) if each.status in ENDED and each.key != key),
        key=lambda outcome: outcome.seq,
    )
    return list(
        chain.from_iterable(gather_values(partial(messages_of, each, roles[each.key.ref], ctx) for each in outcomes))
    )


def _participants_of(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the role of each participating step. A list of references means the role `user` for each."""
    given = inputs.get("participants")
    if isinstance(given, list):
        return {ref: "user" for ref in given if isinstance(ref, str)}
    if not isinstance(given, Mapping):
        return {}
    return {ref: str(role) for ref, role in given.items() if role}


def _loop_around(step: Step, key: Key, ctx: DecisionContext) -> Key | None:
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


def _outcomes_of_step(ref: str, loop: Key | None, ctx: DecisionContext) -> list[TaskOutcome]:
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
        return [_tool_message(_task_call(outcome, kind, ctx), output)]
    if kind == "SUB_WORKFLOW":
        call = _task_call(outcome, kind, ctx)
        return [_call_message(call), _tool_message(call, output)]
    if calls := [call for call in output.get("toolCalls") or () if isinstance(call, dict)]:
        return list(_answered_calls(calls, outcome, ctx))
    return _result_message(output, role)


def _answered_calls(calls: Iterable[dict[str, Any]], outcome: TaskOutcome, ctx: DecisionContext) -> Iterator[Message]:
    """Yield the call and the result of each tool whose task has succeeded. The task has the call's id as reference."""
    path = outcome.key.iteration_path
    named = [call for call in calls if isinstance(call.get("taskReferenceName"), str)]
    parts = gather_values(
        partial(ctx.task_part, call["taskReferenceName"], part, path) for call in named for part in ("facts", "output")
    )
    for call, facts, output in zip(named, parts[::2], parts[1::2], strict=True):
        if facts and facts.get("status") in ENDED:
            yield _call_message(call)
            yield _tool_message(call, output)


def _task_call(outcome: TaskOutcome, kind: str, ctx: DecisionContext) -> dict[str, Any]:
    """Return the call of a tool that a task stands for."""
    inputs = ctx.input_of_attempt(outcome.key, outcome.attempt_id)
    name = outcome.name
    if kind == "CALL_MCP_TOOL" and isinstance(inputs, dict):
        # Neither the address of the server nor its headers concern the model.
        name, inputs = str(inputs.get("method") or name), inputs.get("arguments") or {}
    return {"taskReferenceName": str(outcome.key), "name": name, "type": kind, "inputParameters": inputs}


def _call_message(call: Mapping[str, Any]) -> Message:
    """Return the message by which the model calls a tool."""
    return {"role": "tool_call", "message": "", "toolCalls": [dict(call)]}


def _tool_message(call: Mapping[str, Any], output: JsonValue) -> Message:
    return {"role": "tool", "message": "", "toolCalls": [{**call, "output": output}]}


def _result_message(output: Mapping[str, Any], role: str) -> list[Message]:
    """Return the message with the result of a task as text, without one if the result is empty."""
    result = output.get("result")
    if isinstance(result, dict) and "response" in result:
        result = result["response"]
    if result in (None, "", []):
        return []
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    media = [each["location"] for each in output.get("media") or () if isinstance(each, dict) and each.get("location")]
    return [{"role": role, "message": text, **({"media": media} if media else {})}]
