"""Compression of pages and of static files. Replies to API clients, exports and artifacts are sent as they are.

A project that has its own static files needs no WhiteNoise, so `web/middleware.py` does not import this module.
"""

import gzip
from typing import Any

from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware, re_accepts_gzip
from django.utils.cache import patch_vary_headers
from whitenoise.middleware import WhiteNoiseMiddleware

from ..utils import process_state

COMPRESSED_TYPES = ("text/css", "text/javascript", "application/javascript", "image/svg+xml")


class PageCompression(GZipMiddleware):
    """Compresses HTML that answers a GET, and JSON that answers a script of a page.

    The length of a compressed page must not reveal a secret on it to those who choose a part of the page (BREACH): the
    CSRF token has another mask in each page, Django adds up to 100 random bytes, and new secrets are displayed only in
    the reply to a POST, or on the page of the second factor, which shows nothing from its address. Another site cannot
    send the header of the pages' scripts.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Compress the response if it is a page, or for a script of one."""
        content_type = response.get("Content-Type", "") if isinstance(response, HttpResponse) else ""
        is_page = request.method == "GET" and content_type.startswith("text/html")
        is_for_script = "HTTP_X_REQUESTED_WITH" in request.META and content_type == "application/json"
        return super().process_response(request, response) if is_page or is_for_script else response


class CompressedFiles:
    """Compressed static files by their addresses and versions. A process compresses each one at its first request."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], bytes] = {}

    def compress(self, address: str, version: str, content: bytes) -> bytes:
        return self._files.setdefault((address, version), gzip.compress(content, 9, mtime=0))

    def find(self, address: str, version: str) -> bytes | None:
        return self._files.get((address, version))


_compressed = process_state.slot(CompressedFiles)


class StaticFiles(WhiteNoiseMiddleware):
    """Serves static files from their packages, compressed to clients that accept it."""

    def serve(self, static_file: Any, request: HttpRequest) -> HttpResponseBase:  # type: ignore[override]
        """Return the response of WhiteNoise, or a compressed one with the same headers."""
        response: FileResponse = super().serve(static_file, request)
        if "Content-Encoding" in response or not response.get("Content-Type", "").startswith(COMPRESSED_TYPES):
            return response
        patch_vary_headers(response, ("Accept-Encoding",))
        accepts = re_accepts_gzip.search(request.META.get("HTTP_ACCEPT_ENCODING", ""))
        is_part = response.status_code != 200 or request.method != "GET"
        if is_part or not accepts or "HTTP_RANGE" in request.META:
            return response
        key = request.path_info, response.get("ETag", "")
        content = _compressed.value.find(*key) or _compressed.value.compress(*key, b"".join(response))
        # The close of the response would announce the end of the request.
        if response.file_to_stream is not None:
            response.file_to_stream.close()
        headers = dict(response.items()) | {"Content-Encoding": "gzip", "Content-Length": str(len(content))}
        return HttpResponse(content, headers=headers)
