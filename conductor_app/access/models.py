"""Applications with their access keys, and grants.

Users, applications' own users, groups and roles are rows of Django's users and groups. These tables add columns to
them.
"""

from django.conf import settings
from django.db import models
from django.db.models import Q

from .fields import DocumentField, MomentField


class Application(models.Model):
    """A program or a group of workers. It has the permissions of its own user."""

    id = models.CharField("application id", max_length=64, primary_key=True)
    name = models.CharField(max_length=255)
    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="application")
    created_at = MomentField()
    created_by = models.CharField(max_length=255, default="", blank=True)
    updated_at = MomentField(default=0)
    updated_by = models.CharField(max_length=255, default="", blank=True)

    class Meta:
        ordering = ["name", "id"]

    def __str__(self) -> str:
        return self.name


class AccessKey(models.Model):
    """A key that an application exchanges for tokens. The secret is stored as a hash."""

    id = models.CharField("key id", max_length=64, primary_key=True)
    application = models.ForeignKey(Application, on_delete=models.CASCADE, related_name="keys")
    secret_hash = models.CharField(max_length=255)
    is_active = models.BooleanField(default=True)
    created_at = MomentField()
    used_at = MomentField(null=True)

    def __str__(self) -> str:
        return f"{self.application} ({self.id})"


class UserProfile(models.Model):
    """Additional columns of a Django user."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="profile")
    contact = DocumentField(default=dict)

    def __str__(self) -> str:
        return str(self.user)


class GroupProfile(models.Model):
    """Additional columns of a Django group. A group with a `role` is that role."""

    group = models.OneToOneField("auth.Group", on_delete=models.CASCADE, related_name="profile")
    role = models.CharField(max_length=100, unique=True, null=True, blank=True)
    description = models.TextField(default="", blank=True)
    roles = models.ManyToManyField("auth.Group", related_name="given_to", blank=True)
    default_access = DocumentField(default=dict)
    contact = DocumentField(default=dict)

    def __str__(self) -> str:
        return str(self.group)


class Grant(models.Model):
    """An access of a user, a group or a role to the objects with a name, a prefix (`order_*`) or a tag."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="grants"
    )
    group = models.ForeignKey("auth.Group", on_delete=models.CASCADE, null=True, blank=True, related_name="grants")
    target_type = models.CharField(max_length=32)
    target_id = models.CharField(max_length=512)
    access = models.CharField(max_length=16)
    granted_at = MomentField()
    granted_by = models.CharField(max_length=255, default="", blank=True)

    class Meta:
        # Permissions on objects that have no table.
        permissions = [
            ("execute_domain", "Can poll in task domains"),
            ("execute_agent", "Can change runs through the tools of agents"),
            ("execute_debug", "Can debug runs"),
            *(
                (f"{verb}_{thing}", f"Can {verb} {label}")
                for thing, label in (
                    ("event_handler", "event handlers"),
                    ("schema", "schemas"),
                    ("webhook", "webhooks"),
                )
                for verb in ("add", "view", "change", "delete", "execute")
            ),
        ]
        constraints = [
            models.CheckConstraint(
                name="grant_has_one_subject", condition=Q(user__isnull=False) ^ Q(group__isnull=False)
            ),
            models.UniqueConstraint(
                name="one_grant_per_user_target_and_access",
                fields=["user", "target_type", "target_id", "access"],
                condition=Q(user__isnull=False),
            ),
            models.UniqueConstraint(
                name="one_grant_per_group_target_and_access",
                fields=["group", "target_type", "target_id", "access"],
                condition=Q(group__isnull=False),
            ),
        ]
        indexes = [models.Index(name="grant_by_target", fields=["target_type", "target_id"])]

    def __str__(self) -> str:
        return f"{self.user or self.group}: {self.access} {self.target_type} {self.target_id}"


class Tag(models.Model):
    """A tag of an object. It belongs to the object's name, so that all versions of a definition have it."""

    object_type = models.CharField(max_length=32)
    # The columns of the constraint must fit into one index entry.
    object_name = models.CharField(max_length=255)
    key = models.CharField(max_length=128)
    value = models.CharField(max_length=128)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="one_tag_per_object_key_and_value", fields=["object_type", "object_name", "key", "value"]
            )
        ]
        indexes = [models.Index(name="tag_by_value", fields=["key", "value"])]

    def __str__(self) -> str:
        return f"{self.key}:{self.value}"


class AccessRevision(models.Model):
    """One row with a revision that every change of users, keys, roles, grants, tags or quotas increases, for caches.

    `has_quotas`: there are quotas. Without any, no process reads them.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    revision = models.BigIntegerField(default=0)
    has_quotas = models.BooleanField(default=False, db_default=False)
