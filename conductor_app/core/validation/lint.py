"""Lint of the control flow: unreachable steps, joins of the wrong tasks, ambiguous references."""

from collections.abc import Iterator, Mapping
from typing import Any

from ...step_structure import Flow, structure_of_step
from ...step_tree import MAX_DEPTH, StepSpot, bodies_of, references_inside
from .evaluators import lint_evaluator
from .findings import (
    ERROR,
    NAME_CLASH,
    NO_RESULT,
    UNJOINED,
    UNKNOWN_INPUT,
    UNREACHABLE,
    UNREADABLE,
    WARNING,
    LintFinding,
    closest_name,
    did_you_mean,
)
from .scripts import names_read, reads_as_javascript, returns_nothing


def lint_control_flow(found: list[StepSpot]) -> Iterator[LintFinding]:
    """Yield the findings on control flow."""
    by_ref: dict[str, StepSpot] = {}
    for spot in found:
        yield from _lint_unreachable(spot)
        yield from _lint_name_clash(spot, by_ref)
        yield from _lint_script(spot)
    for spot in found:
        if structure_of_step(spot.step).flow is Flow.JOIN:
            yield from _lint_join(spot, by_ref)
    yield from _lint_unjoined_forks(found)


def never_continues(step: Any) -> bool:
    """Return True if control never passes the step because it ends the run in each of its cases."""
    if not isinstance(step, Mapping):
        return False
    structure = structure_of_step(step)
    if structure.flow is Flow.CHOICE:
        bodies = list(structure.bodies(step))
        return bool(bodies) and all(any(map(never_continues, body.steps)) for body in bodies)
    return structure.flow is Flow.END


def _lint_unreachable(spot: StepSpot) -> Iterator[LintFinding]:
    if spot.follows is not None and never_continues(spot.follows):
        before = spot.follows.get("taskReferenceName")
        message = f"Control never comes here: `{before}` ends the run in every case."
        yield LintFinding(WARNING, UNREACHABLE, spot.path, message)


def _lint_name_clash(spot: StepSpot, by_ref: dict[str, StepSpot]) -> Iterator[LintFinding]:
    ref, path = spot.ref, f"{spot.path}.taskReferenceName"
    if ref in by_ref:
        message = f"The reference `{ref}` is used twice. Give each step a unique reference."
        yield LintFinding(ERROR, NAME_CLASH, path, message, ref)
    elif ref == "workflow":
        message = "`workflow` means the run itself in expressions, so no expression could read the output of this step."
        yield LintFinding(WARNING, NAME_CLASH, path, message, ref)
    elif ref:
        by_ref[ref] = spot


def _lint_join(spot: StepSpot, by_ref: Mapping[str, StepSpot]) -> Iterator[LintFinding]:
    joined = spot.step.get("joinOn")
    for place, ref in enumerate(joined if isinstance(joined, list) else ()):
        if isinstance(ref, str) and ref not in by_ref and "${" not in ref:
            near = closest_name(ref, by_ref)
            message = f"There is no step `{ref}` to wait for.{did_you_mean(near)}"
            yield LintFinding(WARNING, UNJOINED, f"{spot.path}.joinOn[{place}]", message, ref, near)
    if structure_of_step(spot.step).ends_forks and isinstance(joined, list):
        yield from _lint_joined_cases(spot, [by_ref[ref] for ref in joined if isinstance(ref, str) and ref in by_ref])
    fork = spot.follows
    flow = structure_of_step(fork).flow if isinstance(fork, Mapping) else Flow.LEAF
    if not isinstance(fork, Mapping) or flow not in (Flow.FORK, Flow.DYNAMIC_FORK):
        if structure_of_step(spot.step).ends_forks and not joined:
            message = "This join follows no fork and names no tasks to join."
            yield LintFinding(WARNING, UNJOINED, spot.path, message)
    elif flow is Flow.FORK:
        yield from _compare_with_fork(spot, fork, joined)


def _lint_joined_cases(join: StepSpot, joined: list[StepSpot]) -> Iterator[LintFinding]:
    """Yield a finding for tasks that a run may never reach, and for steps that end before the tasks in their cases."""
    path = f"{join.path}.joinOn"
    for spot in joined:
        structure = structure_of_step(spot.step)
        if structure.flow is Flow.CHOICE and any(body.steps for body in structure.bodies(spot.step)):
            message = (
                f"`{spot.ref}` is completed as soon as its case is chosen, so this join does not wait for the steps in "
                "its cases. Add a step after it, such as a NOOP, and join that."
            )
            yield LintFinding(WARNING, UNJOINED, path, message, spot.ref)
    conditional = [spot for spot in joined if _is_conditional(spot, join)]
    if conditional:
        refs = " and ".join(f"`{spot.ref}`" for spot in conditional)
        runs = (
            "are alternatives of a step with cases: a run in which one of them is missing fails"
            if len(conditional) > 1
            else "runs only in one case: a run that takes another one fails"
        )
        message = (
            f"{refs} {runs} at this join. End the branch with a step after the cases, such as a NOOP, and join that."
        )
        yield LintFinding(WARNING, UNJOINED, path, message, conditional[0].ref)


def _is_conditional(spot: StepSpot, join: StepSpot) -> bool:
    """Return True if a run that reaches the join need not reach the step, because a case leads to it."""
    shared = 0
    for theirs, ours in zip(spot.levels, join.levels, strict=False):
        if theirs != ours:
            break
        shared += 1
    return any(level.flow is Flow.CHOICE and level.body != -1 for level in spot.levels[shared:])


def _lint_unjoined_forks(found: list[StepSpot]) -> Iterator[LintFinding]:
    top = [spot.step for spot in found if len(spot.levels) == 1]
    for spot, follower in zip(found, _followers(top, None), strict=True):
        if structure_of_step(spot.step).forks and (follower is None or not structure_of_step(follower).ends_forks):
            message = f"No JOIN follows `{spot.ref}`: a run fails when it reaches this fork. Add a JOIN right after it."
            yield LintFinding(WARNING, UNJOINED, spot.path, message)


def _followers(steps: list[Any], after: Mapping[str, Any] | None, depth: int = 0) -> Iterator[Mapping[str, Any] | None]:
    """Yield the step that a run goes to after each step, in the order of `spots`; None where a branch or body ends.

    The last step of a case is followed by the successor of its SWITCH, as in the layout of a definition.
    """
    known = [step for step in steps if isinstance(step, Mapping)]
    for step, follower in zip(known, [*known[1:], after], strict=False):
        yield follower
        if depth < MAX_DEPTH:
            structure = structure_of_step(step)
            after_bodies = follower if structure.flow is Flow.CHOICE else None
            for body in structure.bodies(step):
                yield from _followers(body.steps, after_bodies, depth + 1)


def _compare_with_fork(spot: StepSpot, fork: Mapping[str, Any], joined: Any) -> Iterator[LintFinding]:
    """Compare the tasks that a join names with the branches of its fork."""
    ends = [body.steps[-1].get("taskReferenceName") for body in bodies_of(fork) if _is_step(body.steps[-1:])]
    named = set(joined) if isinstance(joined, list) and all(isinstance(ref, str) for ref in joined) else set()
    if not named:
        message = f"This join names no tasks to join. The branches end with {', '.join(f'`{ref}`' for ref in ends)}."
        yield LintFinding(WARNING, UNJOINED, f"{spot.path}.joinOn", message)
    elif not named & set(references_inside(fork)):
        message = f"This join waits for no branch of the fork `{fork.get('taskReferenceName')}` before it."
        yield LintFinding(WARNING, UNJOINED, f"{spot.path}.joinOn", message)


def _is_step(steps: list[Any]) -> bool:
    return bool(steps) and isinstance(steps[0], Mapping)


def _lint_script(spot: StepSpot) -> Iterator[LintFinding]:
    """Yield findings on names that a script reads and its step does not pass."""
    step, structure = spot.step, structure_of_step(spot.step)
    field = structure.script_field
    given = step.get("inputParameters")
    inputs = given if isinstance(given, Mapping) else {}
    holder = inputs if field.startswith("inputParameters.") else step
    script = holder.get(field.rpartition(".")[2]) if field else None
    yield from lint_evaluator(spot)
    if not isinstance(script, str) or not script.strip():
        return
    if structure.allows_python and holder.get("evaluatorType") == "python":
        yield from _lint_python_script(f"{spot.path}.{field}", script)
        return
    known = {*map(str, inputs), *structure.script_inputs(step)}
    is_name = (
        structure.allows_python and structure.flow is not Flow.LOOP and holder.get("evaluatorType") == "value-param"
    )
    read = {script} if is_name else names_read(script)
    for name in sorted(read - known):
        near = closest_name(name, known)
        message = f"`{name}` is read here, but inputParameters do not give it.{did_you_mean(near)}"
        yield LintFinding(WARNING, UNKNOWN_INPUT, f"{spot.path}.{field}", message, name, near)


def _lint_python_script(path: str, script: str) -> Iterator[LintFinding]:
    """Yield findings on a script in Python that has no access to its inputs, or no result."""
    if reads_as_javascript(script):
        message = "In Python the inputs are variables: write `name` instead of `$.name`."
        yield LintFinding(WARNING, UNREADABLE, path, message)
    if returns_nothing(script):
        message = "This script has no `return`, so its value is null. In Python, the value is the returned value."
        yield LintFinding(WARNING, NO_RESULT, path, message)
