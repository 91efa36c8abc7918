"""Start of a run by an operator, with an audit entry."""

from .. import clock
from ..models import AuditEntry
from .runs import StartRequest, start


def start_by_hand(request: StartRequest, by: str, reason: str = "") -> tuple[str, bool]:
    """Start a run. Returns its id, and False if its idempotency key belongs to an existing run."""
    created: list[str] = []

    def note(run_id: str) -> None:
        AuditEntry.objects.create(
            at=clock.now(), actor=by, action="start", object_type="run", object_id=run_id, reason=reason
        )
        created.append(run_id)

    run_id = start(request, by, also=note)
    return run_id, run_id in created
