"""Changes that an audit entry records, and the owners of applications among the actors."""

from collections.abc import Iterable

from ..models import Application, AuditEntry
from .differences import Difference, find_differences

FROM_TO = ("from", "to")
BEFORE_AFTER = ("before", "after")


def value_changes(entry: AuditEntry) -> list[Difference]:
    """Return the values that changed. Empty if the entry records no change of values."""
    facts = entry.facts if isinstance(entry.facts, dict) else {}
    if "after" in facts:
        before, after = (facts.get(name) for name in BEFORE_AFTER)
        return find_differences(before if isinstance(before, dict) else {}, after)
    if all(name in facts for name in FROM_TO):
        return [Difference("", facts["from"], facts["to"])]
    return []


def other_facts(entry: AuditEntry) -> dict[str, object]:
    """Return the facts of an entry that are not changed values and not empty."""
    change_names = {*FROM_TO, *BEFORE_AFTER} if value_changes(entry) else set()
    return {
        name: value
        for name, value in entry.facts.items()
        if name not in change_names and value not in (None, "", [], {})
    }


def application_owners(entries: Iterable[AuditEntry]) -> dict[str, str]:
    """Return the creators of the applications among the actors, by actor name. Runs one query."""
    named = Application.objects.filter(name__in={entry.actor for entry in entries})
    return {name: owner for name, owner in named.values_list("name", "created_by") if owner}
