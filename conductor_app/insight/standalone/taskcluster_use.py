"""Whether clients of Taskcluster use this server: pages about it are shown only then."""

from ... import clock, process_state
from ...models import TaskGroup
from ..durations import MINUTE


class TaskclusterUse:
    """What this process knows about the use. It is checked at most once a minute, until there is some."""

    def __init__(self) -> None:
        self.checked_at = -MINUTE
        self.is_used = False


_use = process_state.slot(TaskclusterUse)


def is_taskcluster_used() -> bool:
    """Return True if there was a task group within the life of this process."""
    now, use = clock.now(), _use.value
    if not use.is_used and not 0 <= now - use.checked_at < MINUTE:
        use.checked_at, use.is_used = now, TaskGroup.objects.exists()
    return use.is_used
