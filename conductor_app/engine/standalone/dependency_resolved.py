"""Handler of the message that a standalone task is resolved: it updates the tasks that depend on it."""

from ... import clock
from ...core.errors import NotFound
from ...core.standalone.commands import satisfy_dependency
from ...models import Message
from ...store import dependencies, outbox_messages
from .change import change_task

PAGE = 50
"""Dependent tasks that one delivery updates. The sweep continues with the others, so that no caller waits for all."""


def handle_dependency_resolved(message: Message) -> None:
    """Satisfy the dependency in one page of the tasks that wait for it."""
    completed = message.facts["reason"] == "completed"
    page = dependencies.dependents_of(message.to, completed, PAGE)
    for task_id in page:
        try:
            change_task(task_id, satisfy_dependency(message.to), required_id=message.to)
        except NotFound:
            continue
    if len(page) == PAGE:
        outbox_messages.update_messages([message.pk], due_at=clock.now(), tries=0)
    else:
        outbox_messages.consume(message.pk)
