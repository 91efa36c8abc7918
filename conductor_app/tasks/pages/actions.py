"""Actions on one open task, as a table that its panel and other pages share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.snapshot import NEVER
from ...core.states import ATTEMPT, RUN
from ...core.step_types.waiting import Wait, WaitForWebhook, Yield
from ...definitions.store import step_after
from ...human_tasks import commands as human_tasks
from ...runs.models import Attempt
from ...utils.formatting import LazyText
from ...web.forms import parse_json_object, parse_number
from ..commands import queues as queue_commands

PERMISSION = "conductor.change_run"
OUTCOME_LABELS = {
    "COMPLETED": gettext_lazy("Completed with this output"),
    "FAILED": gettext_lazy("Failed (retried if its policy allows)"),
}
"""Outcomes that an operator can set on the worker's behalf."""


@dataclass(frozen=True, slots=True)
class TaskAction:
    """One action on a task. `field`: the value that it requires besides the reason. `icon`: its icon in the sprite."""

    name: str
    label: str | LazyText
    sentence: str | LazyText
    done: str | LazyText
    command: Callable[[Attempt, Mapping[str, str], str, str], None]
    is_possible: Callable[[Attempt, int], bool]
    icon: str
    field: str = ""
    is_destructive: bool = False

    @property
    def outcomes(self) -> list[tuple[str, Any]]:
        """Return the outcomes to choose from, if the action requires one."""
        return list(OUTCOME_LABELS.items())


ANSWERABLE_TYPES = (Wait.type, Yield.type, WaitForWebhook.type)


def _is_queued(attempt: Attempt, now: int) -> bool:
    return attempt.status == "PENDING" and attempt.queue != ""


def _is_movable(attempt: Attempt, now: int) -> bool:
    """Return True if the task waits in a queue, and neither at a breakpoint nor for a limit of parallel runs."""
    return _is_queued(attempt, now) and attempt.visible_at < NEVER


def _is_delayed(attempt: Attempt, now: int) -> bool:
    return _is_movable(attempt, now) and attempt.visible_at > now


def _is_leased(attempt: Attempt, now: int) -> bool:
    return attempt.status == "LEASED" and attempt.queue != ""


def _can_be_answered(attempt: Attempt, now: int) -> bool:
    """Return True unless the task is a human task, which has its own page, or only waits for other tasks."""
    return attempt.status in ATTEMPT.open and (attempt.queue != "" or attempt.task.type in ANSWERABLE_TYPES)


def _prioritize_attempt(attempt: Attempt, form_data: Mapping[str, str], by: str, reason: str) -> None:
    queue_commands.prioritize(
        attempt.pk, parse_number(form_data.get("priority", ""), _("priority"), digits=3), by, reason
    )


def _resolve_task(attempt: Attempt, form_data: Mapping[str, str], by: str, reason: str) -> None:
    output = parse_json_object(form_data.get("output", ""), _("output"))
    human_tasks.resolve_task(attempt.run_id or "", attempt.pk, form_data.get("outcome", ""), by, output, reason)


TASK_ACTIONS: dict[str, TaskAction] = {
    action.name: action
    for action in (
        TaskAction(
            "now",
            gettext_lazy("Retry now"),
            gettext_lazy("Skips the retry delay. The next polling worker can take the task, in queue order."),
            gettext_lazy("Retry delay skipped."),
            lambda attempt, form_data, by, reason: queue_commands.skip_delay(attempt.pk, by, reason),
            _is_delayed,
            "do-retry",
        ),
        TaskAction(
            "front",
            gettext_lazy("Run next"),
            gettext_lazy("Moves the task to the front of its queue and skips its delay."),
            gettext_lazy("The task runs next."),
            lambda attempt, form_data, by, reason: queue_commands.move_to_front(attempt.pk, by, reason),
            _is_movable,
            "next",
        ),
        TaskAction(
            "priority",
            gettext_lazy("Change priority"),
            gettext_lazy("Workers get tasks with a higher priority first."),
            gettext_lazy("Priority changed."),
            _prioritize_attempt,
            _is_queued,
            "filter",
            field="priority",
        ),
        TaskAction(
            "release",
            gettext_lazy("Release lease"),
            gettext_lazy(
                "Returns the attempt to its queue for another worker. Reports of its worker are accepted until another "
                "worker takes it."
            ),
            gettext_lazy("Returned to its queue."),
            lambda attempt, form_data, by, reason: queue_commands.take_from_worker(attempt.pk, by, reason),
            _is_leased,
            "do-rerun",
        ),
        TaskAction(
            "conclude",
            gettext_lazy("Complete manually"),
            gettext_lazy("Set the result on the worker's behalf. Later reports from the worker are ignored."),
            gettext_lazy("Result saved."),
            _resolve_task,
            _can_be_answered,
            "person",
            field="outcome",
            is_destructive=True,
        ),
    )
}
"""All actions, in the order in which pages offer them."""


def task_actions(attempt: Attempt | None, now: int, has_permission: Callable[[str], bool]) -> list[TaskAction]:
    """Return the actions that the user may do on the task of an attempt. It was loaded with its task and run."""
    if attempt is None or attempt.own_run.status not in RUN.open or not has_permission(PERMISSION):
        return []
    return [action for action in TASK_ACTIONS.values() if action.is_possible(attempt, now)]


def step_after_task(attempt: Attempt | None) -> str:
    """Return the step to jump to in order to skip this open task. Empty if no step follows it in its sequence."""
    if attempt is None or attempt.status not in ATTEMPT.open or attempt.own_run.status != "RUNNING":
        return ""
    return step_after(attempt.own_run.resolved_definition_id, attempt.task.ref) if not attempt.task.branch_head else ""
