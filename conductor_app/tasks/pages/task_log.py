"""The log of an attempt in its panel: the newest lines first, older ones behind a link."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from django.http import StreamingHttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import get_current_timezone

from ...core.states import ATTEMPT
from ...runs.models import Attempt, TaskLog
from ...web.badges import exact_time, machine_time
from ...web.documents import strip_colors, to_html
from ...web.links import LOG_PARAMETERS, RunPageQuery
from ..queries.logs import LogPosition, LogRequest, LogWindow, iterate_chunks, log_window, logged_at, position_of

LEVEL_PATTERN = re.compile(r"\b(FATAL|CRITICAL|ERROR|WARN|WARNING|DEBUG|TRACE)\b", re.I)
LEVEL_CLASSES = {"FATAL": "error", "CRITICAL": "error", "ERROR": "error", "WARN": "warn", "WARNING": "warn"} | {
    "DEBUG": "debug",
    "TRACE": "debug",
}
MAX_LINE_LENGTH = 4_000


@dataclass(frozen=True, slots=True)
class LogLine:
    """One log line. `level` determines its color, `address` is its permalink."""

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
    """The log as the panel shows it."""

    lines: list[LogLine]
    find: str
    earlier: str
    later: str
    newest: str
    current_choices: tuple[tuple[str, str], ...]
    follows: bool
    """True if new lines may arrive. The panel then shows them as they arrive."""

    @property
    def is_empty(self) -> bool:
        """Return True if the attempt has no log."""
        return not (self.lines or self.find or self.newest)


def parse_log_request(query: RunPageQuery) -> LogRequest:
    """Return the lines that an address requests.

    Parameters: `log=before.<place>` or `log=after.<place>`, `line=<place>`, `find=<text>`.
    """
    direction, _, place = query["log"].partition(".")
    positions = {"before": None, "after": None} | {direction: LogPosition.parse(place)}
    find = query["find"].strip().replace("\0", "")[:200]
    return LogRequest(positions["before"], positions["after"], LogPosition.parse(query["line"]), find)


def log_view(attempt: Attempt, query: RunPageQuery) -> LogView:
    """Return the requested lines. A search keeps the other parameters of the address."""
    criteria = parse_log_request(query)
    found = log_window(attempt.pk, criteria)
    return LogView(
        [_log_line(line, criteria, query.address) for line in found.lines],
        criteria.find,
        **_page_addresses(found, query.address),
        current_choices=tuple(query.current_choices(*LOG_PARAMETERS).items()),
        follows=criteria.is_tail and attempt.status in ATTEMPT.open,
    )


def _page_addresses(found: LogWindow, address: Callable[..., str]) -> dict[str, str]:
    criteria = found.criteria
    return {
        "earlier": address(log=f"before.{found.earlier}", line=None) if found.earlier else "",
        "later": address(log=f"after.{found.later}", line=None) if found.later and not criteria.find else "",
        "newest": "" if criteria.is_tail else address(log=None, line=None, find=None),
    }


def _log_line(line: TaskLog, criteria: LogRequest, address: Callable[..., str]) -> LogLine:
    place = position_of(line)
    text = line.line[:MAX_LINE_LENGTH]
    return LogLine(
        place.id,
        str(place),
        _render_time(logged_at(line.at)),
        log_level(text),
        to_html(text, criteria.find),
        len(line.line) > MAX_LINE_LENGTH,
        f"{address(line=str(place), log=None, find=None)}#log-{place.id}",
        criteria.line == place,
    )


def _render_time(at: int) -> SafeString:
    """Return the time of day in milliseconds in the user's time zone, with the full time as tooltip."""
    local = datetime.fromtimestamp(min(max(at, 0), 253_402_300_799_000) / 1000, UTC).astimezone(get_current_timezone())
    words = f"{local:%H:%M:%S}.{local.microsecond // 1000:03d}"
    return format_html('<time datetime="{}" title="{}">{}</time>', machine_time(at), exact_time(at), words)


def log_level(line: str) -> str:
    """Return the severity of a line from the level near its start."""
    found = LEVEL_PATTERN.search(strip_colors(line[:200])[:120])
    return LEVEL_CLASSES[found.group(1).upper()] if found else ""


def log_text_response(attempt: Attempt) -> StreamingHttpResponse:
    """Stream the whole log as a text file."""
    headers = {
        "Content-Disposition": f'attachment; filename="{attempt.pk}.log"',
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingHttpResponse(_text_chunks(attempt.pk), content_type="text/plain; charset=utf-8", headers=headers)


def _text_chunks(attempt_id: str) -> Iterator[str]:
    for chunk in iterate_chunks(attempt_id):
        yield "".join(f"{machine_time(logged_at(line.at))} {line.line}\n" for line in chunk)
