"""Rows of names and values on a form: the inputs of a step, the outputs of a workflow, the cases of a SWITCH."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from ...core.errors import Invalid
from .typed_text import format_typed, parse_typed

MAX_ROWS = 2_000
LONG_TEXT = 60


class NumberedRow:
    """Base class of rows of a form. `prefix`: the beginning of the names of its fields, with its number."""

    __slots__ = ()
    prefix: str

    @property
    def id(self) -> str:
        return f"id_{self.prefix.replace('.', '-')}"


@dataclass(slots=True)
class FormRow(NumberedRow):
    """One row. `was`: the name before the edit. `errors`: those of the row."""

    prefix: str
    name: str = ""
    text: str = ""
    was: str = ""
    errors: list[str] = field(default_factory=list)

    @property
    def is_long(self) -> bool:
        return "\n" in self.text or len(self.text) > LONG_TEXT


def rows_of(values: Mapping[str, Any], prefix: str) -> list[FormRow]:
    """Return the rows of named values, and an empty row for another one."""
    rows = [FormRow(f"{prefix}.{n}", str(key), format_typed(value), str(key)) for n, (key, value) in _number(values)]
    return [*rows, FormRow(f"{prefix}.{len(rows)}")]


def submitted_rows(submitted: Mapping[str, str], prefix: str) -> list[FormRow]:
    """Return the rows that a form contains."""
    return list(_read_rows(submitted, prefix))


def _number(values: Mapping[str, Any]) -> Iterator[tuple[int, tuple[str, Any]]]:
    return iter(enumerate(values.items()))


def _read_rows(submitted: Mapping[str, str], prefix: str) -> Iterator[FormRow]:
    for number in range(MAX_ROWS):
        key = f"{prefix}.{number}"
        if f"{key}.name" not in submitted:
            return
        texts = (submitted.get(f"{key}.{part}", "") for part in ("name", "value", "was"))
        name, text, was = texts
        yield FormRow(key, name.strip(), text, was)


def parse_rows(rows: list[FormRow]) -> dict[str, Any]:
    """Return the values of rows by name. Rows without a name are omitted; errors are added to their rows."""
    values: dict[str, Any] = {}
    for row in rows:
        if not row.name:
            if row.text.strip() and not row.was:
                row.errors.append(_("Enter a name."))
            continue
        if row.name in values:
            row.errors.append(_("This name is used twice."))
        try:
            values[row.name] = parse_typed(row.text)
        except Invalid as refused:
            row.errors.append(refused.message)
    return values
