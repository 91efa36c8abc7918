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
            each if len(longer) <= MAX_SIZE else {**each, "message": each["message"][:200], "path": each["path"][:200]}
        )
        text = json.dumps({"count": len(documents), "findings": shown})
    return text
