"""Taskcluster's clients, which sign their requests, and the roles that their scopes may assume."""

from django.db import models

from .fields import Authored, DocumentField, MomentField


class Client(Authored):
    """A client. `sealed`: its access token, encrypted, because a hash of it could not verify signatures."""

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


class ScopeRole(Authored):
    """A name for a set of scopes, which `assume:<id>` stands for. An id that ends in `*` matches many roles."""

    id = models.CharField("role id", max_length=512, primary_key=True)
    scopes = DocumentField(default=list)
    description = models.TextField(default="", blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.id
