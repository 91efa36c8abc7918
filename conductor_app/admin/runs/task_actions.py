"""What an operator may do to one task that is under way, as one table that its panel and other pages share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.states import ATTEMPT, RUN
from ...core.step_types.wait import Wait
from ...core.step_types.wait_for_webhook import WaitForWebhook
from ...core.step_types.yield_ import Yield
from ...engine import human_tasks, queues
from ...insight.parsed_definitions import step_after
from ...models import Attempt
from ..form_parsing import parse_json_object, parse_number

PERMISSION = "conductor.change_run"
OUTCOME_LABELS = {
    "COMPLETED": gettext_lazy("Completed, with this output"),
    "FAILED": gettext_lazy("Failed: it is tried again while its policy allows"),
}
"""What can be said of a task in a worker's place."""


@dataclass(frozen=True, slots=True)
class TaskAction:
    """One thing that can be asked for. `field`: what has to be said beside the reason; `icon`: of the sprite."""

    name: str
    label: Any
    sentence: Any
    done: Any
    command: Callable[[Attempt, Mapping[str, str], str, str], None]
    is_possible: Callable[[Attempt, int], bool]
    icon: str
    field: str = ""
    is_drastic: bool = False

    @property
    def outcomes(self) -> list[tuple[str, Any]]:
        """What can be chosen where an outcome has to be said."""
        return list(OUTCOME_LABELS.items())


ANSWERABLE_TYPES = (Wait.type, Yield.type, WaitForWebhook.type)


def _is_queued(attempt: Attempt, now: int) -> bool:
    return attempt.status == "PENDING" and attempt.queue != ""


def _is_delayed(attempt: Attempt, now: int) -> bool:
    return _is_queued(attempt, now) and attempt.visible_at > now


def _is_leased(attempt: Attempt, now: int) -> bool:
    return attempt.status == "LEASED" and attempt.queue != ""


def _can_be_answered(attempt: Attempt, now: int) -> bool:
    """People have a page of their own for what waits for them; what only waits for other tasks is not answered."""
    return attempt.status in ATTEMPT.open and (attempt.queue != "" or attempt.task.type in ANSWERABLE_TYPES)


def _prioritize_attempt(attempt: Attempt, form_data: Mapping[str, str], by: str, reason: str) -> None:
    queues.prioritize(attempt.pk, parse_number(form_data.get("priority", ""), _("priority"), digits=3), by, reason)


def _resolve_task(attempt: Attempt, form_data: Mapping[str, str], by: str, reason: str) -> None:
    output = parse_json_object(form_data.get("output", ""), _("output"))
    human_tasks.resolve_task(attempt.run_id, attempt.pk, form_data.get("outcome", ""), by, output, reason)


TASK_ACTIONS: dict[str, TaskAction] = {
    action.name: action
    for action in (
        TaskAction(
            "now",
            gettext_lazy("Retry now"),
            gettext_lazy("It waits for no delay any more: the next worker that polls may get it, in its turn."),
            gettext_lazy("It is handed out in its turn, without waiting for its moment."),
            lambda attempt, form_data, by, reason: queues.hand_out_now(attempt.pk, by, reason),
            _is_delayed,
            "do-retry",
        ),
        TaskAction(
            "front",
            gettext_lazy("Move to the front"),
            gettext_lazy("It is handed out next: before all that waits with it, and at once."),
            gettext_lazy("It is handed out next."),
            lambda attempt, form_data, by, reason: queues.move_to_front(attempt.pk, by, reason),
            _is_queued,
            "next",
        ),
        TaskAction(
            "priority",
            gettext_lazy("Change priority"),
            gettext_lazy("Of what waits in a queue, the highest priority is handed out first."),
            gettext_lazy("It has another priority."),
            _prioritize_attempt,
            _is_queued,
            "filter",
            field="priority",
        ),
        TaskAction(
            "release",
            gettext_lazy("Release from worker"),
            gettext_lazy(
                "It goes back to its queue for another worker, as the same attempt; what its worker still says of it "
                "counts until then."
            ),
            gettext_lazy("It is back in its queue."),
            lambda attempt, form_data, by, reason: queues.take_from_worker(attempt.pk, by, reason),
            _is_leased,
            "do-rerun",
        ),
        TaskAction(
            "conclude",
            gettext_lazy("Answer in its place"),
            gettext_lazy("Say what came of it, as its worker would. A worker that reports later is not heard."),
            gettext_lazy("It is answered."),
            _resolve_task,
            _can_be_answered,
            "person",
            field="outcome",
            is_drastic=True,
        ),
    )
}
"""Written by hand, in the order in which they are offered."""


def task_actions(attempt: Attempt | None, now: int, has_permission: Callable[[str], bool]) -> list[TaskAction]:
    """What this person may do to the task of an attempt that was read with its task and run."""
    if attempt is None or attempt.run.status not in RUN.open or not has_permission(PERMISSION):
        return []
    return [action for action in TASK_ACTIONS.values() if action.is_possible(attempt, now)]


def step_after_task(attempt: Attempt | None) -> str:
    """The step to jump to so that this open task is passed over; empty where none follows it in its sequence."""
    if attempt is None or attempt.status not in ATTEMPT.open or attempt.run.status != "RUNNING":
        return ""
    return step_after(attempt.run.plan_id, attempt.task.ref) if not attempt.task.branch_head else ""
