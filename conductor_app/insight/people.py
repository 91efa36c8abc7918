"""Tasks that wait for a person, and what an answer is expected to say."""

import re

from django.db.models import QuerySet

from ..models import Attempt, Task
from ..models.fields import dumps
from .plans import plan

OPEN_FOR_PEOPLE = Task.objects.filter(type="HUMAN", status="ACTIVE")


def waiting() -> QuerySet[Attempt]:
    """The open attempts of tasks that wait for a person, those first that have waited longest."""
    payloads = [f"run__{name}" for name in ("input", "output", "variables")]
    found = Attempt.objects.open().filter(pk__in=OPEN_FOR_PEOPLE.values("attempt_id"))
    return found.light().select_related("task", "run").defer("task__memo", *payloads).order_by("scheduled_at", "id")


def expected(plan_id: str, ref: str) -> list[str]:
    """The names in a task's output that later steps read: what whoever answers will want to say."""
    definition = plan(plan_id)
    if definition is None:
        return []
    written = str(dumps(definition.document))
    names = re.findall(rf"\$\{{{re.escape(ref)}\.output\.([A-Za-z_][A-Za-z0-9_]*)", written)
    return list(dict.fromkeys(names))
