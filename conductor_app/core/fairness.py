"""Fairness: the key by which the tasks of a queue share its workers, and the weight of the key.

A run has the key of its start request, otherwise that of its definition, otherwise that of the run that started it. A
step may have a key of its own. Claims serve the keys in turns (`tasks/shares.py`). Tasks without one keep their order.
"""

from typing import Any

from .definition import Definition
from .document.fields import LEAST_WEIGHT, MOST_WEIGHT
from .expressions import field_text, resolve_at_start
from .snapshot import NO_SHARE, Run, Share, Task

MAX_KEY_LENGTH = 255
DEFAULT_KEY = "default"
"""The key where a definition or a step gives one, but its expression has no value."""


def build_share(key: Any, weight: Any) -> Share:
    """Return the share of a resolved key and a resolved weight. A weight that is no positive number counts as 1."""
    text = field_text(key).replace("\0", "")[:MAX_KEY_LENGTH]
    return Share(text, _positive_number(weight)) if text else NO_SHARE


def given_share(key: Any, weight: Any, inherited: Share) -> Share:
    """Return the share of the resolved fields of a definition or a step; without a key the inherited or default one."""
    share = build_share(key, weight)
    return share if share.key else inherited if inherited.key else build_share(DEFAULT_KEY, weight)


def _positive_number(weight: Any) -> float:
    try:
        number = 0.0 if isinstance(weight, bool) else float(weight)
    except (TypeError, ValueError, OverflowError):
        return 1.0
    return min(max(number, LEAST_WEIGHT), MOST_WEIGHT) if number > 0 else 1.0


def share_of_start(
    definition: Definition,
    input: Any,
    run_id: str,
    correlation_id: str,
    *,
    requested: Share = NO_SHARE,
    inherited: Share = NO_SHARE,
) -> Share:
    """Return the share of a run that starts.

    `requested`: that of the start request. `inherited`: that of the run which starts it.
    """
    if requested.key:
        return requested
    written = definition.document.get("fairnessKey")
    if not written:
        return inherited
    key, weight = (
        resolve_at_start(value, input, run_id, correlation_id, definition.version)
        for value in (written, definition.document.get("fairnessWeight"))
    )
    return given_share(key, weight, inherited)


def share_of_task(task: Task, run: Run) -> Share:
    """Return the share of a task: that of its step, or else that of its run."""
    own = task.step_state.get("fairness")
    return Share(*own) if own else run.fairness
