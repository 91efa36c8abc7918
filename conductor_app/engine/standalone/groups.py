"""Commands on groups of stand-alone tasks: seal. What is asked of all their tasks stands in whole.py."""

from django.db import transaction

from ... import clock
from ...models import TaskGroup
from ...store import standalone_tasks
from ...store.statement_batch import StatementBatch
from . import rows
from .pulse_messages import group_message


def seal_group(id: str) -> TaskGroup:
    """The group takes no more tasks; the moment of the first time is kept. Raises NotFound."""
    with transaction.atomic():
        now = clock.now()
        TaskGroup.objects.filter(pk=id, sealed_at=None).update(sealed_at=now)
        group = rows.find_group(id)
        publish_group_message(group, "task-group-sealed", now)
    return group


def publish_group_message(group: TaskGroup, name: str, now: int, **facts: object) -> None:
    """Have who listens told of a group."""
    writes = StatementBatch()
    standalone_tasks.insert_pulse_messages(writes, [group_message(group, name, now, **facts)], repeats=True)
    writes.send()
