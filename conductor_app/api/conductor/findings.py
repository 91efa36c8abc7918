"""Findings in the header of a reply that saves a document or starts a workflow.

Clients parse the bodies of these replies, most of which are empty, and ignore headers that they do not know.
"""

import json
from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse

from ...core.document.lint import LintFinding

HEADER = "Conductor-Findings"
MAX_SIZE = 2_000
"""The maximum size of the header in bytes. Proxies limit all headers of a reply to 4 or 8 kB."""
MAX_TEXT_SIZE = 800
"""The maximum size of the message and of the path of a finding that exceeds the header alone."""


def finding_document(finding: LintFinding) -> dict[str, str]:
    """Return a lint finding on a valid definition: severity, code, position and message."""
    return {
        "severity": finding.severity,
        "kind": finding.kind,
        "path": finding.path,
        "message": finding.message,
    }


def add_findings(response: HttpResponse, found: Sequence[LintFinding]) -> HttpResponse:
    """Return the response with the findings in its header: their number, and as many as there is room for."""
    if found:
        response.headers[HEADER] = _render([finding_document(each) for each in found])
    return response


def _render(documents: list[dict[str, Any]]) -> str:
    shown: list[dict[str, Any]] = []
    text = ""
    for each in documents:
        longer = json.dumps({"count": len(documents), "findings": [*shown, each]})
        if text and len(longer) > MAX_SIZE:
            break
        shown.append(
            each
            if len(longer) <= MAX_SIZE
            else {**each, "message": _shorten(each["message"]), "path": _shorten(each["path"])}
        )
        text = json.dumps({"count": len(documents), "findings": shown})
    return text


def _shorten(text: str) -> str:
    """Return as much of a text as fits. In JSON as ASCII, a character has up to 12 bytes."""
    size = 0
    for at, character in enumerate(text):
        size += len(json.dumps(character)) - 2
        if size > MAX_TEXT_SIZE:
            return text[:at]
    return text
