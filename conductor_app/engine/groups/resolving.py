"""A stand-alone task is resolved: what its own transaction knows is told in it, all else is left to messages."""

from collections.abc import Iterable, Sequence
from functools import partial

from django.db import transaction

from ... import clock
from ...core.standalone.effects import Effect, Resolved
from ...core.standalone.snapshot import StandaloneTask
from ...models import Message
from ...store import dependencies, standalone_tasks, task_groups
from ...store.notices import NewNotice
from ...store.statement_batch import Writes
from .notices import of_group

GROUP_RESOLVED = "task-group-resolved"


def told_of_group(writes: Writes, before: StandaloneTask, effects: Iterable[Effect], now: int) -> list[NewNotice]:
    """That all of the group is resolved, where nothing else of it was left; else somebody has to look later."""
    if not _resolutions(effects):
        return []
    if before.group_goes_on:
        task_groups.leave_message(writes, before.group_id, now)
        return []
    return _told(writes, before.group_id, now)


def _told(writes: Writes, group_id: str, now: int) -> list[NewNotice]:
    task_groups.forget_messages(writes, group_id)
    group = task_groups.find(group_id)
    return [of_group(group, GROUP_RESOLVED, now)] if group is not None else []


def look_at_group(message: Message) -> None:
    """The tasks of a group that ended last did so at once: whether all are resolved is plain by now."""
    with transaction.atomic():
        if Message.objects.filter(pk=message.pk).delete()[0] and task_groups.is_resolved(message.to):
            writes = Writes()
            standalone_tasks.tell(writes, _told(writes, message.to, clock.now()))
            writes.send()


def pass_on(before: StandaloneTask, effects: Iterable[Effect]) -> None:
    """Leave word for those who wait for the task; it is heard after the commit."""
    # Delivering a message is a change of another task, which is decided and written here.
    from ..messages import deliver_soon

    if before.is_awaited and (resolutions := _resolutions(effects)):
        now = clock.now()
        ids = [dependencies.send_resolved(before.id, {"reason": each.reason}, now) for each in resolutions]
        transaction.on_commit(partial(deliver_soon, tuple(ids)))


def _resolutions(effects: Iterable[Effect]) -> Sequence[Resolved]:
    return [effect for effect in effects if isinstance(effect, Resolved)]
