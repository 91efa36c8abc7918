"""Pure decision core: definitions, expressions, state machines, rules and step types, without Django, clock or I/O."""

from . import step_types as step_types  # registers the step types, which documents are read by
