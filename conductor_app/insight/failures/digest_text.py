"""The text of a digest, in the active time zone."""

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ... import conf
from ..durations import format_duration
from .digest import Digest


def digest_subject(digest: Digest) -> str:
    """Return the subject: the three numbers."""
    parts = [
        ngettext("%(n)s failed run", "%(n)s failed runs", digest.failed_count) % {"n": _count(digest)},
        ngettext("%(n)s new failure group", "%(n)s new failure groups", digest.group_count) % {"n": digest.group_count},
        ngettext("%(n)s overdue human task", "%(n)s overdue human tasks", digest.overdue_count)
        % {"n": digest.overdue_count},
    ]
    return ", ".join(parts)


def digest_body(digest: Digest, is_weekly: bool, now: int) -> str:
    """Return the body of the email, with links if the server's public address is configured."""
    period = _("In the last seven days:") if is_weekly else _("In the last 24 hours:")
    sections = [f"{period} {digest_subject(digest)}."]
    sections += _section(_("Failed runs by workflow"), [f"{count:>6}  {name}" for name, count in digest.failed], "")
    groups = [f"{group.count:>6}  {group.place}: {group.message}" for group in digest.groups]
    sections += _section(_("New failure groups"), groups, _address("failures"))
    sections += _section(_("Overdue human tasks"), _overdue_lines(digest, now), _address("human_tasks"))
    sections.append(_unsubscribe_text())
    return "\n\n".join(sections) + "\n"


def _count(digest: Digest) -> str:
    return f"{digest.failed_count:,}+" if digest.is_capped else f"{digest.failed_count:,}"


def _section(title: str, lines: list[str], address: str) -> list[str]:
    if not lines:
        return []
    return ["\n".join([title, *lines, *([address] if address else [])])]


def _overdue_lines(digest: Digest, now: int) -> list[str]:
    lines = []
    for each in digest.overdue:
        span = format_duration(now - (each.assignment.due_at or now))
        late = _("overdue for %(span)s") % {"span": span}
        lines.append(f"  {each.title} ({each.attempt.run.name if each.attempt.run else ''}): {late}")
    return lines


def _unsubscribe_text() -> str:
    address = _address("preferences")
    text = _("To change or stop this email, open your preferences.")
    return f"{text} {address}".strip()


def _address(page: str) -> str:
    return f"{conf.public_url}{reverse(f'admin:{page}')}" if conf.public_url else ""
