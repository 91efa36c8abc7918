"""The workflow document, read: a Definition with its steps laid out, or everything that is wrong with it."""

from .layout import layout_steps
from .policy import read_policy
from .workflow import read_definition

__all__ = ["layout_steps", "read_definition", "read_policy"]
