"""Validation of the fields that each step type requires (api §3.4)."""

from collections.abc import Mapping
from typing import Any

from ...step_structure import structure_of
from .values import DocumentPosition


def check_step_type(step: Mapping[str, Any], place: DocumentPosition, template: Mapping[str, Any]) -> None:
    """Add an error for each field that the step's type requires and the step lacks.

    `template`: the input template of the task definition that is registered under the step's name.
    """
    own = (step.get("taskDefinition") or {}).get("inputTemplate") or {}
    for found in structure_of(step["type"]).check(step, {**template, **own}):
        is_message = " " in found
        required = f"{found} field is required for taskType: {step['type']} taskName: {step.get('name', '')}"
        place.add_error(found if is_message else required)
