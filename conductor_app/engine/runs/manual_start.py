"""Start of a run by an operator, with an audit entry."""

from .. import audit
from .run_commands import StartRequest, start


def start_by_hand(request: StartRequest, by: str, reason: str = "") -> tuple[str, bool]:
    """Start a run. Returns its id, and False if its idempotency key belongs to an existing run."""
    created: list[str] = []

    def note(run_id: str) -> None:
        audit.record("run", run_id, "start", by, reason=reason)
        created.append(run_id)

    run_id = start(request, by, within_transaction=note)
    return run_id, run_id in created
