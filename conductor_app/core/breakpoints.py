"""Breakpoints of a run, and the stops that they cause.

A run stores both in one document, `Run.debug`, which is read and written with its row. A run without breakpoints has an
empty document, so that it costs no statement and no rule more than before.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .data_requests import ScriptResult
from .decision_context import DecisionContext
from .definition import Definition, Key
from .errors import Invalid
from .expressions import NeedsQuickJS, check_template, evaluate_in_process
from .expressions.templates import Expression, parse_template
from .snapshot import Attempt, Run, Task
from .states import COMPLETED

BEFORE, AFTER, FAILURE = PLACES = ("before", "after", "failure")
"""Where a breakpoint stops: before a step is scheduled, after it was completed, or after an attempt has failed."""
MAX_BREAKPOINTS = 50
MAX_EXPRESSION_LENGTH = 2_000


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A breakpoint on a step. `ref`: its reference, "" for every step. Times are epoch milliseconds.

    `until`: the time after which it stops no run. `lasts_ms`: how long a stop lasts at most. `is_temporary`: the next
    stop of the run removes it.
    """

    id: str
    ref: str
    place: str
    until: int
    lasts_ms: int
    condition: str = ""
    by: str = ""
    is_temporary: bool = False

    def to_document(self) -> dict[str, Any]:
        """Return the breakpoint as a run stores it."""
        return asdict(self)


def breakpoints_of(debug: Mapping[str, Any]) -> Iterator[Breakpoint]:
    """Yield the breakpoints in a document, with the expired ones."""
    for each in debug.get("breakpoints") or ():
        yield Breakpoint(**each)


def stops_of(debug: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the stops in a document by the id of the stopped attempt."""
    return debug.get("stops") or {}


def with_breakpoints(debug: Mapping[str, Any], found: Iterable[Breakpoint]) -> dict[str, Any]:
    """Return the document with these breakpoints instead of its own. Parts that are empty are left out."""
    whole = {**debug, "breakpoints": [each.to_document() for each in found]}
    return {name: value for name, value in whole.items() if value}


def live_breakpoints(documents: Iterable[Mapping[str, Any]], now: int) -> list[Breakpoint]:
    """Return the breakpoints of a definition that apply to a run that starts now."""
    found = breakpoints_of({"breakpoints": documents})
    return [each for each in found if now < each.until]


def require_valid(found: Breakpoint, definition: Definition) -> None:
    """Check a breakpoint that a person or a client sets.

    Raises:
        Invalid: when its step, its place or its condition is invalid; the message says what to change.
    """
    if found.place not in PLACES:
        raise Invalid(f"Unknown place {found.place[:64]!r} of a breakpoint. Use one of: {', '.join(PLACES)}.")
    if definition.step(found.ref) is None:
        known = ", ".join(sorted(definition.steps)[:20])
        raise Invalid(f"Workflow {definition.name} has no step {found.ref[:64]!r}. Its steps include: {known}.")
    if found.condition:
        require_expression(found.condition)


def steps_ahead(definition: Definition, tasks: Mapping[Key, bool], stopped: Key) -> list[str]:
    """Return the steps before which a stopped run can still stop, in their order: not begun, or in an open loop.

    `tasks`: whether each task of the run is open. `stopped`: the task at which the run stands.
    """
    begun: set[str] = set()
    ahead: set[str] = set()
    for key, is_open in tasks.items():
        will_begin = (is_open and key != stopped) or _is_in_open_loop(key, definition, tasks)
        (ahead if will_begin else begun).add(key.ref)
    return [ref for ref in definition.steps if ref in ahead or ref not in begun]


def _is_in_open_loop(key: Key, definition: Definition, tasks: Mapping[Key, bool]) -> bool:
    step = definition.step(key.ref)
    if step is None or not step.loops:
        return False
    loop = Key(step.loops[-1], key.iteration_path[:-1])
    return tasks.get(loop, False) or _is_in_open_loop(loop, definition, tasks)


def require_expression(text: str) -> None:
    """Check an expression or a condition.

    Raises:
        Invalid: when it is empty, too long, or one of its references cannot be read.
    """
    if not text.strip():
        raise Invalid("The expression is empty.")
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise Invalid(f"The expression has {len(text)} characters; the limit is {MAX_EXPRESSION_LENGTH}.")
    if errors := check_template(text):
        raise Invalid(f"The expression is invalid: {errors[0].problem}")


def split_expression(text: str) -> tuple[str, dict[str, str]]:
    """Return an expression as JavaScript that reads `$`, and the `${…}` reference behind each name in `$`.

    `${check.output.total} > 5` becomes `$.v0 > 5`: a value is never part of the script, whatever text it contains.
    """
    references: dict[str, str] = {}
    script = []
    for part in parse_template(text).parts:
        if isinstance(part, Expression):
            name = f"v{len(references)}"
            references[name] = part.source
            script.append(f"$.{name}")
        else:
            script.append(part)
    return "".join(script), references


def evaluate_values(text: str, values: Mapping[str, Any]) -> ScriptResult:
    """Return the value of an expression from the values of its references, without a helper process."""
    script, references = split_expression(text)
    if len(references) == 1 and script.strip() == "$.v0":
        return ScriptResult(values["v0"])
    try:
        return ScriptResult(evaluate_in_process(script, dict(values)))
    except NeedsQuickJS:
        return ScriptResult(
            error="Use operators and comparisons of inputs; functions and other statements need a step."
        )


def find_breakpoint(
    run: Run, ref: str, place: str, ctx: DecisionContext, now: int
) -> tuple[Breakpoint, ScriptResult] | None:
    """Return the breakpoint that stops here, with the result of its condition, or None.

    A condition that cannot be evaluated stops, so that its author sees the error.
    """
    for found in breakpoints_of(run.debug):
        if found.place == place and found.ref in ("", ref) and now < found.until:
            result = _evaluate_condition(found.condition, ctx) if found.condition else ScriptResult(True)
            if result.error or result.value:
                return found, result
    return None


def has_breakpoint(run: Run, ref: str, place: str, now: int) -> bool:
    """Return True if a breakpoint may stop here, whatever its condition says."""
    return any(
        found.place == place and found.ref in ("", ref) and now < found.until for found in breakpoints_of(run.debug)
    )


def _evaluate_condition(text: str, ctx: DecisionContext) -> ScriptResult:
    script, references = split_expression(text)
    return ctx.script("javascript", script, ctx.for_conditions().resolve(references))


def build_stop(found: Breakpoint, result: ScriptResult, task: Task, now: int) -> dict[str, Any]:
    """Return the stop of a task at a breakpoint, as the document of its run stores it."""
    stop = {"task": str(task.key), "place": found.place, "by": found.by, "since": now, "until": now + found.lasts_ms}
    return stop | ({"error": result.error[:500]} if result.error else {})


def place_after(attempt: Attempt) -> str:
    """Return the place at which a task with this ended attempt can stop, or "" while the attempt is open."""
    if attempt.status == COMPLETED:
        return AFTER
    return FAILURE if attempt.ended_badly else ""
