"""Definitions as they are shown: every field as its type, defaults filled in, unknown fields kept."""

from collections.abc import Iterator
from typing import Any

from ...errors import Complaint
from .fields import Of
from .tables import TASK_DEFINITION, WORKFLOW_DEFINITION, a_step
from .values import Place, Reader, read_at


def normalised_workflow(document: Any, place: Place | None = None) -> dict[str, Any]:
    """A workflow definition; what cannot be read is left out, and complained of at `place`."""
    return _normalised(Of(WORKFLOW_DEFINITION), document, place)


def normalised_task(document: Any, place: Place | None = None) -> dict[str, Any]:
    """A task definition; what cannot be read is left out, and complained of at `place`."""
    return _normalised(Of(TASK_DEFINITION), document, place)


def typed_workflow(document: Any) -> Any:
    """A workflow definition as it was given, every known field as its type; what cannot be read stays as it is."""
    return read_at(Place(fills=False), Of(WORKFLOW_DEFINITION), document)


def typed_task(document: Any) -> Any:
    """A task definition as it was given, every known field as its type; what cannot be read stays as it is."""
    return read_at(Place(fills=False), Of(TASK_DEFINITION), document)


def typed_step(document: Any) -> tuple[Any, list[Complaint]]:
    """A step made on the way, as it was given, every known field as its type; and what cannot be read of it."""
    place = Place(fills=False)
    return read_at(place, a_step, document), place.complaints


def normalised_step(document: Any) -> dict[str, Any]:
    """A step with the steps inside it."""
    return _normalised(a_step, document, None)


def _normalised(reader: Reader, document: Any, place: Place | None) -> dict[str, Any]:
    place = place or Place()
    read = read_at(place, reader, document)
    if document is None:
        place.complain("The document must be an object")
    return read if isinstance(read, dict) else {}


def inner_steps(step: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The lists of steps inside a step, each with where it stands."""
    for case, steps in step["decisionCases"].items():
        yield f"decisionCases[{case}]", steps or []
    yield "defaultCase", step["defaultCase"]
    for index, steps in enumerate(step["forkTasks"]):
        yield f"forkTasks[{index}]", steps or []
    yield "loopOver", step["loopOver"]
    for index, case in enumerate(step.get("catchCases") or ()):
        yield f"catchCases[{index}].tasks", (case or {}).get("tasks") or []
    for name in ("tryTasks", "catchDefault", "finallyTasks"):
        yield name, step.get(name) or []
