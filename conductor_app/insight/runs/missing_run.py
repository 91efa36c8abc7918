"""Explanation for a missing run: an operator removed it, or retention removes runs of its age."""

from django.utils.translation import gettext as _

from ...models import AuditEntry
from ..durations import DAY, format_duration
from .retention import retention_policies


def explain_missing_run(run_id: str, now: int) -> str:
    """Return why a run is missing, or an empty text if the id does not look like that of a removed run.

    Runs two queries.
    """
    removed = AuditEntry.objects.filter(object_type="run", object_id=run_id, action="remove").order_by("-pk").first()
    if removed is not None:
        facts = {"by": removed.actor, "reason": removed.reason or _("no reason given")}
        return _("Removed by %(by)s: %(reason)s.") % facts
    began = time_of_id(run_id)
    if began is None or began > now:
        return ""
    others = retention_policies()[-1]
    days = [each for each in (others.days, others.failed_days) if each > 0]
    if not days or began > now - min(days) * DAY:
        return ""
    sentence = _("By its id, the run started %(age)s ago. Finished runs are removed after %(kept)s.")
    return sentence % {"age": format_duration(now - began), "kept": format_duration(min(days) * DAY)}


def time_of_id(run_id: str) -> int | None:
    """Return the creation time encoded in a run id, or None if the id is not a UUID of version 7."""
    digits = run_id.replace("-", "")
    is_ours = len(digits) == 32 and digits.isascii() and digits[12] == "7" and not set(digits) - set("0123456789abcdef")
    return int(digits[:12], 16) if is_ours else None
