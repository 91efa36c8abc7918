"""Layout of a document: the steps with their successors."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..definition import Policy, Step
from ..errors import ValidationError, ValidationFailed
from ..frozen import fast_replace
from ..step_structure import Flow, structure_of, type_of
from ..step_tree import MAX_DEPTH
from .policy import read_policy, read_whole_number

Document = Mapping[str, Any]


SECRET = re.compile(r"\$\{\s*workflow\.secrets\.([\w-]+)")


def _named_secrets(task: Document) -> frozenset[str]:
    """Return the secrets that the author of a step names. Values from runs are data and can name none."""
    template = (task.get("taskDefinition") or {}).get("inputTemplate") or {}
    written = json.dumps([task.get("inputParameters") or {}, template], default=str)
    return frozenset(SECRET.findall(written))


def item_reference(ref: str) -> str:
    """Return the reference of the task that a FOR_EACH creates for an item."""
    return f"{ref}_item"


class LayoutBuilder:
    """The steps found so far."""

    def __init__(self, *, is_authored: bool, allowed_secrets: frozenset[str] | None) -> None:
        self.steps: dict[str, Step] = {}
        self.is_authored = is_authored
        self.allowed_secrets = allowed_secrets if is_authored else frozenset()

    def sequence(self, tasks: Sequence[Document], after: str | None, loops: tuple[str, ...], depth: int) -> str | None:
        """Lay out consecutive steps; `after` follows the last. Returns the reference of the first.

        Raises:
            ValidationFailed: when steps are nested too deeply.
        """
        if depth > MAX_DEPTH:
            raise ValidationFailed([ValidationError("tasks", f"Tasks are nested more than {MAX_DEPTH} levels deep.")])
        if not tasks:
            return after
        refs = [str(task.get("taskReferenceName")) for task in tasks]
        for task, follower in zip(tasks, [*refs[1:], after], strict=True):
            self.step(task, follower, loops, depth)
        return refs[0]

    def step(self, task: Document, follower: str | None, loops: tuple[str, ...], depth: int) -> None:
        ref = str(task.get("taskReferenceName"))
        if ref in self.steps:
            raise ValidationFailed([ValidationError("tasks", f"taskReferenceName {ref} is used twice.")])
        step = Step(
            ref=ref,
            name=str(task.get("name") or ref),
            type=type_of(task),
            document=task,
            follower=follower,
            loops=loops,
            policy=read_policy(task, is_ad_hoc=self.is_authored),
            inputs=task.get("inputParameters") or {},
            joins=tuple(task.get("joinOn") or ()),
            optional=bool(task.get("optional")),
            permissive=bool(task.get("permissive")),
            start_delay=read_whole_number(task, "startDelay", 0),
            async_complete=bool(task.get("asyncComplete")),
            secrets=self._allowed(_named_secrets(task)) if self.is_authored else frozenset(),
            is_authored=self.is_authored,
        )
        self.steps[ref] = step
        self.steps[ref] = fast_replace(step, **self._nested_fields(task, step, depth))

    def _allowed(self, secrets: frozenset[str]) -> frozenset[str]:
        return secrets if self.allowed_secrets is None else secrets & self.allowed_secrets

    def _nested_fields(self, task: Document, step: Step, depth: int) -> dict[str, Any]:
        """Lay out the bodies of a step, and return the fields that refer to them."""
        structure = structure_of(step.type)
        bodies = tuple(structure.bodies(task))
        if not bodies:
            return {}
        known = set(self.steps) if structure.iterates else set()
        loops = (*step.loops, step.ref) if structure.iterates else step.loops
        item = item_reference(step.ref) if structure.item_type else ""
        after = step.follower if structure.flow is Flow.CHOICE else None
        around = (*loops, item) if item else loops
        heads = {
            body.name: self.sequence(body.steps, after, around, depth + 1) if body.steps else None for body in bodies
        }
        inside = frozenset(set(self.steps) - known) if structure.iterates else frozenset()
        fields: dict[str, Any] = {"bodies": heads, "heads": tuple(filter(None, heads.values())), "inside": inside}
        if not item:
            return fields
        self.steps[item] = Step(item, step.name, structure.item_type, {}, Policy(), loops=loops, **fields)
        return {"bodies": {item: item}, "heads": (item,), "inside": inside | {item}}


def layout_steps(
    tasks: Sequence[Document],
    *,
    loops: tuple[str, ...] = (),
    is_authored: bool = True,
    allowed_secrets: frozenset[str] | None = None,
) -> dict[str, Step]:
    """Return the steps by reference.

    `is_authored`: an author wrote the steps; those of a dynamic fork come from data and can name no secrets.
    `allowed_secrets`: the secrets that the steps may name, or None for all.

    Raises:
        ValidationFailed: when the document cannot be laid out.
    """
    layout = LayoutBuilder(is_authored=is_authored, allowed_secrets=allowed_secrets)
    layout.sequence(tasks, None, loops, 0)
    return add_joins(layout.steps)


def layout_branch(steps: dict[str, Step], head: str, join: str | None) -> dict[str, Step]:
    """Return the steps of a dynamic branch with one task. A join waits for it and for the case it leads to."""
    if not join:
        return steps
    last = {head, *_last_steps_of_cases(steps, steps[head])}
    return {ref: fast_replace(step, joined_by=(join,)) if ref in last else step for ref, step in steps.items()}


def _last_steps_of_cases(steps: Mapping[str, Step], switch: Step) -> Iterator[str]:
    """Yield the last steps of the cases of a switch at the end of a branch."""
    for ref in set(switch.heads if structure_of(switch.type).flow is Flow.CHOICE else ()):
        step = steps[ref]
        while step.follower:
            step = steps[step.follower]
        yield step.ref
        yield from _last_steps_of_cases(steps, step)


def add_joins(steps: dict[str, Step]) -> dict[str, Step]:
    """Return the steps, each with the joins that wait for it."""
    joined_by: dict[str, list[str]] = {}
    for join in steps.values():
        if structure_of(join.type).flow is Flow.JOIN:
            for ref in {*join.joins, *(join.document.get("defaultExclusiveJoinTask") or ())}:
                joined_by.setdefault(ref, []).append(join.ref)
    for ref, joins in joined_by.items():
        if ref in steps:
            steps[ref] = fast_replace(steps[ref], joined_by=tuple(joins))
    return steps
