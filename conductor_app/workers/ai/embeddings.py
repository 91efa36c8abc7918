"""LLM_GENERATE_EMBEDDINGS tasks, and the embedding calls of vector tasks."""

from typing import Any

from conductor_app.core.step_types.llm_generate_embeddings import LlmGenerateEmbeddings
from conductor_app.engine.ai.integration_settings import ModelSettings
from conductor_app.engine.ai.model_calls import Usage
from conductor_app.models.claimed_attempts import ClaimedAttempt
from conductor_app.workers.ai import providers
from conductor_app.workers.ai.chat_request import InputRejected, whole_number
from conductor_app.workers.ai.paid_calls import ModelWorker, paid_call
from conductor_app.workers.ai.token_estimates import estimate_texts
from conductor_app.workers.worker import WorkResult


def embed(
    attempt: ClaimedAttempt, settings: ModelSettings, texts: list[str], dimensions: int | None
) -> list[list[float]]:
    """Return the vectors of texts, by one paid call.

    Raises:
        CallFailed: when there is no reply.
        CallHeld: when a budget has no room.
        InputRejected: when the provider has no embeddings.
    """

    def send(key: str) -> tuple[dict[str, Any], Usage]:
        vectors, tokens = providers.embed(settings, texts, dimensions, key)
        return {"vectors": vectors}, Usage(prompt_tokens=tokens)

    content = ["embed", texts, dimensions]
    vectors: list[list[float]] = paid_call(attempt, settings, content, send, estimate_texts(texts))["vectors"]
    return vectors


class GenerateEmbeddings(ModelWorker):
    """Turns a text into a vector."""

    type = LlmGenerateEmbeddings.type

    def call(self, attempt: ClaimedAttempt, inputs: dict[str, Any], settings: ModelSettings) -> WorkResult:
        """Return the vector as `result`."""
        text = inputs.get("text")
        if not isinstance(text, str) or not text.strip():
            raise InputRejected("text must not be blank")
        dimensions = whole_number(inputs, "dimensions") or None
        return WorkResult("COMPLETED", {"result": embed(attempt, settings, [text], dimensions)[0]})
