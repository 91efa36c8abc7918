"""Is the engine itself well? Each loop with its lag and what that means, the configuration, and advice."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from .. import conf
from ..models import Failure, Message, SweepPass
from ..models.outbox import PUBLISH
from .database import Database
from .health import LEVELS, has_failed, is_late
from .spans import MINUTE, span

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
    is_default: bool
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
    is_default = value == getattr(conf.Defaults, name)
    return Setting(name.upper(), _shown(name, value), is_default, RISKS.get(name, _no_risk)(value))


def _shown(name: str, value: Any) -> str:
    if not value and value != 0:
        return "none"
    if name.rpartition("_")[2] in PRIVATE:
        return "set"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _no_risk(value: Any) -> str:
    return ""


RISKS = {
    "api_access": lambda value: "Whoever reaches the server may do everything." if value == "open" else "",
    "secrets_keys": lambda value: "" if value else "Secrets are sealed with SECRET_KEY: it cannot be changed alone.",
    "retention_days": lambda value: "" if value else "Finished runs are kept for ever; policies may say otherwise.",
    "metrics_tokens": lambda value: "" if value else "Nobody but this page watches the engine.",
}


def advice(found: list[Loop], database: Database, now: int) -> Iterator[Advice]:
    """What should be done, the worst first."""
    if not found:
        yield Advice("failed", "No sweep has ever passed: start the Celery worker and beat, or `make run`.")
    for loop in found:
        if loop.word == "not rung":
            age = span(now - loop.sweep.began_at)
            yield Advice(
                "failed", f"`{loop.sweep.name}` last passed {age} ago: look whether Celery beat and a worker run."
            )
        elif loop.word == "failing":
            yield Advice("failed", f"`{loop.sweep.name}` fails: {loop.sweep.error[:200]}")
        elif loop.word == "behind":
            lag = span(loop.sweep.lag_ms)
            yield Advice("waiting", f"`{loop.sweep.name}` is {lag} late: give Celery more threads or another worker.")
    yield from _of_database(database)
    yield from _of_backlogs(now)
    if settings.DEBUG:
        yield Advice("waiting", "DEBUG is on: errors tell strangers too much, and memory grows.")


def _of_database(database: Database) -> Iterator[Advice]:
    if database.missing:
        yield Advice("failed", f"{len(database.missing)} migrations are not applied: run `manage.py migrate`.")
    if abs(database.skew_ms) > MOST_SKEW_MS:
        yield Advice(
            "waiting", f"The database's clock is {span(abs(database.skew_ms))} off: let both follow one time server."
        )
    if any(statement.waits_for for statement in database.statements):
        yield Advice("waiting", "Statements wait for locks: see below for how long.")


def _of_backlogs(now: int) -> Iterator[Advice]:
    late = Message.objects.filter(due_at__lt=now - MINUTE).exclude(subject=PUBLISH)[:1_000].count()
    if late:
        yield Advice("waiting", f"{late} messages between runs are more than a minute late.")
    uncounted = Failure.objects.filter(group__isnull=True, at__lt=now - MINUTE)[:1_000].count()
    if uncounted:
        yield Advice("waiting", f"{uncounted} failures wait to be grouped.")
