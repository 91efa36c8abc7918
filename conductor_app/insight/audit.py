"""What a line of the audit changed, and who the actor is where that is a program."""

from collections.abc import Iterable

from ..models import Application, AuditEntry
from .differences import Difference, find_differences

FROM_TO = ("from", "to")
BEFORE_AFTER = ("before", "after")


def value_changes(entry: AuditEntry) -> list[Difference]:
    """What was otherwise before; nothing where the line tells of no change of values."""
    facts = entry.facts if isinstance(entry.facts, dict) else {}
    if "after" in facts:
        before, after = (facts.get(name) for name in BEFORE_AFTER)
        return find_differences(before if isinstance(before, dict) else {}, after)
    if all(name in facts for name in FROM_TO):
        return [Difference("", facts["from"], facts["to"])]
    return []


def other_facts(entry: AuditEntry) -> dict[str, object]:
    """What the line tells beside that."""
    change_names = {*FROM_TO, *BEFORE_AFTER} if value_changes(entry) else set()
    return {
        name: value
        for name, value in entry.facts.items()
        if name not in change_names and value not in (None, "", [], {})
    }


def application_owners(entries: Iterable[AuditEntry]) -> dict[str, str]:
    """Who made the applications among the actors, by the name that the audit knows them by; one query."""
    named = Application.objects.filter(name__in={entry.actor for entry in entries})
    return {name: owner for name, owner in named.values_list("name", "created_by") if owner}
