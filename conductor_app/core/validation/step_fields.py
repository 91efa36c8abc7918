"""List the fields that a step can have, those of single step types included."""

from ...step_structure import STEP_STRUCTURES
from .document_fields import FieldTable
from .field_specs import WORKFLOW_TASK

STEP_FIELDS: FieldTable = (
    *WORKFLOW_TASK,
    *(field for structure in STEP_STRUCTURES.values() for field in structure.fields),
)
