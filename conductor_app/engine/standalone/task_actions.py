"""Actions of operators and clients on standalone tasks and groups. Each writes an audit entry."""

from collections.abc import Mapping

from django.db import transaction

from ...core.errors import Invalid
from ...core.snapshot import NEVER
from ...core.standalone import commands
from ...core.standalone.decide import Command
from ...core.standalone.snapshot import StandaloneTask
from ...insight.standalone.task_status import NAMES_OF_PRIORITIES
from ...models import TaskGroup
from .. import audit
from . import task_groups
from .change import change_task

ACTS: Mapping[str, Command] = {
    "schedule": commands.schedule_task,
    "rerun": commands.rerun_task,
    "cancel": commands.cancel_task,
}
PRIORITIZE = "prioritize"
"""The action that needs a priority."""


def parse_command(verb: str, priority: int = 0) -> Command:
    """Return the command of an action.

    Raises:
        Invalid: when the action or the priority is unknown.
    """
    if verb == PRIORITIZE and priority in NAMES_OF_PRIORITIES:
        return commands.prioritize(priority)
    if verb not in ACTS:
        raise Invalid(f"Missing or unknown action {verb[:64]!r}. Use one of: {', '.join((*ACTS, PRIORITIZE))}.")
    return ACTS[verb]


def apply_action(
    verb: str, task_id: str, by: str, reason: str = "", priority: int = 0, asked_at: int = NEVER
) -> StandaloneTask:
    """Apply an action to a task, and return the task after it.

    `asked_at`: the time of the request. The action is skipped if the task was rerun since.

    Raises:
        Invalid: when the action or the priority is unknown.
        NotFound: when there is no such task.
        Conflict: when the state of the task does not allow the action.
    """
    command = commands.unless_rerun_since(asked_at, parse_command(verb, priority))
    with transaction.atomic():
        after = change_task(task_id, command)
        facts = {"priority": NAMES_OF_PRIORITIES[priority]} if priority else {}
        audit.record("task", task_id, verb, by, reason=reason, facts=facts)
    return after


def seal_group(group_id: str, by: str, reason: str = "") -> TaskGroup:
    """Seal a group: it accepts no more tasks.

    Raises:
        NotFound: when there is no such group.
    """
    with transaction.atomic():
        group = task_groups.seal_group(group_id)
        audit.record("task_group", group_id, "seal", by, reason=reason)
    return group
