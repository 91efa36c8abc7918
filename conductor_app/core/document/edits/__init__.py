"""Edits of a workflow document: insert, move, wrap, delete and rename steps, with the references to them."""

from .step_edits import StepEdit, delete_step, insert_steps, move_step, rename_step, replace_step, wrap_step
from .step_places import StepPlace, find_step, places_of, references_of
from .wrappers import WRAPPERS

__all__ = [
    "WRAPPERS",
    "StepEdit",
    "StepPlace",
    "delete_step",
    "find_step",
    "insert_steps",
    "move_step",
    "places_of",
    "references_of",
    "rename_step",
    "replace_step",
    "wrap_step",
]
