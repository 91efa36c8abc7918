"""Tasks alike: those whose names differ by numbers; of very many, those whose names begin alike."""

import re
from collections.abc import Callable, Iterable

from .members import NUMBERS, Member

LONGEST = 80
WORDS_END = re.compile(r"[^\w]+")
OTHERS = "…"
"""What is left over where there are still too many kinds."""


def kind_of(member: Member) -> str:
    """What tasks have in common whose names differ by numbers: `test 3` and `test 17` are `test #`."""
    return NUMBERS.sub("#", member.name)[:LONGEST]


def beginning_of(member: Member) -> str:
    """The first word of its kind."""
    return WORDS_END.split(kind_of(member), maxsplit=1)[0] or kind_of(member)


WAYS: tuple[Callable[[Member], str], ...] = (kind_of, beginning_of)


def is_of(member: Member, kind: str) -> bool:
    """Whether the task is one of a kind that was shown as one."""
    return any(way(member) == kind for way in WAYS)


def kinds(members: Iterable[Member], most: int) -> dict[str, list[Member]]:
    """The members by kind, at most so many kinds."""
    members = list(members)
    for way in WAYS:
        found: dict[str, list[Member]] = {}
        for member in members:
            found.setdefault(way(member), []).append(member)
        if len(found) <= most:
            return found
    ranked = sorted(found.items(), key=lambda each: -len(each[1]))
    rest = [member for _, some in ranked[most - 1 :] for member in some]
    return dict(ranked[: most - 1]) | {OTHERS: rest}
