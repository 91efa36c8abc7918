"""Publish outbox messages to other systems: at least once, with separate retries per sink."""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from django.core.mail import send_mail
from django.urls import reverse

from ...alerts.notifier import NotificationDropped, TargetFailed, notify_target
from ...core.alerts import AlertNotice
from ...core.step_types.worker_tasks import HttpStep
from ...db.transient_errors import FaultTolerance, discard_broken_connection
from ...runs.models import ALERT, LISTENER, TASK_LISTENER, Message
from ...settings import conf
from ...system_tasks.registry import workers
from ...utils import clock, fault_points
from ..commands.outbox import drop, mark_delivered, mark_failed, postpone, take_due
from ..sinks import publish
from ..sinks.base import SinkFailed

log = logging.getLogger(__name__)

BATCH_SIZE = 20
LISTENER_TIMEOUT_SECONDS = 5
SUBJECT_PAGES = {"alert": "admin:alert", "taskGroupId": "admin:conductor_taskgroup_change"}
"""The pages of the objects of alerts, by the payload key that names the object."""
SUBJECT_HANDLERS = {LISTENER: "workflow_status_listener_url", TASK_LISTENER: "task_status_listener_url"}
"""The settings with the addresses of listeners."""


def publish_due_events(is_stopping: Callable[[], bool] = lambda: False) -> int:
    """Publish all due messages. Returns the number of delivered messages."""
    delivered = 0
    while not is_stopping() and (messages := take_due(BATCH_SIZE)):
        fault_points.reach("outbox-claimed")
        delivered += _publish_all(messages, is_stopping)
    return delivered


def _publish_all(messages: Sequence[Message], is_stopping: Callable[[], bool]) -> int:
    delivered, retry_at = 0, dict[str, int]()
    for place, message in enumerate(messages):
        if is_stopping():
            postpone(messages[place:], clock.now())
            break
        if message.to in retry_at:
            # A failing sink costs its timeout once per batch, not once per message.
            postpone([message], retry_at[message.to])
            continue
        try:
            answer = _publish_one(message)
        except NotificationDropped as dropped:
            drop(message, str(dropped))
        except Exception as error:
            discard_broken_connection()
            why = str(error) if isinstance(error, SinkFailed) else type(error).__name__
            log.warning("message_not_published", extra={"message_id": message.pk, "why": why})
            pause_ms = error.pause_ms if isinstance(error, TargetFailed) else 0
            retry_at[message.to] = mark_failed(message, why, pause_ms)
        else:
            fault_points.reach("event-published")
            # If all repetitions fail, the message is published again when its claim has expired.
            FaultTolerance().repeat(partial(mark_delivered, message, answer))
            delivered += 1
    return delivered


def _publish_one(message: Message) -> str:
    """Publish a message. Returns the answer of the other system if it is worth logging."""
    facts = message.facts
    if facts["sink"] == ALERT:
        return notify_alert(facts)
    if (setting := SUBJECT_HANDLERS.get(facts["sink"])) is None:
        publish(facts["sink"], facts["id"], facts["payload"])
        return ""
    if not (url := getattr(conf, setting)):
        raise SinkFailed(f"{setting.upper()} is no longer set.")
    _post(url, facts)
    return ""


def notify_alert(facts: dict) -> str:
    """Notify a target of an alert, or the recipient of an email, with a link to the object's page."""
    payload = facts["payload"]
    if "target" in facts:
        link = _page_link({"alert": payload["alert"]}) if payload.get("alert") else ""
        return notify_target(facts["target"], AlertNotice(**payload | {"link": link}), facts["id"])
    link = _page_link(payload)
    sentence = payload["sentence"]
    body = payload.get("body") or (f"{sentence}\n\n{link}\n" if link else f"{sentence}\n")
    send_mail(f"Conductor: {sentence}"[:200].replace("\n", " "), body, None, [facts["to"]])
    return ""


def _page_link(payload: dict) -> str:
    """Return the address of the object's page, or "" if `public_url` is not configured."""
    page = next(((view_name, payload[key]) for key, view_name in SUBJECT_PAGES.items() if key in payload), None)
    return f"{conf.public_url}{reverse(page[0], args=[page[1]])}" if page and conf.public_url else ""


def _post(url: str, facts: dict) -> None:
    """Send a POST request like an HTTP task, with the same network guard and limits."""
    wait = LISTENER_TIMEOUT_SECONDS * 1000
    outcome = workers()[HttpStep.type].perform(
        {
            "uri": url,
            "method": "POST",
            "headers": {"X-Conductor-Message-Id": facts["id"]},
            "body": facts["payload"],
            "connectionTimeOut": wait,
            "readTimeOut": wait,
        }
    )
    if outcome.status != "COMPLETED":
        raise SinkFailed(outcome.reason)
