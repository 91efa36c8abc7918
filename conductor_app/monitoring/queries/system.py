"""State of the server for the system page (sweeps, configuration, recommendations), and runs that take too long."""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from django.conf import settings
from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ...access.visibility import visible
from ...core.states import COMPLETED
from ...db.size import DatabaseStatus
from ...definitions.durations import ENOUGH, TypicalDuration
from ...definitions.models import DurationBaseline
from ...failures.models import Failure
from ...runs.models import PUBLISH, Message, Run
from ...runs.queries.messages import count_undelivered
from ...runs.timeline.queries import slow_runs, working_ms
from ...settings import conf
from ...settings import table as conf_table
from ...tasks.models import SweepPass
from ...utils.formatting import HOUR, MINUTE, format_duration
from ..models import ServerClock
from .health import LEVELS, has_sweep_failed, is_sweep_late

PRIVATE = ("key", "keys", "token", "tokens", "secret", "secrets", "url", "urls", "connections", "password")
"""Settings whose name ends in one of these words may contain credentials: their values are not shown."""
MAX_HOSTS = 200


@dataclass(frozen=True, slots=True)
class SweepStatus:
    """Last pass of one sweep, with the tone and the key of its label."""

    sweep: SweepPass
    tone: str
    word: str


@dataclass(frozen=True, slots=True)
class SettingView:
    """One setting of this application: its value, its source and its risk."""

    name: str
    value: str
    source: str
    risk: str = ""


@dataclass(frozen=True, slots=True)
class OperatorAdvice:
    """A recommendation for the operator. `tone`: its severity."""

    tone: str
    sentence: str


def sweep_statuses(now: int) -> list[SweepStatus]:
    """Return the status of every sweep."""
    return [SweepStatus(sweep, *_sweep_word(sweep, now)) for sweep in SweepPass.objects.order_by("name")]


def _sweep_word(sweep: SweepPass, now: int) -> tuple[str, str]:
    if has_sweep_failed(sweep):
        return "failed", "failing"
    if is_sweep_late(sweep, now):
        return "failed", "late"
    return next((tone, "on time" if least == 0 else "behind") for least, tone, _ in LEVELS if sweep.lag_ms >= least)


def configuration() -> list[SettingView]:
    """Return every setting of this application with its current value."""
    return [_setting_view(name) for name in sorted(conf_table.DEFAULTS)]


def _setting_view(name: str) -> SettingView:
    value = getattr(conf, name)
    return SettingView(
        name.upper(), _displayed_value(name, value), _setting_source(name, value), RISKS.get(name, _no_risk)(value)
    )


def _setting_source(name: str, value: object) -> str:
    """Return the source of a value: environment variable, default or settings file."""
    if name.upper() in os.environ:
        return _("environment")
    is_default = value == conf_table.DEFAULTS[name] or (not value and not conf_table.DEFAULTS[name])
    return _("default") if is_default else _("settings")


def _displayed_value(name: str, value: object) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if not value and value != 0:
        return _("none")
    if name.rpartition("_")[2] in PRIVATE:
        return _("set")
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _no_risk(value: object) -> str:
    return ""


RISKS = {
    "api_access": lambda value: _("API is open: no authentication.") if value == "open" else "",
    "secrets_keys": lambda value: (
        "" if value else _("Secrets are encrypted with SECRET_KEY: changing it alone makes them unreadable.")
    ),
    "retention_days": lambda value: "" if value else _("Finished runs are kept forever, unless a policy removes them."),
    "metrics_tokens": lambda value: "" if value else _("No metrics token set: external monitoring is off."),
}


def operator_advice(found: list[SweepStatus], database: DatabaseStatus, now: int) -> Iterator[OperatorAdvice]:
    """Yield recommendations for the operator: sweeps first, then database, backlog and settings."""
    if not found:
        yield OperatorAdvice(
            "failed", _("No background job has run yet. Start a Celery worker and Celery beat, or use `make run`.")
        )
    for status in found:
        if status.word == "late":
            age = format_duration(now - status.sweep.began_at)
            sentence = _("`%(loop)s` last ran %(age)s ago. Check that Celery beat and a worker are running.")
            yield OperatorAdvice("failed", sentence % {"loop": status.sweep.name, "age": age})
        elif status.word == "failing":
            sentence = _("`%(loop)s` is failing: %(error)s") % {
                "loop": status.sweep.name,
                "error": status.sweep.error[:200],
            }
            yield OperatorAdvice("failed", sentence)
        elif status.word == "behind":
            lag = format_duration(status.sweep.lag_ms)
            sentence = _("`%(loop)s` is %(lag)s behind. Give Celery more threads, or start another worker.")
            yield OperatorAdvice("waiting", sentence % {"loop": status.sweep.name, "lag": lag})
    yield from _database_advice(database)
    yield from _backlog_advice(now)
    if settings.DEBUG:
        yield OperatorAdvice("waiting", _("DEBUG is on: error pages expose internals, and memory use grows."))


def _database_advice(database: DatabaseStatus) -> Iterator[OperatorAdvice]:
    if database.missing:
        sentence = ngettext(
            "%(n)s migration is not applied: run `manage.py migrate`.",
            "%(n)s migrations are not applied: run `manage.py migrate`.",
            len(database.missing),
        )
        yield OperatorAdvice("failed", sentence % {"n": len(database.missing)})
    yield from _clock_advice()
    if any(statement.waits_for for statement in database.statements):
        yield OperatorAdvice("waiting", _("Database statements are waiting for locks. They are listed below."))


def _clock_advice() -> Iterator[OperatorAdvice]:
    tolerance = conf.max_clock_skew_ms
    skewed = ServerClock.objects.filter(Q(ahead_ms__gt=tolerance) | Q(ahead_ms__lt=-tolerance)) if tolerance else ()
    for row in skewed:
        sentence = (
            _("The clock of %(host)s is %(span)s ahead of the database's. Synchronize both (NTP).")
            if row.ahead_ms > 0
            else _("The clock of %(host)s is %(span)s behind the database's. Synchronize both (NTP).")
        )
        facts = {"host": row.host, "span": format_duration(abs(row.ahead_ms))}
        yield OperatorAdvice("waiting", sentence % facts)


def server_clocks() -> list[ServerClock]:
    """Return the clocks of all hosts as last measured."""
    return list(ServerClock.objects.order_by("host")[:MAX_HOSTS])


def _backlog_advice(now: int) -> Iterator[OperatorAdvice]:
    if undelivered := count_undelivered():
        sentence = ngettext(
            "%(n)s message could not be delivered and is not tried again. See Undelivered messages.",
            "%(n)s messages could not be delivered and are not tried again. See Undelivered messages.",
            undelivered,
        )
        yield OperatorAdvice("failed", sentence % {"n": undelivered})
    late = Message.objects.filter(due_at__lt=now - MINUTE).exclude(subject=PUBLISH)[:1_000].count()
    if late:
        sentence = ngettext(
            "%(n)s message between runs is overdue by more than a minute.",
            "%(n)s messages between runs are overdue by more than a minute.",
            late,
        )
        yield OperatorAdvice("waiting", sentence % {"n": late})
    uncounted = Failure.objects.filter(group__isnull=True, at__lt=now - MINUTE)[:1_000].count()
    if uncounted:
        sentence = ngettext("%(n)s failure is not grouped yet.", "%(n)s failures are not grouped yet.", uncounted)
        yield OperatorAdvice("waiting", sentence % {"n": uncounted})


MAX_DEFINITIONS, MAX_CANDIDATES, MAX_RUNS = 40, 100, 8


def overdue_runs(now: int) -> list[tuple[Run, TypicalDuration]]:
    """Return open runs that take much longer than typical, oldest first. Runs up to four queries."""
    rows = DurationBaseline.objects.filter(ref="", count__gte=ENOUGH).order_by("-measured_at")[:MAX_DEFINITIONS]
    usual = {(row.name, row.version): TypicalDuration(row.count, row.p50_ms, row.p95_ms) for row in rows}
    if not usual:
        return []
    overdue = Q()
    for (name, version), each in usual.items():
        overdue |= Q(name=name, version=version, created_at__lt=now - max(2 * each.p95, each.p95 + 60_000))
    found = (
        visible(Run.objects.defer_payloads())
        .defer("domains")
        .filter(overdue, status="RUNNING")
        .order_by("created_at")[:MAX_CANDIDATES]
    )
    slow = slow_runs(found, usual, now)
    return [(run, usual[run.name, run.version]) for run in found if run.pk in slow][:MAX_RUNS]


MAX_RECENT_RUNS, MAX_SLOW, SLOW_FACTOR = 2_000, 6, 1.5
MEASURED_FIELDS = ("name", "version", "status", "created_at", "ended_at", "idle_ms", "revision")


@dataclass(frozen=True, slots=True)
class SlowDefinition:
    """One definition: median duration of its recent runs (`took`, in milliseconds), and its baseline."""

    name: str
    version: int
    runs: int
    took: int
    usual: TypicalDuration

    @property
    def factor(self) -> float:
        return self.took / max(self.usual.p50, 1)

    @property
    def is_slow(self) -> bool:
        return self.usual.is_slow(self.took)


def slowest_definitions(now: int) -> list[SlowDefinition]:
    """Return the definitions whose completed runs of the last hour took more than SLOW_FACTOR times their baseline.

    Failed runs do not count: their duration says nothing about the work. Nor do waits for people, which are read for
    the runs of definitions that seem slow. Runs two to four queries.
    """
    # The query does not filter by status: SQLite would read every completed run and sort all of them by their end.
    newest = visible(Run.objects.filter(ended_at__gt=now - HOUR)).order_by("-ended_at").only(*MEASURED_FIELDS)
    runs: dict[tuple[str, int], list[Run]] = defaultdict(list)
    for run in newest[:MAX_RECENT_RUNS]:
        if run.status == COMPLETED:
            runs[run.name, run.version].append(run)
    rows = DurationBaseline.objects.filter(ref="", count__gte=ENOUGH, name__in={name for name, _ in runs})
    usual = {
        key: TypicalDuration(row.count, row.p50_ms, row.p95_ms)
        for row in rows
        if (key := (row.name, row.version)) in runs
    }
    took = {run.pk: run.duration_ms(now) for key in usual for run in runs[key]}
    seem_slow = [run for each in _find_slow(runs, usual, took) for run in runs[each.name, each.version]]
    found = _find_slow(runs, usual, took | working_ms(seem_slow, now))
    return sorted(found, key=lambda each: -each.factor)[:MAX_SLOW]


def _find_slow(
    runs: Mapping[tuple[str, int], list[Run]],
    usual: Mapping[tuple[str, int], TypicalDuration],
    took: Mapping[str, int],
) -> list[SlowDefinition]:
    found = [
        SlowDefinition(*key, len(runs[key]), round(median(took[run.pk] for run in runs[key])), typical)
        for key, typical in usual.items()
    ]
    return [each for each in found if each.factor > SLOW_FACTOR]
