"""Calls of Anthropic's API with the client library `anthropic`."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic

from ...settings import conf
from ...utils import clock
from ..commands.integrations import ModelSettings
from .guarded_http import guarded_client, library_errors
from .messages import AUDIO, JSON_ONLY, ChatMessage, ChatReply, ChatRequest, InputRejected, as_text

BASE_URL = "https://api.anthropic.com"
FINISH_REASONS = {
    "end_turn": "STOP",
    "tool_use": "TOOL_CALLS",
    "max_tokens": "MAX_TOKENS",
    "stop_sequence": "STOP_SEQUENCE",
    "refusal": "REFUSAL",
}


def complete(
    settings: ModelSettings, request: ChatRequest, key: str, on_text: Callable[[str], None] | None
) -> ChatReply:
    """Send a request and return the reply, as `complete` of `trials.py` describes."""
    parameters = message_parameters(settings, request)
    options: dict[str, Any] = {"extra_headers": {"Idempotency-Key": key}}
    began_at, first_token_ms = clock.now(), None
    with _client(settings) as client, library_errors(anthropic, settings.integration):
        if not request.streams:
            return read_message(client.messages.create(**parameters, **options))
        with client.messages.stream(**parameters, **options) as stream:
            for text in stream.text_stream:
                first_token_ms = clock.now() - began_at if first_token_ms is None else first_token_ms
                if on_text:
                    on_text(text)
            return read_message(stream.get_final_message(), first_token_ms)


def list_models(settings: ModelSettings) -> list[str]:
    """Return the names of the provider's models."""
    with _client(settings) as client, library_errors(anthropic, settings.integration):
        return sorted(model.id for model in client.models.list(limit=100).data)


def _client(settings: ModelSettings) -> anthropic.Anthropic:
    seconds = conf.ai_task_seconds
    return anthropic.Anthropic(
        api_key=settings.api_key or "none",
        auth_token=None,
        base_url=(settings.base_url or BASE_URL).rstrip("/").removesuffix("/v1"),
        http_client=guarded_client(seconds),
        max_retries=0,
        timeout=seconds,
    )


def message_parameters(settings: ModelSettings, request: ChatRequest) -> dict[str, Any]:
    """Return the parameters of a request as the library takes them."""
    if request.max_results > 1:
        raise InputRejected("maxResults must be 1 with Anthropic")
    if request.thinking_tokens and request.tools:
        raise InputRejected("thinkingTokenLimit and tools cannot be used together with Anthropic")
    thinks = bool(request.thinking_tokens)
    parameters: dict[str, Any] = {
        "model": settings.model,
        "system": system_text(request) or None,
        "messages": merge_roles(list(turns(request))),
        "max_tokens": request.max_tokens + request.thinking_tokens,
        # The library has no arguments for these parameters of the API.
        "extra_body": None if thinks else sampling_parameters(request) or None,
        "stop_sequences": list(request.stop_words) or None,
        "thinking": {"type": "enabled", "budget_tokens": request.thinking_tokens} if thinks else None,
        "tools": [
            {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in request.tools
        ]
        or None,
    }
    return {name: value for name, value in parameters.items() if value is not None}


def sampling_parameters(request: ChatRequest) -> dict[str, Any]:
    """Return the parameters by which a model chooses among the likely continuations."""
    given = {"temperature": request.temperature, "top_p": request.top_p, "top_k": request.top_k}
    return {name: value for name, value in given.items() if value is not None}


def system_text(request: ChatRequest) -> str:
    """Return the system message. The API has no JSON mode, so the message asks for JSON."""
    asks = [JSON_ONLY] if request.wants_json else []
    if request.schema is not None:
        asks.append(f"It must match this JSON schema: {json.dumps(request.schema)}")
    return "\n\n".join(filter(None, (request.system, *asks)))


def turns(request: ChatRequest) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the role and the content of each message but the system messages."""
    for message in request.messages:
        match message.role:
            case "user" | "assistant":
                yield message.role, list(content_blocks(message))
            case "tool_call":
                yield (
                    "assistant",
                    [
                        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
                        for call in message.calls
                    ],
                )
            case "tool":
                yield (
                    "user",
                    [
                        {"type": "tool_result", "tool_use_id": call.id, "content": as_text(call.output)}
                        for call in message.calls
                    ],
                )


def content_blocks(message: ChatMessage) -> Iterator[dict[str, Any]]:
    """Yield the images, the documents and the text of a message. The API refuses empty texts."""
    for medium in message.media:
        if medium.kind == AUDIO:
            raise InputRejected("Anthropic has no models that accept audio: remove it from media")
        if medium.address:
            source = {"type": "url", "url": medium.address}
        else:
            source = {"type": "base64", "media_type": medium.mime_type, "data": medium.data}
        yield {"type": medium.kind, "source": source}
    if message.text.strip():
        yield {"type": "text", "text": message.text}


def merge_roles(given: list[tuple[str, list[dict[str, Any]]]]) -> list[dict[str, Any]]:
    """Return the messages with those of the same role in a row merged, and an initial message of the user."""
    merged: list[dict[str, Any]] = []
    for role, blocks in given:
        if not blocks:
            continue
        if merged and merged[-1]["role"] == role:
            merged[-1]["content"] += blocks
        else:
            merged.append({"role": role, "content": blocks})
    if merged and merged[0]["role"] == "assistant":
        merged.insert(0, {"role": "user", "content": [{"type": "text", "text": "Begin."}]})
    return merged


def read_message(message: Any, first_token_ms: int | None = None) -> ChatReply:
    """Return the reply in a response."""
    calls = [[block.id, block.name, json.dumps(block.input)] for block in message.content if block.type == "tool_use"]
    texts = [block.text for block in message.content if block.type == "text"]
    reasoning = [block.thinking for block in message.content if block.type == "thinking"]
    usage = message.usage
    cached = (getattr(usage, "cache_read_input_tokens", None) or 0) + (
        getattr(usage, "cache_creation_input_tokens", None) or 0
    )
    name = message.stop_reason or "end_turn"
    return ChatReply(
        texts=["".join(texts)],
        finish_reason=FINISH_REASONS.get(name, name.upper()),
        calls=calls,
        prompt_tokens=(usage.input_tokens or 0) + cached,
        completion_tokens=usage.output_tokens or 0,
        reasoning="".join(reasoning),
        response_id=message.id or "",
        first_token_ms=first_token_ms,
    )
