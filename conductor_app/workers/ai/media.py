"""Media of messages: images, audio and PDF documents, as addresses or as Base64."""

from typing import Any, NamedTuple
from urllib.parse import urlsplit

IMAGE, AUDIO, DOCUMENT = "image", "audio", "document"
PDF = "application/pdf"
AUDIO_FORMATS = {
    **dict.fromkeys(("audio/wav", "audio/wave", "audio/x-wav"), "wav"),
    **dict.fromkeys(("audio/mpeg", "audio/mp3"), "mp3"),
}
"""The formats that chat APIs take, by their MIME types."""
DATA = "data:"


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


def read_medium(given: Any, mime_type: Any) -> Medium:
    """Return a medium of the input: an address, a `data:` URL, or Base64 with a MIME type. Nothing is loaded.

    Raises:
        MediaRejected: when it is something else, or of another kind.
    """
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
