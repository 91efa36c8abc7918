"""Findings about WAIT_FOR_WEBHOOK steps: what they match, and whether a webhook can complete them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...webhook_matches import fault_of, matches_of
from ..parts import type_of
from .findings import UNKNOWN_NAME, UNREADABLE, WARNING, Finding, Surroundings
from .places import Spot


def webhook_findings(document: Mapping[str, Any], found: Iterable[Spot], known: Surroundings) -> Iterator[Finding]:
    """Yield a warning for each condition that cannot be read, and for each step that no webhook can complete."""
    for spot in found:
        if type_of(spot.step) != "WAIT_FOR_WEBHOOK":
            continue
        given = spot.step.get("inputParameters")
        yield from _condition(given if isinstance(given, Mapping) else {}, f"{spot.path}.inputParameters.matches")
        if known.received is not None and document.get("name") not in known.received:
            message = (
                f"No webhook names `{document.get('name')}` among its receiver workflows: "
                f"`{spot.ref}` waits until it is reported on."
            )
            yield Finding(WARNING, UNKNOWN_NAME, spot.path, message)


def _condition(inputs: Mapping[str, Any], path: str) -> Iterator[Finding]:
    if isinstance(inputs.get("matches"), str):
        return
    try:
        matches = matches_of(inputs)
    except ValueError as error:
        yield Finding(WARNING, UNREADABLE, path, str(error))
        return
    if not matches:
        message = "This step names nothing to match: any event of a receiving webhook completes it."
        yield Finding(WARNING, UNREADABLE, path, message)
    for each in matches:
        if fault := fault_of(each):
            yield Finding(WARNING, UNREADABLE, path, f"The path `{each}` cannot be read: {fault}.", each)
