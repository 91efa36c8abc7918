"""Commands on second factors: codes of an authenticator app (RFC 6238), and recovery codes.

Keys are encrypted like secrets. A code is accepted once, from 30 s before its interval to 30 s after it.
"""

import secrets
from hashlib import sha256

import pyotp
from django.contrib.auth.models import User
from django.db import transaction

from ... import clock
from ...access import vault
from ...models import RecoveryCode, SecondFactor
from .access_audit import record_access_change
from .users import KIND

INTERVAL_SECONDS = 30
RECOVERY_CODES = 10
RECOVERY_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
"""Characters that are not confused with each other."""


def has_second_factor(user: User) -> bool:
    """Return True if the user must enter a code at sign-in."""
    return SecondFactor.objects.filter(user=user).exists()


def new_sealed_key(user: User) -> str:
    """Return a new key for an authenticator app, encrypted for the user."""
    return vault.encrypt(_seal_name(user.pk), pyotp.random_base32())


def unseal_key(user: User, sealed_key: str) -> str:
    """Return the key in the form in which a user enters it into an app."""
    return vault.decrypt(_seal_name(user.pk), sealed_key)


def turn_on(user: User, sealed_key: str, code: str) -> list[str] | None:
    """Require the second factor from now on, if the code is correct.

    Returns new recovery codes, which are stored only as hashes. None: the code is wrong, or there is a second factor.
    """
    with transaction.atomic():
        factor = SecondFactor(user=user, sealed_key=sealed_key, created_at=clock.now())
        if has_second_factor(user) or not _accepts(factor, code):
            return None
        factor.save()
        codes = _replace_recovery_codes(user)
        record_access_change(KIND, user.get_username(), "set up second factor", user.get_username())
    return codes


def verify_code(user: User, code: str) -> bool:
    """Return True if the code is a valid one of the authenticator app, or an unused recovery code."""
    code = code.strip().replace(" ", "").lower()
    with transaction.atomic():
        factor = SecondFactor.objects.select_for_update().filter(user=user).first()
        if factor is None:
            return False
        if _accepts(factor, code):
            factor.save()
            return True
        is_used, _ = RecoveryCode.objects.filter(user=user, code_hash=_hash(code)).delete()
        if is_used:
            left = RecoveryCode.objects.filter(user=user).count()
            record_access_change(KIND, user.get_username(), "use recovery code", user.get_username(), left=left)
        return bool(is_used)


def remove_second_factor(user: User, by: str) -> None:
    """Remove the second factor and the recovery codes of a user."""
    with transaction.atomic():
        RecoveryCode.objects.filter(user=user).delete()
        count, _ = SecondFactor.objects.filter(user=user).delete()
        if count:
            record_access_change(KIND, user.get_username(), "remove second factor", by)


def reencrypt_second_factors() -> int:
    """Encrypt every key with the newest key of the server. Returns how many were encrypted with another one.

    Raises:
        vault.DecryptionFailed: when a key cannot be decrypted.
    """
    count = 0
    for factor in SecondFactor.objects.order_by("pk"):
        if not vault.is_current(factor.sealed_key):
            again = vault.encrypt(_seal_name(factor.user_id), _key(factor))
            count += SecondFactor.objects.filter(pk=factor.pk, sealed_key=factor.sealed_key).update(sealed_key=again)
    return count


def _accepts(factor: SecondFactor, code: str) -> bool:
    """Return True if the code is valid and newer than the last accepted one, and remember it."""
    totp, step = pyotp.TOTP(_key(factor), interval=INTERVAL_SECONDS), clock.now() // 1000 // INTERVAL_SECONDS
    if not (code.isascii() and code.isdigit()):
        return False
    for candidate in (step - 1, step, step + 1):
        if candidate > factor.last_step and secrets.compare_digest(totp.generate_otp(candidate), code):
            factor.last_step = candidate
            return True
    return False


def _replace_recovery_codes(user: User) -> list[str]:
    parts = [[_random_part(), _random_part(), _random_part()] for _ in range(RECOVERY_CODES)]
    codes = ["-".join(part) for part in parts]
    RecoveryCode.objects.filter(user=user).delete()
    RecoveryCode.objects.bulk_create(RecoveryCode(user=user, code_hash=_hash(code)) for code in codes)
    return codes


def _random_part() -> str:
    return "".join(secrets.choice(RECOVERY_ALPHABET) for _ in range(5))


def _hash(code: str) -> str:
    """Return the hash of a recovery code. Its 74 random bits need no slow hash."""
    return sha256(code.replace("-", "").encode()).hexdigest()


def _seal_name(user_id: int) -> str:
    return f"second factor of user {user_id}"


def _key(factor: SecondFactor) -> str:
    return vault.decrypt(_seal_name(factor.user_id), factor.sealed_key)
