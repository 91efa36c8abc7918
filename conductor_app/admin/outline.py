"""A workflow document as an indented list of steps, for whoever reads it without wanting to read JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MOST = 300
DEEPEST = 12


@dataclass(frozen=True, slots=True)
class Line:
    """One step, or the name of a branch."""

    depth: int
    ref: str
    name: str
    type: str
    branch: str = ""


def outline(document: Mapping[str, Any]) -> list[Line]:
    """The steps in the order of the document, those inside others indented."""
    lines = []
    for line in _steps(document.get("tasks"), 0):
        lines.append(line)
        if len(lines) >= MOST:
            break
    return lines


def _steps(tasks: Any, depth: int) -> Iterator[Line]:
    for task in tasks if isinstance(tasks, list) else ():
        if isinstance(task, dict) and depth <= DEEPEST:
            ref, name = str(task.get("taskReferenceName", "")), str(task.get("name", ""))
            yield Line(depth, ref, name, str(task.get("type") or "SIMPLE"))
            yield from _inside(task, depth + 1)


def _inside(task: Mapping[str, Any], depth: int) -> Iterator[Line]:
    for number, branch in enumerate(task.get("forkTasks") or ()):
        yield Line(depth, "", "", "", f"branch {number + 1}")
        yield from _steps(branch, depth + 1)
    cases = task.get("decisionCases")
    for case, branch in cases.items() if isinstance(cases, dict) else ():
        yield Line(depth, "", "", "", f"case {case}")
        yield from _steps(branch, depth + 1)
    if task.get("defaultCase"):
        yield Line(depth, "", "", "", "otherwise")
        yield from _steps(task["defaultCase"], depth + 1)
    yield from _steps(task.get("loopOver"), depth)
    yield from _steps(task.get("tryTasks"), depth)
    cases = task.get("catchCases")
    handlers = [(f"catch {number + 1}", case) for number, case in enumerate(cases if isinstance(cases, list) else ())]
    named = [(name, case.get("tasks")) for name, case in handlers if isinstance(case, dict)]
    for name, tasks in (*named, ("catch all else", task.get("catchDefault")), ("finally", task.get("finallyTasks"))):
        if tasks:
            yield Line(depth, "", "", "", name)
            yield from _steps(tasks, depth + 1)
