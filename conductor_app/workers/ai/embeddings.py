"""Embeddings of texts: one paid call."""

import hashlib
import json

from ...engine.ai.integration_settings import ModelSettings
from ...engine.ai.model_calls import Usage, begin_call, save_reply
from ...models.claimed_attempts import ClaimedAttempt


def embed(
    attempt: ClaimedAttempt, settings: ModelSettings, texts: list[str], dimensions: int | None
) -> list[list[float]]:
    """Return the embedding of each text."""
    import httpx

    asked = {"model": settings.model, "input": texts} | ({"dimensions": dimensions} if dimensions else {})
    key = hashlib.sha256(json.dumps([attempt.run_id, str(attempt.task), asked]).encode()).hexdigest()
    call = begin_call(attempt, settings, key)
    if call.status != "REPLIED":
        reply = httpx.post(f"{settings.base_url}/embeddings", json=asked, timeout=60).raise_for_status().json()
        save_reply(call, reply, Usage(reply["usage"]["prompt_tokens"], 0))
    return [item["embedding"] for item in sorted((call.reply or {})["data"], key=lambda item: item["index"])]
