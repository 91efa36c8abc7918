"""Grouping of similar tasks: by names that differ only in numbers, or by the first word of the names."""

import re
from collections.abc import Callable, Iterable

from .members import NUMBERS, GroupMember

MAX_LENGTH = 80
WORDS_END = re.compile(r"[^\w]+")
OTHERS = "…"
"""Key of the remaining tasks if there are still too many patterns."""


def name_pattern(member: GroupMember) -> str:
    """Return the name with numbers replaced: `test 3` and `test 17` become `test #`."""
    return NUMBERS.sub("#", member.name)[:MAX_LENGTH]


def first_word(member: GroupMember) -> str:
    """Return the first word of the name pattern."""
    return WORDS_END.split(name_pattern(member), maxsplit=1)[0] or name_pattern(member)


PATTERN_FUNCTIONS: tuple[Callable[[GroupMember], str], ...] = (name_pattern, first_word)


def matches_pattern(member: GroupMember, kind: str) -> bool:
    """Return True if the task belongs to a pattern."""
    return any(way(member) == kind for way in PATTERN_FUNCTIONS)


def group_by_pattern(members: Iterable[GroupMember], most: int) -> dict[str, list[GroupMember]]:
    """Group members by pattern, into at most `most` groups."""
    members = list(members)
    for way in PATTERN_FUNCTIONS:
        found: dict[str, list[GroupMember]] = {}
        for member in members:
            found.setdefault(way(member), []).append(member)
        if len(found) <= most:
            return found
    ranked = sorted(found.items(), key=lambda each: -len(each[1]))
    rest = [member for _, some in ranked[most - 1 :] for member in some]
    return dict(ranked[: most - 1]) | {OTHERS: rest}
