"""What a person starts: as a client would, and noted with the reason."""

from .. import clock
from ..models import AuditEntry
from .runs import StartRequest, start


def start_by_hand(request: StartRequest, by: str, reason: str = "") -> tuple[str, bool]:
    """Start a run; its id, and whether it is new: a repeated idempotency key finds the run that it has started."""
    made: list[str] = []

    def note(run_id: str) -> None:
        AuditEntry.objects.create(
            at=clock.now(), actor=by, action="start", object_type="run", object_id=run_id, reason=reason
        )
        made.append(run_id)

    run_id = start(request, by, also=note)
    return run_id, run_id in made
