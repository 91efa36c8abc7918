"""Is the engine itself well? Each loop with its lag and what that means, the configuration, and advice."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from .. import conf
from ..models import Failure, Message, SweepPass
from ..models.outbox import PUBLISH
from .database import DatabaseStatus
from .durations import MINUTE, format_duration
from .health import LEVELS, has_sweep_failed, is_sweep_late

PRIVATE = ("key", "keys", "token", "tokens", "secret", "secrets", "url", "urls", "connections", "password")
"""Settings with such a last word may hold what opens a door: only that they are set is told."""
MOST_SKEW_MS = 5_000


@dataclass(frozen=True, slots=True)
class SweepStatus:
    """One sweep's last pass: how late it was, and what group of words that belongs to."""

    sweep: SweepPass
    tone: str
    word: str


@dataclass(frozen=True, slots=True)
class SettingView:
    """One setting of ours: its value, where that comes from, and what is risky about it."""

    name: str
    value: str
    source: str
    risk: str = ""


@dataclass(frozen=True, slots=True)
class OperatorAdvice:
    """Something that should be done, and why."""

    tone: str
    sentence: str


def sweep_statuses(now: int) -> list[SweepStatus]:
    """The sweeps with a word for each."""
    return [SweepStatus(sweep, *_sweep_word(sweep, now)) for sweep in SweepPass.objects.order_by("name")]


def _sweep_word(sweep: SweepPass, now: int) -> tuple[str, str]:
    if has_sweep_failed(sweep):
        return "failed", "failing"
    if is_sweep_late(sweep, now):
        return "failed", "not rung"
    return next((tone, "on time" if least == 0 else "behind") for least, tone, _ in LEVELS if sweep.lag_ms >= least)


def configuration() -> list[SettingView]:
    """Every setting of ours as it is in force."""
    return [_setting_view(name) for name in sorted(conf.Defaults.__annotations__)]


def _setting_view(name: str) -> SettingView:
    value = getattr(conf, name)
    return SettingView(
        name.upper(), _displayed_value(name, value), _setting_source(name, value), RISKS.get(name, _no_risk)(value)
    )


def _setting_source(name: str, value: Any) -> str:
    """A variable of the same name, the default, or a settings file."""
    if name.upper() in os.environ:
        return _("the environment")
    is_default = value == getattr(conf.Defaults, name) or (not value and not getattr(conf.Defaults, name))
    return _("default") if is_default else _("settings")


def _displayed_value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if not value and value != 0:
        return _("none")
    if name.rpartition("_")[2] in PRIVATE:
        return _("set")
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _no_risk(value: Any) -> str:
    return ""


RISKS = {
    "api_access": lambda value: _("Whoever reaches the server may do everything.") if value == "open" else "",
    "secrets_keys": lambda value: "" if value else _("Secrets are sealed with SECRET_KEY: it cannot be changed alone."),
    "retention_days": lambda value: "" if value else _("Finished runs are kept for ever; policies may say otherwise."),
    "metrics_tokens": lambda value: "" if value else _("Nobody but this page watches the engine."),
}


def operator_advice(found: list[SweepStatus], database: DatabaseStatus, now: int) -> Iterator[OperatorAdvice]:
    """What should be done, the worst first."""
    if not found:
        yield OperatorAdvice("failed", _("No sweep has ever passed: start the Celery worker and beat, or `make run`."))
    for status in found:
        if status.word == "not rung":
            age = format_duration(now - status.sweep.began_at)
            sentence = _("`%(loop)s` last passed %(age)s ago: look whether Celery beat and a worker run.")
            yield OperatorAdvice("failed", sentence % {"loop": status.sweep.name, "age": age})
        elif status.word == "failing":
            sentence = _("`%(loop)s` fails: %(error)s") % {"loop": status.sweep.name, "error": status.sweep.error[:200]}
            yield OperatorAdvice("failed", sentence)
        elif status.word == "behind":
            lag = format_duration(status.sweep.lag_ms)
            sentence = _("`%(loop)s` is %(lag)s late: give Celery more threads or another worker.")
            yield OperatorAdvice("waiting", sentence % {"loop": status.sweep.name, "lag": lag})
    yield from _database_advice(database)
    yield from _backlog_advice(now)
    if settings.DEBUG:
        yield OperatorAdvice("waiting", _("DEBUG is on: errors tell strangers too much, and memory grows."))


def _database_advice(database: DatabaseStatus) -> Iterator[OperatorAdvice]:
    if database.missing:
        sentence = ngettext(
            "%(n)s migration is not applied: run `manage.py migrate`.",
            "%(n)s migrations are not applied: run `manage.py migrate`.",
            len(database.missing),
        )
        yield OperatorAdvice("failed", sentence % {"n": len(database.missing)})
    if abs(database.skew_ms) > MOST_SKEW_MS:
        sentence = _("The database's clock is %(span)s off: let both follow one time server.")
        yield OperatorAdvice("waiting", sentence % {"span": format_duration(abs(database.skew_ms))})
    if any(statement.waits_for for statement in database.statements):
        yield OperatorAdvice("waiting", _("Statements wait for locks: see below for how long."))


def _backlog_advice(now: int) -> Iterator[OperatorAdvice]:
    late = Message.objects.filter(due_at__lt=now - MINUTE).exclude(subject=PUBLISH)[:1_000].count()
    if late:
        sentence = ngettext(
            "%(n)s message between runs is more than a minute late.",
            "%(n)s messages between runs are more than a minute late.",
            late,
        )
        yield OperatorAdvice("waiting", sentence % {"n": late})
    uncounted = Failure.objects.filter(group__isnull=True, at__lt=now - MINUTE)[:1_000].count()
    if uncounted:
        sentence = ngettext("%(n)s failure waits to be grouped.", "%(n)s failures wait to be grouped.", uncounted)
        yield OperatorAdvice("waiting", sentence % {"n": uncounted})
