"""Bulk operations: the commands of operators (`commands`), and their execution by the engine (`executor`)."""

from .bulk_commands import BulkRequest, approve, needs_approval, pause, resume, retry_refused, start, stop, withdraw
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
