"""The input of AI tasks, the request that a client sends, its reply or error, and the output: for all providers."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ...access.secrets import redact
from ...core.data_requests import SchemaCheck
from ...core.definition import DEFAULT_TYPE
from ...core.errors import Busy
from ...core.expressions import quote_value
from ...core.primitives import JsonValue
from ...core.step_types.ai import ROLES
from ...db.transient_errors import exception_chain, own_error_of_exchange
from ...definitions.schemas import check_against_schema, schema_error
from ...system_tasks.network_guard import AddressRefused
from ...utils import clock
from ..commands.calls import Usage
from ..commands.integrations import ModelSettings

PLACEHOLDER = re.compile(r"\$\{([^${}]{1,255})\}")
IMAGE, AUDIO, DOCUMENT = "image", "audio", "document"
PDF = "application/pdf"
AUDIO_FORMATS = {
    **dict.fromkeys(("audio/wav", "audio/wave", "audio/x-wav"), "wav"),
    **dict.fromkeys(("audio/mpeg", "audio/mp3"), "mp3"),
}
"""The formats that chat APIs take, by their MIME types."""
DATA = "data:"
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
MAX_WAIT_SECONDS = 3600
MAX_REPLY_BYTES = 10 << 20
"""The maximum size of a reply to an AI task."""
REFUSED_STATUSES = frozenset({400, 404, 405, 413, 422})
"""Statuses of requests that a provider refuses for their content, so that a retry cannot succeed."""
MAX_MESSAGE_LENGTH = 1_000
TOO_LONG = "{} did not reply within AI_TASK_SECONDS ({:g} s); the call may have been paid"
REFUSED_ADDRESS = "{} is not a public address, and no network in HTTP_TASK_ALLOWED_NETWORKS contains it"
CHECK_AGAIN_SECONDS = 5
MAX_DEPTH = 20
"""The number of levels to which texts in arguments are parsed."""


def fill_placeholders(text: str, variables: Mapping[str, Any]) -> str:
    """Return the text with its placeholders replaced. Unknown names stay; objects and lists are inserted as JSON."""

    def value(match: re.Match[str]) -> str:
        name = match[1].strip()
        return as_text(variables[name]) if name in variables else match[0]

    return PLACEHOLDER.sub(value, text) if variables else text


def as_text(value: JsonValue) -> str:
    """Return a value as it stands in a prompt: texts and numbers plain, other values as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


class MediaRejected(ValueError):
    """The medium is of a kind that no model takes."""


class Medium(NamedTuple):
    """An image, audio, or a document. `data`: Base64, or empty for an address. `mime_type`: empty if it is unknown."""

    kind: str
    mime_type: str
    address: str = ""
    data: str = ""

    @property
    def url(self) -> str:
        """Return its address, or its data as one."""
        return self.address or f"data:{self.mime_type};base64,{self.data}"


def read_medium(given: JsonValue, mime_type: JsonValue) -> Medium:
    """Return a medium of the input: an address, a `data:` URL, or Base64 with a MIME type. Nothing is loaded."""
    stated = mime_type.strip().lower() if isinstance(mime_type, str) else ""
    if isinstance(given, str) and given.startswith(("https://", "http://")):
        is_pdf = stated == PDF or urlsplit(given).path.lower().endswith(".pdf")
        return Medium(_kind_of(stated) if stated else DOCUMENT if is_pdf else IMAGE, PDF if is_pdf else stated, given)
    if isinstance(given, str) and given.startswith(DATA):
        head, _comma, data = given[len(DATA) :].partition(",")
        type, _semicolon, encoding = head.partition(";")
        if encoding.endswith("base64"):
            return Medium(_kind_of(type.lower()), type.lower(), data=data)
    elif isinstance(given, str) and stated and "://" not in given:
        return Medium(_kind_of(stated), stated, data=given)
    raise MediaRejected("media must have http(s) or data: URLs, or Base64 with a mimeType")


def _kind_of(mime_type: str) -> str:
    if mime_type.startswith("image/"):
        return IMAGE
    if mime_type in AUDIO_FORMATS:
        return AUDIO
    if mime_type == PDF:
        return DOCUMENT
    raise MediaRejected(f"media must be images, PDF documents, or audio as WAV or MP3, not {mime_type!r:.60}")


class InputRejected(Exception):
    """The input of the task is invalid, or a retry cannot succeed for another reason."""


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool by a model. `output`: the result, in a message of the role `tool`."""

    id: str
    name: str
    arguments: dict[str, Any]
    output: JsonValue = None


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
    """Return the request of a text task: the prompt as instructions, and a message that asks to follow them."""
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


def read_message(given: JsonValue, variables: Mapping[str, Any]) -> ChatMessage:
    """Return a message of the input."""
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


def read_call(given: JsonValue) -> ToolCall:
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


class CallFailed(Exception):
    """The call has no reply.

    `wait_seconds`: how long the provider asks to wait, 0 if it does not. `is_final`: True if a retry cannot succeed.
    """

    def __init__(self, reason: str, wait_seconds: int = 0, is_final: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.wait_seconds, self.is_final = reason, wait_seconds, is_final


def status_failure(provider: str, status: int, headers: Mapping[str, str], body: JsonValue) -> CallFailed:
    """Return the failure for an error response."""
    message = error_message(body)
    reason = f"{provider} replied with status {status}" + (f": {message}" if message else "")
    wait = retry_after(headers) if status in (408, 409, 425, 429) or status >= 500 else 0
    return CallFailed(reason, wait, is_final=status in REFUSED_STATUSES)


def connection_failure(provider: str, error: BaseException, seconds: float) -> CallFailed:
    """Return the failure for a request without a response. Texts of libraries may contain addresses with secrets.

    Raises:
        OSError: when this server is the cause, for example because it has too many open files.
    """
    if own := own_error_of_exchange(error):
        raise own from None
    chain = exception_chain(error)
    names = {type(each).__name__ for each in chain}
    refused = next((each for each in chain if isinstance(each, AddressRefused)), None)
    if refused is not None:
        return CallFailed(REFUSED_ADDRESS.format(refused.address), is_final=True)
    if "ReplyTooLarge" in names:
        return CallFailed(f"the reply of {provider} is larger than {MAX_REPLY_BYTES} bytes", is_final=True)
    if "ConnectTimeout" in names:
        return CallFailed(f"no connection to {provider} within its time limit")
    if names & {"ReadTimeout", "WriteTimeout", "TimeoutError", "CancelledError"}:
        return CallFailed(TOO_LONG.format(provider, seconds))
    if "ConnectError" in names or "ConnectionRefusedError" in names:
        return CallFailed(f"no connection to {provider}: its address cannot be resolved or refuses connections")
    if "DecodingError" in names:
        return CallFailed(f"the reply of {provider} is compressed or not readable")
    return CallFailed(f"the connection to {provider} ended before the reply was complete; the call may have been paid")


def retry_after(headers: Mapping[str, str]) -> int:
    """Return the seconds that a provider asks to wait, at most MAX_WAIT_SECONDS; 0 if it does not say so."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return 0
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - clock.now() / 1000
        except ValueError:
            return 0
    if seconds != seconds:
        return 0
    return max(1, min(MAX_WAIT_SECONDS, int(min(seconds, MAX_WAIT_SECONDS) + 0.999)))


def error_message(body: JsonValue) -> str:
    """Return the message in the body of an error response."""
    if isinstance(body, Mapping):
        error = body.get("error", body)
        text = error.get("message") if isinstance(error, Mapping) else error
    else:
        text = body
    return " ".join(text.split())[:MAX_MESSAGE_LENGTH] if isinstance(text, str) else ""


def without_keys(text: str, settings: ModelSettings) -> str:
    """Return a text without the API key and the other secrets of an integration."""
    return redact(text, (), [value for value in (settings.api_key, *settings.secrets.values()) if value])


class AnswerRefused(Exception):
    """The answer is not what the task requires. A retry asks the model again."""


@dataclass(frozen=True)
class ChatReply:
    """The reply of a model. `calls`: pairs of id, name and arguments as JSON text."""

    texts: list[str]
    finish_reason: str
    calls: list[list[str]]
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning: str = ""
    reasoning_tokens: int = 0
    response_id: str = ""
    first_token_ms: int | None = None

    @property
    def usage(self) -> Usage:
        """Return the part of the reply that the journal records."""
        return Usage(self.prompt_tokens, self.completion_tokens, self.finish_reason, self.first_token_ms)

    def as_document(self) -> dict[str, Any]:
        """Return the reply as the journal stores it."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "ChatReply":
        """Return the reply that the journal has stored."""
        return cls(**document)


def output_of(reply: ChatReply, request: ChatRequest) -> dict[str, Any]:
    """Return the output of the task.

    Raises:
        AnswerRefused: when the task requires JSON and the answer is not an object, or does not match the schema.
    """
    types = {tool.name: tool.type for tool in request.tools}
    calls = [tool_call(id, name, arguments, types) for id, name, arguments in reply.calls]
    if calls:
        # The model has not answered yet. Its text beside the calls need not be JSON.
        results = [parse_object(text) or text for text in reply.texts if text]
    else:
        results = [read_result(text, request) for text in reply.texts]
    output: dict[str, Any] = {
        "result": results[0] if len(results) == 1 else results,
        "finishReason": reply.finish_reason,
        "promptTokens": reply.prompt_tokens,
        "completionTokens": reply.completion_tokens,
        "tokenUsed": reply.prompt_tokens + reply.completion_tokens,
        "media": [],
    }
    optional: dict[str, Any] = {"toolCalls": calls, "responseId": reply.response_id}
    if request.wants_reasoning:
        optional |= {"reasoning": reply.reasoning, "reasoningTokens": reply.reasoning_tokens}
    return output | {name: value for name, value in optional.items() if value}


def read_result(text: str, request: ChatRequest) -> Any:
    """Return a text, or the object that it has as JSON, possibly within a code fence.

    Raises:
        AnswerRefused: when the task requires an object, and which it does not match.
        CallFailed: when the answer cannot be checked now.
    """
    value = parse_object(text)
    if value is None:
        if request.wants_json:
            raise AnswerRefused(json.dumps({"error": "The answer is not a JSON object.", "response": text}))
        return text
    if request.schema is not None:
        try:
            violations = check_against_schema(SchemaCheck(json.dumps(request.schema), json.dumps(value)))
        except Busy as busy:
            # The journal has the reply, so that the attempt checks it again without another call.
            raise CallFailed(busy.message, wait_seconds=CHECK_AGAIN_SECONDS) from None
        if violations:
            found = "; ".join(f"{path} {message}".strip() for path, message in violations[:5])
            raise AnswerRefused(
                json.dumps({"error": f"The answer does not match outputSchema: {found}", "response": text})
            )
    return value


def parse_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object of a text, possibly within a code fence; None if it is none."""
    body = text.strip()
    if body.startswith("```"):
        body = body.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    if not body.startswith("{"):
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def tool_call(id: str, name: str, arguments: str, types: dict[str, str]) -> dict[str, Any]:
    """Return a call of a tool as the output has it. Unreadable arguments are left out."""
    found = parse_object(arguments) or {}
    given = {key: parse_nested(value) for key, value in found.items()}
    return {
        "taskReferenceName": id,
        "name": name,
        "type": types.get(name, DEFAULT_TYPE),
        "inputParameters": {**given, "method": name},
    }


def parse_nested(value: JsonValue, depth: int = 0) -> Any:
    """Return an argument with the texts parsed that contain JSON objects or arrays."""
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return parse_nested(parsed, depth + 1) if isinstance(parsed, dict | list) else value
    if isinstance(value, dict):
        return {key: parse_nested(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        return [parse_nested(each, depth + 1) for each in value]
    return value
