"""The input of text and chat tasks → the request that a provider's client sends."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from conductor_app.core.expressions import quote_value
from conductor_app.core.step_structure import DEFAULT_TYPE
from conductor_app.core.step_types.llm_chat_complete import ROLES
from conductor_app.engine.definitions.json_schema import schema_error
from conductor_app.workers.ai.media import MediaRejected, Medium, read_medium
from conductor_app.workers.ai.templating import as_text, fill_placeholders

DEFAULT_MAX_TOKENS = 8192
MAX_RESULTS = 128
FOLLOW = "Follow the instructions."
CONTINUE = "Continue."
JSON_ONLY = "Reply with one JSON object and nothing before or after it."
UNSUPPORTED = (
    *("previousResponseId", "webSearch", "codeInterpreter", "fileSearchVectorStoreIds", "googleSearchRetrieval"),
    *("outputMimeType", "outputLocation", "voice"),
)
"""Inputs of the original that this server refuses instead of ignoring them."""


class InputRejected(Exception):
    """The input of the task is invalid, or a retry cannot succeed for another reason."""


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool by a model. `output`: the result, in a message of the role `tool`."""

    id: str
    name: str
    arguments: dict[str, Any]
    output: Any = None


@dataclass(frozen=True)
class ChatMessage:
    """A message of a conversation."""

    role: str
    text: str = ""
    media: tuple[Medium, ...] = ()
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class ToolSpec:
    """A tool that the model may call. `schema`: the JSON schema of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]
    type: str = DEFAULT_TYPE


@dataclass(frozen=True)
class ChatRequest:
    """A request to a model. A parameter that is None has the provider's default."""

    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int = DEFAULT_MAX_TOKENS
    max_results: int = 1
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    stop_words: tuple[str, ...] = ()
    wants_json: bool = False
    schema: dict[str, Any] | None = None
    reasoning_effort: str = ""
    thinking_tokens: int = 0
    wants_reasoning: bool = False
    streams: bool = False

    @property
    def system(self) -> str:
        """Return the texts of the system messages."""
        return "\n\n".join(message.text for message in self.messages if message.role == "system" and message.text)


def read_chat(inputs: Mapping[str, Any], instructions: str) -> ChatRequest:
    """Return the request of a chat task. `instructions`: the resolved text of the system message, which may be empty.

    Raises:
        InputRejected: when an input is invalid.
    """
    if names := [name for name in UNSUPPORTED if inputs.get(name)]:
        raise InputRejected(f"this server does not support {', '.join(names)}: remove the input")
    variables = mapping(inputs, "promptVariables")
    given = [read_message(each, variables) for each in items(inputs, "messages")]
    question = inputs.get("userInput")
    if not given and question not in (None, ""):
        given = [ChatMessage("user", fill_placeholders(as_text(question), variables))]
    first = [ChatMessage("system", fill_placeholders(instructions, variables))] if instructions.strip() else []
    if not (first or given):
        raise InputRejected("there is nothing to send: set instructions, messages or userInput")
    return _request(inputs, tuple(complete_turns([*first, *given])), tuple(map(read_tool, items(inputs, "tools"))))


def read_text(inputs: Mapping[str, Any], prompt: str) -> ChatRequest:
    """Return the request of a text task: the prompt as instructions, and a message that asks to follow them.

    Raises:
        InputRejected: when an input is invalid.
    """
    text = fill_placeholders(prompt, mapping(inputs, "promptVariables"))
    if not text.strip():
        raise InputRejected("the prompt is empty: set promptName or prompt")
    return _request(inputs, (ChatMessage("system", text), ChatMessage("user", FOLLOW)), ())


def _request(inputs: Mapping[str, Any], messages: tuple[ChatMessage, ...], tools: tuple[ToolSpec, ...]) -> ChatRequest:
    wants_json = boolean(inputs, "jsonOutput")
    return ChatRequest(
        messages=messages,
        tools=tools,
        max_tokens=whole_number(inputs, "maxTokens", least=1) or DEFAULT_MAX_TOKENS,
        max_results=min(whole_number(inputs, "maxResults", least=1) or 1, MAX_RESULTS),
        temperature=number(inputs, "temperature"),
        top_p=number(inputs, "topP"),
        top_k=whole_number(inputs, "topK"),
        frequency_penalty=number(inputs, "frequencyPenalty"),
        presence_penalty=number(inputs, "presencePenalty"),
        stop_words=tuple(map(as_text, items(inputs, "stopWords"))),
        wants_json=wants_json,
        schema=output_schema(inputs) if wants_json else None,
        reasoning_effort=as_text(inputs.get("reasoningEffort") or ""),
        thinking_tokens=whole_number(inputs, "thinkingTokenLimit") or 0,
        wants_reasoning=bool(inputs.get("reasoningSummary")),
        streams=boolean(inputs, "stream"),
    )


def output_schema(inputs: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the JSON schema of the answer: the `data` of `outputSchema`, or itself if it is a schema."""
    given = mapping(inputs, "outputSchema")
    if not given:
        return None
    data = given.get("data", None if "externalRef" in given else given)
    if not isinstance(data, Mapping):
        raise InputRejected("outputSchema.data must be a JSON schema")
    if fault := schema_error(dict(data)):
        raise InputRejected(f"outputSchema cannot be used: {fault}")
    return dict(data)


def complete_turns(messages: list[ChatMessage]) -> Iterator[ChatMessage]:
    """Yield the messages so that each result of a tool follows its call, and the last message asks for an answer."""
    announced: set[str] = set()
    for message in messages:
        if message.role == "tool_call":
            announced |= {call.id for call in message.calls}
        elif message.role == "tool" and (missing := tuple(c for c in message.calls if c.id not in announced)):
            yield ChatMessage("tool_call", calls=missing)
            announced |= {call.id for call in missing}
        yield message
    if messages and messages[-1].role in ("assistant", "system", "tool_call"):
        yield ChatMessage("user", CONTINUE if len(messages) > 1 else FOLLOW)


def read_message(given: Any, variables: Mapping[str, Any]) -> ChatMessage:
    """Return a message of the input.

    Raises:
        InputRejected: when it is invalid.
    """
    if not isinstance(given, Mapping):
        raise InputRejected(f"each of messages must be an object with role and message, not {quote_value(given, 60)}")
    role = given.get("role", "user")
    if role not in ROLES:
        raise InputRejected(f"the role of a message must be one of {', '.join(ROLES)}, not {quote_value(role, 60)}")
    try:
        media = tuple(read_medium(each, given.get("mimeType")) for each in items(given, "media"))
    except MediaRejected as rejected:
        raise InputRejected(str(rejected)) from None
    if media and role != "user":
        raise InputRejected("only messages with the role user can have media")
    text = fill_placeholders(as_text(given.get("message") or ""), variables)
    calls = tuple(read_call(call) for call in items(given, "toolCalls"))
    if role in ("tool", "tool_call") and not calls:
        raise InputRejected(f"a message with the role {role} must have toolCalls")
    return ChatMessage(role, text, media, calls)


def read_call(given: Any) -> ToolCall:
    """Return a call of a tool, as a chat task returns it in `toolCalls`."""
    if not isinstance(given, Mapping) or not given.get("name"):
        raise InputRejected("each of toolCalls must be an object with taskReferenceName and name")
    arguments = dict(mapping(given, "inputParameters"))
    arguments.pop("method", None)
    name = str(given["name"])
    return ToolCall(str(given.get("taskReferenceName") or name), name, arguments, given.get("output"))


def read_tool(given: Any) -> ToolSpec:
    """Return a tool of the input."""
    if not isinstance(given, Mapping) or not isinstance(given.get("name"), str) or not given["name"]:
        raise InputRejected("each of tools must be an object with name, description and inputSchema")
    schema = given.get("inputSchema")
    if not isinstance(schema, Mapping) or not schema:
        schema = {"type": "object", "properties": {}}
    return ToolSpec(
        given["name"], as_text(given.get("description") or ""), dict(schema), given.get("type") or DEFAULT_TYPE
    )


def items(inputs: Mapping[str, Any], name: str) -> list[Any]:
    """Return a list of the input; an empty one if it is missing."""
    value = inputs.get(name)
    if value is None or value == "":
        return []
    if not isinstance(value, list):
        raise InputRejected(f"{name} must be a list, not {quote_value(value, 60)}")
    return value


def mapping(inputs: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object of the input; an empty one if it is missing."""
    value = inputs.get(name)
    if value is None or value == "":
        return {}
    if not isinstance(value, Mapping):
        raise InputRejected(f"{name} must be an object, not {quote_value(value, 60)}")
    return value


def number(inputs: Mapping[str, Any], name: str) -> float | None:
    """Return a number of the input, or None if it is missing. Texts with a number count."""
    value = inputs.get(name)
    if value is None or value == "":
        return None
    try:
        found = float(value)
        if isinstance(value, bool) or not isfinite(found):
            raise ValueError
        return found
    except (TypeError, ValueError, OverflowError):
        raise InputRejected(f"{name} must be a number, not {quote_value(value, 60)}") from None


def whole_number(inputs: Mapping[str, Any], name: str, least: int = 0) -> int | None:
    """Return a whole number of the input, or None if it is missing."""
    value = number(inputs, name)
    if value is None:
        return None
    if value != int(value) or value < least:
        raise InputRejected(f"{name} must be a whole number of at least {least}, not {quote_value(inputs[name], 60)}")
    return int(value)


def boolean(inputs: Mapping[str, Any], name: str) -> bool:
    """Return a Boolean of the input, False if it is missing. Conductor's definitions also write it as text."""
    value = inputs.get(name)
    if value in (None, "", False) or str(value).lower() == "false":
        return False
    if value is True or str(value).lower() == "true":
        return True
    raise InputRejected(f"{name} must be true or false, not {quote_value(value, 60)}")
