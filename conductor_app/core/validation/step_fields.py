"""List the fields that a step can have, those of single step types included."""

from ..definition import STEP_STRUCTURES
from ..document.fields import WORKFLOW_TASK, FieldTable

STEP_FIELDS: FieldTable = (
    *WORKFLOW_TASK,
    *(field for structure in STEP_STRUCTURES.values() for field in structure.fields),
)
