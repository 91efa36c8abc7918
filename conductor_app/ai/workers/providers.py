"""The client of each kind of provider of models. Its library is imported at the first call."""

from collections.abc import Callable
from types import ModuleType

from ..commands.integrations import ModelSettings
from .messages import ChatReply, ChatRequest, InputRejected

ANTHROPIC = "anthropic"
OTHER_APIS = frozenset({"vertex_ai", "google_gemini", "bedrock", "cohere", "stabilityai"})
"""Kinds whose own APIs this server does not call. With a base URL, their OpenAI-compatible API is called."""


def complete(
    settings: ModelSettings, request: ChatRequest, key: str, on_text: Callable[[str], None] | None = None
) -> ChatReply:
    """Send a request and return the reply. `key`: the idempotency key. `on_text`: receives parts of a streamed reply.

    Raises:
        CallFailed: when there is no reply.
        InputRejected: when the provider cannot have such a request.
    """
    return _client_of(settings).complete(settings, request, key, on_text)


def embed(settings: ModelSettings, texts: list[str], dimensions: int | None, key: str) -> tuple[list[list[float]], int]:
    """Return the vectors of texts, and the number of tokens.

    Raises:
        CallFailed: when there is no reply.
        InputRejected: when the provider has no embeddings.
    """
    if settings.kind == ANTHROPIC:
        raise InputRejected("Anthropic has no embedding models: use an integration of another kind")
    vectors: tuple[list[list[float]], int] = _client_of(settings).embed(settings, texts, dimensions, key)
    return vectors


def list_models(settings: ModelSettings) -> list[str]:
    """Return the names of the provider's models.

    Raises:
        CallFailed: when there is no reply.
        InputRejected: when this server cannot call the provider.
    """
    names: list[str] = _client_of(settings).list_models(settings)
    return names


def _client_of(settings: ModelSettings) -> ModuleType:
    try:
        return _import_client(settings)
    except ModuleNotFoundError as missing:
        raise InputRejected(
            f"this server has no client for {settings.kind}, because the package {missing.name} is not installed: "
            "install the extra `ai`"
        ) from missing


def _import_client(settings: ModelSettings) -> ModuleType:
    if settings.kind == ANTHROPIC:
        from . import anthropic_client

        return anthropic_client
    if settings.kind in OTHER_APIS and not settings.base_url:
        raise InputRejected(
            f"this server has no client for the API of {settings.kind}: set the base URL of an OpenAI-compatible API"
        )
    from . import openai_client

    return openai_client
