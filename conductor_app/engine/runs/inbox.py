"""Command that puts a message into the inbox of a run and wakes the step that waits for it."""

import uuid
from functools import partial
from typing import Any

from django.db import transaction

from ... import clock, conf
from ...access.masking import encrypt_masked
from ...core.errors import Invalid, NotAllowedInState, NotFound, QueueFull
from ...core.masking import mask_encrypt, masked_names
from ...core.states import RUNNING
from ...models import Run
from ...models.fields import dumps
from ...store import inbox, outbox_messages
from ...store.definitions import load_definition
from ..delivery import deliver_after_commit

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
            wakeup = outbox_messages.send("inbox", now, to=run_id)
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
