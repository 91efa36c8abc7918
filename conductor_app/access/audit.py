"""Signal handlers that record every change of access, whether by a command, Django's own pages, or a shell."""

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import F
from django.db.models.signals import m2m_changed, post_delete, post_save

from ..models import (
    AccessKey,
    AccessRevision,
    Application,
    CallerQuota,
    Client,
    Grant,
    GroupProfile,
    ScopeRole,
    Tag,
)
from . import permission_cache


def connect_access_signals() -> None:
    """Connect the handlers to the tables that determine access."""
    User = get_user_model()
    for model in (User, Group, AccessKey, Application, Client, Grant, GroupProfile, ScopeRole, Tag):
        for signal in (post_save, post_delete):
            signal.connect(_on_row, sender=model, dispatch_uid=f"access of {model.__name__}")
    for signal in (post_save, post_delete):
        signal.connect(_on_quota, sender=CallerQuota, dispatch_uid="quotas")
    for relation in (User.groups, User.user_permissions, Group.permissions, GroupProfile.roles):
        m2m_changed.connect(_on_relation, sender=relation.through, dispatch_uid=f"access by {relation.field.name}")


def record_access_change() -> None:
    """Notify all processes of a change of access, within the transaction of the change."""
    if not AccessRevision.objects.filter(pk=1).update(revision=F("revision") + 1):
        AccessRevision.objects.get_or_create(pk=1, defaults={"revision": 1})
    permission_cache.clear_cache()
    # Clear the cache again after the commit, because another thread may have read the old state in between.
    transaction.on_commit(permission_cache.clear_cache)


def _on_row(sender: type, update_fields: Any = None, **_: Any) -> None:
    # A login changes only its own timestamp.
    if update_fields is None or set(update_fields) != {"last_login"}:
        record_access_change()


def _on_quota(sender: type, **_: Any) -> None:
    record_access_change()
    AccessRevision.objects.filter(pk=1).update(has_quotas=CallerQuota.objects.exists())


def _on_relation(sender: type, action: str, **_: Any) -> None:
    if action.startswith("post_"):
        record_access_change()
