"""A stand-alone task is resolved: what waits for it comes nearer to its turn, and its group may be done."""

from django.db import transaction

from ... import clock
from ...core.errors import NotFound
from ...core.solo.commands import dependency_done
from ...models import Group, Message
from ...store import dependencies, solos
from ...store.writes import Writes
from .change import change
from .notices import of_group

PAGE = 50
"""Tasks that are told at once: nobody waits for thousands, the sweep goes on with the rest."""


def resolved(message: Message) -> None:
    """Tell who waits for it, a page at a time; then look whether the whole group is resolved."""
    completed = message.facts["reason"] == "completed"
    page = dependencies.waiting(message.to, completed, PAGE)
    for task_id in page:
        try:
            change(task_id, dependency_done(message.to), required_id=message.to)
        except NotFound:
            continue
    if len(page) == PAGE:
        Message.objects.filter(pk=message.pk).update(due_at=clock.now())
        return
    with transaction.atomic():
        if Message.objects.filter(pk=message.pk).delete()[0]:
            _look_at_group(message.facts["group"])


def _look_at_group(group_id: str) -> None:
    if dependencies.is_group_resolved(group_id) and (group := Group.objects.filter(pk=group_id).first()) is not None:
        writes = Writes()
        solos.tell(writes, [of_group(group, "task-group-resolved", clock.now())])
        writes.send()
