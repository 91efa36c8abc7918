"""Media of messages reach each provider in the form that it takes, or are refused before the call."""

import pytest

from conductor_app.ai.models import ModelCall
from tests.ai.conftest import chat
from tests.ai.model_server import CHAT, MESSAGES, bodies, chat_answer, wrote

pytestmark = pytest.mark.django_db
PICTURE, PAPER = "https://example.org/sky.png", "https://example.org/report.PDF?page=1"


def ask(run, provider, *media, mime_type=None):
    message = {"role": "user", "message": "What is it?", "media": list(media)}
    return run(chat(provider=provider, messages=[message | ({"mimeType": mime_type} if mime_type else {})]))


def sent_parts(server):
    """Return the parts of the message that are no text."""
    [body] = bodies(server)
    return [part for part in body["messages"][-1]["content"] if part["type"] != "text"]


@pytest.mark.parametrize(
    ("media", "mime_type", "part"),
    [
        (PICTURE, None, {"type": "image_url", "image_url": {"url": PICTURE}}),
        ("data:image/png;base64,AAAA", None, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}),
        ("AAAA", "image/png", {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}),
        ("AAAA", "audio/mpeg", {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}),
        ("data:audio/x-wav;base64,AA", None, {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}),
        (
            "AAAA",
            "application/pdf",
            {"type": "file", "file": {"filename": "document.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
        ),
    ],
)
def test_openai_gets_images_audio_and_documents(server, run, media, mime_type, part):
    server.answers[CHAT] = chat_answer("The sky.")

    assert ask(run, "openai", media, mime_type=mime_type).status == "COMPLETED"
    assert sent_parts(server) == [part]


@pytest.mark.parametrize(
    ("media", "mime_type", "part"),
    [
        (PICTURE, None, {"type": "image", "source": {"type": "url", "url": PICTURE}}),
        (PAPER, None, {"type": "document", "source": {"type": "url", "url": PAPER}}),
        (PICTURE, "application/pdf", {"type": "document", "source": {"type": "url", "url": PICTURE}}),
        ("AA", "image/png", {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}),
        (
            "data:application/pdf;base64,AAAA",
            None,
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}},
        ),
    ],
)
def test_anthropic_gets_images_and_documents(server, run, media, mime_type, part):
    server.answers[MESSAGES] = wrote({"type": "text", "text": "The sky."})

    assert ask(run, "anthropic", media, mime_type=mime_type).status == "COMPLETED"
    assert sent_parts(server) == [part]


@pytest.mark.parametrize(
    ("provider", "media", "mime_type", "reason"),
    [
        ("openai", PAPER, None, "OpenAI-compatible APIs load images only: send the document as Base64"),
        ("anthropic", "AAAA", "audio/wav", "Anthropic has no models that accept audio"),
        ("openai", "AAAA", "video/mp4", "media must be images, PDF documents, or audio as WAV or MP3, not 'video/mp4'"),
        ("openai", "AAAA", None, "media must have http(s) or data: URLs, or Base64 with a mimeType"),
        ("openai", "file:///etc/passwd", "image/png", "media must have http(s) or data: URLs"),
        ("openai", "data:image/svg+xml,<svg/>", None, "media must have http(s) or data: URLs"),
    ],
)
def test_other_media_are_refused_before_the_call(server, run, provider, media, mime_type, reason):
    scenario = ask(run, provider, media, mime_type=mime_type)

    assert scenario.task("ask").reason.startswith(f"Non-retryable error: {reason}")
    assert server.asked == []


@pytest.mark.parametrize(
    ("media", "mime_type", "tokens"),
    [
        (PICTURE, None, 5_000),
        (PAPER, None, 200_000),
        ("A" * 40_000, "application/pdf", 30_000),
        ("A" * 400_000, "audio/mpeg", 6_000),
        ("AAAA", "audio/mpeg", 5_000),
    ],
)
def test_a_budget_reserves_tokens_for_media(server, run, media, mime_type, tokens):
    server.answers[MESSAGES], server.answers[CHAT] = wrote({"type": "text", "text": "x"}), chat_answer("x")
    ask(run, "anthropic" if media == PAPER else "openai", media, mime_type=mime_type)

    reserved = ModelCall.objects.get().reserved_tokens - 8_192
    # The text of the message has 11 bytes, and a message 16 tokens.
    assert reserved == tokens + 11 + 16
