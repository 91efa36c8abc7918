"""The log of an attempt as its panel shows it: the newest lines first to be seen, older ones a link away."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from django.http import StreamingHttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import get_current_timezone

from ...core.states import ATTEMPT
from ...insight.task_log import LogPosition, LogRequest, LogWindow, iterate_chunks, log_window, logged_at, position_of
from ...models import Attempt, TaskLog
from ..ansi_colors import strip_colors, to_html
from ..badges import exact_time, machine_time
from .page_query import OF_A_LOG, RunPageQuery

LEVEL = re.compile(r"\b(FATAL|CRITICAL|ERROR|WARN|WARNING|DEBUG|TRACE)\b", re.I)
LEVELS = {"FATAL": "error", "CRITICAL": "error", "ERROR": "error", "WARN": "warn", "WARNING": "warn"} | {
    "DEBUG": "debug",
    "TRACE": "debug",
}
LONGEST_LINE = 4_000


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that a worker logged; `level` gives its colour, `address` shows it to a colleague."""

    id: int
    place: str
    at: SafeString
    level: str
    text: SafeString
    is_cut: bool
    address: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class LogView:
    """What the panel shows of it."""

    lines: list[LogLine]
    find: str
    earlier: str
    later: str
    newest: str
    kept: tuple[tuple[str, str], ...]
    follows: bool
    """Whether new lines may come, and are shown as they do."""


def parse_log_request(asked: RunPageQuery) -> LogRequest:
    """Which lines an address asks for: `log=before.<place>`, `log=after.<place>`, `line=<place>`, `find=<words>`."""
    way, _, place = asked["log"].partition(".")
    ways = {"before": None, "after": None} | {way: LogPosition.read(place)}
    find = asked["find"].strip().replace("\0", "")[:200]
    return LogRequest(ways["before"], ways["after"], LogPosition.read(asked["line"]), find)


def log_view(attempt: Attempt, asked: RunPageQuery) -> LogView:
    """The lines that an address asks for; a search keeps what else it says."""
    wanted = parse_log_request(asked)
    found = log_window(attempt.pk, wanted)
    return LogView(
        [_line(line, wanted, asked.address) for line in found.lines],
        wanted.find,
        **_ways(found, asked.address),
        kept=tuple(asked.kept(*OF_A_LOG).items()),
        follows=wanted.is_tail and attempt.status in ATTEMPT.open,
    )


def _ways(found: LogWindow, address: Callable[..., str]) -> dict[str, str]:
    wanted = found.wanted
    return {
        "earlier": address(log=f"before.{found.earlier}", line=None) if found.earlier else "",
        "later": address(log=f"after.{found.later}", line=None) if found.later and not wanted.find else "",
        "newest": "" if wanted.is_tail else address(log=None, line=None, find=None),
    }


def _line(line: TaskLog, wanted: LogRequest, address: Callable[..., str]) -> LogLine:
    place = position_of(line)
    text = line.line[:LONGEST_LINE]
    return LogLine(
        place.id,
        str(place),
        _moment(logged_at(line.at)),
        log_level(text),
        to_html(text, wanted.find),
        len(line.line) > LONGEST_LINE,
        f"{address(line=str(place), log=None, find=None)}#log-{place.id}",
        wanted.line == place,
    )


def _moment(at: int) -> SafeString:
    """The time of day to the millisecond in the reader's zone; the whole moment in the tooltip."""
    local = datetime.fromtimestamp(min(max(at, 0), 253_402_300_799_000) / 1000, UTC).astimezone(get_current_timezone())
    words = f"{local:%H:%M:%S}.{local.microsecond // 1000:03d}"
    return format_html('<time datetime="{}" title="{}">{}</time>', machine_time(at), exact_time(at), words)


def log_level(line: str) -> str:
    """How grave a line is, by the word that its logger has put near its beginning."""
    found = LEVEL.search(strip_colors(line[:200])[:120])
    return LEVELS[found.group(1).upper()] if found else ""


def log_text_response(attempt: Attempt) -> StreamingHttpResponse:
    """The whole log as a file, read in chunks and as it was sent."""
    headers = {
        "Content-Disposition": f'attachment; filename="{attempt.pk}.log"',
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingHttpResponse(_texts(attempt.pk), content_type="text/plain; charset=utf-8", headers=headers)


def _texts(attempt_id: str) -> Iterator[str]:
    for chunk in iterate_chunks(attempt_id):
        yield "".join(f"{machine_time(logged_at(line.at))} {line.line}\n" for line in chunk)
