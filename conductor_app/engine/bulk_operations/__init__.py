"""Operations on many runs: what people say of them (`commands`), and how the engine works them off (`work`)."""

from .commands import BulkRequest, approve, needs_approval, pause, resume, retry_refused, start, stop, withdraw
from .executor import run_due_operations, run_operations_until

__all__ = [
    "BulkRequest",
    "approve",
    "needs_approval",
    "pause",
    "resume",
    "retry_refused",
    "run_due_operations",
    "run_operations_until",
    "start",
    "stop",
    "withdraw",
]
