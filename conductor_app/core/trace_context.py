"""Trace contexts of runs: W3C's `traceparent`, and ids of spans that follow from the ids of rows.

A run stores the context in which it was started. The spans of the run, its tasks and attempts are exported after its
end, but their ids are known before: workers and other systems get the span of their attempt as parent.
"""

import re
from hashlib import blake2b

PATTERN = re.compile(r"(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
HEADER = "traceparent"
MAX_LENGTH = 512
SAMPLED = 1


def parse_traceparent(value: object) -> str | None:
    """Return a `traceparent` of version 00, or None if the value is not valid."""
    found = PATTERN.fullmatch(value.strip()) if isinstance(value, str) and len(value) <= MAX_LENGTH else None
    return "00-{}-{}-{}".format(*found.groups()) if found else None


def span_id_of(id: str) -> str:
    """Return the id of the span of a run or an attempt."""
    return blake2b(id.encode(), digest_size=8).hexdigest()


def first_traceparent(run_id: str) -> str:
    """Return the context of a run that no trace has started: it begins its own, so its parent is itself."""
    return f"00-{blake2b(run_id.encode(), digest_size=16).hexdigest()}-{span_id_of(run_id)}-01"


def traceparent_below(traceparent: str | None, id: str) -> str | None:
    """Return the context in which the span of this run or attempt is the parent, or None if the run has none."""
    if not traceparent:
        return None
    version, trace, _, flags = traceparent.split("-")
    return f"{version}-{trace}-{span_id_of(id)}-{flags}"


def trace_id_of(traceparent: str) -> str:
    return traceparent.split("-")[1]


def parent_span_of(traceparent: str, run_id: str) -> str:
    """Return the id of the parent of the run's span, or "" if the run begins the trace."""
    parent = traceparent.split("-")[2]
    return "" if parent == span_id_of(run_id) else parent


def is_sampled(traceparent: str) -> bool:
    """Return True if the caller records the trace."""
    return bool(int(traceparent.rpartition("-")[2], 16) & SAMPLED)
