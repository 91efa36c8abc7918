"""Commands that grant and revoke accesses of a subject to a target."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Q, QuerySet

from ... import clock
from ...access import change_signals
from ...access.access_types import ACCESSES, TARGET_TYPES
from ...access.conductor_auth import Actor
from ...access.current_actor import current_actor
from ...access.escalation import require_grant
from ...models import Grant, GroupProfile
from .access_audit import record_access_change
from .subjects import Subject


def grant(subject: Subject, target_type: str, target_id: str, accesses: Iterable[str], to: str, by: str) -> None:
    """Grant accesses to a target. Existing grants stay. `to`: the name of the subject in the audit log."""
    accesses = [*accesses]
    require_grant(target_type, target_id, accesses)
    with transaction.atomic():
        _insert_grants([subject], target_type, target_id, accesses, by)
        record_access_change("permission", f"{target_type}:{target_id}", "grant", by, to=to, access=sorted(accesses))


def revoke(subject: Subject, target_type: str, target_id: str, accesses: Iterable[str], to: str, by: str) -> None:
    """Revoke accesses to a target. Accesses that are not granted are ignored."""
    with transaction.atomic():
        found = _filter_subject(subject).filter(target_type=target_type, target_id=target_id, access__in=list(accesses))
        found.delete()
        record_access_change("permission", f"{target_type}:{target_id}", "revoke", by, to=to, access=sorted(accesses))


def grant_to_creator(actor: Actor, made: Sequence[tuple[str, str]]) -> None:
    """Grant the creator of objects all accesses, and the creator's groups their default accesses."""
    with transaction.atomic():
        shared = _sharing_group_ids(actor.user_id)
        for target_type, name in made:
            if not actor.permissions.is_admin:
                accesses = TARGET_TYPES[target_type][1]
                _insert_grants([Subject(user_id=actor.user_id)], target_type, name, accesses, actor.name)
                record_access_change(
                    "permission", f"{target_type}:{name}", "grant", actor.name, to=actor.name, access=[*accesses]
                )
            for group, access in shared:
                if given := [each for each in access.get(target_type) or () if each in ACCESSES]:
                    _insert_grants([Subject(group_id=group.pk)], target_type, name, given, actor.name)
                    record_access_change(
                        "permission", f"{target_type}:{name}", "grant", actor.name, to=group.name, access=given
                    )


def grant_to_current_actor(made: Sequence[tuple[str, str]]) -> None:
    """Grant the user of a page all accesses to the objects that it has created."""
    actor = current_actor()
    if actor is not None and actor.user_id is not None:
        grant_to_creator(actor, made)


def _sharing_group_ids(user_id: int | None) -> list[tuple[Group, dict[str, Any]]]:
    """Return the groups of a user that have default accesses to their members' objects."""
    facts = GroupProfile.objects.filter(group__user=user_id).select_related("group")
    return [(each.group, each.default_access) for each in facts if each.default_access]


def _insert_grants(
    subjects: Sequence[Subject], target_type: str, target_id: str, accesses: Iterable[str], by: str
) -> None:
    now = clock.now()
    Grant.objects.bulk_create(
        [
            Grant(
                user_id=subject.user_id,
                group_id=subject.group_id,
                target_type=target_type,
                target_id=target_id,
                access=access,
                granted_at=now,
                granted_by=by[:255],
            )
            for subject in subjects
            for access in accesses
        ],
        ignore_conflicts=True,
    )
    # `bulk_create` sends no signals.
    change_signals.record_access_change()


def _filter_subject(subject: Subject) -> QuerySet[Grant]:
    return Grant.objects.filter(Q(user_id=subject.user_id), Q(group_id=subject.group_id))
