"""What operators may do to a stand-alone task; each act leaves a line in the audit."""

from collections.abc import Mapping

from django.db import transaction

from ... import clock
from ...core.errors import Invalid
from ...core.solo import commands
from ...core.solo.decide import Command
from ...models import AuditEntry
from .change import change

ACTS: Mapping[str, Command] = {"schedule": commands.schedule, "rerun": commands.rerun, "cancel": commands.cancel}


def act(verb: str, task_id: str, by: str, reason: str = "") -> None:
    """Do this to a task. Raises NotFound, Conflict and Invalid."""
    if verb not in ACTS:
        raise Invalid("It is not said what is to be done.")
    with transaction.atomic():
        change(task_id, ACTS[verb])
        AuditEntry.objects.create(
            at=clock.now(), actor=by, action=verb, object_type="task", object_id=task_id, reason=reason
        )
