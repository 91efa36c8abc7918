"""The errors of both APIs: their codes from the code, what to do about them from the page."""

from conductor_app.taskcluster.api.base import CODE_BY_ERROR
from conductor_app.web.api.operations import RETRYABLE_STATUSES, STATUS_BY_ERROR

from .tables import code, read_rows, table


def write_conductor_errors(present: str) -> str:
    """Return the statuses of Conductor's API."""
    causes = read_texts(present, 2)
    rows = [
        (str(status), "yes" if status in RETRYABLE_STATUSES else "no", *causes.get(str(status), ("", "")))
        for status in sorted({*STATUS_BY_ERROR.values(), 500})
    ]
    return table(("status", "retryable", "causes", "what to do"), rows)


def write_taskcluster_errors(present: str) -> str:
    """Return the codes of Taskcluster's APIs."""
    causes = read_texts(present, 2)
    codes = {*CODE_BY_ERROR.values(), ("InternalServerError", 500)}
    rows = [
        (code(name), str(status), *causes.get(f"{code(name)} {status}", ("", "")))
        for name, status in sorted(codes, key=lambda each: (each[1], each[0]))
    ]
    return table(("code", "status", "causes", "what to do"), rows)


def read_texts(present: str, count: int) -> dict[str, tuple[str, ...]]:
    """Return the last cells of each row, by the status or by the code with its status."""
    rows = read_rows(present)
    return {f"{row[0]} {row[1]}" if row[0].startswith("`") else row[0]: tuple(row[-count:]) for row in rows}
