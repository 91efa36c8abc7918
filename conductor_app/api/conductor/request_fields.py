"""Parse the document of a request by its table of fields: coerce values, or report all errors at once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...core.document.checks.document_fields import FieldTable, read_document
from ...core.document.checks.values import DocumentPosition
from ...core.errors import InputInvalid, ValidationError, ValidationFailed


def read_request(
    document: dict[str, Any],
    table: FieldTable,
    path: str,
    check: Callable[[dict, DocumentPosition], None] | None = None,
) -> dict[str, Any]:
    """Return the document with every field converted to its type. `check`: adds errors that concern several fields.

    Raises:
        ValidationFailed: when fields are invalid. The paths of its errors begin with `path`.
    """
    position = DocumentPosition(path)
    fields = read_document(document, table, position)
    if check is not None:
        check(fields, position)
    if position.validation_errors:
        raise ValidationFailed(position.validation_errors)
    return fields


@contextmanager
def errors_under(path: str) -> Iterator[None]:
    """Prefix the paths of validation errors that are raised inside (api §3.15).

    Raises:
        ValidationFailed: with the prefixed paths
        InputInvalid: with the prefixed paths.
    """
    try:
        yield
    except InputInvalid:
        raise
    except ValidationFailed as failed:
        raise ValidationFailed([ValidationError(_join_paths(path, each.path), each.message, each.value)
                                for each in failed.validation_errors]) from None  # fmt: skip


def _join_paths(path: str, rest: str) -> str:
    return f"{path}{'' if rest.startswith('[') or not rest else '.'}{rest}"
