"""Whether clients of Taskcluster use this server: pages about it are shown only then."""

from ... import clock
from ...models import TaskGroup
from ..durations import MINUTE

_checked_at = -MINUTE
_is_used = False


def is_taskcluster_used() -> bool:
    """Return True if there was a task group within the life of this process, checked at most once a minute."""
    global _checked_at, _is_used
    now = clock.now()
    if not _is_used and not 0 <= now - _checked_at < MINUTE:
        _checked_at, _is_used = now, TaskGroup.objects.exists()
    return _is_used


def forget_taskcluster_use() -> None:
    """Check again at the next call, for tests."""
    global _checked_at, _is_used
    _checked_at, _is_used = -MINUTE, False
