"""Clients of the providers of models, imported at their first call, and trials of integrations and prompts on pages."""

import struct
from collections.abc import Callable, Sequence
from time import monotonic
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from ...access import audit
from ...core.ai import AI_MODEL, MCP, VECTOR_DB
from ...core.errors import Invalid, RequestRefused
from ...settings import conf
from ...system_tasks.network_guard import Deadline
from ...utils.randomness import random_hex
from ..commands.calls import estimate_call, fail_call, save_reply
from ..commands.integrations import ModelSettings, find_integration, model_settings, save_test
from ..commands.prompts import PromptTrial, TrialFailed, begin_trial
from ..commands.vectors import vector_database
from ..models import IntegrationModel, VectorDocument
from ..queries.vectors import VectorSearch, search_documents
from .calls import estimate_chat, store_outcome
from .messages import CallFailed, ChatReply, ChatRequest, InputRejected, read_text, without_keys

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


TRIAL_SECONDS = 60.0
"""The maximum duration of such a call, for which a person waits."""
ReplyT = TypeVar("ReplyT")
SHOWN = 10
MAX_PROMPT_LENGTH = 262_144
STORING_SECONDS = 10.0
"""The time for which a person waits until the outcome of a trial is stored."""


class TrialReply(NamedTuple):
    """The answer of a model, its tokens if the provider reports them, and the duration in milliseconds."""

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None
    duration_ms: int


def try_prompt(trial: PromptTrial, by: str) -> TrialReply:
    """Send a prompt to a model and return its answer. The caller checks the permission. The call may cost money.

    Raises:
        Invalid: when the prompt is empty or too long.
        Conflict: when a budget has no room for the call.
        TrialFailed: when the model cannot be called.
    """
    if not trial.prompt.strip():
        raise Invalid("`prompt` must not be empty.")
    if len(trial.prompt) > MAX_PROMPT_LENGTH:
        raise Invalid(f"`prompt` must have at most {MAX_PROMPT_LENGTH:,} characters.")
    settings = trial.settings
    audit.record("integration", settings.integration, "try prompt", by, facts={"model": settings.model})
    trial.by = by
    start = monotonic()
    text = test_prompt(trial)
    duration = round((monotonic() - start) * 1000)
    return TrialReply(text, trial.prompt_tokens, trial.completion_tokens, duration)


def check_connection(integration: str, by: str) -> dict[str, Any]:
    """Send a request to the server or database of an integration, and return the result, which is stored.

    It has what answered or why the test failed, as a sentence. The caller checks the permission.
    """
    row = find_integration(integration)
    audit.record("integration", integration, "test", by)
    began = monotonic()
    try:
        test = CONNECTION_TESTS.get(row.category)
        if test is None:
            raise TrialFailed(f"Integrations of the category {row.category} cannot be tested.")
        text, is_success = test(row.name), True
    except RequestRefused as refused:
        text, is_success = refused.message, False
    except ModuleNotFoundError as missing:
        text, is_success = f"The package {missing.name} is not installed: install the extra `ai`.", False
    return save_test(integration, text, by, is_success=is_success, took_ms=round(1000 * (monotonic() - began)))


def _first_model(integration: str) -> str:
    rows = IntegrationModel.objects.filter(integration=integration, is_enabled=True).order_by("name")
    return rows.values_list("name", flat=True).first() or ""


def test_connection(settings: ModelSettings) -> str:
    """Return a sentence about the models that the provider offers.

    Raises:
        TrialFailed: when the provider cannot be reached or refuses the key.
    """
    names = try_call(settings, lambda: list_models(settings))
    if not names:
        return "The provider accepts the key and lists no models."
    return f"The provider offers {_count_and_list('model', names)}."


def _count_and_list(noun: str, names: Sequence[str]) -> str:
    more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    count = f"1 {noun}" if len(names) == 1 else f"{len(names)} {noun}s"
    return f"{count}: {', '.join(names[:SHOWN])}{more}"


def _test_provider(integration: str) -> str:
    """Return a sentence about the models of a provider."""
    return test_connection(model_settings(integration, _first_model(integration)))


def _test_mcp_server(integration: str) -> str:
    """Return a sentence about the tools of an MCP server."""
    settings = server_settings(integration)
    from .mcp_client import list_tools, with_server

    seconds = min(TRIAL_SECONDS, conf.ai_task_seconds)
    try:
        tools = with_server(settings.base_url, headers_of_server(settings), seconds, list_tools)["tools"]
    except CallFailed as failure:
        raise TrialFailed(f"The server could not be called: {without_keys(failure.reason, settings)}.") from None
    names = [tool["name"] for tool in tools]
    return f"The server offers {_count_and_list('tool', names)}." if names else "The server offers no tools."


def server_settings(integration: str) -> ModelSettings:
    """Return the settings of the integration of an MCP server.

    Raises:
        UnknownIntegration: when it is missing or disabled.
        Invalid: when it is of another category.
    """
    settings = model_settings(integration, _first_model(integration))
    if settings.category != MCP:
        raise Invalid(f"The integration {integration} is of the category {settings.category}, not of {MCP}.")
    return settings


def headers_of_server(settings: ModelSettings) -> dict[str, str]:
    """Return the headers that the integration of an MCP server adds to requests."""
    authorization = settings.secrets.get("authorization", "")
    return {"Authorization": authorization} if authorization else {}


def _test_vector_database(integration: str) -> str:
    """Search for a stored document, and return a sentence about what the database has."""
    database = vector_database(integration)
    documents = VectorDocument.objects.filter(database=database.name)
    sample = documents.order_by("index", "namespace", "document_id").first()
    if sample is None:
        return "The database answers. It has no documents yet."
    embedding = struct.unpack(f"<{len(sample.embedding) // 4}f", sample.embedding)
    if database.dimensions not in (None, len(embedding)):
        raise TrialFailed(
            f"The index {sample.index} has vectors of {len(embedding)} numbers, but the setting `dimensions` is "
            f"{database.dimensions}: searches and new documents are refused."
        )
    place = (sample.database, sample.index, sample.namespace)
    search_documents(VectorSearch(*place, database.metric, embedding, 1))
    count = documents.count()
    stored = "1 document" if count == 1 else f"{count:,} documents"
    return f"The database answers. It has {stored}; a search in the index {sample.index} works."


CONNECTION_TESTS: dict[str, Callable[[str], str]] = {
    AI_MODEL: _test_provider,
    VECTOR_DB: _test_vector_database,
    MCP: _test_mcp_server,
}
"""The test of the integrations of each category."""


def test_prompt(trial: PromptTrial) -> str:
    """Call the model and return its answer. Sets the tokens of the trial.

    Raises:
        Conflict: when a budget has no room for the call.
        TrialFailed: when there is no reply.
    """
    inputs = {
        "promptVariables": dict(trial.prompt_variables),
        "temperature": trial.temperature,
        "topP": trial.top_p,
        "stopWords": list(trial.stop_words),
    }
    try:
        request = read_text(inputs, trial.prompt)
    except InputRejected as error:
        raise TrialFailed(f"The trial is invalid: {error}.") from None
    tokens = estimate_chat(request)
    call = begin_trial(trial, estimate_call(trial.settings, tokens.prompt, tokens.completion))
    try:
        reply = try_call(trial.settings, lambda: complete(trial.settings, request, random_hex()))
    except Exception as error:
        reason = str(error) if isinstance(error, TrialFailed) else type(error).__name__
        store_outcome(lambda: fail_call(call, reason), STORING_SECONDS)
        raise
    store_outcome(lambda: save_reply(call, None, reply.usage), STORING_SECONDS)
    trial.prompt_tokens, trial.completion_tokens = reply.prompt_tokens, reply.completion_tokens
    return reply.texts[0] if reply.texts else ""


def try_call(settings: ModelSettings, send: Callable[[], ReplyT]) -> ReplyT:
    """Return the reply to a call, which takes at most TRIAL_SECONDS.

    Raises:
        TrialFailed: when there is no reply. Its message contains no secrets.
    """
    seconds = min(TRIAL_SECONDS, conf.ai_task_seconds)
    with Deadline(seconds) as deadline:
        try:
            return send()
        except (CallFailed, InputRejected) as error:
            reason = f"{settings.integration} did not reply within {seconds:g} s" if deadline.has_passed else str(error)
            raise TrialFailed(f"The model could not be called: {without_keys(reason, settings)}.") from None
