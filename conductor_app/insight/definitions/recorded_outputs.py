"""Recent outputs of the steps of a workflow, as mock results of a simulation."""

from typing import Any

from ...models import Attempt
from .definition_context import MAX_EXAMPLE_SIZE, newest_run_ids

LIMIT = 400


def recorded_outputs(name: str) -> dict[str, Any]:
    """Return the newest output of each step, from the newest runs."""
    attempts = Attempt.objects.filter(
        run__in=newest_run_ids(name), status="COMPLETED", output_size__lte=MAX_EXAMPLE_SIZE, output_path=""
    ).order_by("run__created_at", "seq")
    return dict(attempts.values_list("task__ref", "output")[:LIMIT])
