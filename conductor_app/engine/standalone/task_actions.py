"""What operators and clients may do to a stand-alone task, or to a group; each act leaves a line in the audit."""

from collections.abc import Mapping

from django.db import transaction

from ... import clock
from ...core.errors import Invalid
from ...core.snapshot import NEVER
from ...core.standalone import commands
from ...core.standalone.decide import Command
from ...core.standalone.snapshot import StandaloneTask
from ...insight.standalone import NAMES_OF_PRIORITIES
from ...models import AuditEntry, TaskGroup
from . import groups
from .change import change_task

ACTS: Mapping[str, Command] = {
    "schedule": commands.schedule_task,
    "rerun": commands.rerun_task,
    "cancel": commands.cancel_task,
}
PRIORITIZE = "prioritize"
"""The act that asks which priority."""


def parse_command(verb: str, priority: int = 0) -> Command:
    """What is asked of each task. Raises Invalid."""
    if verb == PRIORITIZE and priority in NAMES_OF_PRIORITIES:
        return commands.prioritize(priority)
    if verb not in ACTS:
        raise Invalid("It is not said what is to be done.")
    return ACTS[verb]


def apply_action(
    verb: str, task_id: str, by: str, reason: str = "", priority: int = 0, asked_at: int = NEVER
) -> StandaloneTask:
    """Do this to a task; the task after it. Raises NotFound, Conflict and Invalid.

    `asked_at`: when it was asked. What was rerun since then was not meant.
    """
    command = commands.unless_rerun_since(asked_at, parse_command(verb, priority))
    with transaction.atomic():
        after = change_task(task_id, command)
        record_action(
            "task", task_id, verb, by, reason, {"priority": NAMES_OF_PRIORITIES[priority]} if priority else {}
        )
    return after


def seal_group(group_id: str, by: str, reason: str = "") -> TaskGroup:
    """The group takes no more tasks. Raises NotFound."""
    with transaction.atomic():
        group = groups.seal_group(group_id)
        record_action("task_group", group_id, "seal", by, reason, {})
    return group


def record_action(kind: str, id: str, verb: str, by: str, reason: str, facts: Mapping[str, object]) -> None:
    """Who did it, and why."""
    AuditEntry.objects.create(
        at=clock.now(), actor=by, action=verb, object_type=kind, object_id=id, reason=reason, facts=dict(facts)
    )
