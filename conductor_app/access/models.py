"""Tables of access: users, applications, clients, grants, secrets, quotas, sign-in, preferences, the audit log."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce

from ..db.database import is_default
from ..db.fields import OF_USERS, Authored, DocumentField, KeyOrNone, MomentField, UserKeyField

MAX_CALLER_LENGTH = 320


class Application(models.Model):
    """A program or a group of workers. It has the permissions of its own user."""

    access_names: ClassVar[dict[str, str]] = {"APPLICATION": "id"}

    id = models.CharField("application id", max_length=64, primary_key=True)
    name = models.CharField(max_length=255)
    user = models.OneToOneField(settings.AUTH_USER_MODEL, related_name="application", **OF_USERS)
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


class Client(Authored):
    """A client of the Taskcluster API. It is here because quotas name the caller, of either API.

    `sealed`: its access token, encrypted, because a hash of it could not verify signatures.
    """

    # Set by queries and commands that load more than the row.
    token: str

    id = models.CharField("client id", max_length=255, primary_key=True)
    sealed = models.TextField()
    scopes = DocumentField(default=list)
    description = models.TextField(default="", blank=True)
    expires_at = MomentField()
    is_disabled = models.BooleanField("disabled", default=False)
    is_deleted_when_expired = models.BooleanField("deleted when expired", default=False)
    rotated_at = MomentField(default=0)
    used_at = MomentField(default=0)

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(
                name="client_to_forget", fields=["expires_at"], condition=models.Q(is_deleted_when_expired=True)
            )
        ]

    def __str__(self) -> str:
        return self.id


class UserProfile(models.Model):
    """Additional columns of a Django user.

    `link_until`: until then, in epoch milliseconds, the first single sign-on with its name gets the account.
    `is_invited`: the person may sign in by single sign-on without a group, because an administrator gave it grants.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, related_name="profile", **OF_USERS)
    contact = DocumentField(default=dict)
    link_until = MomentField(null=True)
    is_invited = models.BooleanField(default=False, db_default=False)

    def __str__(self) -> str:
        return str(self.user)


class GroupProfile(models.Model):
    """Additional columns of a Django group. A group with a `role` is that role."""

    group = models.OneToOneField("auth.Group", related_name="profile", **OF_USERS)
    role = models.CharField(max_length=100, unique=True, null=True, blank=True)
    description = models.TextField(default="", blank=True)
    roles = models.ManyToManyField("auth.Group", related_name="given_to", blank=True, db_constraint=is_default())
    default_access = DocumentField(default=dict)
    contact = DocumentField(default=dict)

    def __str__(self) -> str:
        return str(self.group)


if not is_default():
    # `OF_USERS` for the table between, whose keys Django declares.
    GroupProfile.roles.through._meta.get_field("group").remote_field.on_delete = models.DO_NOTHING  # type: ignore[union-attr]


class Grant(models.Model):
    """An access of a user, a group or a role to the objects with a name, a prefix or a tag.

    `target_id`: the name, the tag as `key:value`, or, if `is_prefix`, the prefix with a `*` at its end. A name may end
    with `*` too: only `is_prefix` makes a grant one of a prefix.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, related_name="grants", **OF_USERS)
    group = models.ForeignKey("auth.Group", null=True, blank=True, related_name="grants", **OF_USERS)
    target_type = models.CharField(max_length=32)
    target_id = models.CharField(max_length=512)
    is_prefix = models.BooleanField("prefix", default=False, db_default=False)
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


class NamedValue(Authored):
    """Common columns: name, tags and authorship."""

    name = models.CharField(max_length=255, primary_key=True)
    tags = DocumentField(default=list)

    class Meta:
        abstract = True
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Secret(NamedValue):
    """A value that only workers receive. `sealed`: the encrypted value, with the name of its encryption key."""

    access_names: ClassVar[dict[str, str]] = {"SECRET_NAME": "name"}

    sealed = models.TextField()

    class Meta(NamedValue.Meta):
        permissions = [("execute_secret", "Can execute secrets (no effect)")]


class Variable(NamedValue):
    """A value that any definition may read as `${workflow.env.NAME}`."""

    access_names: ClassVar[dict[str, str]] = {"ENV_VARIABLE": "name"}

    value = models.TextField(default="", blank=True)

    class Meta(NamedValue.Meta):
        permissions = [("execute_variable", "Can execute variables (no effect)")]


class AuditEntry(models.Model):
    """An action of a user or a client, written in the transaction of its effect.

    `actor`: the name of the actor at that time. `actor_id`: its user; None if it has none, and in entries older than
    this column.
    `request_id`: the id of the HTTP request, as in its response and log lines; empty for other actions.
    """

    at = MomentField()
    actor = models.CharField(max_length=255)
    actor_id = UserKeyField(null=True, blank=True)
    action = models.CharField(max_length=64)
    object_type = models.CharField(max_length=32)
    object_id = models.CharField(max_length=320)
    reason = models.TextField(default="", blank=True)
    facts = DocumentField(default=dict)
    request_id = models.CharField(max_length=128, default="", db_default="", blank=True)

    class Meta:
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(name="audit_by_time", fields=["-at"]),
            models.Index(name="audit_of_object", fields=["object_type", "object_id"]),
            models.Index(name="audit_of_request", fields=["request_id"], condition=~models.Q(request_id="")),
        ]

    def __str__(self) -> str:
        return f"{self.actor}: {self.action} {self.object_type} {self.object_id}"


class CallerQuota(models.Model):
    """The quotas of one caller, or the default of all callers (no user and no client).

    A caller is a user (a person, or an application's own user) or a Taskcluster client. A quota of null is the
    default's; 0 is no limit.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, **OF_USERS)
    client = models.ForeignKey(Client, on_delete=models.CASCADE, null=True, blank=True)
    starts_per_second = models.FloatField(null=True, blank=True)
    polls_per_second = models.FloatField(null=True, blank=True)
    searches_per_minute = models.FloatField(null=True, blank=True)
    open_runs = models.IntegerField(null=True, blank=True)
    stored_bytes = models.BigIntegerField(null=True, blank=True)
    updated_at = MomentField()
    updated_by = models.CharField(max_length=255)

    class Meta:
        constraints = [
            models.UniqueConstraint(KeyOrNone("user"), Coalesce(F("client"), Value("")), name="one_quota_per_caller"),
            models.CheckConstraint(
                name="quota_has_one_caller", condition=~models.Q(user__isnull=False, client__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return str(self.user or self.client or "all callers")


class TokenBucket(models.Model):
    """The requests that a caller may still send now. Processes take from it; it fills at the rate of the quota."""

    caller = models.CharField(max_length=MAX_CALLER_LENGTH)
    resource = models.CharField(max_length=16)
    tokens = models.FloatField()
    updated_at = MomentField()

    class Meta:
        constraints = [models.UniqueConstraint(name="one_bucket_per_caller", fields=["caller", "resource"])]
        indexes = [models.Index(name="bucket_by_age", fields=["updated_at"])]

    def __str__(self) -> str:
        return f"{self.resource} of {self.caller}"


class ExternalIdentity(models.Model):
    """The account of a user at an OpenID Connect provider, by the subject that the provider never reuses."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, related_name="external_identities", **OF_USERS)
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)

    class Meta:
        constraints = [models.UniqueConstraint(name="one_user_per_identity", fields=["issuer", "subject"])]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


class SecondFactor(models.Model):
    """The authenticator app of a user, whose code is required at sign-in.

    `sealed_key`: the key of the codes, encrypted for this user. `last_step`: the interval of 30 s of the last accepted
    code, which is not accepted again.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, related_name="second_factor", **OF_USERS)
    sealed_key = models.TextField()
    last_step = models.BigIntegerField(default=0)
    created_at = MomentField()

    def __str__(self) -> str:
        return str(self.user)


class RecoveryCode(models.Model):
    """An unused recovery code of a user, stored as a hash."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, related_name="recovery_codes", **OF_USERS)
    code_hash = models.CharField(max_length=64)

    class Meta:
        indexes = [models.Index(name="recovery_code_by_hash", fields=["user", "code_hash"])]

    def __str__(self) -> str:
        return str(self.user)


class Preference(models.Model):
    """A preference of a user, by name."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, primary_key=True, related_name="preference", **OF_USERS)
    choices = DocumentField(default=dict)

    def __str__(self) -> str:
        return f"preferences of {self.user}"
