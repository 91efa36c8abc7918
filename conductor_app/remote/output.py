"""Output of commands: tables for people, JSON for programs."""

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import click

TABLE, JSON = "table", "json"
MAX_WIDTH = 60
MINUTE, HOUR, DAY = 60, 3_600, 86_400
STATUS_COLORS = {"COMPLETED": "green", "RUNNING": "blue", "PAUSED": "yellow", "FAILED": "red", "TIMED_OUT": "red"}


def print_json(document: Any) -> None:
    """Print a document as indented JSON."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], nothing: str = "Nothing found.") -> None:
    """Print rows below their column names, or the sentence `nothing`.

    The last column is shortened to the width of a terminal, and printed whole into a pipe.
    """
    texts = [[clean_text(cell) for cell in row] for row in rows]
    if not texts:
        click.echo(nothing)
        return
    widths = [max(len(row[place]) for row in [list(columns), *texts]) for place in range(len(columns))]
    left = shutil.get_terminal_size().columns - sum(widths[:-1]) - 2 * (len(columns) - 1)
    last = max(left, 20) if sys.stdout.isatty() else max(widths[-1], 1)
    for number, row in enumerate([list(columns), *texts]):
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        line = "  ".join([*cells, shorten(row[-1], last)]).rstrip()
        click.echo(click.style(line, bold=True) if number == 0 else line)


def clean_text(value: Any) -> str:
    """Return a value on one line, without control characters, which could change the terminal."""
    text = "" if value is None else str(value)
    return "".join(character if character.isprintable() else " " for character in text)


def shorten(text: str, width: int = MAX_WIDTH) -> str:
    """Return a text of at most this many characters."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def color_status(status: str) -> str:
    """Return a status in its color. Without a terminal, click removes the color."""
    return click.style(status, fg=STATUS_COLORS.get(status))


def format_span(milliseconds: float | None) -> str:
    """Return a duration such as 820 ms, 4.2 s, 3 min or 2 h."""
    if milliseconds is None:
        return ""
    seconds = milliseconds / 1000
    if seconds < 1:
        return f"{milliseconds:.0f} ms"
    if seconds < MINUTE:
        return f"{seconds:.1f} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE:.0f} min {seconds % MINUTE:.0f} s"
    return f"{seconds // HOUR:.0f} h {seconds % HOUR // MINUTE:.0f} min" if seconds < DAY else f"{seconds / DAY:.1f} d"


def format_time(moment: Any) -> str:
    """Return a time in the local zone. The API gives milliseconds, or a text in ISO 8601."""
    if not moment:
        return ""
    if isinstance(moment, str):
        try:
            found = datetime.fromisoformat(moment.replace("Z", "+00:00"))
        except ValueError:
            return moment
    else:
        found = datetime.fromtimestamp(moment / 1000, UTC)
    return found.astimezone().strftime("%Y-%m-%d %H:%M:%S")
