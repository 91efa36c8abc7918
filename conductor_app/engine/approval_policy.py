"""Whether the policy wants a second person to approve what somebody asks for (`conf.bulk_approval_…`)."""

from collections.abc import Callable

from .. import conf


def requires_approval(act: str, are_so_many: Callable[[int], bool]) -> bool:
    """For the act itself, or for so many things; whether they are is asked only where it matters."""
    least = conf.bulk_approval_from
    return act in conf.bulk_approval_actions or (least > 0 and are_so_many(least))
