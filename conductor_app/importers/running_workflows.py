"""The workflows that still run on the source: how many of each definition, and since when."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .http_source import HttpSource, SourceError

OPEN = "status IN (RUNNING,PAUSED)"
PAGE_SIZE = 100


@dataclass(frozen=True, slots=True)
class RunningWorkflows:
    """The open runs of one definition. `oldest`: when the first of them started, in ISO format."""

    name: str
    count: int
    oldest: str


def find_running(source: HttpSource, names: Iterable[str]) -> list[RunningWorkflows]:
    """Return the open runs by definition, most first. The number of requests grows with the definitions, not the runs.

    `names`: the definitions to look for if there are many open runs.

    Raises:
        SourceError: when the source cannot search, for example because it has no index.
    """
    first = _search(source, OPEN, PAGE_SIZE)
    results, total = first["results"], first["totalHits"]
    if total <= len(results):
        found = _count(results)
    else:
        found = [each for name in names if "'" not in name and (each := _of_definition(source, name)).count]
        if (rest := total - sum(each.count for each in found)) > 0:
            found.append(RunningWorkflows("(of definitions that the source no longer has)", rest, ""))
    return sorted(found, key=lambda each: (-each.count, each.name))


def _of_definition(source: HttpSource, name: str) -> RunningWorkflows:
    page = _search(source, f"workflowType='{name}' AND {OPEN}", 1)
    return RunningWorkflows(name, page["totalHits"], _start_of(page["results"][0]) if page["results"] else "")


def _search(source: HttpSource, query: str, size: int) -> dict[str, Any]:
    page = source.get("/workflow/search", start=0, size=size, sort="startTime:ASC", freeText="*", query=query)
    results = page.get("results") if isinstance(page, dict) else None
    total = page.get("totalHits") if isinstance(page, dict) else None
    if not isinstance(results, list) or not isinstance(total, int):
        raise SourceError("The reply of /workflow/search is not a page of results.")
    return {"results": [each for each in results if isinstance(each, dict)], "totalHits": total}


def _count(results: list[dict[str, Any]]) -> list[RunningWorkflows]:
    starts: dict[str, list[str]] = {}
    for each in results:
        starts.setdefault(str(each.get("workflowType")), []).append(_start_of(each))
    return [RunningWorkflows(name, len(times), min(filter(None, times), default="")) for name, times in starts.items()]


def _start_of(result: dict[str, Any]) -> str:
    """Return the start of a run. Servers write it as text or in milliseconds."""
    start = result.get("startTime")
    if isinstance(start, int) and 0 < start < 2**50:
        return datetime.fromtimestamp(start / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return start[:30] if isinstance(start, str) else ""
