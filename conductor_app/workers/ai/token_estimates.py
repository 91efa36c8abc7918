"""What a request may use at most, before it is sent: budgets reserve it while the call is open."""

import json
from collections.abc import Iterable
from typing import NamedTuple

from conductor_app.workers.ai.chat_request import ChatMessage, ChatRequest
from conductor_app.workers.ai.media import AUDIO, DOCUMENT, Medium
from conductor_app.workers.ai.templating import as_text

MESSAGE_TOKENS = 16
"""The tokens for the role and the boundaries of a message or a tool."""
IMAGE_TOKENS = 5_000
"""The tokens of an image, more than providers count for the largest."""
AUDIO_BYTES = 50
"""The bytes of audio per token. Providers count 10 tokens a second, and speech has at least 1,000 bytes a second."""
LINKED_DOCUMENT_TOKENS = 200_000
"""The tokens of a document that the provider loads: the usual limit of a request."""


class TokenEstimate(NamedTuple):
    """The tokens that a call may use."""

    prompt: int
    completion: int = 0


def estimate_chat(request: ChatRequest) -> TokenEstimate:
    """Return what a request may use: its maximum of output, and one token per byte of its texts.

    Tokenizers never make more tokens than bytes. Usual texts have a quarter or less.
    """
    tools = [json.dumps([tool.name, tool.description, tool.schema], ensure_ascii=False) for tool in request.tools]
    schema = [json.dumps(request.schema, ensure_ascii=False)] if request.schema else []
    prompt = sum(_message_tokens(message) for message in request.messages) + estimate_texts([*tools, *schema]).prompt
    return TokenEstimate(prompt, request.max_results * (request.max_tokens + request.thinking_tokens))


def estimate_texts(texts: Iterable[str]) -> TokenEstimate:
    """Return what the embedding of texts may use."""
    return TokenEstimate(sum(len(text.encode("utf-8", "surrogatepass")) + MESSAGE_TOKENS for text in texts))


def _message_tokens(message: ChatMessage) -> int:
    calls = [json.dumps([call.id, call.name, call.arguments], ensure_ascii=False) for call in message.calls]
    outputs = [as_text(call.output) for call in message.calls if message.role == "tool"]
    return estimate_texts([message.text, *calls, *outputs]).prompt + sum(map(_media_tokens, message.media))


def _media_tokens(medium: Medium) -> int:
    size = len(medium.data) * 3 // 4
    if medium.kind == AUDIO:
        return max(size // AUDIO_BYTES, IMAGE_TOKENS)
    if medium.kind == DOCUMENT:
        return LINKED_DOCUMENT_TOKENS if medium.address else max(size, IMAGE_TOKENS)
    return IMAGE_TOKENS
