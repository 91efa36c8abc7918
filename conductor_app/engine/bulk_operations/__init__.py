"""Operations on many runs: what people say of them (`commands`), and how the engine works them off (`work`)."""

from .commands import Asked, approve, needs_approval, pause, resume, retry_refused, start, stop, withdraw
from .work import work_off, work_off_until

__all__ = [
    "Asked",
    "approve",
    "needs_approval",
    "pause",
    "resume",
    "retry_refused",
    "start",
    "stop",
    "withdraw",
    "work_off",
    "work_off_until",
]
