"""Results of child runs, for the tasks that wait for them."""

from typing import NamedTuple

from .statements import fetch

SQL = (
    "SELECT r.name, r.version, r.status, r.reason, r.output, r.output_path, "
    "EXISTS (SELECT 1 FROM conductor_attempt a WHERE a.id = %s) FROM (SELECT 1) AS one "
    "LEFT JOIN conductor_run r ON r.id = %s"
)


class ChildResult(NamedTuple):
    """The end of a child run. Its output is as stored: the text, or a path in blob storage.

    `is_awaited`: the attempt that waits for it exists. A removed child counts as terminated.
    """

    id: str
    name: str
    version: int
    status: str
    reason: str
    output: str
    output_path: str
    is_awaited: bool


def load_child_result(run_id: str, attempt_id: str) -> ChildResult:
    """Return the result of a child run for an attempt."""
    [(name, *columns, is_awaited)] = fetch(SQL, [attempt_id, run_id])
    if name is None:
        return ChildResult(run_id, "?", 1, "TERMINATED", "The child workflow was removed.", "{}", "", bool(is_awaited))
    version, status, reason, output, output_path = columns
    return ChildResult(run_id, name, version, status, reason, output, output_path, bool(is_awaited))
