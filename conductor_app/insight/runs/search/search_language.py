"""The searchable fields of a table."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .field_types import InvalidSearchValue, SearchField
from .payload_fields import DocumentSearchField
from .query_parser import CLAUSE_AHEAD, Clause


@dataclass(frozen=True)
class SearchLanguage:
    """Searchable fields and columns of one table. `newest`: the column that orders rows by creation."""

    plural_name: str
    fields: Mapping[str, SearchField]
    newest: str
    texts: tuple[str, ...]
    """Columns that free text searches."""
    exact: tuple[str, ...]
    """Columns with an index in which free text finds exact values, regardless of the age of the row."""
    sorts: Mapping[str, str]
    sorts_by_index: frozenset[str]
    is_joined: bool = False
    """True if fields belong to joined tables."""
    names_by_lowercase: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names_by_lowercase", {name.lower(): name for name in self.fields})

    def field_of(self, clause: Clause) -> tuple[str, SearchField]:
        """Return name and field of a clause.

        Raises:
            InvalidSearchValue: when the field is unknown, or the clause has a path in a field that is not a document.
        """
        base = base_of(clause.field)
        name = self.name_of(base)
        if name is None:
            known = ", ".join(sorted(self.fields))
            raise InvalidSearchValue(
                clause.position, f"unknown field '{base[:50]}' of {self.plural_name}; use one of: {known}"
            )
        found = self.fields[name]
        if clause.field != base and not isinstance(found, DocumentSearchField):
            raise InvalidSearchValue(clause.position, f"'{name}' is not a document and has no members")
        return name, found

    def name_of(self, written: str) -> str | None:
        """Return the name of a field, whose case does not matter, without a path; None if it is unknown."""
        return self.names_by_lowercase.get(base_of(written).lower())

    def is_query(self, text: str) -> bool:
        """Return True if a text starts like a query: with a known field and a comparison."""
        begins = CLAUSE_AHEAD.match(text)
        return begins is not None and self.name_of(begins["field"]) is not None


def base_of(field: str) -> str:
    """Return the name of a field without its path."""
    return field.replace("[", ".").split(".")[0]
