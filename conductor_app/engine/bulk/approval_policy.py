"""Rule that decides when an action needs the approval of a second person (`conf.bulk_approval_…`)."""

from collections.abc import Callable

from ... import conf


def requires_approval(act: str, has_at_least: Callable[[int], bool]) -> bool:
    """Return True if the action, or the number of its targets, requires approval.

    `has_at_least`: returns True if the action has at least this number of targets. It is called only if the number
    decides.
    """
    least = conf.bulk_approval_from
    return act in conf.bulk_approval_actions or (least > 0 and has_at_least(least))
