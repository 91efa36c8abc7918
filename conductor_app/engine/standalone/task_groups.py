"""Commands on task groups. `group_commands` has those on all tasks of a group."""

from django.db import transaction

from ... import clock
from ...models import TaskGroup
from ...store import standalone_tasks
from ...store.statement_batch import StatementBatch
from . import standalone_rows
from .pulse_messages import group_message


def seal_group(id: str) -> TaskGroup:
    """Seal a group: it accepts no more tasks. A repeated seal keeps the first time.

    Raises:
        NotFound: when there is no such group.
    """
    with transaction.atomic():
        now = clock.now()
        TaskGroup.objects.filter(pk=id, sealed_at=None).update(sealed_at=now)
        group = standalone_rows.find_group(id)
        publish_group_message(group, "task-group-sealed", now)
    return group


def publish_group_message(group: TaskGroup, name: str, now: int, **facts: object) -> None:
    """Save a Pulse message about a group."""
    writes = StatementBatch()
    standalone_tasks.insert_pulse_messages(writes, [group_message(group, name, now, **facts)], repeats=True)
    writes.send()
