"""Commands on the quotas of callers. Each change is audited, and takes effect within one second."""

import math
from collections.abc import Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction

from ... import clock
from ...access.quotas import QUOTA_FIELDS, caller_of_row
from ...core.errors import Invalid, NotFound
from ...models import Application, CallerQuota, Client
from .access_audit import record_access_change

EVERY_CALLER, APPLICATION, USER, CLIENT = "default", "application", "user", "client"
KINDS = (EVERY_CALLER, APPLICATION, USER, CLIENT)
WHOLE_NUMBERS = {"open_runs": 2**31 - 1, "stored_bytes": 10**15}
LEAST_RATE, MAX_RATE = 0.001, 1_000_000


def save_quotas(kind: str, name: str, values: Mapping[str, float | None], by: str, reason: str = "") -> None:
    """Save the quotas of a caller, or the default of all callers.

    `name`: the id or the name of an application, the name of a user, or the id of a Taskcluster client. `values`: by
    the fields of `CallerQuota`; None is the default's quota, 0 is no limit.

    Raises:
        NotFound: when there is no such caller.
        Invalid: when a value is out of range, or several applications have the name.
    """
    owner = _find_owner(kind, name.strip())
    facts = {field: _check_value(field, values.get(field)) for field in QUOTA_FIELDS}
    with transaction.atomic():
        was = CallerQuota.objects.select_for_update().filter(**owner).first()
        before = {field: getattr(was, field, None) for field in QUOTA_FIELDS}
        row = was or CallerQuota(**owner)
        for field, value in facts.items():
            setattr(row, field, value)
        row.updated_at, row.updated_by = clock.now(), by[:255]
        row.save()
        record_access_change("quota", _audit_id(row), "save", by, reason, before=before, after=facts)


def delete_quotas(caller: str, by: str, reason: str = "") -> None:
    """Delete the quotas of a caller, so that the default applies. For "" delete the default.

    Raises:
        NotFound: when it has none.
    """
    with transaction.atomic():
        row = next((row for row in CallerQuota.objects.select_for_update() if caller_of_row(row) == caller), None)
        if row is None:
            raise NotFound("The caller has no quotas of its own.")
        record_access_change("quota", _audit_id(row), "remove", by, reason)
        row.delete()


def _audit_id(row: CallerQuota) -> str:
    return caller_of_row(row) or "all callers"


def _find_owner(kind: str, name: str) -> dict[str, Any]:
    """Return the columns that identify a caller."""
    if kind not in KINDS:
        raise Invalid(f"The kind of caller must be one of: {', '.join(KINDS)}.")
    if kind == EVERY_CALLER:
        return {"user_id": None, "client_id": None}
    if kind == CLIENT:
        if not Client.objects.filter(pk=name).exists():
            raise NotFound(f"There is no client {name[:200]!r}.")
        return {"user_id": None, "client_id": name}
    return {"user_id": _find_application_user(name) if kind == APPLICATION else _find_user(name), "client_id": None}


def _find_application_user(name: str) -> int:
    by_id = Application.objects.filter(pk=name).values_list("user_id", flat=True)
    found = list(by_id or Application.objects.filter(name=name).values_list("user_id", flat=True)[:2])
    if not found:
        raise NotFound(f"There is no application {name[:200]!r}.")
    if len(found) > 1:
        raise Invalid(f"Several applications are named {name[:200]!r}. Enter the id.")
    return found[0]


def _find_user(name: str) -> int:
    found = get_user_model().objects.filter(username=name, application__isnull=True).values_list("pk", flat=True)
    if not found:
        raise NotFound(f"There is no user {name[:200]!r}.")
    return found[0]


def _check_value(field: str, value: float | None) -> float | None:
    most = WHOLE_NUMBERS.get(field, MAX_RATE)
    if value is None or value == 0:
        return value
    if not math.isfinite(value) or not (1 if field in WHOLE_NUMBERS else LEAST_RATE) <= value <= most:
        raise Invalid(f"The quota {field} must be 0 (no limit) to {most}.")
    return int(value) if field in WHOLE_NUMBERS else value
