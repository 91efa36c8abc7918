"""Checks of the JSON documents of a page: a definition is accepted, and its editor would report nothing."""

import json
from typing import Any

from conductor_app.core.validation.checks import read_handler
from conductor_app.definitions import validation


def check_json(text: str) -> None:
    """Fail if the text is not JSON, or if it is a definition with errors or findings."""
    document = json.loads(text)
    for each in document if isinstance(document, list) else [document]:
        if isinstance(each, dict):
            assert _complaints(each) == [], text


def _complaints(document: dict[str, Any]) -> list[str]:
    if "tasks" in document:
        findings = validation.lint_workflow(document)
        return [*_messages(validation.validate_workflow(document)), *_messages(findings)]
    if "actions" in document:
        return _messages(read_handler(document)[1])
    if "retryCount" in document or "retryLogic" in document:
        findings = validation.lint_task(document)
        return [*_messages(validation.validate_task(document)), *_messages(findings)]
    return []


def _messages(found: list[Any]) -> list[str]:
    return [f"{each.path}: {each.message}" for each in found]
