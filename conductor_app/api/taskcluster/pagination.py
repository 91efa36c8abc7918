"""Pages of a list: `limit` says how many, `continuationToken` where the page before ended (taskcluster §1.3)."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...core.errors import Invalid

MOST = 1000
PAGED = ("continuationToken", "limit")
"""The options of a list."""


class PageOptions(NamedTuple):
    """What a client asks for: so many, behind this place."""

    size: int
    after: tuple[Any, ...]

    def reply(self, name: str, rows: Sequence[Any], place: Callable[[Any], Sequence[Any]], show: Callable) -> dict:
        """The page made of one row more than fit on it, if there are that many."""
        shown = rows[: self.size]
        document = {name: [show(row) for row in shown]}
        return document | ({"continuationToken": _token(place(shown[-1]))} if len(rows) > self.size else {})


def parse_page(options: Mapping[str, str], *places: type) -> PageOptions:
    """The page that is asked for; `places`: of what types a place is. Raises Invalid."""
    given = options.get("limit", "")
    size = min(int(given[:9] or MOST), MOST) or MOST
    token = options.get("continuationToken", "")
    return PageOptions(size, _parse_token(token, places) if token else ())


def _token(place: Sequence[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(list(place)).encode()).decode().rstrip("=")


def _parse_token(token: str, places: tuple[type, ...]) -> tuple[Any, ...]:
    try:
        place = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (ValueError, RecursionError):
        place = None
    is_one = isinstance(place, list) and [type(each) for each in place] == list(places)
    if not is_one or any("\0" in each if isinstance(each, str) else abs(each) >= 2**63 for each in place):
        raise Invalid("The continuationToken is none that this server has given.")
    return tuple(place)
