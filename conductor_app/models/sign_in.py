"""Tables of sign-in: identities at an OpenID Connect provider, and second factors."""

from django.conf import settings
from django.db import models

from .fields import MomentField


class ExternalIdentity(models.Model):
    """The account of a user at an OpenID Connect provider, by the subject that the provider never reuses."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="external_identities")
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

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="second_factor")
    sealed_key = models.TextField()
    last_step = models.BigIntegerField(default=0)
    created_at = MomentField()

    def __str__(self) -> str:
        return str(self.user)


class RecoveryCode(models.Model):
    """An unused recovery code of a user, stored as a hash."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="recovery_codes")
    code_hash = models.CharField(max_length=64)

    class Meta:
        indexes = [models.Index(name="recovery_code_by_hash", fields=["user", "code_hash"])]

    def __str__(self) -> str:
        return str(self.user)
