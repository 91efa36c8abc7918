"""Lint of WAIT_FOR_WEBHOOK steps: their matches, and whether a webhook can complete them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...step_structure import type_of
from ...step_tree import StepSpot
from ...step_types.wait_for_webhook import WaitForWebhook
from ...webhook_matches import parse_matches, path_error
from .findings import UNKNOWN_NAME, UNREADABLE, WARNING, LintContext, LintFinding


def lint_webhooks(document: Mapping[str, Any], found: Iterable[StepSpot], known: LintContext) -> Iterator[LintFinding]:
    """Yield a warning for each condition that cannot be read, and for each step that no webhook can complete."""
    for spot in found:
        if type_of(spot.step) != WaitForWebhook.type:
            continue
        given = spot.step.get("inputParameters")
        yield from _lint_condition(given if isinstance(given, Mapping) else {}, f"{spot.path}.inputParameters.matches")
        if known.received is not None and document.get("name") not in known.received:
            message = (
                f"No webhook names `{document.get('name')}` among its receiver workflows: "
                f"`{spot.ref}` waits until it is reported on."
            )
            yield LintFinding(WARNING, UNKNOWN_NAME, spot.path, message)


def _lint_condition(inputs: Mapping[str, Any], path: str) -> Iterator[LintFinding]:
    if isinstance(inputs.get("matches"), str):
        return
    try:
        matches = parse_matches(inputs)
    except ValueError as error:
        yield LintFinding(WARNING, UNREADABLE, path, str(error))
        return
    if not matches:
        message = "This step has no `matches`, so any event of a receiving webhook completes it."
        yield LintFinding(WARNING, UNREADABLE, path, message)
    for each in matches:
        if fault := path_error(each):
            yield LintFinding(WARNING, UNREADABLE, path, f"The path `{each}` cannot be read: {fault}.", each)
