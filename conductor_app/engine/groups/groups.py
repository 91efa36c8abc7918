"""Commands on groups of stand-alone tasks: seal. What is asked of all their tasks stands in whole.py."""

from django.db import transaction

from ... import clock
from ...models import Group
from ...store import solos
from ...store.statement_batch import Writes
from . import rows
from .notices import of_group


def seal(id: str) -> Group:
    """The group takes no more tasks; the moment of the first time is kept. Raises NotFound."""
    with transaction.atomic():
        now = clock.now()
        Group.objects.filter(pk=id, sealed_at=None).update(sealed_at=now)
        group = rows.find_group(id)
        tell(group, "task-group-sealed", now)
    return group


def tell(group: Group, name: str, now: int, **facts: object) -> None:
    """Have who listens told of a group."""
    writes = Writes()
    solos.tell(writes, [of_group(group, name, now, **facts)], repeats=True)
    writes.send()
