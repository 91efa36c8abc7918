"""Recent runs of a workflow, whose input can be copied to start another run."""

from dataclasses import dataclass
from typing import Any

from ...models import Run
from .run_keys import annotate_key_inputs

MAX_RECENT = 5
MAX_INPUT_BYTES = 64_000


@dataclass(frozen=True, slots=True)
class RecentStart:
    """A run whose start can be repeated."""

    run: Run
    input: Any

    @property
    def has_input(self) -> bool:
        return self.input is not None


def recent_starts(name: str) -> list[Run]:
    """Return the newest runs of a workflow, without their payloads, and with the inputs that their keys need."""
    runs = annotate_key_inputs(Run.objects.of_definition(name).defer_payloads())
    return list(runs.order_by("-created_at")[:MAX_RECENT])


def start_to_repeat(name: str, run_id: str) -> RecentStart | None:
    """Return a run with its input, or None if there is no such run. An input too large for a form is None."""
    run = Run.objects.of_definition(name).defer_payloads().filter(pk=run_id).first()
    if run is None:
        return None
    is_small = run.input_size <= MAX_INPUT_BYTES and not run.input_path
    return RecentStart(run, Run.objects.values_list("input", flat=True).get(pk=run_id) if is_small else None)
