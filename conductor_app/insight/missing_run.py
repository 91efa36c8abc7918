"""Why a run that somebody asks for is not here: who removed it, or what retention does with runs of its age."""

from django.utils.translation import gettext as _

from ..models import AuditEntry
from .durations import DAY, format_duration
from .retention import retention_policies


def explain_missing_run(run_id: str, now: int) -> str:
    """A sentence about a run that was here; nothing where no run can have had this id. Two queries."""
    removed = AuditEntry.objects.filter(object_type="run", object_id=run_id, action="remove").order_by("-pk").first()
    if removed is not None:
        named = {"by": removed.actor, "reason": removed.reason or _("without a reason")}
        return _("%(by)s removed it: %(reason)s.") % named
    began = time_of_id(run_id)
    if began is None or began > now:
        return ""
    others = retention_policies()[-1]
    days = [each for each in (others.days, others.failed_days) if each > 0]
    if not days or began > now - min(days) * DAY:
        return ""
    said = _("By its id it began %(age)s ago; finished runs are removed after %(kept)s.")
    return said % {"age": format_duration(now - began), "kept": format_duration(min(days) * DAY)}


def time_of_id(run_id: str) -> int | None:
    """The moment that a run's id tells: ids are ordered by time."""
    digits = run_id.replace("-", "")
    is_ours = len(digits) == 32 and digits.isascii() and digits[12] == "7" and not set(digits) - set("0123456789abcdef")
    return int(digits[:12], 16) if is_ours else None
