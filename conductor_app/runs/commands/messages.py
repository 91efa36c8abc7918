"""Messages between runs, with their delivery after the commit or by the sweep, and those of clients to an inbox.

`register_handlers` says what each message does.
"""

import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import local
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast

from ...access import audit
from ...access.authentication import acting_as
from ...access.encryption import decrypt_masked, encrypt_masked
from ...core import errors
from ...core.masking import MARK, mask_encrypt, masked_names
from ...core.snapshot import NEVER
from ...core.states import RUN, RUNNING
from ...db.database import transaction
from ...db.fields import dumps, loads_encrypted
from ...db.transient_errors import discard_broken_connection
from ...definitions.store import load_definition
from ...settings import conf
from ...telemetry.log_context import log_context
from ...utils import clock, fault_points, process_state
from ...utils.process_state import Wiring
from ..models import PUBLISH, Message, Run
from ..queries.messages import receiver_kind
from ..store import data, outbox
from ..store.outbox import due_messages

Handler = Callable[[Message], None]

HANDLERS: Wiring[Mapping[str, Handler]] = process_state.wiring({})
"""The handler of each subject; `message_handlers` fills it when the app is ready."""

log = logging.getLogger(__name__)

AT_ONCE = 50
"""Messages that the sending process delivers itself; the sweep takes the rest, so no caller waits for thousands."""
MAX_RETRY_DELAY_MS = 60_000
MAX_TRIES = 500
"""Tries of a message, about eight hours, so that it survives an outage overnight. Then operators decide about it."""
LATE_MS = 30_000
"""A message that is overdue by this time may have ended the process that delivered it."""
FINAL_ERRORS = (errors.Invalid, errors.Forbidden, errors.StepRefused)
"""Errors that another try would raise again."""
CONSUMED_AT_ONCE = frozenset(("begin", "child_ended", "terminate"))
"""Subjects whose handlers delete the message in the transaction of its only effect, so that a message which another
process has delivered changes nothing. The sending process need not read them, and they have no masked facts."""
FACTS_OF_OTHER_TRANSACTIONS = frozenset(("about", "is_limited"))
"""Facts with which a message has an effect before the transaction that deletes it."""
INTERRUPTED = "The process ended while it delivered the message."

_own = local()


def register_handlers(handlers: Mapping[str, Handler]) -> None:
    HANDLERS.value = {**HANDLERS.value, **handlers}


def deliver_after_commit(ids: tuple[int, ...]) -> None:
    """Deliver messages after the commit, in this thread, one after another. The sweep delivers those that fail."""
    _deliver_in_turn([partial(deliver, id) for id in ids])


def deliver_sent(messages: Sequence[Message]) -> None:
    """Deliver messages that this process has sent, like `deliver_after_commit`, and without reading some of them."""
    _deliver_in_turn([partial(_deliver_sent, message) for message in messages])


def _deliver_sent(message: Message) -> None:
    if message.subject in CONSUMED_AT_ONCE and not message.facts.keys() & FACTS_OF_OTHER_TRANSACTIONS:
        _deliver(message)
    else:
        deliver(message.pk)


def _deliver_in_turn(deliveries: Iterable[Callable[[], object]]) -> None:
    waiting = getattr(_own, "waiting", None)
    if waiting is not None:
        waiting.extend(deliveries)
        return
    fault_points.reach("before-delivery")
    _own.waiting = deque(deliveries)
    try:
        # Messages act on decisions that were authorized, not on behalf of the caller of this request.
        with acting_as(None):
            for _ in range(AT_ONCE):
                if not _own.waiting:
                    break
                _own.waiting.popleft()()
    except Exception:
        # The change that sent the messages is committed, so its caller must not repeat it. The sweep delivers the rest.
        log.exception("delivery_interrupted")
        # The caller reads and writes on.
        discard_broken_connection()
    finally:
        _own.waiting = None


def deliver(id: int) -> bool:
    """Deliver one message. Returns False if another process delivered it, or if it must be retried."""
    message = read_message(id)
    return message is not None and _deliver(message)


def _deliver(message: Message) -> bool:
    with log_context(message.subject, run_id=message.to, message_id=message.pk):
        try:
            fault_points.reach("in-delivery")
            HANDLERS.value[message.subject](message)
        except (errors.AlreadyResolved, errors.NotFound, errors.Conflict) as error:
            if _is_needed_still(message):
                _schedule_redelivery(message, error)
                return False
            # The receiver has ended or was deleted: the message has no effect any more.
            outbox.consume(message.pk)
        except Exception as error:
            _schedule_redelivery(message, error)
            return False
        return True


def read_message(id: int) -> Message | None:
    """Load a message with its facts: `written` as stored, `facts` decrypted. Returns None if it is gone."""
    rows = Message.objects.defer("facts").annotate(text=Cast("facts", TextField()))
    row = rows.filter(pk=id).first()
    if row is None:
        return None
    message: Message = row
    message.written = loads_encrypted(row.text)
    message.facts = decrypt_masked(message.written) if MARK in row.text else message.written
    return message


def _is_needed_still(message: Message) -> bool:
    """Return True if runs wait for the message, although its handler refused it: without it they would wait forever."""
    if message.subject == "begin":
        return Run.objects.filter(pk=message.to, status__in=RUN.open, next_seq=1).exists()
    # The refusal is about one of the held runs.
    return message.subject == "release"


def _schedule_redelivery(message: Message, error: Exception) -> None:
    discard_broken_connection()
    is_final = isinstance(error, FINAL_ERRORS)
    due_at = NEVER if is_final else _next_try_at(message)
    event = "message_undelivered" if due_at == NEVER else "message_not_delivered"
    log.exception(event, extra={"message_id": message.pk, "subject": message.subject})
    failure = error.message if isinstance(error, errors.RequestRefused) else type(error).__name__
    outbox.update_messages([message.pk], tries=message.tries + 1, due_at=due_at, error=failure[:2000])


def _next_try_at(message: Message) -> int:
    """Return when a message is tried again if the present try fails: NEVER after the last one."""
    if message.tries + 1 >= MAX_TRIES:
        return NEVER
    return clock.now() + min(1000 * 2 ** min(message.tries, 10), MAX_RETRY_DELAY_MS)


def deliver_due(limit: int) -> int:
    """Deliver up to `limit` messages that were not delivered after their commit. Returns how many."""
    return sum(_deliver_again(id) for id in due_messages(clock.now(), limit))


def _deliver_again(id: int) -> bool:
    """Deliver a due message. A message that was tried before, or is late, counts this try before it.

    Otherwise a message whose delivery ends the process, because its payload exhausts the memory, would be delivered
    again without end.
    """
    message = read_message(id)
    if message is None:
        return False
    if message.tries or clock.now() - message.due_at > LATE_MS:
        error = message.error or INTERRUPTED
        outbox.update_messages([id], tries=message.tries + 1, due_at=_next_try_at(message), error=error)
    return _deliver(message)


AUDITED_RECEIVERS = {"run": "run", "task": "task", "group": "task_group"}
"""Receivers whose pages show the audit entries about their messages. Other entries are about the message itself."""


def retry_messages(ids: Iterable[int], by: str, reason: str) -> int:
    """Try undelivered messages again, the first ones at once. Returns how many; the others are delivered already.

    Raises:
        Invalid: when the reason is missing.
    """
    with transaction.atomic():
        found = _lock_and_audit(ids, "retry_message", by, reason)
        outbox.retry_undelivered([message.pk for message in found], clock.now())
        internal = tuple(message.pk for message in found if message.subject != PUBLISH)
        # Publishers find messages to other systems within a second.
        transaction.on_commit(partial(deliver_after_commit, internal))
    return len(found)


def discard_messages(ids: Iterable[int], by: str, reason: str) -> int:
    """Delete undelivered messages. Returns how many. A run that waits for one of them waits until it is terminated.

    Raises:
        Invalid: when the reason is missing.
    """
    with transaction.atomic():
        found = _lock_and_audit(ids, "discard_message", by, reason)
        outbox.discard_undelivered([message.pk for message in found])
    return len(found)


def _lock_and_audit(ids: Iterable[int], action: str, by: str, reason: str) -> Sequence[Message]:
    if not reason.strip():
        raise errors.Invalid("Enter a reason.")
    rows = Message.objects.undelivered().defer("facts").filter(pk__in=list(ids)).order_by("pk")
    found = list(rows.select_for_update())
    for message in found:
        kind = AUDITED_RECEIVERS.get(receiver_kind(message.subject))
        facts = {
            "message": message.pk,
            "subject": message.subject,
            "receiver": message.to,
            "tries": message.tries,
            "error": message.error,
        }
        audit.record(kind or "message", message.to if kind else message.pk, action, by, reason=reason, facts=facts)
    return found


MAX_MESSAGES = 1000
"""The maximum number of messages in the inbox of a run (execution §10.8)."""


def send_inbox_message(run_id: str, payload: dict[str, Any]) -> str:
    """Put a message into the inbox of a run, and return its id.

    If a step waits for a message, an outbox message in the same transaction wakes it after the commit.

    Raises:
        Invalid: when the payload is larger than the limit.
        NotAllowedInState: when the run is not RUNNING.
        QueueFull: when the inbox is full.
    """
    size, most = len(dumps(payload) or ""), conf.task_payload_max_bytes
    if size > most:
        raise errors.Invalid(f"The message has {size} bytes; the limit is {most} bytes.")
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
        data.add_inbox_message(run_id, id, hidden, now, row.inbox + 1)
        if data.inbox_readers(run_id):
            wakeup = outbox.send("inbox", now, to=run_id)
            transaction.on_commit(partial(deliver_after_commit, (wakeup.pk,)))
    return id


def _require_accepting_run(run_id: str, row: Run | None, now: int) -> Run:
    if row is None:
        raise errors.NotFound(f"No such workflow found by id: {run_id}")
    if row.status != RUNNING:
        raise errors.NotAllowedInState(
            f"Workflow {run_id} is {row.status}; only a RUNNING workflow can receive messages."
        )
    if row.inbox >= MAX_MESSAGES:
        row.inbox = data.delete_expired_messages(run_id, now)
    if row.inbox >= MAX_MESSAGES:
        raise errors.QueueFull(f"The inbox of workflow {run_id} is full ({MAX_MESSAGES} messages). Try again later.")
    return row
