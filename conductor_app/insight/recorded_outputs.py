"""What the steps of a workflow gave lately, step by step: to try a change with."""

from typing import Any

from ..models import Attempt
from .definition_context import LARGEST_EXAMPLE, newest_run_ids

MOST = 400


def recorded_outputs(name: str) -> dict[str, Any]:
    """The newest output of each step, from the newest runs."""
    attempts = Attempt.objects.filter(
        run__in=newest_run_ids(name), status="COMPLETED", output_size__lte=LARGEST_EXAMPLE, output_path=""
    ).order_by("run__created_at", "seq")
    return dict(attempts.values_list("task__ref", "output")[:MOST])
