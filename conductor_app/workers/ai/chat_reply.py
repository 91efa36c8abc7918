"""The reply of a model, independent of the provider, and the output of text and chat tasks."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from conductor_app.core.data_requests import SchemaCheck
from conductor_app.core.errors import Busy
from conductor_app.core.step_structure import DEFAULT_TYPE
from conductor_app.engine.ai.model_calls import Usage
from conductor_app.engine.definitions.json_schema import check_against_schema
from conductor_app.workers.ai.chat_request import ChatRequest
from conductor_app.workers.ai.provider_errors import CallFailed

CHECK_AGAIN_SECONDS = 5
MAX_DEPTH = 20
"""The number of levels to which texts in arguments are parsed."""


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


def parse_nested(value: Any, depth: int = 0) -> Any:
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
