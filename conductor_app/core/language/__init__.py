"""The workflow document, read: a Definition with its steps laid out, or everything that is wrong with it."""

from .layout import lay_out
from .policy import read_policy
from .workflow import read_definition

__all__ = ["lay_out", "read_definition", "read_policy"]
