"""Pure decision core: definitions, expressions, state machines, rules and step types, without Django, clock or I/O."""

# Importing the step types registers them; documents are read by what they declare.
from . import step_types

__all__ = ["step_types"]
