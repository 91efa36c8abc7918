"""Commands on groups of stand-alone tasks: seal, cancel, another priority for all."""

from collections.abc import Iterable
from contextlib import suppress

from django.db import transaction

from ... import clock
from ...core.errors import Conflict, NotFound
from ...core.solo import commands
from ...core.solo.decide import Command
from ...core.solo.effects import Effect
from ...core.solo.snapshot import Solo as Core
from ...insight.solo import NAMES_OF_PRIORITIES
from ...models import Group, Solo
from ...store import solos
from ...store.writes import Writes
from . import rows
from .change import change
from .notices import of_group


def seal(id: str) -> Group:
    """The group takes no more tasks; the moment of the first time is kept. Raises NotFound."""
    with transaction.atomic():
        now = clock.now()
        Group.objects.filter(pk=id, sealed_at=None).update(sealed_at=now)
        group = rows.find_group(id)
        _tell(group, "task-group-sealed", now)
    return group


def cancel(id: str) -> list[str]:
    """Stop all that is open in a sealed group; the ids of what was stopped. Raises NotFound and Conflict."""
    if rows.find_group(id).sealed_at is None:
        raise Conflict(f"Task group {id} is not sealed: seal it, and then cancel it.")
    now = clock.now()
    is_open = Solo.objects.filter(group_id=id, deadline_at__gte=now, task__status__in=("BLOCKED", "ACTIVE"))
    return _each(is_open.order_by("pk").values_list("pk", flat=True), commands.cancel_quietly)


def prioritize(id: str, priority: int) -> tuple[Group, list[str]]:
    """Give all that was never resolved another priority; the ids of what got it. Raises NotFound."""
    group, now = rows.find_group(id), clock.now()
    unresolved = Solo.objects.filter(group_id=id, ever_resolved=False, deadline_at__gte=now).exclude(priority=priority)
    ids = _each(unresolved.order_by("pk").values_list("pk", flat=True), commands.prioritize(priority))
    facts = {"taskGroupId": group.id, "schedulerId": group.scheduler_id}
    facts |= {"newPriority": NAMES_OF_PRIORITIES[priority], "tasksAffected": len(ids)}
    with transaction.atomic():
        _tell(group, "task-group-priority-changed", clock.now(), **facts)
    return group, ids


def _each(ids: Iterable[str], command: Command) -> list[str]:
    """The same command for each task, in a transaction of its own; those to which it happened."""
    changed, heard = [], list[Effect]()

    def noted(solo: Core, now: int) -> list[Effect]:
        heard[:] = command(solo, now)
        return heard

    for id in list(ids):
        # Meanwhile it may have been resolved, or deleted.
        with suppress(Conflict, NotFound):
            change(id, noted)
            changed += [id] if heard else []
    return changed


def _tell(group: Group, name: str, now: int, **facts: object) -> None:
    writes = Writes()
    solos.tell(writes, [of_group(group, name, now, **facts)])
    writes.send()
