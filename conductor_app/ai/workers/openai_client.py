"""Calls of OpenAI-compatible servers with the client library `openai`."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import openai

from ...settings import conf
from ...utils import clock
from ..commands.integrations import ModelSettings
from . import messages
from .guarded_http import guarded_client, library_errors

BASE_URLS = {
    "openai": "https://api.openai.com/v1",
    "mistral": "https://api.mistral.ai/v1",
    "Grok": "https://api.x.ai/v1",
    "perplexity": "https://api.perplexity.ai",
    "huggingface": "https://router.huggingface.co/v1",
    "ollama": "http://localhost:11434/v1",
}
"""The base URL of providers with an OpenAI-compatible API."""
AZURE_VERSION = "2024-10-21"
FINISH_REASONS = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "tool_calls": "TOOL_CALLS",
    "function_call": "TOOL_CALLS",
    "content_filter": "CONTENT_FILTER",
}
REASONING_MODELS = ("o1", "o3", "o4", "gpt-5")
"""The prefixes of models that accept neither a temperature nor stop words."""


def complete(
    settings: ModelSettings, request: messages.ChatRequest, key: str, on_text: Callable[[str], None] | None
) -> messages.ChatReply:
    """Send a request and return the reply, as `complete` of `trials.py` describes."""
    parameters = chat_parameters(settings, request)
    with _client(settings) as client, library_errors(openai, settings.integration):
        options: dict[str, Any] = {"extra_headers": {"Idempotency-Key": key}}
        if not request.streams:
            return read_completion(client.chat.completions.create(**parameters, **options))
        stream = client.chat.completions.create(
            **parameters, **options, stream=True, stream_options={"include_usage": True}
        )
        return StreamedReply(on_text).read(stream)


def embed(settings: ModelSettings, texts: list[str], dimensions: int | None, key: str) -> tuple[list[list[float]], int]:
    """Return the vectors of texts, and the number of tokens."""
    size: dict[str, Any] = {"dimensions": dimensions} if dimensions else {}
    with _client(settings) as client, library_errors(openai, settings.integration):
        reply = client.embeddings.create(
            model=settings.model,
            input=texts,
            encoding_format="float",
            extra_headers={"Idempotency-Key": key},
            **size,
        )
    vectors = [list(each.embedding) for each in sorted(reply.data, key=lambda each: each.index)]
    if len(vectors) != len(texts):
        raise messages.CallFailed(f"{settings.integration} returned {len(vectors)} vectors for {len(texts)} texts")
    return vectors, reply.usage.prompt_tokens if reply.usage else 0


def list_models(settings: ModelSettings) -> list[str]:
    """Return the names of the provider's models."""
    with _client(settings) as client, library_errors(openai, settings.integration):
        return sorted(model.id for model in client.models.list().data)


def _client(settings: ModelSettings) -> openai.OpenAI:
    seconds = conf.ai_task_seconds
    shared: dict[str, Any] = {
        # The library requires a key. Local servers accept any.
        "api_key": settings.api_key or "none",
        "http_client": guarded_client(seconds),
        "max_retries": 0,
        "timeout": seconds,
    }
    base_url = settings.base_url or BASE_URLS.get(settings.kind, "")
    if not base_url:
        raise messages.InputRejected(
            f"the integration {settings.integration} has no base URL, and the kind {settings.kind} has no default: set "
            "its base URL"
        )
    if settings.kind == "azure_openai":
        configuration = settings.configuration
        version = configuration.get("apiVersion") or configuration.get("api_version") or AZURE_VERSION
        deployment = configuration.get("deploymentName") or configuration.get("deployment_name") or settings.model
        return openai.AzureOpenAI(azure_endpoint=base_url, api_version=version, azure_deployment=deployment, **shared)
    organization = settings.configuration.get("organizationId") or settings.configuration.get("organization")
    return openai.OpenAI(base_url=base_url, organization=organization or "", **shared)


def chat_parameters(settings: ModelSettings, request: messages.ChatRequest) -> dict[str, Any]:
    """Return the parameters of a request as the library takes them."""
    is_openai = settings.kind in ("openai", "azure_openai")
    reasons = settings.model.startswith(REASONING_MODELS)
    parameters: dict[str, Any] = {
        "model": settings.model,
        "messages": list(message_parameters(request)),
        "max_completion_tokens" if is_openai else "max_tokens": request.max_tokens,
        "n": request.max_results if request.max_results > 1 else None,
        "temperature": None if reasons else request.temperature,
        "top_p": None if reasons else request.top_p,
        "stop": None if reasons else list(request.stop_words) or None,
        "frequency_penalty": request.frequency_penalty,
        "presence_penalty": request.presence_penalty,
        "reasoning_effort": request.reasoning_effort or None,
        "tools": [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
            }
            for tool in request.tools
        ]
        or None,
        "response_format": response_format(request),
        "extra_body": {"top_k": request.top_k} if request.top_k is not None and not is_openai else None,
    }
    return {name: value for name, value in parameters.items() if value is not None}


def response_format(request: messages.ChatRequest) -> dict[str, Any] | None:
    """Return the provider's JSON mode for a request, or None."""
    if not request.wants_json:
        return None
    if request.schema is None:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": request.schema}}


def message_parameters(request: messages.ChatRequest) -> Iterator[dict[str, Any]]:
    """Yield the messages as the API takes them."""
    if request.wants_json and not any("json" in message.text.lower() for message in request.messages):
        # The JSON mode of OpenAI refuses requests that do not mention JSON.
        yield {"role": "system", "content": messages.JSON_ONLY}
    pending: list[messages.ToolCall] = []
    for message in request.messages:
        if message.role == "tool_call":
            pending += message.calls
            continue
        if pending:
            yield calls_parameter(pending)
            pending = []
        yield from _message_parameter(message)


def _message_parameter(message: messages.ChatMessage) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        for call in message.calls:
            yield {"role": "tool", "tool_call_id": call.id, "content": messages.as_text(call.output)}
    elif message.media:
        parts: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text else []
        parts += [media_parameter(medium) for medium in message.media]
        yield {"role": "user", "content": parts}
    else:
        yield {"role": message.role, "content": message.text}


def media_parameter(medium: messages.Medium) -> dict[str, Any]:
    """Return a medium as a part of a message."""
    if medium.kind == messages.IMAGE:
        return {"type": "image_url", "image_url": {"url": medium.url}}
    if medium.address:
        raise messages.InputRejected(
            f"OpenAI-compatible APIs load images only: send the {medium.kind} as Base64 with its mimeType"
        )
    if medium.kind == messages.AUDIO:
        sound = {"data": medium.data, "format": messages.AUDIO_FORMATS[medium.mime_type]}
        return {"type": "input_audio", "input_audio": sound}
    return {"type": "file", "file": {"filename": "document.pdf", "file_data": medium.url}}


def calls_parameter(calls: list[messages.ToolCall]) -> dict[str, Any]:
    """Return the message by which the model called tools."""
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in calls
        ],
    }


def finish_reason(name: str | None) -> str:
    """Return the finish reason of Conductor for that of a provider."""
    return FINISH_REASONS.get(name or "stop", (name or "stop").upper())


def read_completion(completion: Any) -> messages.ChatReply:
    """Return the reply in a response."""
    if not completion.choices:
        raise messages.CallFailed("the reply has no choices")
    calls = [
        [call.id or call.function.name, call.function.name, call.function.arguments or ""]
        for choice in completion.choices
        for call in choice.message.tool_calls or ()
        if getattr(call, "function", None)
    ]
    first = completion.choices[0]
    return messages.ChatReply(
        texts=[choice.message.content or "" for choice in completion.choices],
        finish_reason="TOOL_CALLS" if calls else finish_reason(first.finish_reason),
        calls=calls,
        reasoning=getattr(first.message, "reasoning_content", None) or "",
        response_id=completion.id or "",
        **usage_fields(completion.usage),
    )


def usage_fields(usage: Any) -> dict[str, int]:
    """Return the token counts of a response; 0 if the provider gives none."""
    details = getattr(usage, "completion_tokens_details", None)
    return {
        "prompt_tokens": getattr(usage, "prompt_tokens", None) or 0,
        "completion_tokens": getattr(usage, "completion_tokens", None) or 0,
        "reasoning_tokens": getattr(details, "reasoning_tokens", None) or 0,
    }


class StreamedReply:
    """Collects the parts of a streamed reply."""

    def __init__(self, on_text: Callable[[str], None] | None) -> None:
        self._on_text, self._began_at = on_text, clock.now()
        self._texts: dict[int, list[str]] = {}
        self._calls: dict[tuple[int, int], list[str]] = {}
        self._finish: str | None = None
        self._reasoning: list[str] = []
        self._first_token_ms: int | None = None

    def read(self, stream: Any) -> messages.ChatReply:
        """Return the reply when the stream has ended."""
        usage, id = None, ""
        for chunk in stream:
            usage, id = chunk.usage or usage, chunk.id or id
            for choice in chunk.choices:
                self._add(choice)
        if self._finish is None:
            raise messages.CallFailed("the stream ended before the reply was complete; the call may have been paid")
        calls = [call for _, call in sorted(self._calls.items())]
        return messages.ChatReply(
            texts=["".join(parts) for _, parts in sorted(self._texts.items())] or [""],
            finish_reason="TOOL_CALLS" if calls else finish_reason(self._finish),
            calls=calls,
            reasoning="".join(self._reasoning),
            response_id=id,
            first_token_ms=self._first_token_ms,
            **usage_fields(usage),
        )

    def _add(self, choice: Any) -> None:
        delta = choice.delta
        self._finish = choice.finish_reason or self._finish
        self._reasoning.append(getattr(delta, "reasoning_content", None) or "")
        if delta.content or delta.tool_calls:
            self._first_token_ms = (
                clock.now() - self._began_at if self._first_token_ms is None else self._first_token_ms
            )
        if delta.content:
            self._texts.setdefault(choice.index, []).append(delta.content)
            if self._on_text and choice.index == 0:
                self._on_text(delta.content)
        for part in delta.tool_calls or ():
            call = self._calls.setdefault((choice.index, part.index), ["", "", ""])
            call[0] = part.id or call[0]
            if part.function:
                call[1] = part.function.name or call[1]
                call[2] += part.function.arguments or ""
