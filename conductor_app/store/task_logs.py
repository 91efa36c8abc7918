"""Storage of the log lines of attempts."""

from collections.abc import Iterable

from ..models import TaskLog
from .rows import strip_nul


def add_lines(attempt_id: str, lines: Iterable[tuple[str, int]]) -> None:
    """Save lines with their times in epoch milliseconds. The attempt does not have to exist."""
    id = attempt_id[:64]
    TaskLog.objects.bulk_create(TaskLog(attempt_id=id, at=at, line=strip_nul(line)) for line, at in lines)
