"""Tasks alike: those whose names differ by numbers; of very many, those whose names begin alike."""

import re
from collections.abc import Callable, Iterable

from .members import NUMBERS, GroupMember

LONGEST = 80
WORDS_END = re.compile(r"[^\w]+")
OTHERS = "…"
"""What is left over where there are still too many kinds."""


def name_pattern(member: GroupMember) -> str:
    """What tasks have in common whose names differ by numbers: `test 3` and `test 17` are `test #`."""
    return NUMBERS.sub("#", member.name)[:LONGEST]


def first_word(member: GroupMember) -> str:
    """The first word of its kind."""
    return WORDS_END.split(name_pattern(member), maxsplit=1)[0] or name_pattern(member)


PATTERN_FUNCTIONS: tuple[Callable[[GroupMember], str], ...] = (name_pattern, first_word)


def matches_pattern(member: GroupMember, kind: str) -> bool:
    """Whether the task is one of a kind that was shown as one."""
    return any(way(member) == kind for way in PATTERN_FUNCTIONS)


def group_by_pattern(members: Iterable[GroupMember], most: int) -> dict[str, list[GroupMember]]:
    """The members by kind, at most so many kinds."""
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
