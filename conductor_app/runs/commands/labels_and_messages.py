"""Commands on the labels of a run, and on messages that clients send to its inbox."""

import uuid
from collections.abc import Iterable
from functools import partial
from typing import Any

from django.db import transaction

from ...access import audit
from ...access.encryption import encrypt_masked
from ...core.errors import Invalid, NotAllowedInState, NotFound, QueueFull
from ...core.masking import mask_encrypt, masked_names
from ...core.states import RUNNING
from ...db.fields import dumps, strip_nul
from ...definitions.store import load_definition
from ...settings import conf
from ...utils import clock
from ..models import MAX_LABEL_LENGTH, Run, RunLabel
from ..store import inbox, outbox
from .messages import deliver_after_commit

MAX_LABELS = 20


def clean_labels(labels: Iterable[str]) -> list[str]:
    """Return the labels without surrounding spaces and duplicates.

    Raises:
        Invalid: when a label is invalid, or there are too many.
    """
    found = list(dict.fromkeys(strip_nul(label).strip() for label in labels))
    for label in found:
        if not label or len(label) > MAX_LABEL_LENGTH or "," in label or not label.isprintable():
            raise Invalid(
                f"A label must have 1 to {MAX_LABEL_LENGTH} printable characters, no comma (got {label[:80]!r})."
            )
    _refuse_too_many(len(found))
    return found


def save_labels(run_id: str, labels: Iterable[str]) -> None:
    """Save the labels of a new run, in the transaction that creates it."""
    RunLabel.objects.bulk_create(RunLabel(run_id=run_id, name=label) for label in labels)


def add_labels(run_id: str, labels: Iterable[str], by: str, reason: str = "") -> list[str]:
    """Add labels to a run. Returns the labels that it did not have before.

    Raises:
        NotFound: when there is no such run.
        Invalid: when a label is invalid, or the run would have too many.
    """
    wanted = clean_labels(labels)
    with transaction.atomic():
        known = _lock_labels(run_id)
        added = [label for label in wanted if label not in known]
        _refuse_too_many(len(known) + len(added))
        save_labels(run_id, added)
        _record_change(run_id, "add labels", by, reason, added)
    return added


def remove_labels(run_id: str, labels: Iterable[str], by: str, reason: str = "") -> list[str]:
    """Remove labels from a run. Returns the labels that it had.

    Raises:
        NotFound: when there is no such run.
    """
    with transaction.atomic():
        known = _lock_labels(run_id)
        removed = [label for label in dict.fromkeys(labels) if label in known]
        RunLabel.objects.filter(run_id=run_id, name__in=removed).delete()
        _record_change(run_id, "remove labels", by, reason, removed)
    return removed


def _lock_labels(run_id: str) -> set[str]:
    """Lock a run and return its labels. The lock keeps concurrent requests from exceeding the limit together.

    Raises:
        NotFound: when there is no such run.
    """
    if Run.objects.select_for_update().filter(pk=run_id).values("pk").first() is None:
        raise NotFound(f"No such workflow found by id: {run_id}")
    return set(RunLabel.objects.filter(run_id=run_id).values_list("name", flat=True))


def _refuse_too_many(count: int) -> None:
    if count > MAX_LABELS:
        raise Invalid(f"A run can have at most {MAX_LABELS} labels.")


def _record_change(run_id: str, action: str, by: str, reason: str, labels: list[str]) -> None:
    if labels:
        facts = {"labels": labels}
        audit.record("run", run_id, action, by, reason=reason, facts=facts)


MAX_MESSAGES = 1000
"""The maximum number of messages in the inbox of a run (execution §10.8)."""


def send_inbox_message(run_id: str, payload: dict[str, Any]) -> str:
    """Put a message into the inbox of a run, and return its id.

    If a step waits for a message, an outbox message in the same transaction wakes it after the commit.

    Raises:
        Invalid: when the payload is larger than the limit.
        NotFound: when there is no such run.
        NotAllowedInState: when the run is not RUNNING.
        QueueFull: when the inbox is full.
    """
    size, most = len(dumps(payload) or ""), conf.task_payload_max_bytes
    if size > most:
        raise Invalid(f"The message has {size} bytes; the limit is {most} bytes.")
    with transaction.atomic():
        now = clock.now()
        row = (
            Run.objects.select_for_update()
            .filter(pk=run_id)
            .only("id", "status", "inbox", "resolved_definition_id")
            .first()
        )
        row = _require_accepting_run(run_id, row, now)
        id = str(uuid.uuid4())
        hidden = mask_encrypt(payload, masked_names(load_definition(row.resolved_definition_id)), encrypt_masked)
        inbox.add_message(run_id, id, hidden, now, row.inbox + 1)
        if inbox.waiting_attempts(run_id):
            wakeup = outbox.send("inbox", now, to=run_id)
            transaction.on_commit(partial(deliver_after_commit, (wakeup.pk,)))
    return id


def _require_accepting_run(run_id: str, row: Run | None, now: int) -> Run:
    if row is None:
        raise NotFound(f"No such workflow found by id: {run_id}")
    if row.status != RUNNING:
        raise NotAllowedInState(f"Workflow {run_id} is {row.status}; only a RUNNING workflow can receive messages.")
    if row.inbox >= MAX_MESSAGES:
        row.inbox = inbox.delete_expired(run_id, now)
    if row.inbox >= MAX_MESSAGES:
        raise QueueFull(f"The inbox of workflow {run_id} is full ({MAX_MESSAGES} messages). Try again later.")
    return row
