"""The audit log: who did what to which object, and why; and the announcement of changes of access."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import F, Model
from django.db.models.signals import m2m_changed, post_delete, post_save

from ..db.database import transaction
from ..telemetry import log_context
from ..utils import clock
from ..utils.differences import Difference, find_differences
from .authentication import current_user_id
from .models import AccessKey, AccessRevision, Application, AuditEntry, CallerQuota, Client, Grant, GroupProfile, Tag
from .permissions import clear_cache

FROM_TO = ("from", "to")
BEFORE_AFTER = ("before", "after")


def record(
    object_type: str,
    object_id: str | int,
    action: str,
    by: str,
    *,
    reason: str = "",
    facts: Mapping[str, Any] | None = None,
    at: int | None = None,
) -> None:
    """Write an audit entry. Call it in the transaction of the change.

    `at`: the time of the change in epoch milliseconds; now, if it is not given.
    """
    AuditEntry.objects.create(
        at=clock.now() if at is None else at,
        actor=by[:255],
        action=action,
        object_type=object_type,
        object_id=str(object_id)[:320],
        reason=reason,
        facts=dict(facts or {}),
        request_id=log_context.request_id(),
        actor_id=current_user_id() or None,
    )


def record_access_change(kind: str, id: str, action: str, by: str, reason: str = "", **facts: Any) -> None:
    """Write an audit entry, in the transaction of the change."""
    record(kind, id, action, by, reason=reason, facts=facts)


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


def connect_access_signals() -> None:
    """Announce every change of this app's tables that determine access, also one by Django's own pages or a shell."""
    for model in (AccessKey, Application, Client, Grant, GroupProfile, Tag):
        announce_changes_of(model)
    for signal in (post_save, post_delete):
        signal.connect(_on_quota, sender=CallerQuota, dispatch_uid="quotas")
    _announce_relations(GroupProfile.roles)


def connect_user_signals() -> None:
    """Announce every change of users and groups."""
    User = get_user_model()
    for model in (User, Group):
        announce_changes_of(model)
    _announce_relations(User.groups, User.user_permissions, Group.permissions)


def _announce_relations(*relations: Any) -> None:
    for relation in relations:
        m2m_changed.connect(_on_relation, sender=relation.through, dispatch_uid=f"access by {relation.field.name}")


def announce_changes_of(model: type[Model]) -> None:
    """Announce every change of a table that determines access."""
    for signal in (post_save, post_delete):
        signal.connect(_on_row, sender=model, dispatch_uid=f"access of {model.__name__}")


def announce_access_change() -> None:
    """Notify all processes of a change of access, within the transaction of the change."""
    if not AccessRevision.objects.filter(pk=1).update(revision=F("revision") + 1):
        AccessRevision.objects.get_or_create(pk=1, defaults={"revision": 1})
    clear_cache()
    # Clear the cache again after the commit, because another thread may have read the old state in between.
    transaction.on_commit(clear_cache)


def _on_row(sender: type, update_fields: Any = None, **_: object) -> None:
    # A login changes only its own timestamp.
    if update_fields is None or set(update_fields) != {"last_login"}:
        announce_access_change()


def _on_quota(sender: type, **_: object) -> None:
    announce_access_change()
    AccessRevision.objects.filter(pk=1).update(has_quotas=CallerQuota.objects.exists())


def _on_relation(sender: type, action: str, **_: object) -> None:
    if action.startswith("post_"):
        announce_access_change()
