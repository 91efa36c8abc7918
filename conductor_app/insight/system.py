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
from .database import Database
from .durations import MINUTE, span
from .health import LEVELS, has_failed, is_late

PRIVATE = ("key", "keys", "token", "tokens", "secret", "secrets", "url", "urls", "connections", "password")
"""Settings with such a last word may hold what opens a door: only that they are set is told."""
MOST_SKEW_MS = 5_000


@dataclass(frozen=True, slots=True)
class Loop:
    """One sweep's last pass: how late it was, and what group of words that belongs to."""

    sweep: SweepPass
    tone: str
    word: str


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of ours: its value, where that comes from, and what is risky about it."""

    name: str
    value: str
    source: str
    risk: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """Something that should be done, and why."""

    tone: str
    sentence: str


def loops(now: int) -> list[Loop]:
    """The sweeps with a word for each."""
    return [Loop(sweep, *_word(sweep, now)) for sweep in SweepPass.objects.order_by("name")]


def _word(sweep: SweepPass, now: int) -> tuple[str, str]:
    if has_failed(sweep):
        return "failed", "failing"
    if is_late(sweep, now):
        return "failed", "not rung"
    return next((tone, "on time" if least == 0 else "behind") for least, tone, _ in LEVELS if sweep.lag_ms >= least)


def configuration() -> list[Setting]:
    """Every setting of ours as it is in force."""
    return [_setting(name) for name in sorted(conf.Defaults.__annotations__)]


def _setting(name: str) -> Setting:
    value = getattr(conf, name)
    return Setting(name.upper(), _shown(name, value), _source(name, value), RISKS.get(name, _no_risk)(value))


def _source(name: str, value: Any) -> str:
    """A variable of the same name, the default, or a settings file."""
    if name.upper() in os.environ:
        return _("the environment")
    is_default = value == getattr(conf.Defaults, name) or (not value and not getattr(conf.Defaults, name))
    return _("default") if is_default else _("settings")


def _shown(name: str, value: Any) -> str:
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


def advice(found: list[Loop], database: Database, now: int) -> Iterator[Advice]:
    """What should be done, the worst first."""
    if not found:
        yield Advice("failed", _("No sweep has ever passed: start the Celery worker and beat, or `make run`."))
    for loop in found:
        if loop.word == "not rung":
            age = span(now - loop.sweep.began_at)
            told = _("`%(loop)s` last passed %(age)s ago: look whether Celery beat and a worker run.")
            yield Advice("failed", told % {"loop": loop.sweep.name, "age": age})
        elif loop.word == "failing":
            told = _("`%(loop)s` fails: %(error)s") % {"loop": loop.sweep.name, "error": loop.sweep.error[:200]}
            yield Advice("failed", told)
        elif loop.word == "behind":
            lag = span(loop.sweep.lag_ms)
            told = _("`%(loop)s` is %(lag)s late: give Celery more threads or another worker.")
            yield Advice("waiting", told % {"loop": loop.sweep.name, "lag": lag})
    yield from _of_database(database)
    yield from _of_backlogs(now)
    if settings.DEBUG:
        yield Advice("waiting", _("DEBUG is on: errors tell strangers too much, and memory grows."))


def _of_database(database: Database) -> Iterator[Advice]:
    if database.missing:
        told = ngettext(
            "%(n)s migration is not applied: run `manage.py migrate`.",
            "%(n)s migrations are not applied: run `manage.py migrate`.",
            len(database.missing),
        )
        yield Advice("failed", told % {"n": len(database.missing)})
    if abs(database.skew_ms) > MOST_SKEW_MS:
        told = _("The database's clock is %(span)s off: let both follow one time server.")
        yield Advice("waiting", told % {"span": span(abs(database.skew_ms))})
    if any(statement.waits_for for statement in database.statements):
        yield Advice("waiting", _("Statements wait for locks: see below for how long."))


def _of_backlogs(now: int) -> Iterator[Advice]:
    late = Message.objects.filter(due_at__lt=now - MINUTE).exclude(subject=PUBLISH)[:1_000].count()
    if late:
        told = ngettext(
            "%(n)s message between runs is more than a minute late.",
            "%(n)s messages between runs are more than a minute late.",
            late,
        )
        yield Advice("waiting", told % {"n": late})
    uncounted = Failure.objects.filter(group__isnull=True, at__lt=now - MINUTE)[:1_000].count()
    if uncounted:
        told = ngettext("%(n)s failure waits to be grouped.", "%(n)s failures wait to be grouped.", uncounted)
        yield Advice("waiting", told % {"n": uncounted})
