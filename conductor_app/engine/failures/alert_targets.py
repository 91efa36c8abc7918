"""Commands on alert targets. Their secrets are stored encrypted; pages, logs and the audit log never contain them."""

import json
import secrets
from collections.abc import Mapping

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from ... import clock, randomness
from ...access import vault
from ...core.alert_messages import TEST, AlertNotice
from ...core.alert_targets import (
    EMAIL,
    MAX_ADDRESSES,
    clean_target_settings,
    displayed_settings,
    secret_names,
    split_addresses,
)
from ...core.errors import Conflict, Invalid, NotFound
from ...models import Alert, AlertFiring, AlertTarget
from ...models.outbox import ALERT, PUBLISH
from ...store import outbox_messages
from .. import audit

MAX_TARGETS = 100


def create_target(kind: str, name: str, given: Mapping[str, str], by: str, reason: str = "") -> AlertTarget:
    """Create an alert target.

    Raises:
        Invalid: when the name or a setting is invalid.
        Conflict: when the name is taken, or there are too many targets.
    """
    if AlertTarget.objects.count() >= MAX_TARGETS:
        raise Conflict(f"There are already {MAX_TARGETS} alert targets. Delete one first.")
    row = AlertTarget(kind=kind, seal_name=f"alert target {randomness.random_hex()}")
    row.created_at, row.created_by = clock.now(), by[:255]
    return _save_target(row, name, given, by, reason)


def update_target(target_id: int, name: str, given: Mapping[str, str], by: str, reason: str = "") -> AlertTarget:
    """Replace the settings of a target. A secret that is empty keeps its value.

    Raises:
        NotFound: when there is no such target.
        Invalid: when the name or a setting is invalid.
        Conflict: when the name is taken.
    """
    return _save_target(find_target(target_id), name, given, by, reason)


def _save_target(row: AlertTarget, name: str, given: Mapping[str, str], by: str, reason: str) -> AlertTarget:
    action = "create" if row.pk is None else "overwrite"
    row.name = name.strip()
    if not row.name or len(row.name) > 120 or not row.name.isprintable():
        raise Invalid("The name of an alert target must have 1 to 120 printable characters.")
    settings = clean_target_settings(row.kind, given, _stored_settings(row))
    if row.kind == EMAIL:
        _check_addresses(settings["addresses"])
    hidden = secret_names(row.kind)
    row.sealed = vault.encrypt(
        row.seal_name, json.dumps({key: value for key, value in settings.items() if key in hidden})
    )
    row.settings = displayed_settings(row.kind, settings)
    row.updated_at, row.updated_by = clock.now(), by[:255]
    try:
        with transaction.atomic():
            row.save()
            _record_change(row, action, by, reason)
    except IntegrityError:
        raise Conflict(f"An alert target with the name {row.name} already exists.") from None
    return row


def _stored_settings(row: AlertTarget) -> dict[str, str]:
    """Return the stored settings. Secrets that no key decrypts have to be entered again."""
    try:
        return target_settings(row) if row.sealed else {}
    except vault.DecryptionFailed:
        return {}


def _check_addresses(text: str) -> None:
    addresses = split_addresses(text)
    if len(addresses) > MAX_ADDRESSES:
        raise Invalid(f"An alert target may have at most {MAX_ADDRESSES} email addresses.")
    for address in addresses:
        try:
            validate_email(address)
        except ValidationError as wrong:
            raise Invalid(f"{address[:80]!r} is not a valid email address.") from wrong


def delete_target(target_id: int, by: str, reason: str = "") -> None:
    """Delete a target. Its alerts are kept and no longer sent to it.

    Raises:
        NotFound: when there is no such target.
    """
    with transaction.atomic():
        row = find_target(target_id)
        _record_change(row, "delete", by, reason)
        row.delete()


def find_target(target_id: int) -> AlertTarget:
    """Return a target.

    Raises:
        NotFound: when there is no such target.
    """
    row = AlertTarget.objects.filter(pk=min(target_id, 2**62)).first()
    if row is None:
        raise NotFound(f"There is no alert target {target_id}.")
    return row


def target_settings(row: AlertTarget) -> dict[str, str]:
    """Return all settings of a target, decrypted.

    Raises:
        vault.DecryptionFailed: when no key of this server decrypts the secrets.
    """
    return {**row.settings, **json.loads(vault.decrypt(row.seal_name, row.sealed))}


def send_test(target_id: int, by: str) -> AlertFiring:
    """Send a test to a target through the outbox, once. The returned row gets its answer.

    Raises:
        NotFound: when there is no such target.
    """
    now = clock.now()
    with transaction.atomic():
        row = find_target(target_id)
        notice = AlertNotice(
            TEST,
            row.name,
            f"This is a test of the alert target {row.name}, sent by {by}.",
            now,
            f"test {row.seal_name}",
        )
        firing = send_notice(row, notice, None)
        _record_change(row, "test", by, "")
    return firing


def send_notice(target: AlertTarget, notice: AlertNotice, alert: Alert | None) -> AlertFiring:
    """Write a notification and its outbox message. It names the target, so that the outbox has no secrets."""
    firing = AlertFiring.objects.create(
        alert=alert, target=target, recipient=target.name, at=notice.at, sentence=notice.sentence, channel=target.kind
    )
    facts = {"sink": ALERT, "id": secrets.token_hex(16), "target": target.pk, "ring": firing.pk}
    # A test does not wait for notifications that the target refuses.
    to = f"alert target {target.pk}{' test' if notice.event == TEST else ''}"
    outbox_messages.send(PUBLISH, notice.at, to=to, facts={**facts, "payload": notice.document()})
    return firing


def is_obsolete(notice: AlertNotice) -> bool:
    """Return True if the alert has cleared since the notice of its firing, so that it would open an incident again."""
    opened = Alert.objects.filter(pk=notice.alert or 0).values_list("incident_at", flat=True).first()
    return opened is None or opened > notice.at


def reencrypt_targets() -> int:
    """Encrypt the secrets of every target with the newest key. Returns how many were encrypted with another one.

    Raises:
        vault.DecryptionFailed: when the secrets of a target cannot be decrypted.
    """
    count = 0
    for row in AlertTarget.objects.order_by("pk"):
        if not vault.is_current(row.sealed):
            again = vault.encrypt(row.seal_name, vault.decrypt(row.seal_name, row.sealed))
            count += AlertTarget.objects.filter(pk=row.pk, sealed=row.sealed).update(sealed=again)
    return count


def _record_change(row: AlertTarget, action: str, by: str, reason: str) -> None:
    audit.record("alert target", str(row.pk), action, by, reason=reason, facts={"name": row.name, "kind": row.kind})
