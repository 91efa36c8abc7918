"""Who follows whom: the steps of a document, laid out once."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..definition import Policy, Step
from ..errors import ValidationError, ValidationFailed
from ..frozen import fast_replace
from .policy import read_policy, read_whole_number

DEEPEST = 60
"""How deep steps may be nested in one another."""

Document = Mapping[str, Any]


SECRET = re.compile(r"\$\{\s*workflow\.secrets\.([\w-]+)")


def _named_secrets(task: Document) -> frozenset[str]:
    """The secrets that a step's author names: what runs bring along is data, and may name none."""
    template = (task.get("taskDefinition") or {}).get("inputTemplate") or {}
    written = json.dumps([task.get("inputParameters") or {}, template], default=str)
    return frozenset(SECRET.findall(written))


def try_catch_parts(task: Document) -> Iterator[tuple[str, Sequence[Document]]]:
    """The lists of steps in a TRY_CATCH, by the names of its parts."""
    yield "try", task.get("tryTasks") or ()
    for index, case in enumerate(task.get("catchCases") or ()):
        yield f"catch {index}", case.get("tasks") or ()
    yield "catch default", task.get("catchDefault") or ()
    yield "finally", task.get("finallyTasks") or ()


def item_reference(ref: str) -> str:
    """The reference under which a FOR_EACH keeps what it does for an item."""
    return f"{ref}_item"


class LayoutBuilder:
    """The steps found so far."""

    def __init__(self, *, is_ad_hoc: bool) -> None:
        self.steps: dict[str, Step] = {}
        self.is_ad_hoc = is_ad_hoc

    def sequence(self, tasks: Sequence[Document], after: str | None, loops: tuple[str, ...], depth: int) -> str | None:
        """Lay out steps that follow one another; `after` follows the last. Returns the reference of the first."""
        if depth > DEEPEST:
            raise ValidationFailed([ValidationError("tasks", f"Tasks are nested more than {DEEPEST} levels deep.")])
        if not tasks:
            return after
        refs = [str(task.get("taskReferenceName")) for task in tasks]
        for task, follower in zip(tasks, [*refs[1:], after], strict=True):
            self.step(task, follower, loops, depth)
        return refs[0]

    def step(self, task: Document, follower: str | None, loops: tuple[str, ...], depth: int) -> None:
        ref = str(task.get("taskReferenceName"))
        if ref in self.steps:
            raise ValidationFailed([ValidationError("tasks", f"taskReferenceName: {ref} is used twice.")])
        kind = str(task.get("type") or "SIMPLE")
        step = Step(
            ref=ref,
            name=str(task.get("name") or ref),
            type=kind,
            document=task,
            follower=follower,
            loops=loops,
            policy=read_policy(task, is_ad_hoc=self.is_ad_hoc),
            inputs=task.get("inputParameters") or {},
            joins=tuple(task.get("joinOn") or ()),
            optional=bool(task.get("optional")),
            permissive=bool(task.get("permissive")),
            start_delay=read_whole_number(task, "startDelay", 0),
            async_complete=bool(task.get("asyncComplete")),
            secrets=_named_secrets(task) if self.is_ad_hoc else frozenset(),
        )
        self.steps[ref] = step
        self.steps[ref] = fast_replace(step, **self._nested_fields(task, step, depth))

    def _nested_fields(self, task: Document, step: Step, depth: int) -> dict[str, Any]:
        """The fields of a step that has steps inside."""
        if step.type in ("SWITCH", "DECISION"):
            return self._case_fields(task, step, depth)
        if step.type == "FORK_JOIN":
            heads = (self.sequence(branch, None, step.loops, depth + 1) for branch in task.get("forkTasks") or ())
            return {"heads": tuple(head for head in heads if head)}
        if step.type == "DO_WHILE":
            known = set(self.steps)
            head = self.sequence(task.get("loopOver") or (), None, (*step.loops, step.ref), depth + 1)
            return {"heads": (head,) if head else (), "inside": frozenset(set(self.steps) - known)}
        if step.type == "FOR_EACH":
            return self._for_each_fields(task, step, depth)
        if step.type == "TRY_CATCH":
            return self._try_catch_fields(task, step, depth)
        return {}

    def _for_each_fields(self, task: Document, step: Step, depth: int) -> dict[str, Any]:
        """The body, in a step that stands for one item."""
        if not task.get("loopOver"):
            return {}
        known, item, loops = set(self.steps), item_reference(step.ref), (*step.loops, step.ref)
        head = self.sequence(task["loopOver"], None, (*loops, item), depth + 1)
        body = frozenset(set(self.steps) - known)
        self.steps[item] = Step(
            item, step.name, "FOR_EACH_ITEM", {}, Policy(), loops=loops, inside=body, heads=(head or "",)
        )
        return {"heads": (item,), "inside": body | {item}}

    def _try_catch_fields(self, task: Document, step: Step, depth: int) -> dict[str, Any]:
        known, loops = set(self.steps), (*step.loops, step.ref)
        heads = {name: self.sequence(tasks, None, loops, depth + 1) for name, tasks in try_catch_parts(task)}
        parts = {name: head for name, head in heads.items() if head}
        return {"parts": parts, "heads": tuple(parts.values()), "inside": frozenset(set(self.steps) - known)}

    def _case_fields(self, task: Document, step: Step, depth: int) -> dict[str, Any]:
        cases = {
            case: self._layout_case(tasks, step, depth) for case, tasks in (task.get("decisionCases") or {}).items()
        }
        return {"cases": cases, "default_case": self._layout_case(task.get("defaultCase"), step, depth)}

    def _layout_case(self, tasks: Sequence[Document] | None, step: Step, depth: int) -> str | None:
        """The head of a case; its last step is followed by what follows the switch. None: the case is empty."""
        return self.sequence(tasks, step.follower, step.loops, depth + 1) if tasks else None


def layout_steps(tasks: Sequence[Document], *, loops: tuple[str, ...] = (), is_ad_hoc: bool = True) -> dict[str, Step]:
    """The steps by reference. Raises ValidationFailed where the document cannot be laid out."""
    layout = LayoutBuilder(is_ad_hoc=is_ad_hoc)
    layout.sequence(tasks, None, loops, 0)
    return add_joins(layout.steps)


def layout_branch(steps: dict[str, Step], head: str, join: str | None) -> dict[str, Step]:
    """The steps of a branch whose document is one task: a join waits for it, and for the case that it leads to."""
    if not join:
        return steps
    last = {head, *_last_steps_of_cases(steps, steps[head])}
    return {ref: fast_replace(step, joined_by=(join,)) if ref in last else step for ref, step in steps.items()}


def _last_steps_of_cases(steps: Mapping[str, Step], switch: Step) -> Iterator[str]:
    """The last steps of the cases of a switch with which a branch ends."""
    for ref in {*switch.cases.values(), switch.default_case} - {None}:
        step = steps[str(ref)]
        while step.follower:
            step = steps[step.follower]
        yield step.ref
        yield from _last_steps_of_cases(steps, step)


def add_joins(steps: dict[str, Step]) -> dict[str, Step]:
    """The steps, each with the joins that wait for it."""
    joined_by: dict[str, list[str]] = {}
    for join in steps.values():
        if join.type in ("JOIN", "EXCLUSIVE_JOIN"):
            for ref in {*join.joins, *(join.document.get("defaultExclusiveJoinTask") or ())}:
                joined_by.setdefault(ref, []).append(join.ref)
    for ref, joins in joined_by.items():
        if ref in steps:
            steps[ref] = fast_replace(steps[ref], joined_by=tuple(joins))
    return steps
