"""Permission to read and to use a payload in blob storage: it follows from the runs that use the payload."""

from django.db.models import Q

from .. import clock
from ..core.errors import Forbidden
from ..models import Attempt, PayloadReference, Run, StoredPayload
from .access_types import DOMAIN, EXECUTE, READ, TASK_DEF, WORKFLOW, WORKFLOW_DEF
from .conductor_auth import Actor
from .current_actor import current_actor
from .permissions import filter_readable_runs, is_allowed, task_target
from .quotas import caller_of

WORKER_RIGHTS = ((EXECUTE, TASK_DEF), (EXECUTE, DOMAIN))


def require_payload_read(actor: Actor, path: str) -> None:
    """Check that the actor may download a payload.

    It needs access to a run that uses the payload, or the right to execute an open task with it. Only its uploader
    may read a payload that no run uses.

    Raises:
        Forbidden: when it may not, or there is no such payload.
    """
    if not _may_read_all(actor) and not _may_read(actor, path):
        raise _refusal(actor, path)


def require_payload_use(path: str) -> None:
    """Check that the current actor may start or report with a payload: it has uploaded it, or may read it.

    A missing payload is reported by its reader.

    Raises:
        Forbidden: when it may not.
    """
    actor = current_actor()
    if actor is None or _may_read_all(actor):
        return
    row = StoredPayload.objects.filter(pk=path).values("uploader", "expires_at").first()
    if row is None or row["uploader"] == caller_of(actor):
        return
    # A process of the version before has reserved the path, without its uploader.
    is_of_earlier_version = row["uploader"] is None and (row["expires_at"] or 0) > clock.now() and _is_payload(path)
    if not is_of_earlier_version and not _may_read(actor, path):
        raise _refusal(actor, path)


def _may_read_all(actor: Actor) -> bool:
    return actor.permissions.allows_all((READ, WORKFLOW_DEF), (READ, WORKFLOW))


def _may_read(actor: Actor, path: str) -> bool:
    run_ids = PayloadReference.objects.filter(payload=path).values("run_id")
    if filter_readable_runs(actor, Run.objects.filter(pk__in=run_ids)).exists():
        return True
    attempts = Attempt.objects.open().filter(Q(input_path=path) | Q(output_path=path), run_id__in=run_ids)
    fields = ("queue", "domain", "task__name", "run_id", "run__name")
    tasks = attempts.order_by().values_list(*fields).distinct()
    if any(is_allowed(actor, WORKER_RIGHTS, task_target(*task)) for task in tasks):
        return True
    is_unused = StoredPayload.objects.filter(pk=path, uploader=caller_of(actor), expires_at__isnull=False)
    return is_unused.exists()


def _is_payload(path: str) -> bool:
    return path.startswith(("workflow/", "task/"))


def _refusal(actor: Actor, path: str) -> Forbidden:
    return Forbidden(f"{actor.name} has no access to the payload '{path[:200]}'.", code="FORBIDDEN")
