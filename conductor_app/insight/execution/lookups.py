"""Finding what is to be shown; what is not there is refused in the words that clients know."""

from ...core.errors import NotFound
from ...models import Attempt, Run, TaskLog


def find_run(run_id: str) -> "Run":
    """The run without its payloads; raises NotFound."""
    run = Run.objects.light().filter(pk=run_id).first()
    if run is None:
        raise NotFound(f"No such workflow found by id: {run_id}")
    return run


def find_attempt(attempt_id: str) -> Attempt:
    """The attempt with its task and its run; raises NotFound."""
    found = Attempt.objects.filter(pk=attempt_id).select_related("task", "run")
    attempt = found.defer("run__input", "run__output", "run__variables").first()
    if attempt is None:
        raise NotFound(f"Task not found for taskId: {attempt_id}")
    return attempt


def logs_of(attempt_id: str) -> list[dict[str, object]]:
    """What the worker logged, oldest first, as Conductor's TaskExecLog (api §3.8)."""
    lines = TaskLog.objects.filter(attempt_id=attempt_id).order_by("at", "id").values_list("line", "at")
    return [{"log": line, "taskId": attempt_id, "createdTime": at} for line, at in lines]
