"""A stand-alone task is resolved: what waits for it comes nearer to its turn."""

from ... import clock
from ...core.errors import NotFound
from ...core.standalone.commands import satisfy_dependency
from ...models import Message
from ...store import dependencies
from .change import change_task

PAGE = 50
"""Tasks that are told at once: nobody waits for thousands, the sweep goes on with the rest."""


def handle_dependency_resolved(message: Message) -> None:
    """Tell who waits for it, a page at a time."""
    completed = message.facts["reason"] == "completed"
    page = dependencies.dependents_of(message.to, completed, PAGE)
    for task_id in page:
        try:
            change_task(task_id, satisfy_dependency(message.to), required_id=message.to)
        except NotFound:
            continue
    if len(page) == PAGE:
        Message.objects.filter(pk=message.pk).update(due_at=clock.now())
    else:
        Message.objects.filter(pk=message.pk).delete()
