"""What each retention policy removes next, the growth of the database, and why a run is missing."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Min, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from ...access.models import AuditEntry
from ...db.size import size_limit_in_bytes
from ...settings import conf
from ...utils.formatting import DAY, format_duration
from ..models import DailyStorage, RetentionPolicy, Run

MAX_COUNTED = 10_000
SAMPLED = 10_000
DISPLAYED_DAYS = 30
WELL, BADLY = "COMPLETED", ("FAILED", "TIMED_OUT", "TERMINATED")


def retention_policies() -> list[RetentionPolicy]:
    """Return every policy, the one for all other definitions last. The setting RETENTION_DAYS is its default."""
    rows = list(RetentionPolicy.objects.order_by("definition"))
    others = [row for row in rows if not row.definition] or [default_days()]
    return [row for row in rows if row.definition] + others


def default_days() -> RetentionPolicy:
    days = conf.retention_days
    return RetentionPolicy(definition="", days=days, failed_days=days, changed_at=0, by="RETENTION_DAYS")


def removable_runs(policy: RetentionPolicy, all_policies: Sequence[RetentionPolicy], now: int) -> QuerySet[Run]:
    """Return the finished runs that the policy removes, the one that ended first at the start."""
    past = [(Q(status=WELL), policy.days), (Q(status__in=BADLY), policy.failed_days)]
    due = [statuses & Q(ended_at__lt=now - days * DAY) for statuses, days in past if days > 0]
    if not due:
        return Run.objects.none()
    least = min(days for _, days in past if days > 0)
    runs = Run.objects.filter(ended_at__lt=now - least * DAY).filter(due[0] if len(due) == 1 else due[0] | due[1])
    if policy.definition:
        runs = runs.filter(name=policy.definition)
    else:
        runs = runs.exclude(name__in=[other.definition for other in all_policies if other.definition])
    if policy.definition and policy.keep_last:
        newest = Run.objects.filter(name=policy.definition).order_by("-created_at", "-id")
        runs = runs.exclude(pk__in=list(newest.values_list("pk", flat=True)[: policy.keep_last]))
    return runs.filter(Q(kept_until__isnull=True) | Q(kept_until__lt=now)).order_by("ended_at", "id")


@dataclass(frozen=True, slots=True)
class NextRemoval:
    """Runs that the next sweep removes by a policy, counted up to MAX_COUNTED."""

    policy: RetentionPolicy
    count: int
    first_ended_at: int | None

    @property
    def is_capped(self) -> bool:
        return self.count >= MAX_COUNTED


def preview_removal(policy: RetentionPolicy, all_policies: Sequence[RetentionPolicy], now: int) -> NextRemoval:
    """Return what the next sweep removes by a policy. Runs one query."""
    some = removable_runs(policy, all_policies, now).values("ended_at")[:MAX_COUNTED]
    found = list(some.values_list("ended_at", flat=True))
    return NextRemoval(policy, len(found), found[0] if found else None)


@dataclass(frozen=True, slots=True)
class DefinitionGrowth:
    """Number and size of a definition's runs among the newest runs, and its runs per day."""

    definition: str
    count: int
    bytes: int
    per_day: float

    @property
    def runs_per_day(self) -> int:
        return round(self.per_day)


def growth_by_definition(now: int) -> list[DefinitionGrowth]:
    """Return the growth by definition, estimated from the newest runs, largest first."""
    newest = Run.objects.order_by("-created_at", "id").values("pk")[:SAMPLED]
    rows = Run.objects.filter(pk__in=newest).order_by().values("name")
    size = Sum("input_size") + Sum("output_size") + Sum("variables_size")
    counted = list(rows.annotate(count=Count("pk"), bytes=size, first=Min("created_at")))
    since = min((row["first"] for row in counted), default=now)
    days = max((now - since) / DAY, 1 / 24)
    found = [DefinitionGrowth(row["name"], row["count"], row["bytes"] or 0, row["count"] / days) for row in counted]
    return sorted(found, key=lambda each: -each.bytes)[:50]


@dataclass(frozen=True, slots=True)
class DatabaseGrowth:
    """Growth of the database: recorded days, newest first, bytes per day, and the size limit."""

    days: list[DailyStorage]
    per_day: float
    size_limit: int | None

    @property
    def size(self) -> int:
        return self.days[0].bytes if self.days else 0

    @property
    def days_left(self) -> int | None:
        """Return the days until the limit, or None if the database does not grow or has no known limit."""
        if self.size_limit is None or self.per_day <= 0 or not self.days:
            return None
        return max(int((self.size_limit - self.size) / self.per_day), 0)


def database_growth() -> DatabaseGrowth:
    """Return the growth from the recorded days."""
    days = list(DailyStorage.objects.order_by("-day_at")[:DISPLAYED_DAYS])
    span = (days[0].day_at - days[-1].day_at) / DAY if days else 0
    return DatabaseGrowth(days, (days[0].bytes - days[-1].bytes) / span if span else 0.0, size_limit_in_bytes())


def explain_missing_run(run_id: str, now: int) -> str:
    """Return why a run is missing, or an empty text if the id does not look like that of a removed run.

    Runs two queries.
    """
    removed = AuditEntry.objects.filter(object_type="run", object_id=run_id, action="remove").order_by("-pk").first()
    if removed is not None:
        facts = {"by": removed.actor, "reason": removed.reason or _("no reason given")}
        sentence = _("Removed by %(by)s: %(reason)s.") % {**facts, "reason": facts["reason"].rstrip(".")}
        if removed.facts.get("archive"):
            command = {"command": f"conductor-app restore_runs {run_id}"}
            sentence += " " + _("It is archived. To restore it: %(command)s.") % command
        return sentence
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
