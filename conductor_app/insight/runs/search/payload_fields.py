"""Search fields for documents: input, output and variables."""

from dataclasses import dataclass

from django.db.models import Q

from .document_conditions import DocumentCondition, parse_document_path
from .field_types import NOTHING, SearchField, check_pattern
from .query_parser import Clause

DOCUMENT_SCAN_LIMIT = 20_000
"""Maximum number of rows whose documents are read."""


@dataclass(frozen=True)
class DocumentSearchField(SearchField):
    """An input, an output or the variables: its whole text with wildcards, or the value at a path."""

    scan_limit: int = DOCUMENT_SCAN_LIMIT

    def condition(self, clause: Clause, without_index: bool) -> Q:
        path = parse_document_path(clause.field[len(clause.field.split(".")[0].split("[")[0]) :])
        if not path:
            return super().condition(clause, without_index)
        match clause.operator:
            case "IN":
                found = NOTHING
                for value in clause.values:
                    found |= Q(DocumentCondition(self.column, path, "=", check_pattern(value, value.text)))
                return found
            case "BETWEEN":
                lower, upper = (check_pattern(value, value.text) for value in clause.values)
                return Q(DocumentCondition(self.column, path, ">=", lower)) & Q(
                    DocumentCondition(self.column, path, "<=", upper)
                )
        return Q(
            DocumentCondition(self.column, path, clause.operator, *(check_pattern(v, v.text) for v in clause.values))
        )
